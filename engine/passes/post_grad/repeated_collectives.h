#pragma once
#include <span>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Of several waits for one collective, the first stays (PyTorch's deduplicate_wait_tensors); a wait for what has been
/// waited for is one of them.
Result<bool> deduplicateWaits(Module& module, Rewriter& rewriter);

/// Tensors that are reduced and scattered alike and then added are added first, so that one collective remains
/// (PyTorch's dedup_reduce_scatters, off by default). Sums of more than two end in one collective, too.
std::span<const Rule> sharedReduceScatterRules();
Result<bool> shareReduceScatters(Module& module, Rewriter& rewriter);

}  // namespace cutaway
