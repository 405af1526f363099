#pragma once
#include "engine/passes/pass_runner.h"

namespace cutaway {

/// The last step of a track of a run for the CPU: the scheduler's view of the graph. The graph stays as it is; the
/// step's rewrites are the fusion decisions, each yes and no with its reason. Failed if nothing can compute one of the
/// calls.
Step lowerStep(const CompileTrace& trace, std::string_view track, const Progress& progress = {});

}  // namespace cutaway
