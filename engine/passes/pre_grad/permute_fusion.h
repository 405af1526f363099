#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// PRE-5, optional ("permute_fusion"): products with transposed operands, written so that no permute stands beside
/// them. Only permutes whose dims are separate arguments and that swap the last two of three or more dims. Leaves
/// alone: subgraphs; PyTorch gives them no example inputs, and so takes them to be on the CPU (PRE-1).
Result<bool> linearPermuteFusion(Module& module, Rewriter& rewriter);
Result<bool> permuteLinearFusion(Module& module, Rewriter& rewriter);
Result<bool> permuteMatmulFusion(Module& module, Rewriter& rewriter);

}  // namespace cutaway
