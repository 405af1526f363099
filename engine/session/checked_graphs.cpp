#include "engine/session/checked_graphs.h"

#include <algorithm>

#include "engine/interpret/constants.h"
#include "engine/numerics/counterparts.h"
#include "engine/ops/expanded.h"
#include "engine/partition/join_graphs.h"
#include "engine/passes/whole_program.h"
#include "engine/schedule/decisions.h"
#include "engine/session/arguments.h"

namespace cutaway {
namespace {

std::unordered_map<NodeId, NodeId> toItself(const Module& module) {
    std::unordered_map<NodeId, NodeId> map;
    for (const Node& node : module.graph().nodes()) map.emplace(node.id(), node.id());
    return map;
}

bool changedGraph(const Step& step) {
    return step.info.state == StepState::Changed && (step.after != step.before || !step.made.empty());
}

/// What a graph takes, from what another is given under the same names, so that both use one memory; nothing if that
/// lacks some of it.
std::optional<std::vector<Tensor>> inputsFrom(const ReadyGraph& other, const Module& graph) {
    std::map<std::string, const Tensor*> byName;
    const std::vector<Node*> have = other.module->graph().placeholders();
    for (size_t i = 0; i < have.size(); ++i) byName[have[i]->name()] = &other.inputs[i];
    std::vector<Tensor> inputs;
    for (const Node* node : graph.graph().placeholders()) {
        const auto found = byName.find(node->name());
        if (found == byName.end()) return std::nullopt;
        const Tensor& value = *found->second;
        if (const TensorType* type = node->type().tensor())
            if (!value.defined() || value.dtype() != type->dtype ||
                (allInts(type->sizes) && value.sizes() != toInts(type->sizes)))
                return std::nullopt;
        inputs.push_back(value);
    }
    return inputs;
}

/// What libraries of plugins compute, as the schedules of a graph and of the other half say.
std::map<NodeId, PluginLibrary> pluginCallsOf(const CompileTrace& trace, int step, const Snapshot& graph, bool split) {
    std::map<NodeId, PluginLibrary> calls;
    const auto add = [&](const Module& half, const auto& idOf) {
        const Schedule* const schedule = Schedule::of(half);
        if (schedule == nullptr) return;
        for (const auto& [node, row] : schedule->libraries)
            if (const PluginLibrary* plugin = row->library.plugin) calls.emplace(idOf(node), *plugin);
    };
    const auto same = [](NodeId id) { return id; };
    const auto halves = halvesAt(trace, step, graph, split);
    add(halves ? *halves->forward : *graph, same);
    if (halves) add(*halves->backward, [&](NodeId id) { return joinedId(*halves->forward, id, halves->firstId); });
    return calls;
}

Result<ReadyGraph> ready(const Module& graph, std::vector<Tensor> inputs, const Progress& progress) {
    CT_TRY(const Snapshot lowered, readyToRun(graph, inputs));
    const Module& module = lowered ? *lowered : graph;
    CT_TRY(const Snapshot complete, withConstants(module, progress));
    return ReadyGraph{std::make_shared<Module>(complete ? *complete : module), std::move(inputs)};
}

}  // namespace

bool hasValues(const Module& module) {
    const auto nodes = module.graph().nodes();
    return std::none_of(nodes.begin(), nodes.end(),
                        [](const Node& node) { return node.isCall() && isLeftToPass(node.op()); });
}

CheckedGraphs::CheckedGraphs(const Session::State& state, const CompileTrace& trace, RunId run)
    : m_state(state),
      m_trace(trace),
      m_run(run),
      m_current{{run, -1, -1}, {run, -1, -1}, trace.input, trace.input, toItself(*trace.input)},
      m_reference(trace.input),
      m_referencePlace(m_current.place),
      m_toReference(m_current.counterparts) {}

Result<CheckedGraph> CheckedGraphs::after(const Step& step, const Snapshot& now) const {
    const bool split = !step.made.empty();
    CT_TRY(const Snapshot was, wholeAt(m_trace, step.info.index, step.before));
    CT_TRY(const Snapshot whole, wholeAt(m_trace, step.info.index, now, split));
    return CheckedGraph{{m_run, step.info.index, -1},
                        m_referencePlace,
                        whole,
                        m_reference,
                        chained(m_toReference, counterparts(*was, *whole)),
                        pluginCallsOf(m_trace, step.info.index, now, split)};
}

void CheckedGraphs::moveOn(CheckedGraph graph) {
    m_current = std::move(graph);
    m_toReference = m_current.counterparts;
    const bool more = m_current.graph->graph().outputs().size() > m_reference->graph().outputs().size();
    if (!more && (hasValues(*m_reference) || !hasValues(*m_current.graph))) return;
    m_reference = m_current.graph;
    m_referencePlace = m_current.place;
    m_toReference = toItself(*m_reference);
}

Result<bool> CheckedGraphs::next() {
    for (; m_next < m_trace.steps.size(); ++m_next) {
        const Step& step = m_trace.steps[m_next];
        if (step.info.state == StepState::Failed) return false;
        if (!changedGraph(step)) continue;
        CT_TRY(CheckedGraph graph, after(step, step.after));
        moveOn(std::move(graph));
        ++m_next;
        return true;
    }
    return false;
}

Result<CheckedGraph> CheckedGraphs::at(const Place& place, const CancelToken* cancel) {
    while (m_next < m_trace.steps.size() && static_cast<int>(m_next) < place.step) {
        if (cancel && cancel->cancelled()) return Error{ErrorCode::Cancelled, "cancelled", {}, {}};
        const Step& step = m_trace.steps[m_next++];
        if (!changedGraph(step)) continue;
        CT_TRY(CheckedGraph graph, after(step, step.after));
        moveOn(std::move(graph));
    }
    if (place.step < 0) return m_current;
    CT_TRY(const Snapshot graph, m_state.snapshot(place, cancel));
    const Step& step = m_trace.steps[static_cast<size_t>(place.step)];
    CheckedGraph found = m_current;
    if (place.rewrites >= 0 || changedGraph(step)) {
        CT_TRY(found, after(step, graph));
    }
    if (!hasValues(*found.reference) && hasValues(*found.graph))
        return CheckedGraph{place, place, found.graph, found.graph, toItself(*found.graph)};
    found.place = place;
    return found;
}

Result<ReadyGraph> readyGraph(const Snapshot& graph, const Session::State& state, const std::string& inputsFile,
                              const Progress& progress) {
    CT_TRY(CalledGraph called, calledFor(graph, state, inputsFile));
    return ready(*called.graph, std::move(called.user), progress);
}

Result<ReadyPair> readyPair(const CheckedGraph& checked, const Session::State& state, const std::string& inputsFile,
                            const Progress& progress) {
    ReadyPair pair;
    CT_TRY(pair.reference, readyGraph(checked.reference, state, inputsFile, progress));
    // With fewer inputs, some of what is given are values of its constants.
    const auto taken = [](const Module& module) { return module.graph().placeholders().size(); };
    const bool fewer = taken(*checked.graph) < taken(*checked.reference);
    if (auto inputs = fewer ? std::nullopt : inputsFrom(pair.reference, *checked.graph)) {
        CT_TRY(pair.graph, ready(*checked.graph, std::move(*inputs), progress));
    } else {
        CT_TRY(pair.graph, readyGraph(checked.graph, state, inputsFile, progress));
    }
    std::unordered_map<NodeId, int> positions;
    for (const Node& node : pair.reference.module->graph().nodes())
        positions.emplace(node.id(), static_cast<int>(positions.size()));
    for (const Node& node : pair.graph.module->graph().nodes()) {
        const auto found = checked.counterparts.find(node.id());
        const auto at = found == checked.counterparts.end() ? positions.end() : positions.find(found->second);
        pair.counterparts.push_back(at == positions.end() ? -1 : at->second);
    }
    return pair;
}

}  // namespace cutaway
