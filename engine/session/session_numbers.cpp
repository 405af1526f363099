// Whether every step keeps the numbers.
#include <algorithm>
#include <map>

#include "cutaway/guarded.h"
#include "engine/passes/whole_program.h"
#include "engine/runtime/reference.h"
#include "engine/session/arguments.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/run_inputs.h"

namespace cutaway {
namespace {

/// The results of one graph: its outputs, its inputs after the run, and the values of its random ops.
using Outcome = ReferenceRun;

/// A random op takes the values of the node in the graph before that is the same, or from which it was made.
Result<Outcome> runGraph(const Module& module, const std::vector<Tensor>& inputs, const Module* before,
                         const Draws& draws, const Progress& progress) {
    std::map<std::string, std::vector<TensorList>> candidates;
    for (const Node& node : module.graph().nodes()) {
        if (before == nullptr || !node.isCall()) continue;
        std::vector<NodeId> ids = {node.id()};
        ids.insert(ids.end(), node.provenance().origin.begin(), node.provenance().origin.end());
        for (const NodeId id : ids) {
            const Node* was = before->graph().find(id);
            if (const auto drew = was ? draws.find(was->name()) : draws.end(); drew != draws.end())
                candidates[node.name()].push_back(drew->second);
        }
    }
    return runReference(
        module, inputs,
        {.watched = true, .candidates = &candidates, .faultSide = before ? FaultSide::After : FaultSide::Before},
        {progress.cancel, {}});
}

/// Results that both graphs have. A step that differentiates adds gradients to the results and their gradients to the
/// inputs.
Verdict compareOutcomes(const Module& was, const Outcome& before, const Module& now, const Outcome& after,
                        const std::vector<Tensor>& inputs, double tolerance) {
    if (after.outputs.size() < before.outputs.size())
        return {true, "returns " + std::to_string(after.outputs.size()) + " values instead of " +
                          std::to_string(before.outputs.size())};
    const std::vector<Tensor> outputs(after.outputs.begin(),
                                      after.outputs.begin() + static_cast<std::ptrdiff_t>(before.outputs.size()));
    Verdict verdict = compareOutputs(outputs, before.outputs, tolerance);
    // By name: parameters that become constants are inputs no more.
    const std::vector<Node*> placed = was.graph().placeholders(), places = now.graph().placeholders();
    for (size_t i = 0; !verdict.bad && i < std::min(places.size(), after.inputs.size()); ++i) {
        const auto same = std::find_if(placed.begin(), placed.end(),
                                       [&](const Node* each) { return each->name() == places[i]->name(); });
        const auto at = static_cast<size_t>(same - placed.begin());
        if (at >= before.inputs.size()) continue;
        const Tensor &left = before.inputs[at], &leaves = after.inputs[i];
        if (!left.defined() && !leaves.defined()) continue;
        const Verdict written =
            compareOutputs({leaves.defined() ? leaves : inputs[i]}, {left.defined() ? left : inputs[i]}, tolerance);
        if (written.bad)
            verdict = {true, "input " + std::to_string(i + 1) + " is left with other numbers" +
                                 written.detail.substr(std::min(written.detail.find(':'), written.detail.size()))};
    }
    return verdict;
}

}  // namespace

Result<NumbersReport> Session::checkNumbers(RunId id, const NumbersOptions& options, const Progress& progress) {
    auto checked = guarded([&]() -> Result<NumbersReport> {
        CT_TRY(State::Run * found, m_state->run(id));
        const CompileTrace& trace = found->trace;
        NumbersReport report;
        CT_TRY(const RunInputs chosen,
               chooseInputs(*m_state->input, m_state->sampleInputs, options.inputsFile, m_state->noSamples));
        report.inputsFrom = chosen.from;
        CT_TRY(CalledGraph called, calledFor(trace.input, *m_state, options.inputsFile));
        CT_TRY(Outcome before, runGraph(*called.graph, called.user, nullptr, {}, progress));
        for (const Step& step : trace.steps) {
            if (step.info.state == StepState::Failed) {
                report.steps.push_back({step.info, false, "the step failed: " + step.info.error});
                report.kept = false;
                break;
            }
            const bool splits = !step.made.empty();
            if (step.info.state != StepState::Changed || (step.after == step.before && !splits)) continue;
            CT_TRY(const Snapshot was, wholeAt(trace, step.info.index, step.before));
            CT_TRY(const Snapshot now, wholeAt(trace, step.info.index, step.after, splits));
            progress.say(static_cast<double>(step.info.index) / static_cast<double>(trace.steps.size()),
                         "checking " + step.info.name);
            CT_TRY(called, calledFor(now, *m_state, options.inputsFile));
            auto after = runGraph(*called.graph, called.user, was.get(), before.draws, progress);
            if (!after && after.error().code == ErrorCode::Cancelled) return after.error();
            const Verdict verdict = after ? compareOutcomes(*was, before, *now, *after, called.user, options.tolerance)
                                          : Verdict{true, "does not run: " + after.error().text()};
            report.steps.push_back({step.info, !verdict.bad, verdict.detail});
            report.kept = !verdict.bad;
            if (verdict.bad) break;
            before = std::move(*after);
        }
        return report;
    });
    if (checked || !isReproducible(checked.error())) return checked;
    return withReproducer(checked.error(), [&] {
        Failure failure = m_state->failureOf("check-numbers", id, nullptr);
        failure.bisect = BisectOptions{.tolerance = options.tolerance};
        return failure;
    });
}

}  // namespace cutaway
