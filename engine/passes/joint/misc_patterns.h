#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Indexing by a random permutation never names a row twice, so adding into rows needs no atomic accumulation (MSC-1) and
/// reading them no checks (MSC-2). Used in the joint sweep and again after partitioning.
std::span<const Rule> randpermRules();

}  // namespace cutaway
