#pragma once
// What the shape rules of the attention kernels check of their operands.
#include "engine/ir/infer.h"

namespace cutaway {

struct AttentionOperands {
    TensorType query, key, value;
};
/// Query, key and value of four dims that fit each other.
Result<AttentionOperands> readAttention(const InferContext& c);
/// The mask, if there is one, broadcasts to queries by keys.
Result<void> checkAttentionMask(const InferContext& c, std::string_view param, const AttentionOperands& o);
/// What a backward kernel reads of the forward: 'out' and the gradient of these sizes, 'logsumexp' with a number per
/// query, or more (kernels pad them to whole blocks).
Result<void> checkAttended(const InferContext& c, std::string_view gradient, const SymDims& sizes);

}  // namespace cutaway
