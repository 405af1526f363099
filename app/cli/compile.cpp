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
int dumpRun(Compiled& compiled, const std::string& folder, const CompileOptions& options) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), folder, {}});
    for (const StepInfo& step : compiled.steps) {
        if (step.state != StepState::Changed) continue;
        char number[8];
        std::snprintf(number, sizeof number, "%02d", step.index);
        const std::string stem = folder + "/" + number + "_" + step.stage + "." + step.name;
        for (const auto& [place, side] : {std::pair{Place{compiled.run, step.index - 1, -1}, ".before.py"}, std::pair{Place{compiled.run, step.index, -1}, ".after.py"}}) {
            auto text = compiled.session.text(place);
            if (!text) return fail(text.error());
            if (int status = writeText(stem + side, text->text)) return status;
        }
    }
    if (!options.onlyStage.empty()) return 0;   // half a compilation has no kernels
    auto build = compiled.session.build(compiled.run, options.target);
    if (!build) return fail(build.error());
    return writeText(folder + "/kernels.cpp", build->source) | writeText(folder + "/kernels.log", build->compileLog);
}

void printRun(const RunReport& report) {
    std::cout << "inputs: " << report.inputsFrom << "\n";
    for (const OutputReport& output : report.outputs) {
        std::printf("  %-20s %-24s min %-12.6g max %-12.6g mean %-12.6g%s", output.name.c_str(), output.type.c_str(), output.minimum, output.maximum,
                    output.mean, output.nonFinite ? (" " + std::to_string(output.nonFinite) + " not finite").c_str() : "");
        if (output.compared)
            std::printf("  %s: max abs error %.3g of %.3g", output.within ? "ok" : "DIFFERS", output.maxAbsoluteError, output.maxExpected);
        std::printf("%s%s\n", output.problem.empty() ? "" : "  ", output.problem.c_str());
    }
    if (report.repeats > 0) std::printf("median %.3f ms, best %.3f ms of %d\n", report.medianMilliseconds, report.minMilliseconds, report.repeats);
    std::fflush(stdout);
}

double millisecondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}
double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

void addCompile(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("compile", "Runs the passes; with --dump also generates and compiles the kernels");
    struct Arguments {
        std::string path, stages, folder, json, budget;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    command->add_option("MODEL", arguments->path, "A .pt2 file or FX text")->required();
    command->add_option("--stages-json", arguments->stages, "Write each stage's op counts before and after, or - for stdout");
    command->add_option("--dump", arguments->folder, "Write every changed step's graphs and, of a whole compilation, the generated source into this folder");
    command->add_option("--json", arguments->json, "Write the steps as JSON to a file, or - for stdout");
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        auto compiled = openAndCompile(arguments->path, arguments->compile);
        if (!compiled) {
            context.status = fail(compiled.error());
            return;
        }
        Json steps = Json::array();
        for (const StepInfo& step : compiled->steps) {
            steps.push_back(toJson(step));
            if (step.state == StepState::Failed) context.status = fail(Error{ErrorCode::Internal, step.error, "step " + step.name, {}});
        }
        if (!arguments->json.empty()) context.status |= writeText(arguments->json, dump(steps));
        if (!arguments->stages.empty()) {
            Json rows = Json::array();
            auto stages = compiled->session.stages(compiled->run);
            for (const StageInfo& stage : *stages) rows.push_back(toJson(stage));
            context.status |= writeText(arguments->stages, dump(rows));
        }
        if (!arguments->folder.empty() && context.status == 0) context.status = dumpRun(*compiled, arguments->folder, arguments->compile.resolved());
        if (arguments->json.empty() && arguments->stages.empty() && context.status == 0) {
            double total = 0;
            int rewrites = 0;
            for (const StepInfo& step : compiled->steps) total += step.milliseconds, rewrites += step.rewrites;
            std::printf("%zu passes, %d rewrites, %d nodes, %.3f ms\n", compiled->steps.size(), rewrites,
                        compiled->steps.empty() ? 0 : compiled->steps.back().nodesAfter, total);
        }
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
    command->add_option("MODEL", arguments->path)->required();
    command->add_option("--inputs", arguments->run.inputsFile, "Input tensors (safetensors); default: the file's sample inputs, else random ones");
    command->add_option("--expect", arguments->run.expectFile, "Expected outputs (safetensors)");
    command->add_option("--values", arguments->run.valuesFile, "Tensors named after nodes (safetensors), taken in place of what those compute: a recorded random choice");
    command->add_option("--backend", arguments->backend)->check(CLI::IsMember({"reference", "cpu", "cuda"}));
    command->add_option("--repeat", arguments->run.repeat, "Timed runs")->check(CLI::PositiveNumber);
    command->add_option("--json", arguments->json, "Write the report as JSON to a file, or - for stdout");
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        arguments->run.backend = arguments->backend == "cpu" ? Backend::Cpu : arguments->backend == "cuda" ? Backend::Cuda : Backend::Reference;
        auto compiled = openAndCompile(arguments->path, arguments->compile);
        if (!compiled) {
            context.status = fail(compiled.error());
            return;
        }
        auto report = compiled->session.run(compiled->run, arguments->run);
        if (!report) {
            context.status = fail(report.error());
            return;
        }
        if (arguments->json.empty()) printRun(*report);
        else context.status = writeText(arguments->json, dump(toJson(*report)));
        if (!report->matches) context.status = fail(Error{ErrorCode::InvalidInput, "the results differ from the expected ones", arguments->path, {}});
    });
}

void addBench(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("bench", "Times opening, passes, difference, reference run and compiled run (medians)");
    struct Arguments {
        std::vector<std::string> paths;
        std::string json;
        int repeat = 7;
        bool kernels = false;
        std::vector<int> curve;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    auto* models = command->add_option("MODEL", arguments->paths);
    command->add_option("--curve", arguments->curve, "Instead of a model: graphs made of so many nodes each, and the time of every stage")
        ->delimiter(',')->check(CLI::PositiveNumber)->excludes(models);
    command->add_option("--repeat", arguments->repeat)->check(CLI::PositiveNumber);
    command->add_flag("--run", arguments->kernels, "Time the reference and the compiled CPU run as well");
    command->add_option("--json", arguments->json, "Write the figures as JSON to a file, or - for stdout");
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        if (!arguments->curve.empty()) {
            context.status = benchCurve(arguments->curve, arguments->repeat, arguments->compile, arguments->json);
            return;
        }
        if (arguments->paths.empty()) {
            context.status = fail(invalidInput("give a model, or --curve with numbers of nodes"));
            return;
        }
        Json rows = Json::array();
        for (const std::string& path : arguments->paths) {
            std::vector<double> opening, passes, difference, work;
            Json row{{"model", path}};
            for (int i = 0; i < arguments->repeat; ++i) {
                Session session;
                const auto settings = arguments->compile.open.resolved();
                if (!settings) {
                    context.status = fail(settings.error());
                    return;
                }
                auto start = std::chrono::steady_clock::now();
                if (auto model = session.open(path, *settings); !model) {
                    context.status = fail(model.error());
                    return;
                }
                opening.push_back(millisecondsSince(start));
                start = std::chrono::steady_clock::now();
                const std::clock_t worked = std::clock();
                auto run = session.compile(arguments->compile.resolved());
                if (!run) {
                    context.status = fail(run.error());
                    return;
                }
                passes.push_back(millisecondsSince(start));
                work.push_back(1000.0 * static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC);
                start = std::chrono::steady_clock::now();
                if (auto graph = session.diff({*run, -1, -1}, {*run, 0, -1}); !graph) {
                    context.status = fail(graph.error());
                    return;
                }
                difference.push_back(millisecondsSince(start));
                if (i + 1 < arguments->repeat || !arguments->kernels) continue;
                for (const auto& [backend, name] : {std::pair{Backend::Reference, "reference_ms"}, std::pair{Backend::Cpu, "cpu_ms"}}) {
                    RunOptions options;
                    options.backend = backend;
                    options.repeat = std::max(arguments->repeat, 20);
                    auto report = session.run(*run, options);
                    if (!report) {
                        context.status = fail(report.error());
                        return;
                    }
                    row[name] = report->medianMilliseconds;
                }
            }
            row["open_ms"] = median(opening);
            row["passes_ms"] = median(passes);
            row["passes_processor_ms"] = median(work);   // other programs do not count
            row["open_and_passes_ms"] = median(opening) + median(passes);
            row["diff_ms"] = median(difference);
            if (arguments->json.empty()) {
                for (const auto& [key, value] : row.items()) std::cout << (key == "model" ? "" : "  ") << key << " " << (value.is_number() ? std::to_string(value.get<double>()) : value.get<std::string>()) << "\n";
            }
            rows.push_back(std::move(row));
        }
        if (!arguments->json.empty()) context.status = writeText(arguments->json, dump(rows));
    });
}

}  // namespace cutaway::cli
