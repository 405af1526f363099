#pragma once
// Holds what a request names against what there is.
#include "engine/passes/user_passes.h"

namespace cutaway {

/// Errors: options that contradict each other; a stage, an optional pass or one of its settings that does not exist,
/// with the nearest name.
Result<void> checkNames(const CompileRequest& request);

/// Errors: what is to be switched off is no pass and no rule, of the run's own passes neither.
Result<void> checkDisabled(const CompileRequest& request, const UserPasses& own);

}  // namespace cutaway
