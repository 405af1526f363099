#pragma once
// The kinds of operators that the partitioner tells apart, by packet ("aten.mul"), overloads ignored, in-place ones by
// their own name (spec: ops §3; _functorch/partitioners.py, get_default_op_list). They are PyTorch's lists, with their
// gaps: a graph is cut where PyTorch cuts it only if both call the same operators fusible.
#include "engine/ir/node.h"

namespace cutaway {

/// Cheap to compute again in the backward. getitem and arithmetic on sizes count, too.
bool isRecomputable(const Node& node);
/// Can be part of one kernel with a fusible neighbour.
bool isFusibleOp(const Node& node);
/// Draws random numbers when it runs again. `rand` is not among them: it is not recomputable at all.
bool isRandomOp(const Node& node);
/// Products, convolutions, attention.
bool isComputeIntensive(const Node& node);
/// Shares its operand's memory, and costs nothing.
bool isViewOp(const Node& node);
/// Whether the reader can be part of the kernel that makes the value. Anything fuses into a concatenation.
bool isFusible(const Node& value, const Node& reader);

}  // namespace cutaway
