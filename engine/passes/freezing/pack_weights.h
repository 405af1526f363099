#pragma once
#include <span>

#include "engine/rewrite/rewriter.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

/// Weights that are constants are packed for the library that computes with them on the CPU, and the calls become the
/// library's (spec: quantization-and-onednn §2). Here a packed weight is the plain one: the call in the graph only says
/// which library computes it, and for what shapes. Convolutions come first (freezing §4.6, list 0): constants that
/// belong to their weights are folded by then.
std::span<const Rule> packConvolutionRules();
Result<bool> packConvolutions(Module& module, Rewriter& rewriter);
/// Products with two-dim weights (list 1).
std::span<const Rule> packLinearRules();
Result<bool> packLinears(Module& module, Rewriter& rewriter);
/// Reshapes around a packed linear layer, and a bias added to it, become part of the call (list 2).
std::span<const Rule> recoverLinearRules();
Result<bool> recoverLinears(Module& module, Rewriter& rewriter);

/// A weight that is packed twice in the same way is packed once (§2.5). PyTorch does so for transposed convolutions and
/// recurrent layers only: its other packing calls have an operand of their own each, or are not compared.
Result<bool> mergePackedWeights(Module& module, Rewriter& rewriter);

}  // namespace cutaway
