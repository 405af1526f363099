#pragma once
// The pre-grad passes that run by default (spec: passes §1).
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// PRE-3: names that numpy uses for parameters (axis, keepdims, x1) become PyTorch's, where the function has those.
Result<bool> numpyCompatNormalization(Module& module, Rewriter& rewriter);
/// PRE-4: relu or tanh after a concatenation, and views of it, is computed on each part instead.
Result<bool> sinkCatAfterPointwise(Module& module, Rewriter& rewriter);
/// PRE-10: drawing from softmax probabilities as argmax(softmax(logits) / e) needs no softmax: argmax(logits - log e)
/// is the same. Only a softmax over the last dim (H-8); any dim with CompileRequest::parity, as in PyTorch.
Result<bool> applyGumbelMaxTrick(Module& module, Rewriter& rewriter);
/// PRE-13: a quantization after views moves before them, next to what it quantizes.
Result<bool> quantLiftUp(Module& module, Rewriter& rewriter);

}  // namespace cutaway
