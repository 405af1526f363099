#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// What DistributedDataParallel sends (spec: passes 6.2, step 16; off by default): gradients, divided by the number of
/// members, that are summed over the group and then only returned or copied into an input. Those that follow one
/// another are sent together, once a megabyte has come together, later once `bucket_size_mb` (25) have, as
/// DistributedDataParallel itself does it: joined into one tensor, or as one call on the list of them. Leaves alone:
/// symbolic sizes, divisors that are tensors. Sums over other groups, other reductions, divisors and dtypes begin a new
/// bucket; PyTorch would join them as if they were the last one's, or stop.
Result<bool> fuseDdpByConcat(Module& module, Rewriter& rewriter);
Result<bool> fuseDdpByList(Module& module, Rewriter& rewriter);

/// Moves waits for sums over a group, and the views of what is waited for, to their first reader (PyTorch's
/// schedule_comm_wait), so that what does not need the sum runs while it is sent. PyTorch tells views by their names,
/// ours by what they call.
Result<bool> scheduleCommWait(Module& module, Rewriter& rewriter);

}  // namespace cutaway
