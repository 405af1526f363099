#pragma once
// The optional passes on splits and concatenations of ATen graphs (PST-17). Where PyTorch's rewrite computes something
// else, ours leaves the graph alone, with or without parity: parts between which others stand, pieces of several
// tensors, stacks of some of the items, views that move over dims that are not neighbours.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// `normalization_aten_pass`: splits are split_with_sizes, and dims of splits and concatenations count from the front.
Result<bool> normalizeSplits(Module& module, Rewriter& rewriter);
std::span<const Rule> normalizeSplitRules();

/// `split_cat_aten_pass`: a run of at least `threshold_to_cat` (10) pieces of a split, or all of them, that is
/// concatenated again along the same dim, is a slice of what was split.
Result<bool> mergeSplitCatAten(Module& module, Rewriter& rewriter);
/// `select_cat_aten_pass`: all items along a dim, concatenated along the next, are a reshape.
Result<bool> mergeSelectCatAten(Module& module, Rewriter& rewriter);
/// `unbind_stack_aten_pass`: all items along a dim, stacked along it again, are the tensor. PyTorch's never applies,
/// because it compares an overload with its packet; with parity ours does not either.
Result<bool> mergeUnbindStackAten(Module& module, Rewriter& rewriter);
/// `move_view_after_cat_aten_pass`: pieces that are reshaped and concatenated in order are reshaped as a whole.
Result<bool> moveViewAfterCatAten(Module& module, Rewriter& rewriter);

}  // namespace cutaway
