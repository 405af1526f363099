#pragma once
// Programs that use forward-mode differentiation themselves: torch.func.jvp, torch.autograd.forward_ad (spec: autograd
// C.1, C.2).
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// As a pass over a graph of ATen calls that may still write in place: computes the tangents that dual tensors carry
/// through the calls between _make_dual and _unpack_dual, and replaces both, and the levels around them. Nested levels
/// of torch.func.jvp go innermost first, so that an outer one differentiates what an inner one has made.
///
/// A tangent shares the memory that it was given, or a copy laid out like its primal; a call that writes in place
/// writes to the tangent in place, too, and a base whose view gets a tangent gets one of zeros around it.
///
/// Each dual, each tangent of a call and each unpacking is one rewrite. Leaves alone: graphs without duals.
/// Errors: PyTorch's, in its words.
Result<bool> forwardAd(Module& module, Rewriter& rewriter);

}  // namespace cutaway
