// bench: how long things take.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <utility>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

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
    std::vector<double> partition, sliderFirst, slider;  // of a run for training
    std::vector<double> schedule, build;                 // from the graph of calls to a program
};

/// What of a benchmark is asked for beside the passes.
struct Extras {
    bool builds = false, runs = false;
};

/// Of the processor, this process's share: compilers are processes of their own, and others do not count.
double processorMilliseconds() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// What becomes of a schedule: kernels, loop plans, nests, their text, the host program.
Result<void> timeBuild(Session& session, RunId run, Target target, Timings& times) {
    const double start = processorMilliseconds();
    CT_TRY_VOID(session.build(run, target));
    times.build.push_back(processorMilliseconds() - start);
    return {};
}

/// The stage that splits, and a slider that asks for one memory budget after the other.
Result<void> timePartition(Session& session, RunId run, Timings& times) {
    double spent = 0;
    bool splits = false;
    CT_TRY(const std::vector<StepInfo> steps, session.steps(run));
    for (const StepInfo& step : steps) {
        if (step.stage != "partition") continue;
        splits = true;
        spent += step.milliseconds;
    }
    if (!splits) return {};
    times.partition.push_back(spent);
    bool first = true;  // this one also computes what does not depend on the budget
    for (const double budget : {0.9, 0.7, 0.5, 0.3, 0.1, 0.6}) {
        const auto start = std::chrono::steady_clock::now();
        CT_TRY_VOID(session.partitionAt(run, budget));
        (first ? times.sliderFirst : times.slider).push_back(millisecondsSince(start));
        first = false;
    }
    return {};
}

/// One round; `row`, if it is there, gets the times of runs, too.
Result<void> timeOnce(const std::string& path, const CompileArguments& compile, bool builds, Timings& times, Json* row,
                      int repeat) {
    CT_TRY(const OpenSettings settings, compile.open.resolved());
    CT_TRY(const CompileRequest options, compile.resolved());
    Session session;
    auto start = std::chrono::steady_clock::now();
    CT_TRY_VOID(session.open(path, settings));
    times.opening.push_back(millisecondsSince(start));
    start = std::chrono::steady_clock::now();
    const double worked = processorMilliseconds();
    double last = worked, schedule = 0;
    const auto ended = [&](const StepInfo& step) {
        const double now = processorMilliseconds();
        if (step.stage == "schedule") schedule += now - last;
        last = now;
    };
    CT_TRY(const RunId run, session.compileWatched(options, compile.hooks, ended));
    times.passes.push_back(millisecondsSince(start));
    times.processor.push_back(processorMilliseconds() - worked);
    times.schedule.push_back(schedule);
    start = std::chrono::steady_clock::now();
    CT_TRY_VOID(session.diff({run, -1, -1}, {run, 0, -1}));
    times.difference.push_back(millisecondsSince(start));
    if (options.mode == Mode::Training) CT_TRY_VOID(timePartition(session, run, times));
    if (builds) CT_TRY_VOID(timeBuild(session, run, options.target, times));
    if (row == nullptr) return {};
    RunOptions running;
    running.repeat = std::max(repeat, 20);
    CT_TRY(const RunReport reference, session.run(run, running));
    (*row)["reference_ms"] = reference.medianMilliseconds;
    // The first run loads, the second finds everything loaded.
    running.backend = Backend::Cpu;
    const int repeats = std::exchange(running.repeat, 1);
    start = std::chrono::steady_clock::now();
    CT_TRY(const RunReport first, session.run(run, running));
    (*row)["first_ms"] = millisecondsSince(start);
    running.repeat = repeats;
    CT_TRY(const RunReport compiled, session.run(run, running));
    (*row)["cpu_ms"] = compiled.medianMilliseconds;
    if (!first.cost || !compiled.cost) return {};
    RunCost cost = *compiled.cost;
    cost.loadMilliseconds = first.cost->loadMilliseconds;
    addCost(*row, cost);
    return {};
}

Result<Json> benchModel(const std::string& path, const CompileArguments& compile, int repeat, const Extras& extras) {
    Timings times;
    Json row{{"model", path}};
    for (int i = 0; i < repeat; ++i) {
        const bool runs = extras.runs && i + 1 == repeat;
        CT_TRY_VOID(timeOnce(path, compile, extras.builds, times, runs ? &row : nullptr, repeat));
    }
    row["open_ms"] = median(times.opening);
    row["passes_ms"] = median(times.passes);
    row["passes_processor_ms"] = median(times.processor);  // other programs do not count
    row["open_and_passes_ms"] = median(times.opening) + median(times.passes);
    row["diff_ms"] = median(times.difference);
    if (!times.partition.empty()) {
        row["partition_ms"] = median(times.partition);
        row["slider_first_ms"] = median(times.sliderFirst);
        row["slider_ms"] = median(times.slider);
    }
    if (extras.builds) {
        row["schedule_processor_ms"] = median(times.schedule);
        row["build_processor_ms"] = median(times.build);
        row["graph_to_program_processor_ms"] = median(times.schedule) + median(times.build);
    }
    return row;
}

void addBenchOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::vector<std::string> paths;
        std::string json;
        int repeat = 7;
        Extras extras;
        std::vector<int> curve;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    auto* models = command.add_option("MODEL", arguments->paths, "One model or more")->default_str("");
    auto* curve =
        command
            .add_option("--curve", arguments->curve,
                        "Instead of a model: generated graphs with these numbers of nodes, and the time of every stage")
            ->type_name("N,N,...")
            ->default_str("")
            ->delimiter(',')
            ->check(wholeNumber(1, 10'000'000))
            ->excludes(models);
    command.add_option("--repeat", arguments->repeat, "How many times to measure; the medians of these are printed")
        ->type_name("N")
        ->check(wholeNumber(1, kMostRepeats));
    command
        .add_flag(
            "--build", arguments->extras.builds,
            "Time the way from the graph of calls to a program as well, without the compiler: schedule, loop plans, "
            "nests, C++, host program")
        ->excludes(curve);
    command
        .add_flag(
            "--run", arguments->extras.runs,
            "Time the reference and the compiled CPU run as well, how long the latter takes to load and to start, and "
            "its memory")
        ->excludes(curve);
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    for (const char* ofAFile : {"--graph", "--size", "--only"})  // the graphs are made, and every stage runs alone
        curve->excludes(command.get_option(ofAFile));
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            if (!arguments->curve.empty())
                return benchCurve(arguments->curve, arguments->repeat, arguments->compile, arguments->json);
            if (arguments->paths.empty()) return invalidInput("give a model, or --curve with numbers of nodes");
            Json rows = Json::array();
            for (const std::string& path : arguments->paths) {
                CT_TRY(Json row, benchModel(path, arguments->compile, arguments->repeat, arguments->extras));
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

/// What --json writes.
std::vector<JsonReport> benchReports() {
    Json model{{"model", "string: as given"},
               {"reference_ms?", "number: a run by the interpreter; with --run"},
               {"cpu_ms?", "number: a run of compiled code; with --run"},
               {"open_ms", "number: median"},
               {"passes_ms", "number: median"},
               {"passes_processor_ms", "number: median, of the processor's time"},
               {"open_and_passes_ms", "number: median"},
               {"diff_ms", "number: median, of the first step's difference"},
               {"partition_ms?", "number: median, of the stage that splits a graph for training"},
               {"slider_first_ms?", "number: median, of the first other memory budget that is asked for"},
               {"slider_ms?", "number: median, of further ones"},
               {"schedule_processor_ms?", "number: median, of the stage that schedules; with --build"},
               {"build_processor_ms?",
                "number: median, from its plan to a program, of the processor's time, compilers "
                "left out; with --build"},
               {"graph_to_program_processor_ms?", "number: both together; with --build"}};
    model["first_ms?"] =
        "number: until the first result of compiled code: kernels compiled or taken from the cache, process started, "
        "code and weights loaded, one run; with --run, as all that follows";
    addCostShape(model);
    const Json curve{{"asked", "integer: nodes"},
                     {"nodes", "integer: of the graph as opened"},
                     {"nodes_after", {{"*", "integer: of the graph after that stage"}}},
                     {"processor_ms", {{"*", "number: median, of that stage"}}}};
    return {{"--json", Json::array({model})}, {"--json --curve", Json::array({curve})}};
}

}  // namespace

extern const Command benchCommand{
    .name = "bench",
    .summary = "Times opening, passes, difference and, if asked, building, reference and compiled run (medians)",
    .add = addBenchOptions,
    .reports = benchReports};

}  // namespace cutaway::cli
