#pragma once
// The first step of lowerLoops: the loops of a kernel and its plan, with whole expressions in them and reductions as
// Alloc, Accumulate and Combine. Vector loops are marked, and still hold expressions of one element.
#include "engine/loops/loop_nest.h"

namespace cutaway {

LoweredKernel buildNests(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target);

}  // namespace cutaway
