#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// x * s - max(x * s) becomes (x - max(x)) * s, with the sign of s kept inside the maximum (JNT-7; the pass
/// pass_pattern_1): the subtraction then works on unscaled numbers, which are more accurate. Runs after attention,
/// whose patterns need the scale before the softmax. Leaves alone: scales that vary along a reduced dim.
Result<bool> rescaleSoftmax(Module& module, Rewriter& rewriter);
std::span<const Rule> softmaxRescaleRules();

}  // namespace cutaway
