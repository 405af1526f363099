#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Products on the GPU whose sizes are not multiples of what its fast kernels want are computed with zeros added, and
/// the added rows and columns are dropped again (spec: passes §3). Whether that pays is decided in padding_decision.h.
/// PyTorch registers the same for joint graphs of forward and backward, which never match there (H-3) and are left out
/// here: each product of a joint graph is padded on its own.
std::span<const Rule> padProductRules();

}  // namespace cutaway
