#pragma once
// Tests of the library table: why a library does not take a call, as a sentence; empty if it takes it.
#include <string>

#include "engine/ir/node.h"
#include "engine/loops/target.h"

namespace cutaway {

/// Takes float32, bfloat16 and float16: the library rounds once, at the end, as the operators do.
/// Of a product of f64, f32, f16 or bf16 whose matrices have dense rows or columns.
std::string whyNotDenseProduct(const Node& node, const TargetInfo& target);
/// The same of halves with an f32 result.
std::string whyNotWideProduct(const Node& node, const TargetInfo& target);
/// Of a convolution of one to three dims in f64, f32, f16 or bf16.
std::string whyNotDenseConvolution(const Node& node, const TargetInfo& target);
/// Of one in f16, bf16 or TF32, which cuDNN computes with tensor cores where channels lie last.
std::string whyNotTensorCoreConvolution(const Node& node, const TargetInfo& target);
std::string whyNotProduct(const Node& node, const TargetInfo& target);
std::string whyNotConvolution(const Node& node, const TargetInfo& target);
/// As whyNotProduct. A call in place also needs that nobody reads the memory that it writes to under another name.
std::string whyNotPacked(const Node& node, const TargetInfo& target);
/// The operand that a packed convolution adds its sums to; null if there is none or its type is not the result's.
const Node* addedOperand(const Node& convolution);
/// Takes float32, bfloat16 and float16, no dropout, and a mask of floats (added to scores) that needs no gradient.
std::string whyNotAttention(const Node& node, const TargetInfo& target);
std::string whyNotCopies(const Node& node, const TargetInfo& target);
/// Every tensor of the call has a dtype and a number of dims that the C interface knows, and no number is complex.
std::string whyNotPortable(const Node& node, const TargetInfo& target);
/// Every tensor of the call is of real numbers and has up to 8 dims, and no index is a mask.
std::string whyNotGpuFunction(const Node& node, const TargetInfo& target);
/// Halves with heads of up to 128 elements that lie side by side, without dropout, of which the output and the sums are
/// read.
std::string whyNotGpuAttention(const Node& node, const TargetInfo& target);
/// A reason where a tensor is float32, bfloat16 or float16: oneDNN, in the engine's own function, is faster at these.
std::string whySlowProduct(const Node& node);
/// The same, but for windows that oneDNN does not take.
std::string whySlowConvolution(const Node& node);
/// Takes calls with complex numbers or with a tensor without elements; kernels compute all others of the operator.
std::string whyNotLeft(const Node& node, const TargetInfo& target);
/// Always a reason: beside the engine its own functions find or check sizes. Marks operators for finderOf (exports).
std::string whyNotFound(const Node& node, const TargetInfo& target);
/// Takes calls of which more than the rows is read (by the gradient): kernels make no results of other sizes.
std::string whyNotBag(const Node& node, const TargetInfo& target);
std::string whyNotIndex(const Node& node, const TargetInfo& target);

}  // namespace cutaway
