#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// What only moves or compares quantized numbers of one scale works on the integers (spec: QO §8.2); products with
/// weights of eight bits and a scale per column are one call (8.3). PyTorch does not look at everything that these
/// need: other scales in front of a max-pool, ranges that are not whole (parity).
std::span<const Rule> quantizedDataRules();
Result<bool> simplifyQuantizedData(Module& module, Rewriter& rewriter);

/// Products of integers become calls of the functions that PyTorch's compiler lowers them with, as it prints them
/// (spec: QO §8.1). The stage "lowering" turns them back.
std::span<const Rule> quantizedLoweringRules();
Result<bool> lowerQuantizedProducts(Module& module, Rewriter& rewriter);

/// The opposite, of stage "lowering".
std::span<const Rule> quantizedFunctionCallRules();
Result<bool> callQuantizedOperators(Module& module, Rewriter& rewriter);

}  // namespace cutaway
