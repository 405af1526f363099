#pragma once
// Wrappers (calls that only run a graph in another mode, or attach something to it) are replaced by the calls of their
// graph.
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Inlines wrap, checkpoints, hints_wrapper, strict_mode, and in inference functions with a derivative of their own;
/// also wrap_with_set_grad_enabled and wrap_with_autocast, between calls that switch the mode and back as Python does
/// (execution_modes.h gives these their effect).
Result<bool> inlineWrappers(Module& module, Rewriter& rewriter);

/// Writes graphs that are called by invoke_subgraph at each of their calls, since the schedule takes no graphs. Until
/// then each graph stands, and is rewritten, once.
Result<bool> inlineSubgraphs(Module& module, Rewriter& rewriter);

}  // namespace cutaway
