#pragma once
// What a run computes as a whole at one of its steps: behind a split, both halves together.
#include "engine/passes/pass_runner.h"

namespace cutaway {

/// The step that split the graph; null if none did.
const Step* splitStepOf(const CompileTrace& trace);

/// Forward and backward beside each other.
struct Halves {
    Snapshot forward, backward;
    uint32_t firstId = 0;  // of joinGraphs
};
/// Where `graph` stands at a step, as for wholeAt(); nullopt where the program is not split yet.
std::optional<Halves> halvesAt(const CompileTrace& trace, int step, const Snapshot& graph, bool split = false);

/// `graph`, which stands at the trace's step `step` (before it, within it or after it), as a graph of the whole
/// program: itself up to the split; behind it joined with the other half as that stands then. `split`: of the split's
/// own step, whether its graph is meant after it.
Result<Snapshot> wholeAt(const CompileTrace& trace, int step, const Snapshot& graph, bool split = false);

/// The first step whose graphs from there on take and return as many values as the last one, so that their results can
/// be compared; as many as there are steps if no graph before a step does.
int firstComparable(const CompileTrace& trace);

/// The graph of the whole program behind the last pass.
Result<Snapshot> finalGraph(const CompileTrace& trace);

}  // namespace cutaway
