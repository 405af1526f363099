#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Drops calls and attribute reads that nobody uses, last first, so that whole dead chains go. Leaves alone:
/// placeholders, mutation, assertions and other impure ops.
Result<bool> eliminateDeadCode(Module& module, Rewriter& rewriter);

}  // namespace cutaway
