#pragma once
// All that a session lends to a run.
#include "cutaway/request.h"
#include "engine/ir/module.h"

namespace cutaway {

/// Fills in what the caller has left open: what measures (measuring.h), and the passes of plugins, which the request
/// then says in full.
Result<void> lendHooks(const Module& input, CompileRequest& request, CompileHooks& hooks);

}  // namespace cutaway
