#pragma once
// Where one of two panes should look if its part of the graph would otherwise be empty.
#include "ui/graph/graph_painter.h"

namespace cutaway::ui {

/// Whether a node that is on show in `mode` stands in `view` (scene coordinates) with all of its box, or fills half of
/// the view.
bool showsNodes(const GraphScene& scene, GraphMode mode, const QRectF& view);

/// By how much `view` must move to show a node of `mode`, whole where it has room. Candidates are the nodes that are
/// the fewest edges away from what stands in the view in any mode, or all if none is connected with it; the one that
/// needs the shortest move is taken. Null if none is on show in `mode`.
QPointF wayToNearest(const GraphScene& scene, GraphMode mode, const QRectF& view);

}  // namespace cutaway::ui
