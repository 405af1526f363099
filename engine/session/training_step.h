#pragma once
// A training run as one graph that can be exported.
#include "engine/session/session_state.h"

namespace cutaway {

struct TrainingStep {
    Snapshot graph;
    std::vector<std::string> outputs;  // names: of the results, and of what the gradients are of with ".grad" behind
};

/// Forward and backward as one graph, scheduled as one: what the forward saves are values within a run, so that memory
/// is planned for both. Inputs: the graph's own, then the gradients of its results (tangents_1, ..); outputs: its
/// results, then the gradients of parameters and of inputs that have one. Errors: nothing is differentiated; a result
/// that is an input or a view of one, whose gradient is not part of the graph; an input that is written to and has one.
Result<TrainingStep> trainingStep(const Session::State& state, const CompileTrace& trace, const Progress& progress);

}  // namespace cutaway
