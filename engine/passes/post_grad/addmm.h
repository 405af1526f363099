#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// add(mm(a, b), bias) and add(bias, mm(a, b)) become addmm(bias, a, b) (PST-14b), where the product has no other
/// reader and the bias expands to its shape with the same dtype. Leaves alone: on GPU, additions read only by
/// pointwise ops, which fuse better as they are.
Result<bool> fuseAddmm(Module& module, Rewriter& rewriter);

}  // namespace cutaway
