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
        case Change::Kept: return QObject::tr("kept");
    }
    return {};
}

inline QSizeF legendMarkSize(Change change, const QFontMetricsF& metrics) {
    return {metrics.horizontalAdvance(legendWord(change)) + 14, metrics.height() + 4};
}

inline void paintLegendMark(QPainter& painter, const QRectF& rect, Change change, const GraphColors& colors) {
    const ChangeColors& state = colors[change];
    QPen pen(state.line, change == Change::Kept ? 1.1 : 1.8);
    if (change == Change::Removed) pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(state.fill);
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4);
    painter.setPen(state.text);
    painter.drawText(rect, Qt::AlignCenter, legendWord(change));
}

}  // namespace cutaway::ui
