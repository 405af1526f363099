#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Three or two matrix products of one tensor with constant weights of one size become one product with the weights
/// side by side, which fold into one constant, and a split (spec: freezing §4.7). On the CPU only if asked for.
Result<bool> concatProducts(Module& module, Rewriter& rewriter);

}  // namespace cutaway
