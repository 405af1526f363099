#pragma once
// Rewrites named after the operators at which they begin, for passes that work from a table of operators.
#include "engine/passes/pass.h"

namespace cutaway {

/// One for each operator that may return its operand unchanged.
std::vector<CodeRewrite> noopRewrites(const Pass& pass);
/// One for each shorthand operator, and one for each that has an expansion.
std::vector<CodeRewrite> compositeRewrites(const Pass& pass);
std::vector<CodeRewrite> decomposedRewrites(const Pass& pass);
/// One for each operator that only some releases of PyTorch decompose.
std::vector<CodeRewrite> keptRewrites(const Pass& pass);
/// The one rewrite of a batching pass, which starts at the calls that it batches.
std::vector<CodeRewrite> batchRewrites(const Pass& pass);

inline constexpr CodeRewrite kDeadCodeRewrites[] = {{"dead node", "A pure call that nobody reads is dropped"}};

}  // namespace cutaway
