#pragma once
// Tests of the library table: why a library does not take a call, as a sentence; empty if it takes it.
#include <string>

#include "engine/ir/node.h"

namespace cutaway {

/// The library rounds once, at the end, as the operators do.
std::string whyNotProduct(const Node& node);
std::string whyNotConvolution(const Node& node);
/// Packed calls round once, as the library does.
std::string whyNotPacked(const Node& node);
/// What a convolution adds its sums to, where that has the result's type.
const Node* addedOperand(const Node& convolution);
/// Floats of up to 32 bits, nothing dropped out, a mask that is added.
std::string whyNotAttention(const Node& node);
std::string whyNotCopies(const Node& node);
/// Every tensor of the call has a dtype and a number of dims that the C interface knows, and no number is complex.
std::string whyNotPortable(const Node& node);
/// Where the engine's function has oneDNN compute in float32.
std::string whySlowProduct(const Node& node);
/// For operators that kernels compute, but not on complex numbers, and not always where there is nothing to compute.
std::string whyNotLeft(const Node& node);
/// Here the engine's own functions find sizes in runs, and check them; exported programs have none of those.
std::string whyNotFound(const Node& node);
/// Kernels make rows alone; their gradient reads the other results, which have other sizes.
std::string whyNotBag(const Node& node);
std::string whyNotIndex(const Node& node);

}  // namespace cutaway
