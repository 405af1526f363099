#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The first sweep after partitioning: running sums of constants (PST-9), concatenations that repeat their beginning
/// (PST-10), one-pass softmax on the GPU (PST-11) and randperm indexing (MSC).
Result<bool> passPattern1(Module& module, Rewriter& rewriter);
std::span<const Rule> passPattern1Rules();

}  // namespace cutaway
