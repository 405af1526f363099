#include "engine/session/lower_step.h"

#include <chrono>

#include "engine/schedule/schedule.h"

namespace cutaway {

Step lowerStep(const CompileTrace& trace, std::string_view track, const Progress& progress) {
    Step step;
    step.before = step.after = trace.steps.empty() ? trace.input : trace.resultOf(track);
    step.info.index = static_cast<int>(trace.steps.size());
    step.info.track = std::string(track);
    step.info.stage = "schedule";
    step.info.name = "schedule";
    step.info.summary = "Groups nodes into kernels and library calls; its rewrites are the fusion decisions";
    step.info.nodesBefore = step.info.nodesAfter = static_cast<int>(step.before->graph().size());
    const auto start = std::chrono::steady_clock::now();
    const auto program = scheduleModule(step.before, progress);
    step.info.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (!program) {
        step.info.state = StepState::Failed;
        step.info.error = program.error().text();
        step.errorCode = program.error().code;
        return step;
    }
    const Graph& graph = step.before->graph();
    for (const FusionDecision& decision : program->decisions) {
        RewriteInfo row;
        row.index = static_cast<int>(step.rewrites.size());
        row.rule = decision.fused ? "fuse" : "keep apart";
        row.why = decision.sentence;
        row.nodeId = decision.consumer;
        if (const Node* node = graph.find(decision.consumer)) row.node = node->name();
        step.rewrites.push_back(std::move(row));
    }
    step.info.rewrites = static_cast<int>(step.rewrites.size());
    return step;
}

}  // namespace cutaway
