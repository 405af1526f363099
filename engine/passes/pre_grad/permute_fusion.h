#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// PRE-5, optional ("permute_fusion"): products with transposed operands, written so that no permute stands beside
/// them. Only permutes with the dims as separate numbers that swap the last two dims of three or more. Leaves alone:
/// subgraphs, which PyTorch gives no example inputs, and so takes for ones on the CPU (PRE-1).
Result<bool> linearPermuteFusion(Module& module, Rewriter& rewriter);
Result<bool> permuteLinearFusion(Module& module, Rewriter& rewriter);
Result<bool> permuteMatmulFusion(Module& module, Rewriter& rewriter);

}  // namespace cutaway
