// How the memory plan is painted.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "cutaway/words.h"
#include "ui/graph/graph_colors.h"
#include "ui/models/units.h"
#include "ui/windows/memory_view.h"

namespace cutaway::ui {
namespace {

constexpr double kRoomForName = 56;  // pixels

QColor mixed(const QColor& one, const QColor& other, double share) {
    const auto mix = [share](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * share)); };
    return {mix(one.red(), other.red()), mix(one.green(), other.green()), mix(one.blue(), other.blue())};
}

const ChangeColors& colorsOf(const GraphColors& colors, MemoryMaker maker) {
    switch (maker) {
        case MemoryMaker::Kernel: return colors[Side::Forward];
        case MemoryMaker::Library: return colors[Side::Backward];
        case MemoryMaker::Reference: break;
    }
    return colors[Side::Both];
}

}  // namespace

void MemoryView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const GraphColors colors = GraphColors::of(palette());
    painter.fillRect(rect(), palette().color(QPalette::Base));
    if (m_chart.isEmpty()) {
        painter.setPen(colors.detail);
        painter.drawText(rect().adjusted(8, 8, -8, -8), Qt::AlignCenter | Qt::TextWordWrap, m_hint);
    } else {
        painter.save();
        painter.setClipRect(area().adjusted(-1, -1, 1, 1));
        paintBars(painter);
        paintLine(painter);
        painter.restore();
        paintMarks(painter);
        paintWords(painter);
    }
    painter.setPen(QPen(hasFocus() ? colors.current : colors.edge, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void MemoryView::paintBars(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    // Neighbours are told apart by three shades where there is no room for a border.
    constexpr double kShades[] = {0, 0.14, 0.28};
    const double high = painter.fontMetrics().height();
    for (int i = 0; i < m_chart.values(); ++i) {
        const MemoryValue& bar = m_chart.at(i);
        if (bar.first >= m_to || bar.last + 1 <= m_from) continue;
        const ChangeColors& changeColors =
            bar.workspace ? colors[Change::Unchanged] : colorsOf(colors, m_chart.call(bar.first).maker);
        const QRectF box = rectOf(i).intersected(area());
        const QColor fill = mixed(changeColors.fill, changeColors.line, kShades[i % 3]);
        if (box.width() < 4 || box.height() < 4) {
            painter.fillRect(box, mixed(changeColors.fill, changeColors.line, 0.35 + kShades[i % 3]));
            continue;
        }
        painter.fillRect(box, fill);
        painter.setPen(changeColors.line);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
        if (box.width() < kRoomForName || box.height() < high) continue;
        painter.setPen(changeColors.text);
        const QRectF text = box.adjusted(4, 0, -4, 0);
        painter.drawText(text, Qt::AlignLeft | Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(QString::fromStdString(bar.name), Qt::ElideMiddle,
                                                          static_cast<int>(text.width())));
    }
    if (m_chart.plan().own == 0) return;
    painter.setPen(QPen(colors.edge, 1, Qt::DashLine));
    const double border = yOf(static_cast<double>(m_chart.plan().arena));
    painter.drawLine(QPointF(area().left(), border), QPointF(area().right(), border));
}

/// The live bytes of each call, on the scale of the bars: below their upper edge where there are gaps between them.
void MemoryView::paintLine(QPainter& painter) const {
    const std::vector<int64_t>& live = m_chart.plan().live;
    QPolygonF line;
    const int from = std::max(0, static_cast<int>(m_from)), to = std::min(m_chart.calls(), static_cast<int>(m_to) + 1);
    for (int call = from; call < to; ++call) {
        const double y = yOf(static_cast<double>(live[static_cast<size_t>(call)]));
        line << QPointF(xOf(call), y) << QPointF(xOf(call + 1), y);
    }
    painter.setPen(QPen(palette().color(QPalette::Base), 4));
    painter.drawPolyline(line);
    painter.setPen(QPen(palette().color(QPalette::Text), 2));
    painter.drawPolyline(line);
}

void MemoryView::paintMarks(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    const auto upright = [&](int call, const QPen& pen) {
        const double x = xOf(call + 0.5);
        if (x < area().left() || x > area().right()) return;
        painter.setPen(pen);
        painter.drawLine(QPointF(x, area().top()), QPointF(x, area().bottom()));
    };
    const MemoryPlan& plan = m_chart.plan();
    if (m_call >= 0 && m_call != plan.peak) upright(m_call, QPen(colors.current, 1, Qt::DashLine));
    upright(plan.peak, QPen(colors.saved, 2));
    for (const int value : {m_current, m_hovered}) {
        if (value < 0) continue;
        const QRectF box = rectOf(value).adjusted(-1.5, -1.5, 1.5, 1.5);
        if (!box.intersects(area())) continue;
        painter.setPen(QPen(value == m_hovered ? colors.hover : colors.current, value == m_hovered ? 2 : 3));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box.intersected(area().adjusted(-2, -2, 2, 2)));
    }
    const double x = xOf(plan.peak + 0.5);
    if (x < area().left() || x > area().right()) return;
    const QString word = tr("peak %1").arg(sizeText(plan.largestLive()));
    const double wide = painter.fontMetrics().horizontalAdvance(word) + 8, high = painter.fontMetrics().height() + 2;
    const bool leftwards = x + wide + 4 > area().right();
    const QRectF box(leftwards ? x - wide - 4 : x + 4, area().top() + 3, wide, high);
    painter.setPen(Qt::NoPen);
    painter.setBrush(palette().color(QPalette::Base));
    painter.drawRoundedRect(box, 3, 3);
    painter.setPen(colors.saved);
    painter.drawText(box, Qt::AlignCenter, word);
}

/// Above the bars what they are, or the one under the pointer; below them the calls.
void MemoryView::paintWords(QPainter& painter) const {
    const GraphColors colors = GraphColors::of(palette());
    const double line = painter.fontMetrics().height();
    const QRectF head(area().left(), 3, area().width(), line),
        foot(area().left(), area().bottom() + 3, area().width(), line);
    const MemoryPlan& plan = m_chart.plan();
    QString said = plan.own == 0 ? tr("offset in the arena, up to %1").arg(sizeText(plan.arena))
                                 : tr("offset in the arena, up to %1; above it %2 of values with memory of their own")
                                       .arg(sizeText(plan.arena), sizeText(plan.own));
    if (m_hovered >= 0) said = m_chart.said(m_hovered);
    painter.setPen(m_hovered >= 0 ? palette().color(QPalette::Text) : colors.detail);
    painter.drawText(head, Qt::AlignLeft,
                     painter.fontMetrics().elidedText(said, Qt::ElideMiddle, static_cast<int>(head.width())));
    painter.setPen(colors.detail);
    const QString first = tr("call %1").arg(callAt(area().left()) + 1),
                  last = tr("call %1").arg(callAt(area().right() - 0.5) + 1);
    painter.drawText(foot, Qt::AlignLeft, first);
    painter.drawText(foot, Qt::AlignRight, last);
    paintLegend(painter, foot.adjusted(painter.fontMetrics().horizontalAdvance(first) + 12, 0,
                                       -painter.fontMetrics().horizontalAdvance(last) - 12, 0));
}

void MemoryView::paintLegend(QPainter& painter, const QRectF& foot) const {
    const GraphColors colors = GraphColors::of(palette());
    struct Entry {
        QString word;
        const ChangeColors* own;
    };
    std::vector<Entry> entries;
    const auto some = [&](auto&& holds) {
        return std::any_of(m_chart.plan().values.begin(), m_chart.plan().values.end(), holds);
    };
    const QString words[] = {tr("kernel"), tr("library"), tr("fallback")};
    for (const MemoryMaker maker : {MemoryMaker::Kernel, MemoryMaker::Library, MemoryMaker::Reference})
        if (some([&](const MemoryValue& v) { return !v.workspace && m_chart.call(v.first).maker == maker; }))
            entries.push_back({words[static_cast<int>(maker)], &colorsOf(colors, maker)});
    if (some([](const MemoryValue& v) { return v.workspace; }))
        entries.push_back({tr("workspace"), &colors[Change::Unchanged]});
    entries.push_back({tr("live bytes"), nullptr});
    const double box = painter.fontMetrics().height() - 4;
    double wide = 0;
    for (const Entry& entry : entries) wide += box + 4 + painter.fontMetrics().horizontalAdvance(entry.word) + 14;
    if (wide > foot.width()) return;
    double x = foot.center().x() - wide / 2;
    for (const Entry& entry : entries) {
        const QRectF mark(x, foot.top() + 2, box, box);
        if (entry.own) {
            painter.fillRect(mark, entry.own->fill);
            painter.setPen(entry.own->line);
            painter.drawRect(mark);
        } else {
            painter.setPen(QPen(palette().color(QPalette::Text), 2));
            painter.drawLine(QPointF(mark.left(), mark.center().y()), QPointF(mark.right(), mark.center().y()));
        }
        painter.setPen(colors.detail);
        painter.drawText(QPointF(x + box + 4, foot.top() + painter.fontMetrics().ascent()), entry.word);
        x += box + 4 + painter.fontMetrics().horizontalAdvance(entry.word) + 14;
    }
}

}  // namespace cutaway::ui
