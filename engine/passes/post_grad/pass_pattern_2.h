#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The second sweep after partitioning: splits and concatenations that cancel (PST-12, PST-13), additions fused into
/// matrix products or split from them (PST-14), full reductions of values that are reduced already (PST-15).
Result<bool> passPattern2(Module& module, Rewriter& rewriter);
std::span<const Rule> passPattern2Rules();

}  // namespace cutaway
