#pragma once
// What the packed convolutions and linears of oneDNN have in common: weights that are "packed", and what is computed of
// a result while it is still in registers. Ours are not packed in the graph: a packed weight is the plain one, and who
// runs a call repacks it once per program, so that no graph holds a weight twice.
#include "engine/ops/expanded.h"

namespace cutaway {

/// An operand of such an expansion as f32: the library computes in f32 and rounds once.
Value widened(const Value& x);
/// The operand at a parameter, widened; None stays None.
Argument widenedOrNone(Decomposition& d, std::string_view param);
/// `y` rounded to the dtype of operand `X`.
Value rounded(Decomposition& d, const Value& y);
/// The function that the parameters `attr`, `scalars` and `algorithm` name, of y. Refuses what PyTorch refuses.
Value withUnary(Decomposition& d, const Value& y);
/// y and the operand `other`: "add", "sub", "mul" or "div".
Value withBinary(Decomposition& d, const Value& y, std::string_view attrParam);

/// The call's operands `X` and `W` are float32, bfloat16 or float16, and of one dtype; `other`, if there is one, has it
/// too. Gives X.
Result<TensorType> packedInput(const InferContext& c);
/// `other` has as many dims as the result and broadcasts to it.
Result<void> checkOther(const InferContext& c, const SymDims& result);

/// Type of operand 0 packed: its own. Errors: another rank, or a dtype other than float32, bfloat16 and float16.
Result<ValueType> inferPacked(const InferContext& c, int64_t leastRank, int64_t mostRank);
inline EvalResult evalPacked(const EvalContext& c) { return c.in(size_t{0}); }

}  // namespace cutaway
