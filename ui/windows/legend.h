#pragma once
// What the states of a difference look like, with their names: below the graph, and on exported pictures.
#include <QFontMetricsF>
#include <QPainter>

#include "ui/graph/graph_colors.h"
#include "ui/graph/graph_picture.h"

namespace cutaway::ui {

inline QString legendWord(Change change) {
    switch (change) {
        case Change::Added: return QObject::tr("+ added");
        case Change::Removed: return QObject::tr("− removed");
        case Change::Edited: return QObject::tr("~ edited");
        case Change::Unchanged: return QObject::tr("kept");
    }
    return {};
}

inline QSizeF legendMarkSize(const QString& word, const QFontMetricsF& metrics) {
    return {metrics.horizontalAdvance(word) + 14, metrics.height() + 4};
}
inline QSizeF legendMarkSize(Change change, const QFontMetricsF& metrics) {
    return legendMarkSize(legendWord(change), metrics);
}

inline void paintLegendMark(QPainter& painter, const QRectF& rect, Change change, const GraphColors& colors) {
    const ChangeColors& state = colors[change];
    QPen pen(state.line, change == Change::Unchanged ? 1.1 : 1.8);
    if (change == Change::Removed) pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(state.fill);
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4);
    painter.setPen(state.text);
    painter.drawText(rect, Qt::AlignCenter, legendWord(change));
}

/// Of calls that nothing happened to.
inline QString legendWord(OpClass opClass) {
    switch (opClass) {
        case OpClass::Product: return QObject::tr("product");
        case OpClass::Pointwise: return QObject::tr("pointwise");
        case OpClass::Reduction: return QObject::tr("reduction");
        case OpClass::View: return QObject::tr("view");
        case OpClass::Other: return QObject::tr("other");
    }
    return {};
}

inline void paintLegendMark(QPainter& painter, const QRectF& rect, OpClass opClass, const GraphColors& colors) {
    painter.setPen(QPen(colors[Change::Unchanged].line, 1.1));
    painter.setBrush(colors[opClass]);
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4);
    painter.setPen(colors[Change::Unchanged].text);
    painter.drawText(rect, Qt::AlignCenter, legendWord(opClass));
}

/// Of a partition's picture.
inline QString legendWord(Side side) {
    switch (side) {
        case Side::Forward: return QObject::tr("→ forward");
        case Side::Backward: return QObject::tr("← backward");
        case Side::Both: return QObject::tr("↻ computed again");
    }
    return {};
}
/// Of a checked run's picture.
inline void paintLegendMark(QPainter& painter, const QRectF& rect, Heat heat, const GraphColors& colors) {
    painter.setPen(QPen(colors[heat].line, heat == Heat::Wrong ? 2.5 : 1.6));
    painter.setBrush(colors[heat].fill);
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4);
    painter.setPen(colors[heat].text);
    painter.drawText(rect, Qt::AlignCenter, legendWord(heat));
}

inline QString savedWord() { return QObject::tr("saved"); }

inline void paintLegendMark(QPainter& painter, const QRectF& rect, Side side, const GraphColors& colors) {
    QPen pen(colors[side].line, 1.6);
    if (side == Side::Backward) pen.setDashPattern({4, 2});
    painter.setPen(pen);
    painter.setBrush(colors[side].fill);
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4);
    painter.setPen(colors[side].text);
    painter.drawText(rect, Qt::AlignCenter, legendWord(side));
}

inline void paintSavedMark(QPainter& painter, const QRectF& rect, const GraphColors& colors) {
    painter.setPen(QPen(colors.saved, 2.5));
    painter.setBrush(colors[Side::Forward].fill);
    painter.drawRoundedRect(rect.adjusted(2, 2, -2, -2), 4, 4);
    painter.setPen(colors[Side::Forward].text);
    painter.drawText(rect, Qt::AlignCenter, savedWord());
}

}  // namespace cutaway::ui
