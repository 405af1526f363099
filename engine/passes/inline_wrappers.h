#pragma once
// Calls that only run a graph in another mode, or keep something with it: its calls stand in their place.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The bodies of wrap, checkpoints, hints_wrapper and strict_mode, of functions with a derivative of their own in
/// inference, and of wrap_with_set_grad_enabled and wrap_with_autocast, these between the calls with which Python
/// switches the mode and back (execution_modes.h gives them their effect).
Result<bool> inlineWrappers(Module& module, Rewriter& rewriter);

/// Graphs that are called once or more (invoke_subgraph), for lowering, which knows no calls; the passes before see
/// each once.
Result<bool> inlineSubgraphs(Module& module, Rewriter& rewriter);

}  // namespace cutaway
