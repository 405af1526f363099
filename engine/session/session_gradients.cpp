#include "engine/session/session_gradients.h"

#include "cutaway/guarded.h"
#include "engine/autograd/gradient_check.h"
#include "engine/runtime/checked.h"
#include "engine/session/checked_graphs.h"
#include "engine/session/run_inputs.h"

namespace cutaway {
namespace {

bool isJoint(const Module& module) {
    return std::any_of(module.inputs.begin(), module.inputs.end(),
                       [](const InputSpec& spec) { return spec.kind == InputSpec::Kind::Tangent; }) &&
           std::any_of(module.outputs.begin(), module.outputs.end(),
                       [](const OutputSpec& spec) { return spec.kind == OutputSpec::Kind::Gradient; });
}

}  // namespace

std::optional<int> jointStep(const CompileTrace& trace) {
    if (isJoint(*trace.input)) return -1;
    for (const Step& step : trace.steps) {
        if (!step.made.empty()) break;
        if (step.info.state == StepState::Changed && isJoint(*step.after)) return step.info.index;
    }
    return std::nullopt;
}

Result<GradientCheck> gradientCheckOf(const Session::State& state, RunId id, const CompileTrace& trace,
                                      const GradientCheckOptions& options, const Progress& progress) {
    const std::optional<int> step = jointStep(trace);
    if (!step)
        return unsupported("the run has no joint graph, so there are no gradients to check", {},
                           {"compile with --mode training"});
    CT_TRY(const RunInputs chosen, chooseInputs(*state.input, state.sampleInputs, options.inputsFile, state.noSamples));
    const Snapshot graph = *step < 0 ? trace.input : trace.steps[static_cast<size_t>(*step)].after;
    CT_TRY(const ReadyGraph ready, readyGraph(graph, state, options.inputsFile, progress));
    CT_TRY(GradientCheck check, runGradientCheck(ready, options, progress));
    check.place = {id, *step, -1};
    check.inputsFrom = chosen.from;
    for (GradientRow& row : check.each)
        if (const Node* primal = graph->graph().findByName(row.input);
            primal && !primal->provenance().sourceName.empty())
            row.input = primal->provenance().sourceName;
    for (DerivativeRow& row : check.calls)
        if (const Node* node = graph->graph().findByName(row.name)) row.node = nodeKey(0, node->id());
    check.summary = summaryOf(check);
    return check;
}

Result<GradientCheck> checkGradients(Session& session, RunId id, const GradientCheckOptions& options,
                                     const Progress& progress) {
    return guarded([&]() -> Result<GradientCheck> {
        Session::State& state = session.state();
        CT_TRY(Session::State::Run * found, state.run(id));
        return gradientCheckOf(state, id, found->trace, options, progress);
    });
}

}  // namespace cutaway
