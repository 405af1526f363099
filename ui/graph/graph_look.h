#pragma once
// How a picture was looked at: where, how close, and what of it was open. Kept by the history of the current place.
#include <QPointF>

#include "ui/graph/graph_picture.h"

namespace cutaway::ui {

struct GraphLook {
    OpenBoxes open;
    double scale = 1;
    bool moved = false;  // by hand: else the view frames what is new
    QPointF middle;      // of the view, in the scene
    /// The box nearest to the middle, and the way from it to there: boxes may stand elsewhere when the picture is drawn
    /// again.
    NodeKey node = NodeKey::None;
    QString module;  // where that box is a closed one
    QPointF way;
};

}  // namespace cutaway::ui
