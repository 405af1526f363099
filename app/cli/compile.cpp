// compile, run, bench: doing.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

/// Every step's graph as text, and the generated source: DIR/03_joint.remove_noop_ops.before.py and so on.
int dumpRun(Compiled& compiled, const std::string& folder, const CompileRequest& options) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), folder, {}});
    for (const StepInfo& step : compiled.steps) {
        if (step.state != StepState::Changed) continue;
        char number[8];
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
    if (options.target == Target::Cuda) {
        remark("no kernels are written: this version makes them for the CPU only");
        return 0;
    }
    auto build = compiled.session.build(compiled.run, options.target);
    if (!build) return fail(build.error());
    return writeText(folder + "/kernels.cpp", build->source) | writeText(folder + "/kernels.log", build->compileLog);
}

void printRun(const RunReport& report) {
    std::cout << "inputs: " << report.inputsFrom << "\n";
    if (report.compared) std::cout << "expected: " << report.expectedFrom << "\n";
    for (const OutputReport& output : report.outputs) {
        print("  %-20s %-24s min %-12.6g max %-12.6g mean %-12.6g%s", output.name.c_str(), output.type.c_str(),
              output.minimum, output.maximum, output.mean,
              output.nonFinite ? (" " + std::to_string(output.nonFinite) + " not finite").c_str() : "");
        if (output.compared)
            print("  %s: max abs error %.3g of %.3g", output.within ? "ok" : "DIFFERS", output.maxAbsoluteError,
                  output.maxExpected);
        print("%s%s\n", output.problem.empty() ? "" : "  ", output.problem.c_str());
    }
    if (report.repeats > 0)
        print("median %.3f ms, best %.3f ms of %d\n", report.medianMilliseconds, report.minMilliseconds,
              report.repeats);
}

constexpr int kMostRepeats = 1'000'000;

/// What `run` can run on. A GPU is somebody's first guess, and gets its own sentence.
CLI::Validator runBackend() {
    const auto known = oneOf({"reference", "cpu"});
    const auto check = [known](std::string& text) -> std::string {
        if (text == "cuda")
            return "cuda is not in this version: run with reference or cpu; `compile --device cuda` shows the passes "
                   "for a GPU";
        return known(text);
    };
    return CLI::Validator(check, "{reference, cpu}", "");
}

double millisecondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}
double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

/// Times of what a session does with one model.
struct Timings {
    std::vector<double> opening, passes, processor, difference;
};

/// One round; `row`, if it is there, gets the times of runs, too.
Result<void> timeOnce(const std::string& path, const CompileArguments& compile, Timings& times, Json* row, int repeat) {
    CT_TRY(const OpenSettings settings, compile.open.resolved());
    CT_TRY(const CompileRequest options, compile.resolved());
    Session session;
    auto start = std::chrono::steady_clock::now();
    CT_TRY_VOID(session.open(path, settings));
    times.opening.push_back(millisecondsSince(start));
    start = std::chrono::steady_clock::now();
    const std::clock_t worked = std::clock();
    CT_TRY(const RunId run, session.compile(options, compile.services));
    times.passes.push_back(millisecondsSince(start));
    times.processor.push_back(1000.0 * static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC);
    start = std::chrono::steady_clock::now();
    CT_TRY_VOID(session.diff({run, -1, -1}, {run, 0, -1}));
    times.difference.push_back(millisecondsSince(start));
    if (row == nullptr) return {};
    for (const auto& [backend, name] :
         {std::pair{Backend::Reference, "reference_ms"}, std::pair{Backend::Cpu, "cpu_ms"}}) {
        RunOptions running;
        running.backend = backend;
        running.repeat = std::max(repeat, 20);
        CT_TRY(const RunReport report, session.run(run, running));
        (*row)[name] = report.medianMilliseconds;
    }
    return {};
}

Result<Json> benchModel(const std::string& path, const CompileArguments& compile, int repeat, bool runs) {
    Timings times;
    Json row{{"model", path}};
    for (int i = 0; i < repeat; ++i)
        CT_TRY_VOID(timeOnce(path, compile, times, runs && i + 1 == repeat ? &row : nullptr, repeat));
    row["open_ms"] = median(times.opening);
    row["passes_ms"] = median(times.passes);
    row["passes_processor_ms"] = median(times.processor);  // other programs do not count
    row["open_and_passes_ms"] = median(times.opening) + median(times.passes);
    row["diff_ms"] = median(times.difference);
    return row;
}

}  // namespace

void addCompile(CLI::App& app, Context& context) {
    auto* command =
        app.add_subcommand("compile", "Runs the passes; with --dump also generates and compiles the kernels");
    struct Arguments {
        std::string path, stages, folder, json;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(*command, arguments->path)->required();
    command
        ->add_option("--stages-json", arguments->stages,
                     "Write each stage's op counts before and after as JSON to a file, or - for stdout")
        ->type_name("FILE");
    command
        ->add_option("--dump", arguments->folder,
                     "Write every changed step's graphs and, of a whole compilation for the CPU, the generated source "
                     "into this folder")
        ->type_name("DIR");
    addJson(*command, arguments->json);
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
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
                for (const StageInfo& stage : stages) rows.push_back(toJson(stage));
                status |= writeText(arguments->stages, dump(rows));
            }
            if (!arguments->folder.empty() && status == 0) status = dumpRun(compiled, arguments->folder, options);
            if (!arguments->json.empty() || !arguments->stages.empty() || status != 0) return status;
            double total = 0;
            int rewrites = 0;
            for (const StepInfo& step : compiled.steps) total += step.milliseconds, rewrites += step.rewrites;
            print("%zu passes, %d rewrites, %d nodes, %.3f ms\n", compiled.steps.size(), rewrites,
                  compiled.steps.empty() ? 0 : compiled.steps.back().nodesAfter, total);
            return 0;
        };
        context.status = statusOf(run());
    });
}

void addRun(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("run", "Runs the model and compares the results");
    struct Arguments {
        std::string path, backend = "reference", json;
        RunOptions run;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(*command, arguments->path)->required();
    command
        ->add_option("--inputs", arguments->run.inputsFile,
                     "Input tensors (safetensors), by the inputs' names or in the order of theirs; default: the file's "
                     "sample inputs, else random ones")
        ->type_name("FILE");
    command
        ->add_option("--expect", arguments->run.expectFile,
                     "Expected outputs (safetensors), by the outputs' names, as output_0, output_1, or in the order of "
                     "theirs; status 1 where one differs")
        ->type_name("FILE");
    command
        ->add_option(
            "--values", arguments->run.valuesFile,
            "Tensors named after nodes (safetensors), taken in place of what those compute: a recorded random choice")
        ->type_name("FILE");
    command->add_option("--backend", arguments->backend, "The interpreter, or kernels compiled for the CPU")
        ->check(runBackend());
    command->add_option("--repeat", arguments->run.repeat, "Timed runs")
        ->type_name("N")
        ->check(wholeNumber(1, kMostRepeats));
    addJson(*command, arguments->json);
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            arguments->run.backend = arguments->backend == "cpu" ? Backend::Cpu : Backend::Reference;
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const RunReport report, compiled.session.run(compiled.run, arguments->run));
            if (arguments->json.empty()) printRun(report);
            const int written = arguments->json.empty() ? 0 : writeText(arguments->json, dump(toJson(report)));
            if (!report.matches) return invalidInput("the results differ from the expected ones", arguments->path);
            return written;
        };
        context.status = statusOf(run());
    });
}

void addBench(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand(
        "bench", "Times opening, passes, difference and, with --run, reference and compiled run (medians)");
    struct Arguments {
        std::vector<std::string> paths;
        std::string json;
        int repeat = 7;
        bool runs = false;
        std::vector<int> curve;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    auto* models = command->add_option("MODEL", arguments->paths, "One model or more");
    auto* curve = command
                      ->add_option("--curve", arguments->curve,
                                   "Instead of a model: graphs made of so many nodes each, and the time of every stage")
                      ->type_name("N,N,...")
                      ->delimiter(',')
                      ->check(wholeNumber(1, 10'000'000))
                      ->excludes(models);
    command->add_option("--repeat", arguments->repeat, "How many times; medians are of so many")
        ->type_name("N")
        ->check(wholeNumber(1, kMostRepeats));
    command->add_flag("--run", arguments->runs, "Time the reference and the compiled CPU run as well")->excludes(curve);
    addJson(*command, arguments->json);
    arguments->compile.addTo(*command);
    for (const char* ofAFile : {"--graph", "--size", "--only"})  // the graphs are made, and every stage runs alone
        curve->excludes(command->get_option(ofAFile));
    command->callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            if (!arguments->curve.empty())
                return benchCurve(arguments->curve, arguments->repeat, arguments->compile, arguments->json);
            if (arguments->paths.empty()) return invalidInput("give a model, or --curve with numbers of nodes");
            Json rows = Json::array();
            for (const std::string& path : arguments->paths) {
                CT_TRY(Json row, benchModel(path, arguments->compile, arguments->repeat, arguments->runs));
                if (arguments->json.empty())
                    for (const auto& [key, value] : row.items())
                        std::cout << (key == "model" ? "" : "  ") << key << " "
                                  << (value.is_number() ? std::to_string(value.get<double>())
                                                        : value.get<std::string>())
                                  << "\n"
                                  << std::flush;
                rows.push_back(std::move(row));
            }
            return arguments->json.empty() ? 0 : writeText(arguments->json, dump(rows));
        };
        context.status = statusOf(run());
    });
}

}  // namespace cutaway::cli
