#include "engine/passes/pipeline.h"

#include <algorithm>

namespace cutaway {
namespace {

bool isTraining(const CompileRequest& request) { return request.mode == Mode::Training; }
bool isFreezing(const CompileRequest& request) {
    return request.freeze || request.onlyStage == kLayout.name || request.onlyStage == kFreeze.name;
}
bool isScheduled(const CompileRequest& request) { return !request.passesOnly || request.onlyStage == kSchedule.name; }

}  // namespace

const std::vector<Part>& compiler() {
    static const std::vector<Part> all = {
        stage(kPreGrad),
        stage(kCapture),
        stage(kJoint),
        when(isFreezing, {stage(kLayout), stage(kFreeze)}),
        when(isTraining, {split(kPartition, {"forward", "backward"})}),
        onEach({
            stage(kPostGrad),
            stage(kLowering),
            when(isScheduled, {stage(kSchedule)}),
        }),
    };
    return all;
}

const std::vector<StagePass>& pipeline() {
    static const std::vector<StagePass> all = [] {
        std::vector<StagePass> out;
        for (const Stage* stage : stagesOf(compiler()))
            for (const Row& row : stage->rows) {
                if (const auto* pass = std::get_if<Pass>(&row)) out.push_back({stage, pass});
                if (const auto* group = std::get_if<AnyOrder>(&row))
                    for (const Pass& pass : group->passes) out.push_back({stage, &pass});
                if (const auto* group = std::get_if<Repeat>(&row))
                    for (const Pass& pass : group->passes) out.push_back({stage, &pass});
            }
        return out;
    }();
    return all;
}

std::vector<std::string_view> passNames(bool onRequest) {
    std::vector<std::string_view> names;
    for (const StagePass& one : pipeline()) {
        const bool known = std::find(names.begin(), names.end(), one.pass->name) != names.end();
        if (!known && (!onRequest || one.pass->onRequest)) names.push_back(one.pass->name);
    }
    return names;
}

Result<CompileTrace> runPipeline(const Snapshot& input, const CompileRequest& request, const CompileHooks& hooks,
                                 const Progress& progress) {
    CT_TRY(CompileTrace trace, runCompiler(compiler(), input, request, hooks, {}, progress));
    // A run that ended at its pass fuel (pass_fuel.h) is also marked as cancelled, but is not an error.
    if (trace.cancelled && progress.cancelled())
        return Error{ErrorCode::Cancelled, "compilation was cancelled", trace.cancelledAt, {}};
    return trace;
}

Result<CompileTrace> runPipelineWatched(const Snapshot& input, const CompileRequest& request, const CompileHooks& hooks,
                                        const std::function<void(const StepInfo&)>& ended, const Progress& progress,
                                        const RunEnds& ends) {
    return runCompiler(compiler(), input, request, hooks, ended, progress, ends);
}

}  // namespace cutaway
