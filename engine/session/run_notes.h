#pragma once
#include "cutaway/session.h"
#include "engine/ir/module.h"

namespace cutaway {

/// What a run of the graph takes for granted, and, where results differ from what was expected, what may be the cause:
/// a sentence each. `compiled`: kernels ran it; `roundsHalves`: they rounded half precision after each call.
std::vector<std::string> notesOf(const Module& module, const RunReport& report, bool compiled, bool roundsHalves);

}  // namespace cutaway
