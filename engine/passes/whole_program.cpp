#include "engine/passes/whole_program.h"

#include <algorithm>

#include "engine/partition/join_graphs.h"

namespace cutaway {

const Step* splitStepOf(const CompileTrace& trace) {
    const auto found =
        std::find_if(trace.steps.begin(), trace.steps.end(), [](const Step& step) { return !step.made.empty(); });
    return found == trace.steps.end() ? nullptr : &*found;
}

namespace {

/// One past the largest id that the halves have at any step.
uint32_t idLimitOf(const CompileTrace& trace, const Snapshot& graph) {
    uint32_t limit = graph->graph().idLimit();
    for (const Step& step : trace.steps)
        if (step.after) limit = std::max(limit, step.after->graph().idLimit());
    return limit;
}

}  // namespace

std::optional<Halves> halvesAt(const CompileTrace& trace, int step, const Snapshot& graph, bool split) {
    const Step* const cut = splitStepOf(trace);
    if (cut == nullptr || step < cut->info.index) return std::nullopt;
    if (step == cut->info.index && !split) return std::nullopt;
    Halves halves{cut->made[0].second, cut->made[1].second, idLimitOf(trace, graph)};
    if (step > cut->info.index) {
        // The backward's passes run after all of the forward's, so beside a backward stands the final forward.
        const std::string& graphName = trace.steps[static_cast<size_t>(step)].info.graphName;
        if (graphName == "forward") {
            halves.forward = graph;
        } else {
            halves.forward = trace.resultOf("forward");
            halves.backward = graph;
        }
    }
    return halves;
}

Result<Snapshot> wholeAt(const CompileTrace& trace, int step, const Snapshot& graph, bool split) {
    const auto halves = halvesAt(trace, step, graph, split);
    if (!halves) return graph;
    CT_TRY(std::shared_ptr<Module> whole, joinGraphs(*halves->forward, *halves->backward, halves->firstId));
    return Snapshot(std::move(whole));
}

int firstComparable(const CompileTrace& trace) {
    // Behind a split both halves together take and return what the joint graph does.
    const Step* const split = splitStepOf(trace);
    const Graph& last = (split ? split->before : trace.result())->graph();
    int first = split ? split->info.index + 1 : static_cast<int>(trace.steps.size());
    for (; first > 0; --first) {
        const Graph& graph = trace.steps[static_cast<size_t>(first) - 1].before->graph();
        if (graph.placeholders().size() != last.placeholders().size() ||
            graph.outputs().size() != last.outputs().size())
            break;
    }
    return first;
}

Result<Snapshot> finalGraph(const CompileTrace& trace) {
    if (trace.steps.empty()) return trace.input;
    const Step& last = trace.steps.back();
    return wholeAt(trace, last.info.index, last.after, !last.made.empty());
}

}  // namespace cutaway
