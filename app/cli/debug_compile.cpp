// debug-compile: a folder with the graph, its inputs and the command that minifies it, and the sequential backend.
#include "cutaway/debug_compile.h"

#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

constexpr std::pair<const char*, SequentialBackend> kBackends[] = {{"ts", SequentialBackend::Ts},
                                                                   {"simple-ts", SequentialBackend::SimpleTs},
                                                                   {"nop", SequentialBackend::Nop},
                                                                   {"print", SequentialBackend::Print},
                                                                   {"draw", SequentialBackend::Draw}};

Json jsonOf(const DebugCompileReport& report) {
    Json steps = Json::array();
    for (const SequentialStep& step : report.steps)
        steps.push_back({{"slot", step.name}, {"what", step.what}, {"changed", step.changed}});
    return {{"files", report.files},           {"command", report.command}, {"reloaded", report.reloaded},
            {"difference", report.difference}, {"runs", report.runs},       {"ran", report.ran},
            {"steps", std::move(steps)},       {"remarks", report.remarks}, {"code", report.code}};
}

void printBundle(const DebugCompileReport& report, const DebugCompileOptions& options) {
    std::cout << "bundle: " << options.folder << "\n";
    for (const std::string& file : report.files) std::cout << "  " << file << "\n";
    for (const std::string& remark : report.remarks) std::cout << "note: " << remark << "\n";
    std::cout << (report.reloaded ? "read back: the same graph\n" : "read back: " + report.difference + "\n")
              << "run: " << report.ran << "\n";
    int number = 0;
    for (const SequentialStep& step : report.steps)
        cli::print(" %s %d %-22s %s\n", step.changed ? "*" : " ", ++number, step.name.c_str(), step.what.c_str());
    if (options.backend == SequentialBackend::Print) std::cout << report.code;
    std::cout << "to minify it:\n  " << report.command << "\n";
}

void addDebugCompileOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, backend = "ts", json;
        DebugCompileOptions options;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    command
        .add_option(
            "-o,--output", arguments->options.folder,
            "Folder for the bundle: module.py with state_dict.pt as GraphModule.to_folder writes them, graph.py, "
            "inputs.safetensors, request.txt")
        ->type_name("DIR")
        ->required();
    command
        .add_option("--backend", arguments->backend,
                    "ts: PyTorch's ts_compile, slot by slot; simple-ts: three of them; nop: the graph as it is; print: "
                    "its code; draw: graph.dot, for Graphviz")
        ->check(oneOf({"ts", "simple-ts", "nop", "print", "draw"}));
    command
        .add_option("--inputs", arguments->options.inputsFile,
                    "Input tensors (safetensors); default: the file's sample inputs, else random ones")
        ->type_name("FILE");
    command.add_option("--timeout", arguments->options.timeoutSeconds, "Seconds that a run may take; 0: no limit")
        ->type_name("SECONDS")
        ->check(shareOrNumber());
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            DebugCompileOptions& options = arguments->options;
            for (const auto& [name, backend] : kBackends)
                if (arguments->backend == name) options.backend = backend;
            CT_TRY(options.request, arguments->compile.resolved());
            CT_TRY(const OpenSettings open, arguments->compile.open.resolved());
            Session session;
            CT_TRY_VOID(session.open(arguments->path, open));
            CT_TRY(const DebugCompileReport report, debugCompile(session, options));
            int status = 0;
            if (arguments->json.empty()) printBundle(report, options);
            else status = writeText(arguments->json, dump(jsonOf(report)));
            if (!report.reloaded)
                return Error{ErrorCode::ToolFailed,
                             "what was read back is another graph: " + report.difference,
                             options.folder,
                             {}};
            if (!report.runs)
                return Error{ErrorCode::ToolFailed,
                             "the bundle does not run",
                             options.folder,
                             {"minify it with: " + report.command}};
            return status;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> debugCompileReports() {
    const Json step{{"slot", "string: of the sequential backend"},
                    {"what", "string: what it did"},
                    {"changed", "boolean: the graph is another one"}};
    return {{"--json",
             {{"files", Json::array({"string: in the folder"})},
              {"command", "string: minifies the bundle, as a shell takes it"},
              {"reloaded", "boolean: what the folder holds is the graph again"},
              {"difference", "string: where it is not; empty if it is"},
              {"runs", "boolean: the bundle and the compiled graph run"},
              {"ran", "string: results and time; why it did not run"},
              {"steps", Json::array({step})},
              {"remarks", Json::array({"string: a sentence"})},
              {"code", "string: of the compiled graph"}}}};
}

}  // namespace

extern const Command debugCompileCommand{
    .name = "debug-compile",
    .summary = "Writes a self-contained folder that runs a graph, and compiles it as ts_compile does",
    .add = addDebugCompileOptions,
    .refuses = "the bundle does not run, or is another graph when it is read back",
    .reports = debugCompileReports};

}  // namespace cutaway::cli
