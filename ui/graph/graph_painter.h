#pragma once
// Paints a scene: what is visible, at a level of detail that fits the zoom. State is colour and sign and outline.
#include <QPainter>

#include "ui/graph/graph_colors.h"
#include "ui/graph/graph_scene.h"
#include "ui/graph/kernel_marks.h"
#include "ui/graph/side_marks.h"

namespace cutaway::ui {

enum class GraphMode { Union, Before, After, SideBySide };

struct PaintRequest {
    QRectF area;  // scene coordinates that need paint
    double scale = 1;
    GraphMode mode = GraphMode::Union;
    int current = -1, hovered = -1;  // node indices
    NodeKey currentId = NodeKey::None;
    int op = -1;                       // its calls, and folds with such, are marked
    const SideMarks* marks = nullptr;  // take the place of the states' colours and signs
    const HeatMarks* heat = nullptr;   // so do these
    const KernelNames* kernels = nullptr;
    const QSet<quint64>* ringed = nullptr;  // nodes of the current node's kernels
};
/// What one paint cost, for tests and the log.
struct PaintWork {
    int nodes = 0, edges = 0, texts = 0;
};

/// Whether a node or edge with this change is on show in `mode`.
bool shownIn(GraphMode mode, Change change);

/// `painter` maps scene to widget already.
PaintWork paintScene(QPainter& painter, const GraphScene& scene, const GraphColors& colors,
                     const PaintRequest& request);

/// Below the first zoom a box has no more than its op's name, below the second nothing, below the third it is a plain
/// rectangle.
constexpr double kTextZoom = 0.42, kNameZoom = 0.24, kBoxZoom = 0.16;

}  // namespace cutaway::ui
