#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Draws of random numbers become draws from a seed, and all seeds of a device come from one node, looked up in graph
/// order (JNT-8), so that forward and backward can draw the same numbers again. Leaves alone: draws with a generator.
Result<bool> replaceRandom(Module& module, Rewriter& rewriter);
std::span<const Rule> randomRules();

}  // namespace cutaway
