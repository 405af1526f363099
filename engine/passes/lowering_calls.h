#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// PyTorch registers some post-grad patterns as lowerings: in the graph a match becomes a call of the pattern's
/// function, and only its lowering decides what that computes (spec: passes PST-10, PST-12, PST-13). The post-grad
/// graph holds these calls under the names that FX prints; this pass of stage "lowering" takes the decisions:
///   cat_slice_cat               one concatenation, if the repeated beginning lies in the first tensor; else the two
///   splitwithsizes_cat_replace  what was split, or a copy of it
///   cat_splitwithsizes_replace  the tensors that were concatenated, or copies of them
/// The calls' results have memory of their own, so a copy is due where an output would come to share memory, or where
/// something writes in place to what would be shared. PyTorch does not look (parity).
Result<bool> lowerCalls(Module& module, Rewriter& rewriter);
std::span<const Rule> loweringCallRules();

}  // namespace cutaway
