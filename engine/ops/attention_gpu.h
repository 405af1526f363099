#pragma once
// The fused attention kernels of GPUs, and what evaluating a kernel of any device shares.
#include <optional>
#include <string_view>

#include "engine/ops/attention_kernels.h"
#include "engine/ops/eval.h"

namespace cutaway {

Result<ValueType> inferFlash(const InferContext& c);
Result<ValueType> inferCudnn(const InferContext& c);
Result<ValueType> inferGpuBackward(const InferContext& c);
EvalResult evalFlash(const EvalContext& c);
EvalResult evalCudnn(const EvalContext& c);
EvalResult evalGpuBackward(const EvalContext& c);

/// Of an operand's dtype, sizes and order of dims, dense.
TensorType likeOperand(const TensorType& operand);
/// The operands of the call; `maskParam`: the mask's name, if the operator has one.
AttentionCall callOf(const EvalContext& c, std::string_view maskParam);
std::optional<Error> refuseDropout(const EvalContext& c);
/// Gradients of query, key and value, and as many more results as there are, which are not computed.
EvalResult evalAttentionBackward(const EvalContext& c, std::string_view maskParam, std::string_view gradient,
                                 size_t results);

}  // namespace cutaway
