#pragma once
// Gradient checks of a run: its joint graph as differentiation made it, held against central differences.
#include "cutaway/gradients.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// The step after which a run has a joint graph; -1 where the file holds one, nothing where there is none.
std::optional<int> jointStep(const CompileTrace& trace);

/// checkGradients() without its guard.
Result<GradientCheck> gradientCheckOf(const Session::State& state, RunId run, const CompileTrace& trace,
                                      const GradientCheckOptions& options, const Progress& progress);

}  // namespace cutaway
