#pragma once
#include "engine/passes/pass.h"

namespace cutaway {

constexpr CodeRewrite kEqualCallRewrites[] = {
    {"equal call", "A call that computes what an earlier one has computed is that one", "call"}};

/// Merges calls that compute the same value: same operator, same operands, numbers equal by type, too (spec: autograd
/// B.4). Leaves alone: draws of random numbers, empty tensors, values that share memory with a returned one (they would
/// come to share it with each other), sizes that depend on data, and pairs with a writing call between them.
Result<bool> mergeEqualCalls(Module& module, Rewriter& rewriter);

}  // namespace cutaway
