#pragma once
// What a compilation is lent to measure with: timers of the target, figures of the device, and the store where numbers
// are kept.
#include "cutaway/request.h"

namespace cutaway {

/// Fills in what the caller has left open. Nothing is started, opened or written before a pass asks. Numbers are kept
/// apart by device and versions of its libraries; what goes wrong with the store is logged once, and numbers are
/// remembered without it. Errors: the file that the services name for them is something else.
Result<void> lendMeasuring(const CompileRequest& request, CompileServices& services);

}  // namespace cutaway
