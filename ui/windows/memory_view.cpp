#include "ui/windows/memory_view.h"

#include <QAccessible>
#include <QKeyEvent>
#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "ui/windows/own_keys.h"
namespace cutaway::ui {
namespace {

constexpr double kMemoryMargin = 8, kLeast = 4;  // pixels; calls that are shown at least
constexpr double kStep = 1.25;                   // of one notch of the wheel

}  // namespace

MemoryView::MemoryView(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Memory plan"));
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void MemoryView::setChart(MemoryChart chart) {
    m_chart = std::move(chart);
    m_hovered = m_current = m_call = -1;
    fit();
    setAccessibleDescription(m_chart.isEmpty() ? m_hint : tr("Calls across, bytes up; a bar for each value"));
}

void MemoryView::setHint(const QString& hint) {
    m_hint = hint;
    if (m_chart.isEmpty()) setAccessibleDescription(m_hint);
    update();
}

void MemoryView::setCurrent(int value) {
    if (m_current == value) return;
    m_current = value;
    if (value >= 0) reveal(value);
    update();
}

void MemoryView::setCall(int call) {
    if (m_call == call) return;
    m_call = call;
    update();
}

void MemoryView::fit() { showCalls(0, std::max(1, m_chart.calls())); }

void MemoryView::showCalls(double from, double to) {
    const double all = std::max(1, m_chart.calls());
    const double wide = std::clamp(to - from, std::min(kLeast, all), all);
    m_from = std::clamp(from, 0.0, all - wide);
    m_to = m_from + wide;
    update();
}

/// The call stays where it is on the screen.
void MemoryView::zoom(double factor, double call) {
    const double all = std::max(1, m_chart.calls());
    const double wide = std::clamp((m_to - m_from) / factor, std::min(kLeast, all), all);
    const double share = (call - m_from) / (m_to - m_from);
    showCalls(call - share * wide, call + (1 - share) * wide);
}

QRectF MemoryView::area() const {
    const double line = fontMetrics().height();
    return QRectF(rect()).adjusted(kMemoryMargin, line + 6, -kMemoryMargin, -line - 6);
}
double MemoryView::xOf(double call) const { return area().left() + (call - m_from) / (m_to - m_from) * area().width(); }
double MemoryView::yOf(double byte) const {
    const auto height = static_cast<double>(std::max<int64_t>(1, m_chart.height()));
    return area().bottom() - byte / height * area().height();
}
int MemoryView::callAt(double x) const {
    const double call = m_from + (x - area().left()) / std::max(1.0, area().width()) * (m_to - m_from);
    return std::clamp(static_cast<int>(std::floor(call)), 0, std::max(0, m_chart.calls() - 1));
}

QRectF MemoryView::rectOf(int value) const {
    const MemoryValue& bar = m_chart.at(value);
    const auto bottom = static_cast<double>(m_chart.bottomOf(value));
    const double left = xOf(bar.first), right = std::max(left + 1, xOf(bar.last + 1));
    const double top = yOf(bottom + static_cast<double>(bar.bytes)), low = yOf(bottom);
    return {left, std::min(top, low - 1), right - left, std::max(1.0, low - top)};
}

int MemoryView::valueAt(QPointF at) const {
    constexpr double kNear = 2;
    int found = -1;
    double best = 0;
    for (int i = 0; i < m_chart.values(); ++i) {
        const QRectF bar = rectOf(i);
        const double away =
            std::max({bar.left() - at.x(), at.x() - bar.right(), bar.top() - at.y(), at.y() - bar.bottom(), 0.0});
        if (away > kNear || (found >= 0 && away >= best)) continue;
        found = i;
        best = away;
    }
    return found;
}

void MemoryView::setHovered(int value) {
    if (m_hovered == value) return;
    m_hovered = value;
    if (value >= 0) {
        setAccessibleDescription(m_chart.said(value));
        QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
        QAccessible::updateAccessibility(&changed);
    }
    update();
}

/// Scrolls only as far as it takes to show where the value begins or ends.
void MemoryView::reveal(int value) {
    const MemoryValue& bar = m_chart.at(value);
    const double wide = m_to - m_from;
    if (bar.first >= m_to - 0.5) showCalls(bar.first + 1 - wide * 0.9, bar.first + 1 + wide * 0.1);
    else if (bar.last + 1 <= m_from + 0.5) showCalls(bar.last - wide * 0.1, bar.last + wide * 0.9);
}

void MemoryView::mouseMoveEvent(QMouseEvent* event) { setHovered(valueAt(event->position())); }
void MemoryView::leaveEvent(QEvent*) { setHovered(-1); }
void MemoryView::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    if (!underMouse()) setHovered(-1);
    update();
}

void MemoryView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || m_chart.isEmpty()) return;
    emit chosen(valueAt(event->position()), callAt(event->position().x()));
}

/// Up and down zoom, sideways (or with Shift) moves.
void MemoryView::wheelEvent(QWheelEvent* event) {
    if (m_chart.isEmpty()) return event->ignore();
    const QPoint turned = event->angleDelta();
    const bool sideways = turned.x() != 0 || event->modifiers().testFlag(Qt::ShiftModifier);
    const double notches = (sideways && turned.x() != 0 ? turned.x() : turned.y()) / 120.0;
    if (sideways) {
        const double way = -notches * (m_to - m_from) / 8;
        showCalls(m_from + way, m_to + way);
    } else {
        const double share =
            std::clamp((event->position().x() - area().left()) / std::max(1.0, area().width()), 0., 1.);
        zoom(std::pow(kStep, notches), m_from + share * (m_to - m_from));
    }
    event->accept();
}

bool MemoryView::walk(int key) {
    const int last = m_chart.values() - 1, from = m_hovered >= 0 ? m_hovered : m_current;
    if (last < 0) return false;
    int to = 0;
    switch (key) {
        case Qt::Key_Left: to = std::max(0, from - 1); break;
        case Qt::Key_Right: to = std::min(last, from + 1); break;
        case Qt::Key_Home: to = 0; break;
        case Qt::Key_End: to = last; break;
        case Qt::Key_Up:
        case Qt::Key_Down:
            if (from >= 0) {
                const MemoryValue& bar = m_chart.at(from);
                const bool here = bar.first <= m_call && m_call <= bar.last;
                to = m_chart.neighbour(from, here ? m_call : bar.first, key == Qt::Key_Up);
            }
            break;
        default: return false;
    }
    setHovered(to);
    reveal(to);
    return true;
}

void MemoryView::keyPressEvent(QKeyEvent* event) {
    if (m_chart.isEmpty()) return QWidget::keyPressEvent(event);
    if (walk(event->key())) return;
    const bool isHere = m_hovered >= 0 && m_chart.at(m_hovered).first < m_to && m_chart.at(m_hovered).last >= m_from;
    const double centre = isHere ? m_chart.at(m_hovered).first + 0.5 : (m_from + m_to) / 2;
    switch (event->key()) {
        case Qt::Key_Plus:
        case Qt::Key_Equal: return zoom(kStep, std::clamp(centre, m_from, m_to));
        case Qt::Key_Minus: return zoom(1 / kStep, std::clamp(centre, m_from, m_to));
        case Qt::Key_0: return fit();
        case Qt::Key_Return:
        case Qt::Key_Enter:
        case Qt::Key_Space:
            if (m_hovered >= 0) {
                const MemoryValue& bar = m_chart.at(m_hovered);
                const bool here = bar.first <= m_call && m_call <= bar.last;
                return emit chosen(m_hovered, here ? m_call : bar.first);
            }
            break;
        default: break;
    }
    QWidget::keyPressEvent(event);
}

bool MemoryView::event(QEvent* event) {
    keepEnter(event, m_hovered >= 0);
    return QWidget::event(event);
}

}  // namespace cutaway::ui
