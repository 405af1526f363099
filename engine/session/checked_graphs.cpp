#include "engine/session/checked_graphs.h"

#include "engine/interpret/constants.h"
#include "engine/numerics/counterparts.h"
#include "engine/passes/whole_program.h"
#include "engine/session/compare_outputs.h"

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

/// One memory for what both graphs take under one name, weights that are made up among them.
void shareInputs(const ReadyGraph& from, ReadyGraph& to) {
    const std::vector<Node*> have = from.module->graph().placeholders(), want = to.module->graph().placeholders();
    std::map<std::string, const Tensor*> byName;
    for (size_t i = 0; i < have.size(); ++i) byName[have[i]->name()] = &from.inputs[i];
    for (size_t i = 0; i < want.size(); ++i) {
        const auto found = byName.find(want[i]->name());
        Tensor& input = to.inputs[i];
        if (found == byName.end() || !found->second->defined() || !input.defined()) continue;
        if (found->second->dtype() == input.dtype() && found->second->sizes() == input.sizes() &&
            found->second->strides() == input.strides())
            input = *found->second;
    }
}

}  // namespace

CheckedGraphs::CheckedGraphs(const Session::State& state, const CompileTrace& trace, RunId run)
    : m_state(state),
      m_trace(trace),
      m_run(run),
      m_current{{run, -1, -1}, {run, -1, -1}, trace.input, trace.input, toItself(*trace.input)},
      m_reference(trace.input),
      m_referencePlace(m_current.place),
      m_toReference(m_current.counterparts) {}

Result<CheckedGraph> CheckedGraphs::after(const Step& step, const Snapshot& now) const {
    CT_TRY(const Snapshot was, wholeAt(m_trace, step.info.index, step.before));
    CT_TRY(const Snapshot whole, wholeAt(m_trace, step.info.index, now, !step.made.empty()));
    return CheckedGraph{{m_run, step.info.index, -1},
                        m_referencePlace,
                        whole,
                        m_reference,
                        chained(m_toReference, counterparts(*was, *whole))};
}

void CheckedGraphs::moveOn(CheckedGraph graph) {
    m_current = std::move(graph);
    m_toReference = m_current.counterparts;
    if (m_current.graph->graph().outputs().size() <= m_reference->graph().outputs().size()) return;
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
    found.place = place;
    return found;
}

Result<ReadyGraph> readyGraph(const Module& graph, const Session::State& state, const std::string& inputsFile,
                              const Progress& progress) {
    CT_TRY(std::vector<Tensor> inputs, valuesFor(graph, state, inputsFile));
    CT_TRY(const Snapshot ready, readyToRun(graph, inputs));
    const Module& known = ready ? *ready : graph;
    CT_TRY(const Snapshot complete, withConstants(known, progress));
    return ReadyGraph{std::make_shared<Module>(complete ? *complete : known), std::move(inputs)};
}

Result<ReadyPair> readyPair(const CheckedGraph& checked, const Session::State& state, const std::string& inputsFile,
                            const Progress& progress) {
    ReadyPair pair;
    CT_TRY(pair.reference, readyGraph(*checked.reference, state, inputsFile, progress));
    CT_TRY(pair.graph, readyGraph(*checked.graph, state, inputsFile, progress));
    shareInputs(pair.reference, pair.graph);
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
