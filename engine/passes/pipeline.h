#pragma once
// The compiler as a list.
#include <functional>
#include <vector>

#include "engine/passes/pass_runner.h"
#include "engine/passes/plan.h"

namespace cutaway {

/// Cutaway's own list, all stages in running order.
const std::vector<Part>& compiler();

/// A pass and the stage that it belongs to.
struct StagePass {
    const Stage* stage;
    const Pass* pass;
};
/// Every pass that has a row, in running order; none of the user's own.
const std::vector<StagePass>& pipeline();
/// Their names, in running order, each once. `onRequest`: only of passes that are off by default.
std::vector<std::string_view> passNames(bool onRequest = false);

/// Runs the passes on `input`: all, or those of request.onlyStage. Fails only for requests that name an unknown stage
/// or pass or contradict themselves, or when cancelled; a failing pass ends the run and is its last step.
Result<CompileTrace> runPipeline(const Snapshot& input, const CompileRequest& request, const CompileHooks& hooks = {},
                                 const Progress& progress = {});

/// Asked after each step: whether the run ends there, with the steps done so far.
using RunEnds = std::function<bool(const CompileTrace& soFar)>;

/// The same, calling `ended` after each step. When cancelled, it returns the steps done so far, if any; an interrupted
/// pass is not among them.
Result<CompileTrace> runPipelineWatched(const Snapshot& input, const CompileRequest& request, const CompileHooks& hooks,
                                        const std::function<void(const StepInfo&)>& ended,
                                        const Progress& progress = {}, const RunEnds& ends = {});

/// A run that shares all steps before `step` with `run`, and goes on from there as `request` says; the two requests
/// differ only in what later passes read. Errors: as runPipelineWatched, and a step that the request's plan does not
/// have.
Result<CompileTrace> deriveRun(const CompileTrace& run, int step, const CompileRequest& request,
                               const CompileHooks& hooks, const std::function<void(const StepInfo&)>& ended = {},
                               const Progress& progress = {});

/// Runs a list other than Cutaway's own; for tests of plans.
Result<CompileTrace> runCompiler(const std::vector<Part>& compiler, const Snapshot& input,
                                 const CompileRequest& request, const CompileHooks& hooks = {},
                                 const std::function<void(const StepInfo&)>& ended = {}, const Progress& progress = {},
                                 const RunEnds& ends = {});

}  // namespace cutaway
