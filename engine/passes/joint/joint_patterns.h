#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Drops views to the same shape, pairs of views and pairs of permutes that cancel (JNT-5). Visits nodes last to
/// first, each once.
Result<bool> earlyPatterns(Module& module, Rewriter& rewriter);

/// convert(convert(x, d1), d2) over floats becomes convert(x, d2) (JNT-6b); the rounding of d1 is lost, as documented
/// by PyTorch (H-7).
Result<bool> passPattern0(Module& module, Rewriter& rewriter);

}  // namespace cutaway
