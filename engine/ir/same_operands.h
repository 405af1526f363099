#pragma once
// Graphs repeat themselves: whose type a shape rule has given once need not be asked about again.
#include <span>

#include "engine/ir/node.h"

namespace cutaway {

/// Equal in all that a type says.
bool sameWholly(const ValueType& a, const ValueType& b);
/// Whether a shape rule sees the same in both: equal literals, and values of wholly equal types.
bool sameOperands(std::span<const Argument> a, std::span<const Argument> b);

}  // namespace cutaway
