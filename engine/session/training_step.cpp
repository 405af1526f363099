#include "engine/session/training_step.h"

#include <algorithm>
#include <charconv>

#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"
#include "engine/session/chosen_program.h"
#include "engine/session/differentiated_graph.h"
#include "engine/session/run_inputs.h"
#include "engine/session/tied_names.h"

namespace cutaway {
namespace {

/// Whose gradients leave the two graphs (A8.5), and whom nobody would add.
Result<void> checkResults(const CompileTrace& trace) {
    const Snapshot forward = trace.resultOf("forward");
    const DifferentiatedGraph before = differentiatedGraph(trace);
    const std::vector<Argument> results = before.graph->graph().outputs();
    for (const size_t position : userOutputs(*forward)) {
        const OutputMemory* memory = before.memoryOf(position);
        if (memory == nullptr || memory->input == nullptr || memory->alias == OutputAlias::NonAlias) continue;
        const Node& result = *results[position - before.leading].node();
        if (!before.flow[index(result.id())]) continue;
        return unsupported("the result '" + outputName(*forward, position) +
                               "' is an input or a view of one, so its gradient is not part of the training step",
                           {}, {"return a copy of it (clone) or leave it out"});
    }
    return {};
}

/// Of a tangent, whether it is that of an input's new value.
bool isOfWrittenInput(const Module& forward, const InputSpec& tangent) {
    size_t output = forward.outputs.size();
    std::from_chars(tangent.target.data(), tangent.target.data() + tangent.target.size(), output);
    return output < forward.outputs.size() && forward.outputs[output].kind == OutputSpec::Kind::InputMutation;
}

std::string gradientOf(const Module& opened, const Module& step, const std::string& target) {
    const Node* input = step.graph().findByName(target);
    if (input == nullptr || !input->isPlaceholder())
        return target.empty() ? "gradient" : tiedNames(opened, target).front() + ".grad";
    const std::vector<Node*> placeholders = step.graph().placeholders();
    const auto at =
        static_cast<size_t>(std::find(placeholders.begin(), placeholders.end(), input) - placeholders.begin());
    const bool held = at < step.inputs.size() && !step.inputs[at].isGiven();
    if (held && !step.inputs[at].target.empty()) return step.inputs[at].target + ".grad";
    return (input->provenance().sourceName.empty() ? target : input->provenance().sourceName) + ".grad";
}

/// Leaves out gradients that nobody has, names outputs, and inputs as the file calls them.
std::vector<std::string> nameOutputs(const Module& opened, Module& step) {
    Graph& graph = step.graph();
    const std::vector<Argument> values = graph.outputs();
    std::vector<std::string> names;
    std::vector<OutputSpec> specs;
    ArgumentList kept{{}, true};
    const std::vector<size_t> results = userOutputs(opened);
    size_t nextResult = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const OutputSpec spec = i < step.outputs.size() ? step.outputs[i] : OutputSpec{};
        const bool gradient = spec.kind == OutputSpec::Kind::Gradient;
        if (gradient && values[i].isNone()) continue;
        const bool result = spec.kind == OutputSpec::Kind::UserOutput || spec.kind == OutputSpec::Kind::Loss;
        if (gradient) names.push_back(gradientOf(opened, step, spec.target));
        else if (result && nextResult < results.size()) names.push_back(outputName(opened, results[nextResult++]));
        else names.push_back(outputName(step, i));
        kept.items.push_back(values[i]);
        specs.push_back(spec);
    }
    graph.setArg(*graph.outputNode(), 0, Argument(std::move(kept)));
    step.outputs = std::move(specs);
    for (Node* input : graph.placeholders())
        if (const std::string source = input->provenance().sourceName; !source.empty() && source != input->name())
            graph.renameParameter(*input, source);
    return names;
}

}  // namespace

Result<TrainingStep> trainingStep(const Session::State& state, const CompileTrace& trace, const Progress& progress) {
    const auto nothing = [] {
        return unsupported("nothing of the graph is differentiated, so there is no training step", {},
                           {"compile it for inference, or name an input with --grad"});
    };
    if (!trace.isSplit()) return nothing();
    CT_TRY_VOID(checkResults(trace));
    const Snapshot forward = trace.resultOf("forward");
    CT_TRY(const Snapshot joined, finalGraph(trace));
    for (const InputSpec& input : joined->inputs)
        if (input.kind == InputSpec::Kind::Tangent && isOfWrittenInput(*forward, input))
            return unsupported("an input that the graph writes to has a gradient, which a training step does not take",
                               {}, {"write to a copy of it"});
    auto whole = std::make_shared<Module>(*joined);
    TrainingStep step;
    step.outputs = nameOutputs(*state.input, *whole);
    if (std::none_of(whole->outputs.begin(), whole->outputs.end(),
                     [](const OutputSpec& spec) { return spec.kind == OutputSpec::Kind::Gradient; }))
        return nothing();
    whole->origin.stage = std::string(kSchedule.name);
    whole->plan.reset();
    CompileRequest request = trace.request;
    request.mode = Mode::Inference;
    request.gradients.clear();
    CT_TRY(const CompileTrace scheduled, runPipeline(whole, request, trace.hooks, progress));
    CT_TRY_VOID(checkLowered(scheduled));
    step.graph = scheduled.result();
    return step;
}

}  // namespace cutaway
