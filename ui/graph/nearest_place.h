#pragma once
// Where one of two panes should look if its part of the graph would otherwise be empty.
#include "ui/graph/graph_painter.h"

namespace cutaway::ui {

/// Whether a node that is on show in `mode` stands in `view` (scene coordinates) with all of its box, or fills half of
/// the view.
bool showsNodes(const GraphScene& scene, GraphMode mode, const QRectF& view);

/// By how much `view` must move to show the nearest node of `mode`, whole where it has room: of those that the fewest
/// edges connect with what stands in the view in any mode, else of all, the one that the shortest way leads to. Null if
/// none is on show in `mode`.
QPointF wayToNearest(const GraphScene& scene, GraphMode mode, const QRectF& view);

}  // namespace cutaway::ui
