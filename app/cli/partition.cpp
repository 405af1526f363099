// partition: what the forward saves for the backward, at one memory budget or at all.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
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

Json toJson(const std::vector<BudgetPoint>& curve) {
    Json rows = Json::array();
    for (const BudgetPoint& point : curve)
        rows.push_back({{"budget", point.budget},
                        {"saved_activation_bytes", point.activationBytes},
                        {"recomputed_runtime", point.recomputedRuntime},
                        {"recomputed", point.recomputed}});
    return rows;
}

void addOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, json;
        bool curve = false;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    addJson(command, arguments->json);
    command.add_flag("--curve", arguments->curve,
                     "List memory against recomputation over all memory budgets, each where something changes");
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            // Whoever asks for a partition means training.
            if (std::find(arguments->compile.words.begin(), arguments->compile.words.end(), "--mode") ==
                arguments->compile.words.end())
                arguments->compile.words.insert(arguments->compile.words.end(), {"--mode", "training"});
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const PartitionChoice choice, compiled.session.partition(compiled.run));
            std::vector<BudgetPoint> curve;
            if (arguments->curve) {
                CT_TRY(curve, compiled.session.budgetCurve(compiled.run));
            }
            if (!arguments->json.empty()) {
                Json report = cli::toJson(choice);
                if (arguments->curve) report["curve"] = toJson(curve);
                return writeText(arguments->json, dump(report));
            }
            printChoice(choice);
            for (const BudgetPoint& point : curve)
                print("budget %.4f  activations %10s  computed again %5zu nodes, %g\n", point.budget,
                      bytesText(point.activationBytes).c_str(), point.recomputed, point.recomputedRuntime);
            return 0;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> reports() {
    Json withCurve = shapeOfPartition();
    withCurve["curve"] =
        Json::array({{{"budget", "number: from 0 to 1"},
                      {"saved_activation_bytes", "integer: of saved values that are no inputs"},
                      {"recomputed_runtime", "number: of what the budget computes again, as the estimator counts"},
                      {"recomputed", "integer: nodes that are computed on both sides"}}});
    return {{"--json", shapeOfPartition()}, {"--json --curve", withCurve}};
}

}  // namespace

extern const Command partitionCommand{.name = "partition",
                                      .summary = "What the forward saves for the backward, and why",
                                      .add = addOptions,
                                      .reports = reports};

}  // namespace cutaway::cli
