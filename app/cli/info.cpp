// info: what a file holds.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

void printInfo(const ModelInfo& model) {
    std::cout << model.path << "\n" << model.format << "\n";
    if (!model.graphs.empty())
        std::cout << model.parameters << " parameters (" << model.parameterElements << " elements), " << model.buffers
                  << " buffers, " << model.constants << " constants, " << bytesText(model.bytes) << "\n";
    for (const std::string& input : model.inputs) std::cout << "  in   " << input << "\n";
    for (const std::string& output : model.outputs) std::cout << "  out  " << output << "\n";
    for (const std::string& symbol : model.symbols) std::cout << "size " << symbol << "\n";
    for (const std::string& guard : model.guards) std::cout << "guard " << guard << "\n";
    int calls = 0, problems = 0;
    for (const GraphSummary& graph : model.graphs) {
        std::cout << "graph " << graph.name << ": " << graph.nodes << " nodes\n";
        for (const OpSummary& op : graph.ops) {
            print("%6d  %s%s%s\n", op.count, op.op.c_str(), op.problem.empty() ? "" : "   ! ", op.problem.c_str());
            calls += op.count;
            if (!op.problem.empty()) problems += op.count;
        }
    }
    if (problems > 0)
        std::cout << problems << " of " << calls << " calls cannot be run everywhere; see the lines marked '!'\n";
    for (const std::string& tensor : model.tensors) std::cout << "  " << tensor << "\n";
    for (const std::string& entry : model.contents) std::cout << "  + " << entry << "\n";
    for (const std::string& remark : model.remarks) std::cout << "note: " << remark << "\n";
}

void addInfoOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, json;
        OpenArguments open;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    addJson(command, arguments->json);
    arguments->open.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(const OpenSettings settings, arguments->open.resolved());
            CT_TRY(const ModelInfo model, inspectFile(arguments->path, settings));
            if (!arguments->json.empty()) return writeText(arguments->json, dump(toJson(model)));
            printInfo(model);
            return 0;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> infoReports() { return {{"--json", shapeOfModel()}}; }

}  // namespace

extern const Command infoCommand{
    .name = "info",
    .summary = "What a file or folder holds: graphs, ops, parameters, bytes, and what cannot be run",
    .add = addInfoOptions,
    .reports = infoReports};

}  // namespace cutaway::cli
