#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Drops views to the same shape, and pairs of views or permutes that cancel (JNT-5). Leaves alone: pairs whose inner
/// half has other readers.
Result<bool> earlyPatterns(Module& module, Rewriter& rewriter);
std::span<const Rule> earlyRules();

}  // namespace cutaway
