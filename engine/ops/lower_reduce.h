#pragma once
// Lowering rule of reductions over operand 0.
#include "engine/ops/lower.h"

namespace cutaway {

/// Reduces operand 0, with each element converted to `dtype`, over the op's dims (see reduce_rules.h).
Expr lowerReduction(LowerContext& c, ReduceKind kind, DType dtype);

}  // namespace cutaway
