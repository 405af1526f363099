#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Additions, subtractions, products and quotients of a convolution (or matrix product, on request) with a constant
/// become part of its weight and bias (spec: freezing §4.2 to 4.4). One run folds at most one of a chain, since the new
/// weight is not a constant before it is folded itself.
///
/// Where a convolution of halves is worked on in f32, the weight is computed in f32 and rounded once. PyTorch folds
/// with weights in f32 and rounds them at the end (§4.5); here each fold leaves a graph whose dtypes fit: the weight is
/// rounded, the result widened again, and the next fold starts from the weight before it was rounded.
Result<bool> foldBinary(Module& module, Rewriter& rewriter);

/// Drops the widening and rounding that is left when all is folded.
Result<bool> restorePrecision(Module& module, Rewriter& rewriter);

}  // namespace cutaway
