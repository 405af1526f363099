#pragma once
#include <span>

#include "engine/rewrite/rule.h"

namespace cutaway {

/// The rules of freezing that need nothing of the CPU's libraries (spec: freezing §4.6, list 0).
std::span<const Rule> freezingPattern0Rules();
Result<bool> freezingPattern0(Module& module, Rewriter& rewriter);

}  // namespace cutaway
