// steps: every pass of a run.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/breakpoints.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

void printSteps(const Compiled& compiled) {
    std::string heading;
    for (const StepInfo& step : compiled.steps) {
        const std::string here = step.graphName + "/" + step.stage;
        if (here != heading) std::cout << (heading = here) << "\n";
        const char* mark = step.state == StepState::Changed    ? "*"
                           : step.state == StepState::Failed   ? "!"
                           : step.state == StepState::Disabled ? "x"
                                                               : " ";
        const std::string name = step.name + (step.occurrence > 1 ? "#" + std::to_string(step.occurrence) : "");
        print(" %s %2d %-34s +%-4d -%-4d ~%-4d %5d rewrites  %5d nodes  %8.3f ms\n", mark, shownNumber(step.index),
              name.c_str(), step.added, step.removed, step.edited, step.rewrites, step.nodesAfter, step.milliseconds);
        if (step.constantBytesBefore != step.constantBytesAfter)
            std::cout << "      constants: " << bytesText(step.constantBytesBefore) << " before, "
                      << bytesText(step.constantBytesAfter) << " after\n";
        if (!step.error.empty()) std::cout << "      " << step.error << "\n";
    }
}

/// Status 1 when a step did not keep the numbers.
Result<int> checkNumbers(Compiled& compiled, const NumbersOptions& options, const std::string& json) {
    CT_TRY(const NumbersReport report, compiled.session.checkNumbers(compiled.run, options));
    Json rows = Json::array();
    if (json.empty()) std::cout << "inputs: " << report.inputsFrom << "\n";
    for (const StepNumbers& one : report.steps) {
        rows.push_back({{"step", one.step.name},
                        {"index", shownNumber(one.step.index)},
                        {"kept", one.kept},
                        {"detail", one.detail}});
        if (json.empty())
            std::cout << (one.kept ? " same     " : " DIFFERS  ") << shownNumber(one.step.index) << " " << one.step.name
                      << ": " << one.detail << "\n";
    }
    const int written =
        json.empty() ? 0
                     : writeText(json, dump({{"kept", report.kept}, {"inputs", report.inputsFrom}, {"steps", rows}}));
    if (!report.kept)
        return invalidInput("step " + report.steps.back().step.name +
                            " does not keep the numbers: " + report.steps.back().detail);
    return written;
}

/// Single rewrites of the step, on stdout if there is no JSON to put them into.
Result<Json> listRewrites(Compiled& compiled, const StepInfo& step, bool shown) {
    CT_TRY(const std::vector<RewriteInfo> rewrites, compiled.session.rewrites(compiled.run, step.index));
    Json list = Json::array();
    for (const RewriteInfo& rewrite : rewrites) {
        list.push_back(toJson(rewrite));
        if (shown)
            std::cout << step.name << " " << shownNumber(rewrite.index) << " " << rewrite.rule << " at " << rewrite.node
                      << (rewrite.why.empty() ? "" : ": " + rewrite.why) << "\n";
    }
    return list;
}

/// Compiles until one of the breakpoints holds, and says at which.
Result<Compiled> openAndStop(const std::string& path, const CompileArguments& arguments,
                             const std::vector<std::string>& texts) {
    std::vector<Breakpoint> breakpoints;
    for (const std::string& text : texts) {
        CT_TRY(Breakpoint one, parseBreakpoint(text));
        breakpoints.push_back(std::move(one));
    }
    Compiled compiled;
    CT_TRY(const OpenSettings settings, arguments.open.resolved());
    CT_TRY(const CompileRequest request, arguments.resolved());
    CT_TRY_VOID(compiled.session.open(path, settings));
    CT_TRY(const StoppedRun stopped, compileToBreakpoint(compiled.session, request, breakpoints, {}, arguments.hooks));
    compiled.run = stopped.run;
    CT_TRY(compiled.steps, compiled.session.steps(compiled.run));
    if (!stopped.stop) {
        remark("no breakpoint was met");
        return compiled;
    }
    const StepInfo& step = compiled.steps[static_cast<size_t>(stopped.stop->place.step)];
    const int rewrites = stopped.stop->place.rewrites;
    remark("stopped at " + breakpoints[stopped.stop->breakpoint].text() + ": " + step.key() +
           (rewrites < 0 ? std::string() : ":" + std::to_string(rewrites)) + ", " + stopped.stop->detail);
    return compiled;
}

void addStepsOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, json;
        std::vector<std::string> breakpoints;
        bool rewrites = false, numbers = false;
        NumbersOptions check;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    addJson(command, arguments->json);
    auto* rewrites =
        command.add_flag("--rewrites", arguments->rewrites, "List the single rewrites of each step as well");
    auto* numbers =
        command
            .add_flag("--check-numbers", arguments->numbers,
                      "Run the graphs on both sides of each changed step; status 1 if one computes something else")
            ->excludes(rewrites);
    command
        .add_option(
            "--inputs", arguments->check.inputsFile,
            "For --check-numbers: input tensors (safetensors); default: the file's sample inputs, else random ones")
        ->type_name("FILE")
        ->needs(numbers);
    command
        .add_option("--tolerance", arguments->check.tolerance,
                    "For --check-numbers: largest error that is good, as a share of the expected value and of what is "
                    "usual in its tensor")
        ->type_name("X")
        ->check(shareOrNumber())
        ->needs(numbers);
    command
        .add_option("--break", arguments->breakpoints,
                    "Stop where a condition holds: pass=NAME, born=NODE, dies=NODE, appears=QUERY, disappears=QUERY "
                    "(a query of the Search window: 'op=mm & numel>1e6'), nonfinite; with @N at the N-th step at "
                    "which it does (may be repeated)")
        ->type_name("CONDITION");
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(Compiled compiled, arguments->breakpoints.empty()
                                          ? openAndCompile(arguments->path, arguments->compile)
                                          : openAndStop(arguments->path, arguments->compile, arguments->breakpoints));
            if (arguments->numbers) return checkNumbers(compiled, arguments->check, arguments->json);
            const bool failed = !compiled.steps.empty() && compiled.steps.back().state == StepState::Failed;
            const bool shown = arguments->json.empty();
            if (shown) printSteps(compiled);
            Json rows = Json::array();
            for (const StepInfo& step : compiled.steps) {
                Json row = toJson(step);
                if (arguments->rewrites) {
                    CT_TRY(row["list"], listRewrites(compiled, step, shown));
                }
                rows.push_back(std::move(row));
            }
            const int written = shown ? 0 : writeText(arguments->json, dump(rows));
            if (failed)
                return Error{
                    ErrorCode::InvalidInput, compiled.steps.back().error, "step " + compiled.steps.back().name, {}};
            return written;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> stepsReports() {
    Json withRewrites = shapeOfStep();
    withRewrites["list"] = Json::array({shapeOfRewrite()});
    const Json step{{"step", "string: name"},
                    {"index", "integer: counted from 1"},
                    {"kept", "boolean: it computes the same"},
                    {"detail", "string: the largest error, or what differs"}};
    const Json numbers{
        {"kept", "boolean: by every step"}, {"inputs", "string: where they come from"}, {"steps", Json::array({step})}};
    return {{"--json", Json::array({shapeOfStep()})},
            {"--json --rewrites", Json::array({withRewrites})},
            {"--json --check-numbers", numbers}};
}

}  // namespace

extern const Command stepsCommand{.name = "steps",
                                  .summary = "Every pass: what it changed and how long it took",
                                  .add = addStepsOptions,
                                  .refuses = "a step failed; with --check-numbers, a step does not keep the numbers",
                                  .reports = stepsReports};

}  // namespace cutaway::cli
