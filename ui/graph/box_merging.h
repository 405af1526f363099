#pragma once
// Which nodes share a box: the wishes of a picture (fold these, close that module), kept as far as no cycle of boxes
// comes of it.
#include <vector>

namespace cutaway::ui {

/// `inputs`: of each node, in an order in which inputs come first, as far as there is one. `wish`: nodes with the same
/// number want to share a box, those with -1 stand alone. Answers the box of each node. Nodes of one wish get several
/// boxes where one alone would read, over others, what it makes.
std::vector<int> mergeBoxes(const std::vector<std::vector<int>>& inputs, const std::vector<int>& wish);

}  // namespace cutaway::ui
