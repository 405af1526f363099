#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Writes what stands between torch.vmap's _add_batch_dim and _remove_batch_dim for all examples at once. A value
/// inside has the type of one example. Each call that reads such values becomes one over tensors whose dim 0 goes
/// through the examples: by a rule for its kind of operator (batch_rules.h), through its decomposition, or, failing
/// both, as a map over the examples, so that every operator works. Nested levels go innermost first; each call and
/// level is one rewrite, after which the graph is again one for single examples.
///
/// What draws random numbers follows the level's randomness: "different" draws for all examples, "same" once.
///
/// Leaves alone: graphs without vmap. Errors, in PyTorch's words where it has some: a value that leaves its vmap, draws
/// where randomness is "error", results whose size depends on data, memory read by position (as_strided).
Result<bool> vmap(Module& module, Rewriter& rewriter);

}  // namespace cutaway
