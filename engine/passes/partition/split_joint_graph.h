#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The forward and the backward of a joint graph (engine/partition). Errors: what is not a joint graph; a memory budget
/// or an option out of range; a value that can be neither saved nor computed again.
Result<std::vector<std::shared_ptr<Module>>> splitJointGraph(const Module& module, Rewriter& rewriter);

}  // namespace cutaway
