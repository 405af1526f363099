#pragma once
#include <span>

#include "engine/rewrite/rewriter.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

/// Weights that are constants are packed for the library that computes with them on the CPU, and the calls become the
/// library's (spec: quantization-and-onednn §2). A packed weight is the plain one here: what stands in the graph says
/// who computes the call, and with what shapes. Convolutions first (list 0 of §4.6 of freezing), since constants that
/// belong to their weights are folded by then.
std::span<const Rule> packConvolutionRules();
Result<bool> packConvolutions(Module& module, Rewriter& rewriter);
/// Products with two-dim weights (list 1).
std::span<const Rule> packLinearRules();
Result<bool> packLinears(Module& module, Rewriter& rewriter);
/// Reshapes around a packed linear layer, and a bias added to it, become part of the call (list 2).
std::span<const Rule> recoverLinearRules();
Result<bool> recoverLinears(Module& module, Rewriter& rewriter);

/// A weight that is packed twice in one way is packed once (§2.5). PyTorch finds this for transposed convolutions and
/// recurrent layers only: its other calls make an operand of their own each, or are not looked at.
Result<bool> mergePackedWeights(Module& module, Rewriter& rewriter);

}  // namespace cutaway
