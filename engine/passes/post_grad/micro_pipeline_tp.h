#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Products whose left operand is collected from the members of a group, and products whose sums are shared out to
/// them, become one call each that sends and multiplies piece by piece (PyTorch's _micro_pipeline_tp; spec: passes 6.2,
/// step 16; off by default). The calls (symm_mem.fused_*) need memory that several GPUs see, and their shapes the size
/// of a group that they only name: they can be looked at, not run here. Takes every group to have such memory. Leaves
/// alone, where PyTorch would compute something else: pieces that are joined in another order or cut along another dim,
/// reductions other than sum and avg, products whose left scales differ, and gathers of bytes that are read as another
/// dtype. With the setting reorder_for_compute_comm_overlap, as in PyTorch, also collectives that can run beside
/// another product as they are.
Result<bool> microPipelineProducts(Module& module, Rewriter& rewriter);

}  // namespace cutaway
