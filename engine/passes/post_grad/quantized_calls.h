#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// What only moves or compares quantized numbers of one scale works on the integers (spec: QO §8.2); products with
/// weights of eight bits and a scale per column are one call (8.3). PyTorch does not look at everything that these
/// need: other scales in front of a max-pool, ranges that are not whole (parity). Nor does a range that it chooses hold
/// 0, if the data does not (parity, §4).
std::span<const Rule> quantizedDataRules();
Result<bool> simplifyQuantizedData(Module& module, Rewriter& rewriter);

/// PyTorch's compiler gives products of integers to functions that lower them (spec: QO §8.1). Graphs that it has
/// printed hold calls of those, which stage "lowering" makes the operators again; ours hold the operators.
std::span<const Rule> quantizedFunctionCallRules();
Result<bool> callQuantizedOperators(Module& module, Rewriter& rewriter);

}  // namespace cutaway
