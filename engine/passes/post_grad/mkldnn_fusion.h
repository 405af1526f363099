#pragma once
#include <span>

#include "engine/rewrite/rewriter.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

/// What is computed of a packed convolution or linear layer becomes part of the call, which computes it while the
/// result is still in registers (spec: quantization-and-onednn §3): a function of one operand, or the sum or difference
/// with another tensor, and relu of that. One sweep, with PyTorch's order of rules, so that of two convolutions that
/// are added the same one takes the sum.
std::span<const Rule> mkldnnFusionRules();
Result<bool> fuseIntoPackedCalls(Module& module, Rewriter& rewriter);

/// A convolution that is added to what nobody reads any more writes there (§3.3). The graph is not functional
/// afterwards.
Result<bool> addConvolutionsInPlace(Module& module, Rewriter& rewriter);

}  // namespace cutaway
