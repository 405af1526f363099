#pragma once
// Moves passes within a run, as far as their dependencies allow.
#include <vector>

#include "engine/passes/plan.h"

namespace cutaway {

/// Applies the moves one after the other, on each graph of the plan. Errors: a name that is not in the plan; an order
/// in which a pass would run before one that it depends on, with the reason.
Result<void> movePasses(std::vector<PlannedPass>& plan, const std::vector<PassMove>& moves);

}  // namespace cutaway
