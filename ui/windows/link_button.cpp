#include "ui/windows/link_button.h"

#include <QPainter>
#include <algorithm>

namespace cutaway::ui {
namespace {

constexpr int kLinkPad = 6, kIcon = 20;

}  // namespace

LinkButton::LinkButton(const QIcon& icon, const QString& title, const QString& more, Qt::TextElideMode elide,
                       QWidget* parent)
    : QPushButton(icon, title, parent), m_more(more), m_elide(elide) {
    setFlat(true);
    setAutoDefault(false);
    setCursor(Qt::PointingHandCursor);
    setAttribute(Qt::WA_Hover);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    setAccessibleName(title);
    setAccessibleDescription(more);
    setToolTip(more.isEmpty() ? title : title + QChar('\n') + more);
}

QFont LinkButton::titleFont() const {
    QFont bold = font();
    bold.setWeight(QFont::DemiBold);
    return bold;
}

QSize LinkButton::sizeHint() const {
    const int lines = m_more.isEmpty() ? 1 : 2;
    const int wide =
        std::max(QFontMetrics(titleFont()).horizontalAdvance(text()), fontMetrics().horizontalAdvance(m_more));
    return {wide + kIcon + 4 * kLinkPad, std::max(kIcon, lines * fontMetrics().lineSpacing()) + 2 * kLinkPad};
}

QSize LinkButton::minimumSizeHint() const {
    return {kIcon + 4 * kLinkPad + 14 * fontMetrics().averageCharWidth(), sizeHint().height()};
}

void LinkButton::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const bool hovered = underMouse() && isEnabled();
    if (hovered || isDown() || hasFocus()) {
        QColor ground = palette().color(QPalette::Highlight);
        ground.setAlphaF(isDown() ? 0.22f : hovered ? 0.12f : 0.0f);
        painter.setPen(hasFocus() ? QPen(palette().color(QPalette::Highlight), 1.6) : QPen(Qt::NoPen));
        painter.setBrush(ground);
        painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 4, 4);
    }
    const QPalette::ColorGroup group = isEnabled() ? QPalette::Active : QPalette::Disabled;
    icon().paint(&painter, QRect(kLinkPad, (height() - kIcon) / 2, kIcon, kIcon), Qt::AlignCenter,
                 isEnabled() ? QIcon::Normal : QIcon::Disabled);
    const QRect inner = rect().adjusted(kIcon + 3 * kLinkPad, kLinkPad, -kLinkPad, -kLinkPad);
    const int line = fontMetrics().lineSpacing();
    const QRect top = m_more.isEmpty() ? inner : QRect(inner.left(), inner.top(), inner.width(), line);
    painter.setFont(titleFont());
    painter.setPen(palette().color(group, isEnabled() ? QPalette::Link : QPalette::Text));
    painter.drawText(top, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                     QFontMetrics(titleFont()).elidedText(text(), Qt::ElideMiddle, top.width()));
    if (m_more.isEmpty()) return;
    painter.setFont(font());
    painter.setPen(isEnabled() ? palette().color(QPalette::PlaceholderText) : palette().color(group, QPalette::Text));
    const QRect below(inner.left(), inner.top() + line, inner.width(), line);
    painter.drawText(below, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine,
                     fontMetrics().elidedText(m_more, m_elide, below.width()));
}

}  // namespace cutaway::ui
