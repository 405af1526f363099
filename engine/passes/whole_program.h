#pragma once
// What a run computes as a whole at one of its steps: behind a split, both halves together.
#include "engine/passes/pass_runner.h"

namespace cutaway {

/// The step that split the graph; null if none did.
const Step* splitStepOf(const CompileTrace& trace);

/// `graph`, which stands at the trace's step `step` (before it, within it or after it), as a graph of the whole
/// program: itself up to the split; behind it joined with the other half as that stands then. `split`: of the split's
/// own step, whether its graph is meant after it.
Result<Snapshot> wholeAt(const CompileTrace& trace, int step, const Snapshot& graph, bool split = false);

}  // namespace cutaway
