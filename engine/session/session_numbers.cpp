// Whether every step keeps the numbers.
#include <map>

#include "cutaway/guarded.h"
#include "engine/interpret/interpret.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/run_inputs.h"

namespace cutaway {
namespace {

/// What random ops drew, by the node that drew it.
using Draws = std::map<NodeId, TensorList>;

/// The recorded draw of this node, or of the node that it was made from; null where there is none of its shape.
const TensorList* drawFor(const Node& node, const TensorList& own, const Draws& known) {
    const auto fits = [&](NodeId id) -> const TensorList* {
        const auto found = known.find(id);
        if (found == known.end() || found->second.size() != own.size()) return nullptr;
        for (size_t i = 0; i < own.size(); ++i)
            if (own[i].sizes() != found->second[i].sizes()) return nullptr;
        return &found->second;
    };
    if (const TensorList* same = fits(node.id())) return same;
    for (const NodeId id : node.provenance().origin)
        if (const TensorList* before = fits(id)) return before;
    return nullptr;
}

/// What one graph computes: its outputs, and its inputs as it leaves them.
struct Outcome {
    std::vector<Tensor> outputs, inputs;   // an input that is not written to is undefined
    Draws draws;
};

Result<Outcome> runGraph(const Module& module, const std::vector<Tensor>& inputs, const Draws& known, const Progress& progress) {
    Outcome outcome;
    InterpretOptions options;
    options.cancel = progress.cancel.get();
    options.exchange = [&](const Node& node, TensorList& values) {
        if (!node.is(Tag::Random)) return;
        if (const TensorList* draw = drawFor(node, values, known))
            for (size_t i = 0; i < values.size(); ++i) values[i] = (*draw)[i].to(values[i].dtype());
        outcome.draws[node.id()] = values;
    };
    options.observe = [&](const Node& node, const TensorList& values) {
        if (!node.isPlaceholder()) return;
        // A graph that writes to inputs works on copies, which hold the result when it is done.
        const Tensor& given = inputs[outcome.inputs.size()];
        const bool copied = !values.empty() && values[0].defined() && given.defined() && values[0].storage() != given.storage();
        outcome.inputs.push_back(copied ? values[0] : Tensor());
    };
    CT_TRY(outcome.outputs, interpret(module, inputs, options));
    return outcome;
}

/// Results that both graphs have. A step that differentiates adds gradients to the results and their gradients to the inputs.
Verdict compareOutcomes(const Outcome& before, const Outcome& after, const std::vector<Tensor>& inputs, double tolerance) {
    if (after.outputs.size() < before.outputs.size())
        return {true, "returns " + std::to_string(after.outputs.size()) + " values instead of " + std::to_string(before.outputs.size())};
    const std::vector<Tensor> outputs(after.outputs.begin(), after.outputs.begin() + static_cast<std::ptrdiff_t>(before.outputs.size()));
    Verdict verdict = compareOutputs(outputs, before.outputs, tolerance);
    const size_t shared = std::min(before.inputs.size(), after.inputs.size());
    for (size_t i = 0; !verdict.bad && i < shared; ++i) {
        const Tensor &was = before.inputs[i], &now = after.inputs[i];
        if (!was.defined() && !now.defined()) continue;
        const Verdict written = compareOutputs({now.defined() ? now : inputs[i]}, {was.defined() ? was : inputs[i]}, tolerance);
        if (written.bad) verdict = {true, "input " + std::to_string(i + 1) + " is left with other numbers" + written.detail.substr(std::min(written.detail.find(':'), written.detail.size()))};
    }
    return verdict;
}

}  // namespace

Result<NumbersReport> Session::checkNumbers(RunId id, const NumbersOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<NumbersReport> {
        CT_TRY(State::Run* found, m_state->run(id));
        const CompileTrace& trace = found->trace;
        NumbersReport report;
        CT_TRY(const RunInputs chosen, chooseInputs(*m_state->input, m_state->sampleInputs, options.inputsFile, m_state->noSamples));
        report.inputsFrom = chosen.from;
        CT_TRY(std::vector<Tensor> inputs, valuesFor(*trace.input, *m_state, options.inputsFile));
        CT_TRY(Outcome before, runGraph(*trace.input, inputs, {}, progress));
        for (const Step& step : trace.steps) {
            if (step.info.state == StepState::Failed) {
                report.steps.push_back({step.info, false, "the step failed: " + step.info.error});
                report.kept = false;
                break;
            }
            if (step.info.state != StepState::Changed || step.after == step.before) continue;
            progress.say(static_cast<double>(step.info.index) / static_cast<double>(trace.steps.size()), "checking " + step.info.name);
            CT_TRY(inputs, valuesFor(*step.after, *m_state, options.inputsFile));
            auto after = runGraph(*step.after, inputs, before.draws, progress);
            if (!after && after.error().code == ErrorCode::Cancelled) return after.error();
            const Verdict verdict = after ? compareOutcomes(before, *after, inputs, options.tolerance) : Verdict{true, "does not run: " + after.error().text()};
            report.steps.push_back({step.info, !verdict.bad, verdict.detail});
            report.kept = !verdict.bad;
            if (verdict.bad) break;
            before = std::move(*after);
        }
        return report;
    });
}

}  // namespace cutaway
