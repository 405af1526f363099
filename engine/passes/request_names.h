#pragma once
// Checks the names in a request against what exists.
#include "engine/passes/user_passes.h"

namespace cutaway {

/// Errors: options that contradict each other; a stage, an optional pass or one of its settings that does not exist,
/// with the nearest name.
Result<void> checkNames(const CompileRequest& request);

/// Errors: something to be switched off is not a pass or rule, not even of the run's own passes.
Result<void> checkDisabled(const CompileRequest& request, const UserPasses& own);

}  // namespace cutaway
