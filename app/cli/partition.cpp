// partition: what the forward saves for the backward, at one memory budget or at all.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/training_metadata.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

void printChoice(const PartitionChoice& choice) {
    std::cout << "budget " << choice.budget << ": " << choice.attempt << "\n";
    for (const SavedTensor& value : choice.saved) {
        print("  %-28s %-24s %10s  %s\n", value.name.c_str(), value.type.c_str(), bytesText(value.bytes).c_str(),
              value.why.c_str());
    }
    print("saved: %zu values, %s; %s of them activations\n", choice.saved.size(), bytesText(choice.savedBytes).c_str(),
          bytesText(choice.activationBytes).c_str());
    print("computed again in the backward: %zu nodes\n", choice.recomputed.size());
}

void printMetadata(const TrainingMetadata& metadata) {
    for (const auto& input : metadata.inputs)
        print("input %-28s %s%s%s\n", input.name.c_str(), input.mutationType.c_str(),
              input.requiresGrad ? ", requires_grad" : "",
              input.requiresGrad && !input.hasGradient ? ", without a gradient" : "");
    for (const auto& output : metadata.outputs) {
        const std::string base =
            output.baseIdx < 0 ? std::string() : " of " + metadata.inputs[static_cast<size_t>(output.baseIdx)].name;
        print("output %-27s %-24s %s%s%s\n", output.name.c_str(), output.type.c_str(), output.outputType.c_str(),
              base.c_str(), output.tangent < 0 ? "" : (", tangents_" + std::to_string(output.tangent + 1)).c_str());
    }
    print("saved for the backward: %d tensors, %d symints; %zu of them donated\n", metadata.savedTensors,
          metadata.savedSymints, metadata.donated.size());
}

Json jsonOf(const TrainingMetadata& metadata) {
    Json inputs = Json::array(), outputs = Json::array(), dynamic = Json::object(), fixed = Json::array();
    for (size_t i = 0; i < metadata.inputs.size(); ++i) {
        const auto& input = metadata.inputs[i];
        inputs.push_back({{"name", input.name},
                          {"requires_grad", input.requiresGrad},
                          {"has_gradient", input.hasGradient},
                          {"mutates_data", input.mutatesData},
                          {"mutation_type", input.mutationType}});
        if (input.isStatic) fixed.push_back(i);
    }
    for (const auto& output : metadata.outputs)
        outputs.push_back({{"name", output.name},
                           {"type", output.type},
                           {"output_type", output.outputType},
                           {"base_idx", output.baseIdx},
                           {"view_chain", output.viewChain},
                           {"dynamic_dims", output.dynamicDims},
                           {"requires_grad", output.requiresGrad},
                           {"tangent", output.tangent}});
    for (const auto& [saved, dims] : metadata.dynamicSaved) dynamic[std::to_string(saved)] = dims;
    return {{"input_info", std::move(inputs)},
            {"output_info", std::move(outputs)},
            {"static_input_indices", std::move(fixed)},
            {"traced_tangents", metadata.tracedTangents},
            {"num_mutated_inp_runtime_indices", metadata.mutatedRuntimeInputs},
            {"num_forward_returns", metadata.forwardReturns},
            {"num_symints_saved_for_bw", metadata.savedSymints},
            {"num_tensors_saved_for_bw", metadata.savedTensors},
            {"bw_donated_idxs", metadata.donated},
            {"dynamic_saved_tensors_idxs", std::move(dynamic)}};
}
Json shapeOfMetadata() {
    const Json input{{"name", "string: in the file"},
                     {"requires_grad", "boolean: its gradient is wanted"},
                     {"has_gradient", "boolean: the backward computes it"},
                     {"mutates_data", "boolean: the program writes to it"},
                     {"mutation_type", "string: NOT_MUTATED, MUTATED_IN_GRAPH or MUTATED_OUT_GRAPH"}};
    const Json output{{"name", "string: of its node"},
                      {"type", "string: dtype and sizes"},
                      {"output_type", "string: non_alias, alias_of_input, is_input or unsafe_view_alias"},
                      {"base_idx", "integer: the input whose memory it shares; -1: none"},
                      {"view_chain", Json::array({"string: operators that lead from there to it"})},
                      {"dynamic_dims", Json::array({"integer: dims whose sizes are not numbers"})},
                      {"requires_grad", "boolean: it depends on an input whose gradient is wanted"},
                      {"tangent", "integer: its place among traced_tangents; -1: it has none"}};
    return {{"input_info", Json::array({input})},
            {"output_info", Json::array({output})},
            {"static_input_indices", Json::array({"integer: parameters and buffers"})},
            {"traced_tangents", Json::array({"string: dtype and sizes"})},
            {"num_mutated_inp_runtime_indices", "integer: inputs whose new value is returned"},
            {"num_forward_returns", "integer: new values of inputs, and results"},
            {"num_symints_saved_for_bw", "integer: numbers among what is saved, which come first"},
            {"num_tensors_saved_for_bw", "integer: likewise"},
            {"bw_donated_idxs", Json::array({"integer: places among what is saved, of memory that nobody else holds"})},
            {"dynamic_saved_tensors_idxs", {{"*", Json::array({"integer: dims of that saved tensor"})}}}};
}

Json jsonOf(const std::vector<BudgetPoint>& curve) {
    Json rows = Json::array();
    for (const BudgetPoint& point : curve)
        rows.push_back({{"budget", point.budget},
                        {"saved_activation_bytes", point.activationBytes},
                        {"recomputed_runtime", point.recomputedRuntime},
                        {"recomputed", point.recomputed}});
    return rows;
}

void addPartitionOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, json;
        bool curve = false, metadata = false;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    addJson(command, arguments->json);
    command.add_flag("--curve", arguments->curve,
                     "List memory against recomputation over all memory budgets, each where something changes");
    command.add_flag("--metadata", arguments->metadata,
                     "Tell of inputs and results what they share, which are written to, and who gets a gradient "
                     "(PyTorch's ViewAndMutationMeta; --json always has it)");
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            // Whoever asks for a partition means training.
            if (!arguments->compile.says("--mode"))
                arguments->compile.words.insert(arguments->compile.words.end(), {"--mode", "training"});
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const PartitionChoice choice, compiled.session.partition(compiled.run));
            CT_TRY(const TrainingMetadata metadata, trainingMetadata(compiled.session, compiled.run));
            std::vector<BudgetPoint> curve;
            if (arguments->curve) {
                CT_TRY(curve, compiled.session.budgetCurve(compiled.run));
            }
            if (!arguments->json.empty()) {
                Json report = toJson(choice);
                report["metadata"] = jsonOf(metadata);
                if (arguments->curve) report["curve"] = jsonOf(curve);
                return writeText(arguments->json, dump(report));
            }
            printChoice(choice);
            if (arguments->metadata) printMetadata(metadata);
            for (const BudgetPoint& point : curve)
                print("budget %.4f  activations %10s  computed again %5zu nodes, %g\n", point.budget,
                      bytesText(point.activationBytes).c_str(), point.recomputed, point.recomputedRuntime);
            return 0;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> partitionReports() {
    Json plain = shapeOfPartition();
    plain["metadata"] = shapeOfMetadata();
    Json withCurve = plain;
    withCurve["curve"] =
        Json::array({{{"budget", "number: from 0 to 1"},
                      {"saved_activation_bytes", "integer: of saved values that are not inputs"},
                      {"recomputed_runtime", "number: of what the budget computes again, as the estimator counts"},
                      {"recomputed", "integer: nodes that are computed on both sides"}}});
    return {{"--json", plain}, {"--json --curve", withCurve}};
}

}  // namespace

extern const Command partitionCommand{.name = "partition",
                                      .summary = "What the forward saves for the backward, and why",
                                      .add = addPartitionOptions,
                                      .reports = partitionReports};

}  // namespace cutaway::cli
