#pragma once
#include <span>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Parameters of which every member of a group keeps a share (FSDP2) are collected into buffers that are inputs of the
/// graph: the buffer is given memory, written to (fsdp.copy_), read, and its memory is taken back. Where a graph holds
/// all of that, readers of the buffer read what would be written to it, and the rest goes (PyTorch's
/// remove_fsdp2_unsharded_param_graph_input_usage, spec: passes 6.2, step 1, off by default). What is returned stays
/// the buffer, as in PyTorch. Leaves alone buffers that something else writes to, that are written in another type, or
/// that are read after a write through views made before it; PyTorch fails at the first and renames the others.
Result<bool> removeUnshardedParameters(Module& module, Rewriter& rewriter);

/// A member's share that lies in the buffer into which all shares are collected (fsdp.all_gather_copy_in) is collected
/// there in place (PyTorch's reinplace_fsdp_all_gather, step 27, off by default).
std::span<const Rule> fsdpGatherRules();
Result<bool> reinplaceFsdpGathers(Module& module, Rewriter& rewriter);

}  // namespace cutaway
