#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Merges calls that compute the same value: same operator, same operands, numbers equal by type, too (spec: autograd
/// B.4). Leaves alone: draws of random numbers, empty tensors, values that share memory with a returned one (they would
/// come to share it with each other), sizes that depend on data, and pairs with a writing call between them.
Result<bool> mergeEqualCalls(Module& module, Rewriter& rewriter);

}  // namespace cutaway
