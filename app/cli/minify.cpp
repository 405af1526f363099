// minify: from a graph that fails to a few nodes that fail in the same way.
#include "cutaway/minify.h"

#include <unistd.h>

#include <csignal>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/backends.h"
#include "cutaway/plugins.h"

namespace cutaway::cli {
namespace {

constexpr std::pair<const char*, MinifyCheck> kMinifyChecks[] = {{"numbers", MinifyCheck::Numbers},
                                                                 {"crash", MinifyCheck::Crash},
                                                                 {"nan", MinifyCheck::Nan},
                                                                 {"command", MinifyCheck::Command}};

Json jsonOf(const MinifyReport& report) {
    Json steps = Json::array();
    for (const MinifyStep& step : report.steps)
        steps.push_back({{"trials", step.trials},
                         {"nodes", step.nodes},
                         {"inputs", step.inputs},
                         {"outputs", step.outputs},
                         {"how", step.how},
                         {"seconds", step.seconds}});
    return {{"nodes", report.nodes},
            {"nodes_before", report.nodesBefore},
            {"inputs", report.inputs},
            {"outputs", report.outputs},
            {"trials", report.trials},
            {"made", report.made},
            {"signature", report.signature.text()},
            {"detail", report.detail},
            {"repro", report.folder},
            {"graph", report.graph},
            {"reproduced", report.reproduced},
            {"stopped", report.stopped},
            {"why_stopped", report.whyStopped},
            {"seconds", report.seconds},
            {"overhead_ms", report.overheadMilliseconds},
            {"steps", std::move(steps)}};
}

void printMinify(const MinifyReport& report) {
    std::cout << report.text << "\n"
              << report.nodesBefore << " nodes became " << report.nodes << " in " << report.trials << " trials\n"
              << "failure: " << report.signature.title() << "\n";
    if (!report.detail.empty()) std::cout << "         " << report.detail << "\n";
    std::cout << "result:  " << report.folder << "\n"
              << (report.reproduced ? "It fails in the same way in a fresh process: "
                                    : "It did not fail in the same way in a fresh process: ")
              << report.command << "\n";
}

/// Prints progress on stderr if that is a terminal, with parity always.
void follow(const MinifyState& state, bool parity) {
    static const bool seen = ::isatty(STDERR_FILENO) != 0;
    if (state.logLine.empty() || (!seen && !parity)) return;
    std::cerr << state.logLine << "\n";
}

/// Ctrl-C ends this program as ever, and says what it leaves behind: the best result is on disk all the time.
class SaysWhatIsLeft {
  public:
    explicit SaysWhatIsLeft(const std::string& folder) {
        s_page = folder + "/best/README.md";
        s_text = "\nstopped: the best so far is in " + folder + "/best; the same command goes on from there\n";
        s_owner = ::getpid();
        std::signal(SIGINT, interrupted);
    }
    ~SaysWhatIsLeft() { std::signal(SIGINT, SIG_DFL); }
    SaysWhatIsLeft(const SaysWhatIsLeft&) = delete;
    SaysWhatIsLeft& operator=(const SaysWhatIsLeft&) = delete;

  private:
    static void interrupted(int signal) {
        // Children that were forked have this handler, too.
        if (::getpid() == s_owner && ::access(s_page.c_str(), F_OK) == 0)
            static_cast<void>(!::write(STDERR_FILENO, s_text.data(), s_text.size()));
        std::signal(signal, SIG_DFL);
        std::raise(signal);
    }
    static inline std::string s_page, s_text;
    static inline pid_t s_owner = 0;
};

struct MinifyArguments {
    std::string path, check = "crash", backend = "reference", step, json, oracle, judge;
    MinifyOptions minify;
    CompileArguments compile;
    double memoryMebibytes = 0;
};

Result<int> minified(Session& session, const MinifyArguments& arguments) {
    const MinifyOptions& options = arguments.minify;
    const bool parity = options.request.parity;
    const SaysWhatIsLeft onInterrupt(options.folder);
    CT_TRY(const MinifyReport report,
           minify(session, options, [parity](const MinifyState& state) { follow(state, parity); }));
    if (arguments.json.empty()) printMinify(report);
    else if (const int status = writeText(arguments.json, dump(jsonOf(report)))) return status;
    if (report.stopped) remark("stopped before the end: " + report.whyStopped + "; the same command goes on from here");
    if (report.reproduced) return 0;
    return Error{ErrorCode::ToolFailed,
                 "the result does not fail in the same way in a fresh process",
                 report.folder,
                 {"if the failure comes and goes, ask for --repeats"}};
}

Result<int> runMinify(MinifyArguments& arguments, bool checkGiven) {
    MinifyOptions& options = arguments.minify;
    if (!arguments.oracle.empty()) {
        if (!options.command.empty()) return invalidInput("--oracle and --command are two ways to ask: give one");
        options.command = oracleCommand(arguments.oracle);
    }
    if (!options.command.empty() && !checkGiven) arguments.check = "command";
    if (!arguments.judge.empty()) {
        if (!checkGiven && options.command.empty()) arguments.check = "numbers";
        if (arguments.check != "numbers") return invalidInput("--judge is for --check numbers, not " + arguments.check);
    }
    for (const auto& [name, check] : kMinifyChecks)
        if (arguments.check == name) options.check = check;
    if (!options.command.empty() && options.check != MinifyCheck::Command)
        return invalidInput((arguments.oracle.empty() ? "--command" : "--oracle") +
                            (" is for --check command, not " + arguments.check));
    if (!options.match.empty() && options.check != MinifyCheck::Command)
        return invalidInput("--match is for --check command, not " + arguments.check);
    if (!arguments.judge.empty()) options.command = judgeCommand(arguments.judge);
    CT_TRY(options.backend, arguments.compile.backend(arguments.backend));
    options.memoryBytes = static_cast<int64_t>(arguments.memoryMebibytes * 1024 * 1024);
    CT_TRY(options.request, arguments.compile.resolved());
    if (!arguments.step.empty()) {
        CT_TRY(Compiled compiled, openAndCompile(arguments.path, arguments.compile));
        CT_TRY(const StepPosition step, findStep(compiled.steps, arguments.step));
        options.place = Place{compiled.run, step.index, step.rewrites.value_or(-1)};
        return minified(compiled.session, arguments);
    }
    CT_TRY(const OpenSettings open, arguments.compile.open.resolved());
    Session session;
    CT_TRY_VOID(session.open(arguments.path, open));
    return minified(session, arguments);
}

void addMinifyOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<MinifyArguments>();
    MinifyOptions& options = arguments->minify;
    addModel(command, arguments->path)->required();
    command
        .add_option("--step", arguments->step,
                    "The graph after this step, by key, name or number, instead of the one in the file; only what the "
                    "compiler does from its stage on is tried")
        ->type_name("STEP");
    auto* check =
        command
            .add_option("--check", arguments->check,
                        "What the failure is: other numbers than before the passes (or than the interpreter's, "
                        "with another backend); a pass, the scheduler or the run that fails, hangs or takes all "
                        "memory; a NaN or infinity of finite inputs; a command that fails")
            ->check(oneOf({"numbers", "crash", "nan", "command"}));
    command
        .add_option("--command", options.command,
                    "Shell command that fails on a bad graph; {} stands for the graph as a runnable Python file")
        ->type_name("COMMAND");
    addOracle(command, arguments->oracle);
    command
        .add_option("--judge", arguments->judge,
                    "For --check numbers: a plugin's judge, PLUGIN or PLUGIN.JUDGE, which says whether results may "
                    "stand for those of before the passes")
        ->type_name("NAME");
    command
        .add_option("--match", options.match,
                    "The text in the command's output that means failure, in place of its exit status")
        ->type_name("TEXT");
    command.add_option("-o,--output", options.folder, "Folder for the result, and for going on after a stop")
        ->type_name("DIR")
        ->required();
    command.add_option("--backend", arguments->backend, "What runs the compiled graph")->check(aBackend());
    command
        .add_option("--inputs", options.inputsFile,
                    "Input tensors (safetensors); default: the file's sample inputs, else random ones")
        ->type_name("FILE");
    command
        .add_option("--tolerance", options.tolerance,
                    "For --check numbers: largest error that is good, as a share of the expected value and of what is "
                    "usual in its tensor")
        ->type_name("X")
        ->check(shareOrNumber());
    command
        .add_option("--signature", options.signature,
                    "The failure to keep: 'kind=crash; pass=post_grad/NAME; op=OP; message=TEXT', parts left out count "
                    "as any; default: the failure of the whole graph")
        ->type_name("TEXT");
    command.add_option("--timeout", options.timeoutSeconds, "Seconds that one trial may take")
        ->type_name("S")
        ->check(shareOrNumber());
    command
        .add_option("--memory", arguments->memoryMebibytes,
                    "MiB that one trial may take; default: what the machine has left")
        ->type_name("MIB")
        ->check(shareOrNumber());
    command
        .add_option("--repeats", options.repeats,
                    "For flaky failures: a graph fails if any of so many trials of it does")
        ->check(wholeNumber(1, 1000));
    command.add_option("--jobs", options.jobs, "Trials at once; affects speed only; 0: one per core")
        ->check(wholeNumber(0, 1024));
    command.add_option("--max-trials", options.maxTrials, "Stop after so many trials and keep the best; 0: none")
        ->check(wholeNumber(0, 1'000'000'000));
    command
        .add_option("--max-granularity", options.maxGranularity,
                    "With --parity: the largest piece that PyTorch's minifier takes, a power of two")
        ->check(wholeNumber(0, int64_t{1} << 40));
    std::string strategies;
    for (const auto& [name, summary] : minifyStrategies()) strategies += (strategies.empty() ? "" : ", ") + name;
    command.add_option("--without", options.without, "Leave out a strategy (may be repeated): " + strategies)
        ->type_name("STRATEGY");
    command.add_flag("--restart", options.restart, "Forget what the folder holds of an earlier search");
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback(
        [arguments, check, &context] { context.status = statusOf(runMinify(*arguments, check->count() > 0)); });
}

std::vector<JsonReport> minifyReports() {
    const Json step{{"trials", "integer: made until then"}, {"nodes", "integer: that were left"},
                    {"inputs", "integer: that it takes"},   {"outputs", "integer: that it returns"},
                    {"how", "string: what was done"},       {"seconds", "real: since the start"}};
    return {{"--json",
             {{"nodes", "integer: of the result, inputs and output included"},
              {"nodes_before", "integer: of the whole graph"},
              {"inputs", "integer: of the result"},
              {"outputs", "integer: of the result"},
              {"trials", "integer: graphs that were tried; with --parity, the queries of PyTorch's minifier"},
              {"made", "integer: trials made now; the others were known from the folder"},
              {"signature", "string: the failure, as --signature takes it"},
              {"detail", "string: how the result fails"},
              {"repro", "string: the folder of the result, for run-repro"},
              {"graph", "string: the file of the result"},
              {"reproduced", "boolean: it fails in the same way in a fresh process"},
              {"stopped", "boolean: before nothing could be taken away any more"},
              {"why_stopped", "string: empty if it was not"},
              {"seconds", "real: of the whole search"},
              {"overhead_ms", "real: median of what a trial took beside its own work"},
              {"steps", Json::array({step})}}}};
}

}  // namespace

extern const Command minifyCommand{
    .name = "minify",
    .summary =
        "Makes a failing graph smaller as long as it fails in the same way; status 0 if the result does so in a "
        "fresh process",
    .add = addMinifyOptions,
    .refuses = "the graph does not fail, or the result does not in a fresh process",
    .reports = minifyReports};

}  // namespace cutaway::cli
