#pragma once
// Lowering rule of reductions over operand 0.
#include "engine/ops/lower.h"

namespace cutaway {

/// Reduces operand 0, with each element converted to `dtype`, over the op's dims (see reduce_rules.h).
Expr lowerReduction(LowerContext& c, ReduceKind kind, DType dtype);

/// The operand's element at the output index and the reduced index `r`, in `dtype`.
Expr reducedElement(LowerContext& c, const std::vector<Expr>& r, DType dtype);
/// The sizes of the reduced dims.
SymDims reducedBox(const LowerContext& c);

}  // namespace cutaway
