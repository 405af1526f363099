#pragma once
#include <span>

#include "engine/ir/argument.h"
#include "engine/ir/op.h"

namespace cutaway {

/// Whether values decide how many elements the result has, so that its type cannot be inferred and the one that is
/// written (with symbols of its own: u0) stands: operators of that kind that are not told an output_size, and indexing
/// by masks.
bool sizeDependsOnData(const Op& op, std::span<const Argument> args);

}  // namespace cutaway
