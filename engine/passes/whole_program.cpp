#include "engine/passes/whole_program.h"

#include <algorithm>

#include "engine/partition/join_graphs.h"

namespace cutaway {

const Step* splitStepOf(const CompileTrace& trace) {
    const auto found =
        std::find_if(trace.steps.begin(), trace.steps.end(), [](const Step& step) { return !step.made.empty(); });
    return found == trace.steps.end() ? nullptr : &*found;
}

Result<Snapshot> wholeAt(const CompileTrace& trace, int step, const Snapshot& graph, bool split) {
    const Step* const cut = splitStepOf(trace);
    if (cut == nullptr || step < cut->info.index) return graph;
    if (step == cut->info.index && !split) return graph;
    Snapshot forward = cut->made[0].second, backward = cut->made[1].second;
    if (step > cut->info.index) {
        // The forward has been through all its stages when the backward begins.
        const std::string& track = trace.steps[static_cast<size_t>(step)].info.track;
        if (track == "forward") {
            forward = graph;
        } else {
            forward = trace.resultOf("forward");
            backward = graph;
        }
    }
    CT_TRY(std::shared_ptr<Module> whole, joinGraphs(*forward, *backward));
    return Snapshot(std::move(whole));
}

}  // namespace cutaway
