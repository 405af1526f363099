#pragma once
// What the shape rules of the attention kernels check of their operands.
#include "engine/ir/infer.h"

namespace cutaway {

struct AttentionOperands {
    TensorType query, key, value;
};
/// Query, key and value of four dims that fit each other.
Result<AttentionOperands> readAttention(const InferContext& c);
/// The mask, if there is one, broadcasts to queries by keys and has the query's dtype, or is float32 where the kernel
/// takes that beside any dtype.
Result<void> checkAttentionMask(const InferContext& c, std::string_view param, const AttentionOperands& o,
                                bool takesFloat);
/// What is wrong with the dtype of a mask that is added to scores, as a sentence; empty if nothing is.
std::string wrongMaskType(const TensorType& mask, const TensorType& query, bool takesFloat);
/// The root of the size of 'scale', or of what it is without one: of the query and the keys each. It follows from a
/// symbolic size of a head at run time.
Argument halfScale(const CallView& c, const SymInt& headSize);
/// What a backward kernel reads of the forward: 'out' and the gradient of these sizes, 'logsumexp' with a number per
/// query, or more (kernels pad them to whole blocks).
Result<void> checkAttended(const InferContext& c, std::string_view gradient, const SymDims& sizes);

}  // namespace cutaway
