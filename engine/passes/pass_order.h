#pragma once
// The order of a run's passes: what may be moved where.
#include <vector>

#include "engine/passes/plan.h"

namespace cutaway {

/// Moves passes of the plan, on each of its tracks, one move after the other. Errors: a name that is not in the plan;
/// an order in which a pass runs before one that it depends on, with the reason.
Result<void> movePasses(std::vector<PlannedPass>& plan, const std::vector<PassMove>& moves);

}  // namespace cutaway
