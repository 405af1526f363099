#include "ui/windows/bisect_strip.h"

#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QMenu>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ui/graph/graph_colors.h"
#include "ui/models/words.h"
#include "ui/session/session_controller.h"
#include "ui/windows/own_keys.h"

namespace cutaway::ui {
namespace {

constexpr double kStripMargin = 7, kBar = 12, kMark = 9;

QString text(const std::string& from) { return QString::fromStdString(from); }

QString indexText(const ElementDifference& element) {
    QStringList parts;
    for (const int64_t i : element.index) parts << QString::number(i);
    return parts.isEmpty() ? QString() : "[" + parts.join(", ") + "]";
}

}  // namespace

BisectStrip::BisectStrip(SessionController& controller, Selection& selection, QWidget* parent)
    : QWidget(parent), m_controller(controller), m_selection(selection) {
    setAccessibleName(tr("Search for the rewrite that broke the graph"));
    setFocusPolicy(Qt::StrongFocus);
    QSizePolicy grows(QSizePolicy::Expanding, QSizePolicy::Fixed);
    grows.setHeightForWidth(true);
    setSizePolicy(grows);
    hide();
    connect(&controller, &SessionController::bisecting, this, &BisectStrip::setReport);
    connect(&controller, &SessionController::modelOpened, this, [this] { setReport(-1, nullptr); });
    connect(&controller, &SessionController::modelClosed, this, [this] { setReport(-1, nullptr); });
    connect(&selection, &Selection::placeChanged, this, &BisectStrip::follow);
}

void BisectStrip::setReport(RunId run, std::shared_ptr<const BisectReport> report) {
    m_run = run;
    m_report = std::move(report);
    m_current = m_report ? static_cast<int>(m_report->probes.size()) - 1 : -1;
    setAccessibleDescription(sentence());
    QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&changed);
    follow();
    updateGeometry();
    update();
}

void BisectStrip::follow() { setVisible(m_report && m_selection.place().run == m_run); }

QString BisectStrip::sentence() const {
    if (!m_report) return {};
    const BisectReport& report = *m_report;
    if (report.badAsOpened) return tr("The graph is bad without any rewrite");
    if (report.found && report.rewrite.index >= 0) {
        QString said = tr("Rewrite %1 of %2, %3 at %4")
                           .arg(report.rewrite.index + 1)
                           .arg(text(report.step.name), text(report.rewrite.rule), text(report.rewrite.node));
        if (report.value)
            said += tr(": %1%2 is %3 with it, %4 without")
                        .arg(text(report.value->output), indexText(report.value->worst),
                             text(report.value->worst.actual), text(report.value->worst.expected));
        else if (!report.failure.empty()) said += ": " + text(report.failure);
        return said;
    }
    if (report.found) return tr("%1 fails before its first rewrite").arg(text(report.step.name));
    if (report.bad > report.good) {
        QStringList known;
        for (const BisectLevel& level : report.levels) known << text(level.name);
        const QString left = counted(report.bad - report.good, tr("rewrite"), tr("rewrites"));
        return known.isEmpty() ? tr("One of %1").arg(left) : tr("One of %1, in %2").arg(left, known.join(" / "));
    }
    return report.probes.empty() ? tr("Searching") : tr("The graph is good after all rewrites");
}

QString BisectStrip::describe(int probe) const {
    const BisectProbe& one = m_report->probes[static_cast<size_t>(probe)];
    return (one.bad ? tr("Test %1, bad after %2: %3") : tr("Test %1, good after %2: %3"))
        .arg(probe + 1)
        .arg(counted(one.rewrites, tr("rewrite"), tr("rewrites")), text(one.detail));
}

/// The sentence takes as many lines as it needs: its numbers come last.
int BisectStrip::heightForWidth(int width) const {
    const QRect room(0, 0, std::max(1, width - static_cast<int>(2 * kStripMargin)), 10'000);
    const int lines = fontMetrics().boundingRect(room, Qt::TextWordWrap, sentence()).height();
    return static_cast<int>(std::ceil(kBar + 2 * kMark + 8)) + std::max(lines, fontMetrics().height());
}
QSize BisectStrip::sizeHint() const { return {240, heightForWidth(std::max(240, width()))}; }
QSize BisectStrip::minimumSizeHint() const { return {80, sizeHint().height()}; }

QRectF BisectStrip::bar() const { return {kStripMargin, kMark + 3, width() - 2 * kStripMargin, kBar}; }

double BisectStrip::across(int rewrites) const {
    const double all = std::max(1, m_report ? m_report->searched : 1);
    return bar().left() + bar().width() * std::clamp(rewrites / all, 0.0, 1.0);
}

QRectF BisectStrip::rangeLeft() const {
    if (!m_report || m_report->bad <= m_report->good) return {};
    const double from = across(m_report->good), to = across(m_report->bad);
    return {from, bar().top(), std::max(2.0, to - from), bar().height()};
}

/// Bad ones above the bar, good ones below, so that the two are told apart by more than colour.
QRectF BisectStrip::markOf(int probe) const {
    const BisectProbe& one = m_report->probes[static_cast<size_t>(probe)];
    const double top = one.bad ? bar().top() - kMark - 1 : bar().bottom() + 1;
    return {across(one.rewrites) - kMark / 2, top, kMark, kMark};
}

int BisectStrip::probeAt(QPointF at) const {
    int found = -1;
    double least = 2 * kMark;
    for (int i = 0; m_report && i < static_cast<int>(m_report->probes.size()); ++i) {
        const QPointF way = markOf(i).center() - at;
        const double far = std::hypot(way.x(), way.y());
        if (far >= least) continue;
        least = far;
        found = i;
    }
    return found;
}

std::vector<int> BisectStrip::fromLeft() const {
    std::vector<int> order(m_report ? m_report->probes.size() : 0);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return m_report->probes[static_cast<size_t>(a)].rewrites < m_report->probes[static_cast<size_t>(b)].rewrites;
    });
    return order;
}

void BisectStrip::setCurrent(int probe) {
    m_current = probe;
    if (probe >= 0) {
        setAccessibleDescription(describe(probe));
        QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
        QAccessible::updateAccessibility(&changed);
    }
    update();
}

void BisectStrip::goTo(int probe) {
    setCurrent(probe);
    const BisectProbe& one = m_report->probes[static_cast<size_t>(probe)];
    if (one.place.step < 0) return;  // compiled anew: the run has no such graph
    const bool culprit = m_report->found && one.place == m_report->culprit;
    m_selection.go(comparisonAt(one.place), culprit ? m_report->rewrite.key : m_selection.node());
}

void BisectStrip::mousePressEvent(QMouseEvent* event) {
    const int probe = event->button() == Qt::LeftButton ? probeAt(event->position()) : -1;
    if (probe >= 0) goTo(probe);
}

void BisectStrip::keyPressEvent(QKeyEvent* event) {
    const std::vector<int> order = fromLeft();
    if (order.empty()) return QWidget::keyPressEvent(event);
    const auto at = std::find(order.begin(), order.end(), m_current);
    switch (event->key()) {
        case Qt::Key_Left: return setCurrent(at == order.begin() || at == order.end() ? order.front() : *(at - 1));
        case Qt::Key_Right: return setCurrent(at == order.end() || at + 1 == order.end() ? order.back() : *(at + 1));
        case Qt::Key_Home: return setCurrent(order.front());
        case Qt::Key_End: return setCurrent(order.back());
        case Qt::Key_Return:
        case Qt::Key_Enter:
        case Qt::Key_Space:
            if (m_current >= 0) return goTo(m_current);
            break;
        default: break;
    }
    QWidget::keyPressEvent(event);
}

void BisectStrip::contextMenuEvent(QContextMenuEvent* event) {
    const bool byKey = event->reason() == QContextMenuEvent::Keyboard;
    const int probe = byKey ? m_current : probeAt(event->pos());
    if (probe < 0) return;
    setCurrent(probe);
    const BisectProbe& one = m_report->probes[static_cast<size_t>(probe)];
    QMenu menu;
    QAction* go = menu.addAction(tr("Go to the graph of this test"), this, [this, probe] { goTo(probe); });
    go->setEnabled(one.place.step >= 0);
    menu.addAction(tr("Copy command of this test"), this,
                   [command = text(one.command)] { QApplication::clipboard()->setText(command); });
    menu.exec(byKey ? mapToGlobal(markOf(probe).bottomRight().toPoint()) : event->globalPos());
}

bool BisectStrip::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const int probe = probeAt(help->pos());
        QToolTip::showText(help->globalPos(), probe >= 0 ? describe(probe) : sentence(), this);
        return true;
    }
    keepEnter(event, m_current >= 0);
    return QWidget::event(event);
}

void BisectStrip::paintSections(QPainter& painter) const {
    const QRectF box = bar();
    painter.fillRect(box, palette().color(QPalette::AlternateBase));
    int begin = 0;
    bool shaded = false;
    const BisectSection* before = nullptr;
    for (const BisectSection& section : m_report->sections) {
        const bool sameStage = before && before->graph == section.graph && before->stage == section.stage;
        if (!sameStage) shaded = !shaded;
        const QRectF part(across(begin), box.top(), across(section.end) - across(begin), box.height());
        if (shaded) painter.fillRect(part, palette().color(QPalette::Mid));
        if (before) {
            painter.setPen(QPen(palette().color(sameStage ? QPalette::Button : QPalette::WindowText), 1));
            painter.drawLine(QPointF(part.left(), box.top()), QPointF(part.left(), box.bottom()));
        }
        begin = section.end;
        before = &section;
    }
    if (const QRectF left = rangeLeft(); !left.isNull()) {
        QColor shade = palette().color(QPalette::Highlight);
        shade.setAlpha(110);
        painter.fillRect(left, shade);
        painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
        painter.drawRect(left);
    }
    painter.setPen(QPen(palette().color(QPalette::Dark), 1));
    painter.drawRect(box);
}

void BisectStrip::paintMarks(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    for (int i = 0; i < static_cast<int>(m_report->probes.size()); ++i) {
        const QRectF mark = markOf(i).adjusted(1, 1, -1, -1);
        const bool bad = m_report->probes[static_cast<size_t>(i)].bad;
        painter.setPen(QPen(colors[bad ? Change::Removed : Change::Added].line, 2, Qt::SolidLine, Qt::RoundCap));
        if (bad) {
            painter.drawLine(mark.topLeft(), mark.bottomRight());
            painter.drawLine(mark.topRight(), mark.bottomLeft());
        } else {
            painter.drawPolyline(QPolygonF(
                {{mark.left(), mark.center().y()}, {mark.left() + mark.width() / 3, mark.bottom()}, mark.topRight()}));
        }
        if (i != m_current || !hasFocus()) continue;
        painter.setPen(QPen(palette().color(QPalette::WindowText), 1));
        painter.drawRect(markOf(i).adjusted(-1, -1, 1, 1));
    }
}

void BisectStrip::paintEvent(QPaintEvent*) {
    if (!m_report) return;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    paintSections(painter);
    paintMarks(painter);
    painter.setPen(palette().color(QPalette::WindowText));
    const QRectF lines(kStripMargin, bar().bottom() + kMark + 2, bar().width(), height());
    painter.drawText(lines, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, sentence());
}

}  // namespace cutaway::ui
