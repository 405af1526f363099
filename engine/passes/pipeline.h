#pragma once
// The compiler as a list.
#include <span>

#include "engine/passes/pass_runner.h"

namespace cutaway {

/// Every pass, in running order.
std::span<const Pass> pipeline();

/// Runs the passes on `input`: all, or those of options.onlyStage. Fails only for options that name an unknown stage
/// or pass, or when cancelled; a failing pass ends the run and is its last step.
Result<CompileTrace> runPipeline(const Snapshot& input, const CompileOptions& options, const Progress& progress = {});

}  // namespace cutaway
