#pragma once
// The split/cat family (PRE-7; spec: passes §1.4), all optional. Each needs splits in the form that normalizationPass
// writes: torch.split(x, [sizes], dim=d). Sizes that are not numbers disable a rewrite.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// split, unbind, cat, stack, squeeze, reshape, clamp and detach in one spelling each.
Result<bool> normalizationPass(Module& module, Rewriter& rewriter);
/// A split into one part is what it splits.
Result<bool> removeSplitWithSizeOne(Module& module, Rewriter& rewriter);
/// A split of one part of a split becomes part of it.
Result<bool> mergeSplits(Module& module, Rewriter& rewriter);
/// Parts that are joined again in runs are not cut apart; splits into ones that are squeezed become unbind.
Result<bool> splitCatPass(Module& module, Rewriter& rewriter);
/// unbind and stack or cat of everything is movedim (and flatten).
Result<bool> unbindStackPass(Module& module, Rewriter& rewriter);
/// A run of parts that only a concatenation reads becomes one part.
Result<bool> mergeGetitemCat(Module& module, Rewriter& rewriter);
/// A concatenation of a run of parts is a slice of what was split.
Result<bool> mutateCat(Module& module, Rewriter& rewriter);
/// The same inside longer concatenations, for runs of `threshold_to_cat` parts (10).
Result<bool> splitCatToSlices(Module& module, Rewriter& rewriter);
Result<bool> unbindCatToView(Module& module, Rewriter& rewriter);
Result<bool> splitStackToCats(Module& module, Rewriter& rewriter);
Result<bool> unbindStackToSlices(Module& module, Rewriter& rewriter);
/// A stack of reshaped parts is one reshape. Only for splits and stacks along dim 0: along others PyTorch's form of it
/// mixes up elements.
Result<bool> moveReshapeOutOfSplitStack(Module& module, Rewriter& rewriter);
/// einsum("abc,abcd->abd") whose result is added to something, as a product and a sum.
Result<bool> einsumToPointwise(Module& module, Rewriter& rewriter);

}  // namespace cutaway
