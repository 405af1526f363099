#pragma once
// The boxes of a picture in order and in clusters; for graph_picture.cpp.
#include "ui/graph/graph_picture.h"

namespace cutaway::ui {

/// A fold may have to stand before one of its members' neighbours and after another: puts the boxes back into
/// topological order, by their present order where that leaves a choice.
void sortBoxes(Picture& picture);
/// Clusters by module path, where a module holds at least two boxes and is not the whole picture; `all`: however deep.
void addClusters(Picture& picture, bool all);

}  // namespace cutaway::ui
