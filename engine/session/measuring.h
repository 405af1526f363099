#pragma once
// The hooks that a compilation measures with: timers of the target, figures of the device, and the store that keeps
// the numbers.
#include "cutaway/request.h"

namespace cutaway {

/// Fills in what the caller has left open. Nothing is started, opened or written before a pass asks. Numbers are kept
/// by device and versions of its libraries. A problem with the store is logged once, and numbers are then kept in
/// memory only. Errors: the file that the hooks name is not a store.
Result<void> lendMeasuring(const CompileRequest& request, CompileHooks& hooks);

}  // namespace cutaway
