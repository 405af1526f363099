#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Three products of one tensor with constant weights of eight bits and scales become one with the weights below each
/// other, and a split (spec: QO §8.3). Only if asked for (enable_concat_linear).
Result<bool> concatWeightOnlyProducts(Module& module, Rewriter& rewriter);

}  // namespace cutaway
