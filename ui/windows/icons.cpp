#include "ui/windows/icons.h"

#include <QFile>
#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmapCache>
#include <QSvgRenderer>
#include <mutex>

/// Resources of a static library come along only when they are asked for by name, and not from inside a namespace.
static void loadResources() { Q_INIT_RESOURCE(cutaway); }

namespace cutaway::ui {
namespace {

QByteArray contentsOf(const QString& path) {
    static std::once_flag once;
    std::call_once(once, loadResources);
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

class LineIcon : public QIconEngine {
  public:
    explicit LineIcon(QString name)
        : m_name(std::move(name)), m_drawing(contentsOf(QStringLiteral(":/cutaway/icons/%1.svg").arg(m_name))) {}

    QIconEngine* clone() const override { return new LineIcon(*this); }
    QString key() const override { return QStringLiteral("cutaway-line"); }
    QString iconName() override { return m_name; }
    bool isNull() override { return m_drawing.isEmpty(); }

    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
        draw(*painter, rect, mode);
    }
    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State) override {
        const QString key = QStringLiteral("cutaway-icon/%1/%2x%3/%4/%5")
                                .arg(m_name)
                                .arg(size.width())
                                .arg(size.height())
                                .arg(lines(mode).rgb())
                                .arg(accent(mode).rgb());
        QPixmap pixmap;
        if (QPixmapCache::find(key, &pixmap)) return pixmap;
        pixmap = QPixmap(size);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        draw(painter, QRect(QPoint(), size), mode);
        painter.end();
        QPixmapCache::insert(key, pixmap);
        return pixmap;
    }

  private:
    static QColor lines(QIcon::Mode mode) {
        const QPalette palette = QGuiApplication::palette();
        return mode == QIcon::Disabled
                   ? palette.color(QPalette::Disabled, QPalette::ButtonText)
                   : palette.color(mode == QIcon::Selected ? QPalette::HighlightedText : QPalette::ButtonText);
    }
    static QColor accent(QIcon::Mode mode) {
        return mode == QIcon::Normal || mode == QIcon::Active ? QGuiApplication::palette().color(QPalette::Link)
                                                              : lines(mode);
    }

    void draw(QPainter& painter, const QRect& rect, QIcon::Mode mode) const {
        QByteArray drawing = m_drawing;
        drawing.replace("currentColor", lines(mode).name().toLatin1())
            .replace("accentColor", accent(mode).name().toLatin1());
        QSvgRenderer renderer(drawing);
        const int side = std::min(rect.width(), rect.height());
        renderer.render(&painter, QRectF(rect.x() + (rect.width() - side) / 2.0,
                                         rect.y() + (rect.height() - side) / 2.0, side, side));
    }

    QString m_name;
    QByteArray m_drawing;
};

}  // namespace

QIcon iconNamed(const QString& name) {
    auto* engine = new LineIcon(name);
    if (engine->isNull()) qFatal("no icon is called %s", qPrintable(name));
    return QIcon(engine);
}

QIcon programIcon() {
    QIcon icon;
    QSvgRenderer renderer(contentsOf(QStringLiteral(":/cutaway/cutaway.svg")));
    for (int side : {16, 24, 32, 48, 64, 128, 256}) {
        QPixmap pixmap(side, side);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        renderer.render(&painter);
        painter.end();
        icon.addPixmap(pixmap);
    }
    return icon;
}

}  // namespace cutaway::ui
