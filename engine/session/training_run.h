#pragma once
// Forward, loss, backward: one step of training without the update (spec: autograd A.8).
#include "engine/session/session_state.h"

namespace cutaway {

/// Runs the halves of a run that was split. The loss is the returned number if the graph returns one floating number
/// and no other floating value, else the sum of the means of squares of all floating results. Errors: results that have
/// no such loss (complex ones), a value that a half takes and nobody has.
Result<RunReport> runTraining(const Session::State& state, Session::State::Run& run, const RunOptions& options,
                              const Progress& progress);

}  // namespace cutaway
