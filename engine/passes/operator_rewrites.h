#pragma once
// Rewrites that are named by the operators they begin at, for the rows of passes that work off a table of those.
#include "engine/passes/pass.h"

namespace cutaway {

/// One for each operator that may return its operand unchanged.
std::vector<CodeRewrite> noopRewrites(const Pass& pass);
/// One for each shorthand operator, and one for each that has an expansion.
std::vector<CodeRewrite> compositeRewrites(const Pass& pass);
std::vector<CodeRewrite> decomposedRewrites(const Pass& pass);
/// The pass's own: it has one, which starts at what is batched.
std::vector<CodeRewrite> batchRewrites(const Pass& pass);

inline constexpr CodeRewrite kDeadCodeRewrites[] = {{"dead node", "A pure call that nobody reads is dropped"}};

}  // namespace cutaway
