#pragma once
// The split/cat family (PRE-7; spec: passes §1.4), all optional. Each needs splits in the form that normalizationPass
// writes: torch.split(x, [sizes], dim=d). Sizes that are not numbers disable a rewrite.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Gives split, unbind, cat, stack, squeeze, reshape, clamp and detach one form each.
Result<bool> normalizationPass(Module& module, Rewriter& rewriter);
/// A split into one part is replaced by its operand.
Result<bool> removeSplitWithSizeOne(Module& module, Rewriter& rewriter);
/// A split of a part is merged into the split that made the part.
Result<bool> mergeSplits(Module& module, Rewriter& rewriter);
/// Neighbouring parts that are joined again become one part; a split into parts of size 1 that are squeezed becomes
/// unbind.
Result<bool> splitCatPass(Module& module, Rewriter& rewriter);
/// unbind followed by stack (or cat) of all items becomes movedim (and flatten).
Result<bool> unbindStackPass(Module& module, Rewriter& rewriter);
/// Neighbouring parts that only one concatenation reads become one part.
Result<bool> mergeGetitemCat(Module& module, Rewriter& rewriter);
/// A concatenation of neighbouring parts becomes a slice of what was split.
Result<bool> mutateCat(Module& module, Rewriter& rewriter);
/// The same for runs of at least `threshold_to_cat` (10) parts within longer concatenations.
Result<bool> splitCatToSlices(Module& module, Rewriter& rewriter);
Result<bool> unbindCatToView(Module& module, Rewriter& rewriter);
Result<bool> splitStackToCats(Module& module, Rewriter& rewriter);
Result<bool> unbindStackToSlices(Module& module, Rewriter& rewriter);
/// A stack of reshaped parts becomes one reshape. Only for splits and stacks along dim 0: along others PyTorch's form
/// mixes up elements.
Result<bool> moveReshapeOutOfSplitStack(Module& module, Rewriter& rewriter);
/// einsum("abc,abcd->abd") whose result is added to something becomes a multiplication and a sum.
Result<bool> einsumToPointwise(Module& module, Rewriter& rewriter);

}  // namespace cutaway
