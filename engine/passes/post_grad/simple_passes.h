#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Every aten.view becomes aten.reshape, which copies where strides do not allow a view (PST-0). Done before anything
/// changes strides. The nodes stay the same nodes.
Result<bool> viewToReshape(Module& module, Rewriter& rewriter);

/// Drops the marks that PyTorch's profiler leaves (PST-4).
Result<bool> removeProfilerOps(Module& module, Rewriter& rewriter);

/// Drops assertions about a tensor's dtype and device, which have held since capture (PST-6).
Result<bool> removeAssertOps(Module& module, Rewriter& rewriter);

/// Moves each call directly before its first reader where that is free to do, walking backwards (PST-2): values are
/// made shortly before they are read. Inference only. Leaves alone: getitem, mutation, what stands behind the first
/// copy_.
Result<bool> reorderForLocality(Module& module, Rewriter& rewriter);

/// Puts every node after its operands. One rewrite, whatever it moves.
Result<bool> stableSort(Module& module, Rewriter& rewriter);

/// Tensors made on the CPU only to be used on the GPU are made there (PST-18). Leaves alone: graphs on one device or on
/// several GPUs, tensors that anything but GPU indexing, copying or scattering reads as they are.
Result<bool> moveConstructorsToGpu(Module& module, Rewriter& rewriter);

/// Finds the types of calls anew whose sizes, dtype or device contradict their operands, and of what reads them
/// (PST-3). Every rewrite types what it makes, so in a graph of Cutaway's own there is nothing to do; graphs from
/// elsewhere may be stale. Leaves alone: strides that only differ from what the shape rule would choose.
Result<bool> updateFakeTensors(Module& module, Rewriter& rewriter);

}  // namespace cutaway
