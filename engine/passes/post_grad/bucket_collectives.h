#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Collectives of one kind, group, reduction and dtype that are waited for one after the other become one on the joined operands
/// (PyTorch's bucket_*_fx, off by default; spec: passes 6.2, step 22). `bucket_cap_mb` (2000) limits what one joins; a collective that
/// depends on one in the bucket is left out. The order of other collectives stays, because all members of a group must agree on it.
/// Gathers are joined in functional form (PyTorch's mode "functional"; its default writes into a buffer of its own).
/// Leaves alone: symbolic sizes, results that are read by more than the wait, conversions before a gather.
Result<bool> bucketReduceScatters(Module& module, Rewriter& rewriter);
Result<bool> bucketAllReduces(Module& module, Rewriter& rewriter);
Result<bool> bucketAllGathers(Module& module, Rewriter& rewriter);

}  // namespace cutaway
