#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// `efficient_conv_bn_eval_pass` (PRE-9): a batch norm in evaluation mode that alone reads a convolution or linear
/// layer scales that layer's weight and bias instead of its result, each time it runs. Leaves alone: norms over another
/// dim than the layer's channels (linear layers of more than two dims, unbatched convolutions) and grouped transposed
/// convolutions, where PyTorch computes something else or fails; norms that are modules, which no graph that Cutaway
/// reads has.
Result<bool> efficientConvBnEval(Module& module, Rewriter& rewriter);

}  // namespace cutaway
