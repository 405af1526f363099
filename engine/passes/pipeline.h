#pragma once
// The compiler as a list.
#include <functional>
#include <span>

#include "engine/passes/pass_runner.h"

namespace cutaway {

/// Every pass, in running order.
std::span<const Pass> pipeline();

/// Runs the passes on `input`: all, or those of options.onlyStage. Fails only for options that name an unknown stage
/// or pass, or when cancelled; a failing pass ends the run and is its last step.
Result<CompileTrace> runPipeline(const Snapshot& input, const CompileOptions& options, const Progress& progress = {});

/// The same, telling `ended` of every step when it is done. Cancelled, it returns the steps done until then, if there
/// are any: a pass that was interrupted is not among them.
Result<CompileTrace> runPipelineWatched(const Snapshot& input, const CompileOptions& options,
                                        const std::function<void(const StepInfo&)>& ended,
                                        const Progress& progress = {});

}  // namespace cutaway
