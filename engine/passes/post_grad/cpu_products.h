#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Products of one tensor on the CPU, each with weights of its own and nothing else read from the tensor (spec:
/// passes 6.2, step 6; off by default). Leaves everything alone where one reader of the tensor is not such a product.

/// Weights of 4 bits (aten._weight_int4pack_mm_for_cpu) that are tensors of the module: the weights, joined and packed
/// anew, become tensors of the module, and the results slices of one product (PyTorch's cpp.enable_concat_linear).
/// PyTorch looks for equally many columns and equal groups, and so does this.
Result<bool> concatInt4Linear(Module& module, Rewriter& rewriter);

/// oneDNN's linear (mkldnn._linear_pointwise) with weights of equal sizes: one call that reads the tensor once
/// (PyTorch's cpp.enable_grouped_gemm_template with max_autotune). Calls with a function behind the product stay, which
/// PyTorch's rewrite would lose.
Result<bool> groupLinears(Module& module, Rewriter& rewriter);

}  // namespace cutaway
