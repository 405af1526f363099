#include "ui/windows/plot_view.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/graph/graph_colors.h"
#include "ui/windows/own_keys.h"

namespace cutaway::ui {
namespace {

constexpr double kPlotMargin = 8, kDot = 4.5;

}  // namespace

PlotView::PlotView(const QString& name, QWidget* parent) : QWidget(parent) {
    setAccessibleName(name);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void PlotView::setPlot(Plot plot) {
    m_plot = std::move(plot);
    m_hovered = m_current = -1;
    m_first = m_widest = m_highest = 0;
    if (!m_plot.points.empty()) m_first = m_plot.points.front().x;
    for (const PlotPoint& point : m_plot.points) {
        m_first = std::min(m_first, point.x);
        m_widest = std::max(m_widest, point.x);
        m_highest = std::max(m_highest, point.y);
    }
    setAccessibleDescription(m_plot.points.empty() ? m_hint : m_plot.up + QStringLiteral(" / ") + m_plot.across);
    update();
}

void PlotView::setHint(const QString& hint) {
    m_hint = hint;
    update();
}

void PlotView::setMarks(std::vector<PlotMark> marks) {
    m_marks = std::move(marks);
    update();
}

void PlotView::setCurrent(int point) {
    if (m_current == point) return;
    m_current = point;
    update();
}

QRectF PlotView::area() const {
    const double line = fontMetrics().height();
    return QRectF(rect()).adjusted(kPlotMargin, line + 6, -kPlotMargin, -line - 6);
}

QPointF PlotView::toWidget(double x, double y) const {
    const QRectF box = area().adjusted(kDot, kDot, -kDot, 0);
    const double wide = m_widest - m_first;
    return {box.left() + (wide > 0 ? std::clamp((x - m_first) / wide, 0.0, 1.0) * box.width() : box.width() / 2),
            box.bottom() - (m_highest > 0 ? std::clamp(y / m_highest, 0.0, 1.0) * box.height() : 0)};
}

QPointF PlotView::positionOf(int point) const {
    const PlotPoint& at = m_plot.points[static_cast<size_t>(point)];
    return toWidget(at.x, at.y);
}

/// Where values hold until the next point, the one to the left of the pointer; else the nearest.
int PlotView::nearest(QPointF at) const {
    int found = -1;
    double least = 0;
    for (int i = 0; i < static_cast<int>(m_plot.points.size()); ++i) {
        const QPointF way = positionOf(i) - at;
        const double far = m_plot.stepped ? std::abs(way.x()) : std::hypot(way.x(), way.y());
        if (found >= 0 && far >= least) continue;
        found = i;
        least = far;
    }
    return found;
}

void PlotView::setHovered(int point) {
    if (m_hovered == point) return;
    m_hovered = point;
    if (point >= 0) {
        setAccessibleDescription(m_plot.points[static_cast<size_t>(point)].said);
        QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
        QAccessible::updateAccessibility(&changed);
    }
    update();
}

void PlotView::mouseMoveEvent(QMouseEvent* event) { setHovered(nearest(event->position())); }
void PlotView::leaveEvent(QEvent*) { setHovered(-1); }
void PlotView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    if (!underMouse()) setHovered(-1);
}

void PlotView::mousePressEvent(QMouseEvent* event) {
    const int point = event->button() == Qt::LeftButton ? nearest(event->position()) : -1;
    if (point >= 0) emit chosen(point);
}

void PlotView::keyPressEvent(QKeyEvent* event) {
    const int last = static_cast<int>(m_plot.points.size()) - 1;
    const int from = m_hovered >= 0 ? m_hovered : std::max(m_current, 0);
    switch (event->key()) {
        case Qt::Key_Left: return setHovered(std::min(last, std::max(0, from - 1)));
        case Qt::Key_Right: return setHovered(std::min(last, m_hovered < 0 ? from : from + 1));
        case Qt::Key_Home: return setHovered(std::min(last, 0));
        case Qt::Key_End: return setHovered(last);
        case Qt::Key_Return:
        case Qt::Key_Enter:
        case Qt::Key_Space:
            if (m_hovered >= 0) return emit chosen(m_hovered);
            break;
        default: break;
    }
    QWidget::keyPressEvent(event);
}

bool PlotView::event(QEvent* event) {
    keepEnter(event, m_hovered >= 0);
    return QWidget::event(event);
}

void PlotView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const GraphColors colors = GraphColors::of(palette());
    painter.fillRect(rect(), palette().color(QPalette::Base));
    if (m_plot.points.empty()) {
        painter.setPen(colors.detail);
        painter.drawText(rect().adjusted(8, 8, -8, -8), Qt::AlignCenter | Qt::TextWordWrap, m_hint);
    } else {
        painter.setPen(QPen(colors.edge, 1));
        painter.drawLine(area().bottomLeft(), area().bottomRight());
        paintLine(painter);
        paintMarks(painter);
        paintWords(painter);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(hasFocus() ? colors.current : colors.edge, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void PlotView::paintLine(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    QPainterPath line;
    for (int i = 0; i < static_cast<int>(m_plot.points.size()); ++i) {
        const QPointF at = positionOf(i);
        if (i == 0) line.moveTo(at);
        else if (m_plot.stepped || m_plot.cornered) line.lineTo(at.x(), line.currentPosition().y());
        line.lineTo(at);
    }
    if (m_plot.stepped) {
        QPainterPath below = line;
        below.lineTo(line.currentPosition().x(), area().bottom());
        below.lineTo(positionOf(0).x(), area().bottom());
        below.closeSubpath();
        QColor fill = colors[Side::Forward].line;
        fill.setAlphaF(0.22f);
        painter.fillPath(below, fill);
    }
    if (m_plot.divider >= 0) {
        const double x = toWidget(m_plot.divider, 0).x();
        painter.setPen(QPen(colors.edge, 1, Qt::DashLine));
        painter.drawLine(QPointF(x, area().top()), QPointF(x, area().bottom()));
    }
    painter.setPen(QPen(colors[Side::Forward].line, 1.6));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(line);
    if (m_plot.stepped || m_plot.points.size() > 60) return;
    painter.setBrush(colors[Side::Forward].line);
    painter.setPen(Qt::NoPen);
    for (int i = 0; i < static_cast<int>(m_plot.points.size()); ++i) painter.drawEllipse(positionOf(i), 2.2, 2.2);
}

void PlotView::paintMarks(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    std::vector<QRectF> taken;
    for (const PlotMark& mark : m_marks) {
        const QPointF at = toWidget(mark.x, mark.y);
        painter.setPen(QPen(colors.saved, 2));
        painter.setBrush(mark.filled ? QBrush(colors.saved) : QBrush(palette().color(QPalette::Base)));
        painter.drawEllipse(at, kDot, kDot);
        const double wide = fontMetrics().horizontalAdvance(mark.name), high = fontMetrics().height();
        // Beside the dot, on the side that has room.
        const bool leftwards = at.x() + wide + 12 > area().right();
        const double y = std::clamp(at.y() - high / 2, area().top(), area().bottom() - high);
        QRectF name(leftwards ? at.x() - wide - 9 : at.x() + 9, y, wide + 2, high);
        for (const QRectF& other : taken)
            if (name.intersects(other))
                name.moveTop(other.bottom() + high <= area().bottom() ? other.bottom() : other.top() - high);
        taken.push_back(name);
        painter.setPen(palette().color(QPalette::Text));
        painter.drawText(name, Qt::AlignLeft, mark.name);
    }
    for (const int point : {m_current, m_hovered}) {
        if (point < 0 || point >= static_cast<int>(m_plot.points.size())) continue;
        painter.setPen(QPen(point == m_hovered ? colors.hover : colors.current, 1.5));
        painter.setBrush(Qt::NoBrush);
        const QPointF at = positionOf(point);
        if (m_plot.stepped) painter.drawLine(QPointF(at.x(), area().top()), QPointF(at.x(), area().bottom()));
        painter.drawEllipse(at, kDot + 1, kDot + 1);
    }
}

/// Above the plot what goes up, or the numbers of the point under the pointer; below it the ends of the axis.
void PlotView::paintWords(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    const QRectF head(area().left(), 3, area().width(), fontMetrics().height());
    const QRectF foot(area().left(), area().bottom() + 2, area().width(), fontMetrics().height());
    const int room = static_cast<int>(head.width());
    if (m_hovered >= 0) {
        painter.setPen(palette().color(QPalette::Text));
        painter.drawText(
            head, Qt::AlignLeft,
            fontMetrics().elidedText(m_plot.points[static_cast<size_t>(m_hovered)].said, Qt::ElideMiddle, room));
    } else {
        painter.setPen(colors.detail);
        const QString text = m_plot.top.isEmpty() ? m_plot.up : tr("%1, up to %2").arg(m_plot.up, m_plot.top);
        painter.drawText(head, Qt::AlignLeft, fontMetrics().elidedText(text, Qt::ElideRight, room));
    }
    painter.setPen(colors.detail);
    painter.drawText(foot, Qt::AlignLeft, m_plot.least);
    painter.drawText(foot, Qt::AlignRight, m_plot.most);
    const int taken = fontMetrics().horizontalAdvance(m_plot.least + m_plot.most) + 24;
    if (room > taken)
        painter.drawText(foot, Qt::AlignHCenter, fontMetrics().elidedText(m_plot.across, Qt::ElideRight, room - taken));
}

}  // namespace cutaway::ui
