// compile: runs the passes, and writes down what they did.
#include <filesystem>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/host.h"

namespace cutaway::cli {
namespace {

/// What calls the kernels: host.txt, and as C++ host.cpp where that can be.
int dumpHost(Compiled& compiled, const std::string& folder) {
    auto host = hostTexts(compiled.session, compiled.run);
    if (!host) return fail(host.error());
    int status = writeText(folder + "/host.txt", host->program);
    if (host->noSource.empty()) status |= writeText(folder + "/host.cpp", host->source);
    else remark("no " + folder + "/host.cpp is written: " + host->noSource);
    return status;
}

/// Every step's graph as text, and the generated source: DIR/03_joint.remove_noop_ops.before.py and so on.
int dumpRun(Compiled& compiled, const std::string& folder, const CompileRequest& options) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), folder, {}});
    for (const StepInfo& step : compiled.steps) {
        if (step.state != StepState::Changed) continue;
        char number[16];
        std::snprintf(number, sizeof number, "%02d", shownNumber(step.index));
        const std::string stem = folder + "/" + number + "_" + step.stage + "." + step.name;
        for (const auto& [place, side] : {std::pair{Place{compiled.run, step.index, 0}, ".before.py"},
                                          std::pair{Place{compiled.run, step.index, -1}, ".after.py"}}) {
            auto text = compiled.session.text(place);
            if (!text) return fail(text.error());
            if (int status = writeText(stem + side, text->text)) return status;
        }
    }
    if (!options.onlyStage.empty()) return 0;  // half a compilation has no kernels
    auto build = compiled.session.build(compiled.run, options.target);
    if (!build) return fail(build.error());
    const char* const name = options.target == Target::Cuda ? "/kernels.cu" : "/kernels.cpp";
    return writeText(folder + name, build->source) | writeText(folder + "/kernels.log", build->compileLog) |
           dumpHost(compiled, folder);
}

void addCompileOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, stages, folder, json;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    command
        .add_option("--stages-json", arguments->stages,
                    "Write each stage's op counts before and after as JSON to a file, or - for stdout")
        ->type_name("FILE");
    command
        .add_option("--dump", arguments->folder,
                    "Write every changed step's graphs and, of a whole compilation for the CPU, the generated source "
                    "into this folder")
        ->type_name("DIR");
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            if (arguments->json == "-" && arguments->stages == "-")
                return invalidInput("--json and --stages-json cannot both go to stdout");
            CT_TRY(const CompileRequest options, arguments->compile.resolved());
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            int status = 0;
            Json steps = Json::array();
            for (const StepInfo& step : compiled.steps) {
                steps.push_back(toJson(step));
                if (step.state == StepState::Failed)
                    status = fail(Error{ErrorCode::Internal, step.error, "step " + step.name, {}});
            }
            if (!arguments->json.empty()) status |= writeText(arguments->json, dump(steps));
            if (!arguments->stages.empty()) {
                CT_TRY(const std::vector<StageInfo> stages, compiled.session.stages(compiled.run));
                Json rows = Json::array();
                for (const StageInfo& stage : stages) {
                    rows.push_back(toJson(stage));
                    if (stage.stage != "partition" || stage.graphName != "forward") continue;
                    CT_TRY(const PartitionChoice choice, compiled.session.partition(compiled.run));
                    addSaved(rows.back(), choice);
                }
                status |= writeText(arguments->stages, dump(rows));
            }
            if (!arguments->folder.empty() && status == 0) status = dumpRun(compiled, arguments->folder, options);
            if (!arguments->json.empty() || !arguments->stages.empty() || status != 0) return status;
            double total = 0;
            int rewrites = 0;
            for (const StepInfo& step : compiled.steps) {
                total += step.milliseconds;
                rewrites += step.rewrites;
            }
            print("%zu passes, %d rewrites, %d nodes, %.3f ms\n", compiled.steps.size(), rewrites,
                  compiled.steps.empty() ? 0 : compiled.steps.back().nodesAfter, total);
            return 0;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> compileReports() {
    return {{"--json", Json::array({shapeOfStep()})}, {"--stages-json", Json::array({shapeOfStage()})}};
}

}  // namespace

extern const Command compileCommand{.name = "compile",
                                    .summary = "Runs the passes; with --dump also generates and compiles the kernels",
                                    .add = addCompileOptions,
                                    .reports = compileReports};

}  // namespace cutaway::cli
