#pragma once
#include <vector>

#include "cutaway/snapshot.h"
#include "engine/passes/pass_runner.h"

namespace cutaway {

/// What happened to a node over a run: created, edited, put onto a side, replaced, removed, by which pass.
std::vector<NodeDetails::Life> historyOf(const CompileTrace& trace, NodeKey key);

}  // namespace cutaway
