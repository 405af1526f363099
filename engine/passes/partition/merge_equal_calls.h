#pragma once
#include "engine/passes/pass.h"

namespace cutaway {

constexpr CodeRewrite kEqualCallRewrites[] = {
    {"equal call", "A call that computes what an earlier one has computed is that one", "call"}};

/// Merges calls that compute the same value: same operator, same operands, numbers equal by type, too (spec: autograd
/// B.4). Leaves alone: draws of random numbers, empty tensors, values that share memory with a returned one (they would
/// come to share it with each other), sizes that depend on data, and pairs with a writing call between them.
Result<bool> mergeEqualCalls(Module& module, Rewriter& rewriter);

/// The same of a joint graph. From PyTorch 2.14 on, a call that no gradient depends on stays apart from one that a
/// gradient depends on: merged, it would be one more value that the forward saves.
Result<bool> mergeEqualCallsBySide(Module& module, Rewriter& rewriter);

}  // namespace cutaway
