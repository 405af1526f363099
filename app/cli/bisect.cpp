// bisect: which rewrite broke the graph.
#include "cutaway/bisect.h"

#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/backends.h"
#include "cutaway/plugins.h"

namespace cutaway::cli {
namespace {

constexpr std::pair<const char*, BisectCheck> kBisectChecks[] = {{"numbers", BisectCheck::Numbers},
                                                                 {"nan", BisectCheck::Nan},
                                                                 {"nonfinite", BisectCheck::Nan},
                                                                 {"command", BisectCheck::Command},
                                                                 {"crash", BisectCheck::Crash}};

Json jsonOf(const BisectReport& report) {
    Json probes = Json::array(), levels = Json::array();
    for (const BisectProbe& probe : report.probes)
        probes.push_back({{"rewrites", probe.rewrites},
                          {"step", probe.place.step < 0 ? Json() : Json(shownNumber(probe.place.step))},
                          {"in_step", probe.place.rewrites},
                          {"bad", probe.bad},
                          {"detail", probe.detail},
                          {"command", probe.command}});
    for (const BisectLevel& level : report.levels)
        levels.push_back({{"level", level.level}, {"name", level.name}, {"probes", level.probes}});
    Json json{{"found", report.found},       {"bad_as_opened", report.badAsOpened}, {"searched", report.searched},
              {"probes", std::move(probes)}, {"levels", std::move(levels)},         {"failure", report.failure},
              {"note", report.note}};
    if (report.found) {
        json["step"] = toJson(report.step);
        json["rewrite"] = report.rewrite.index < 0 ? Json() : toJson(report.rewrite);
    }
    if (report.value)
        json["value"] = {{"output", report.value->output},
                         {"index", report.value->worst.index},
                         {"without", report.value->worst.expected},
                         {"with", report.value->worst.actual}};
    return json;
}

void printBisect(const BisectReport& report, bool commands) {
    if (!report.note.empty()) std::cout << "note: " << report.note << "\n";
    for (const BisectProbe& probe : report.probes) {
        std::cout << (probe.bad ? "  bad   " : "  good  ") << "after " << probe.rewrites
                  << (probe.rewrites == 1 ? " rewrite: " : " rewrites: ") << probe.detail << "\n";
        if (commands) std::cout << "        " << probe.command << "\n";
    }
    std::cout << report.probes.size() << (report.probes.size() == 1 ? " test among " : " tests among ")
              << report.searched << (report.searched == 1 ? " rewrite\n" : " rewrites\n");
    for (const BisectLevel& level : report.levels) {
        std::cout << level.level << ": " << level.name;
        if (level.probes > 0) std::cout << ", after " << level.probes << (level.probes == 1 ? " test" : " tests");
        std::cout << "\n";
    }
    if (!report.failure.empty()) std::cout << "failure: " << report.failure << "\n";
    if (!report.found) return;
    if (report.rewrite.index < 0) {
        std::cout << "step " << report.step.name << " fails before its first rewrite: " << report.step.error << "\n";
        return;
    }
    std::cout << "culprit: step " << report.step.name << ", rewrite " << shownNumber(report.rewrite.index) << " ("
              << report.rewrite.rule << ") at " << report.rewrite.node
              << (report.rewrite.why.empty() ? "" : ": " + report.rewrite.why) << "\n";
    if (!report.value) return;
    std::string at;
    for (const int64_t i : report.value->worst.index) at += (at.empty() ? "[" : ", ") + std::to_string(i);
    std::cout << "value:   " << report.value->output << (at.empty() ? "" : at + "]") << " is "
              << report.value->worst.actual << " with it, " << report.value->worst.expected << " without\n";
}

struct BisectArguments {
    std::string path, check = "numbers", backend = "reference", json, oracle, judge;
    bool commands = false;
    double memoryMebibytes = 0;
    BisectOptions bisect;
    CompileArguments compile;
};

/// A request that may end this process is compiled in others only.
Result<BisectReport> search(const BisectArguments& arguments) {
    const BisectOptions& options = arguments.bisect;
    if (options.check != BisectCheck::Crash && options.backend == Backend::Reference) {
        CT_TRY(Compiled compiled, openAndCompile(arguments.path, arguments.compile));
        return bisect(compiled.session, compiled.run, options);
    }
    CT_TRY(const CompileRequest request, arguments.compile.resolved());
    CT_TRY(const OpenSettings settings, arguments.compile.open.resolved());
    Session session;
    CT_TRY_VOID(session.open(arguments.path, settings));
    return bisectCompile(session, request, options);
}

Result<int> runBisect(BisectArguments& arguments) {
    BisectOptions& options = arguments.bisect;
    for (const auto& [name, check] : kBisectChecks)
        if (arguments.check == name) options.check = check;
    CT_TRY(options.backend, arguments.compile.backend(arguments.backend));
    options.memoryBytes = static_cast<int64_t>(arguments.memoryMebibytes * 1024 * 1024);
    CT_TRY(const BisectReport report, search(arguments));
    if (arguments.json.empty()) printBisect(report, arguments.commands);
    const int written = arguments.json.empty() ? 0 : writeText(arguments.json, dump(jsonOf(report)));
    if (report.found) return written;
    return Error{ErrorCode::NotFound,
                 report.badAsOpened
                     ? std::string("nothing to find: it is bad without any of the rewrites")
                     : "nothing to find: the graph after all " + std::to_string(report.searched) + " rewrites is good",
                 arguments.path,
                 {}};
}

void addLimits(CLI::App& command, BisectArguments& arguments) {
    command.add_option("--timeout", arguments.bisect.timeoutSeconds, "Seconds that one test may take")
        ->type_name("S")
        ->check(shareOrNumber());
    command
        .add_option("--memory", arguments.memoryMebibytes,
                    "MiB that one test may take; default: what the machine has left")
        ->type_name("MIB")
        ->check(shareOrNumber());
    command.add_flag("--show-commands", arguments.commands, "Print with each test the command that repeats it");
}

void addBisectOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<BisectArguments>();
    addModel(command, arguments->path)->required();
    auto* check = command
                      .add_option("--check", arguments->check,
                                  "What is bad: other numbers than the graph as opened, a new NaN or infinity, a "
                                  "command that fails, or a compile or run that fails, dies, hangs or takes all memory")
                      ->check(oneOf({"numbers", "nan", "nonfinite", "command", "crash"}));
    auto* shell =
        command
            .add_option("--command", arguments->bisect.command,
                        "Shell command that fails on a bad graph; {} stands for the graph as a runnable Python file")
            ->type_name("COMMAND");
    auto* oracle = addOracle(command, arguments->oracle);
    auto* judge =
        command.add_option("--judge", arguments->judge,
                           "For --check numbers: a plugin's judge, PLUGIN or PLUGIN.JUDGE, which says whether "
                           "results may stand for the expected ones");
    judge->type_name("NAME");
    auto* inputs = command
                       .add_option("--inputs", arguments->bisect.inputsFile,
                                   "Input tensors (safetensors); default: the file's sample inputs, else random ones")
                       ->type_name("FILE");
    auto* tolerance = command.add_option("--tolerance", arguments->bisect.tolerance,
                                         "For --check numbers: largest error that is good, as a share of the expected "
                                         "value and of what is usual in its tensor");
    tolerance->type_name("X")->check(shareOrNumber());
    auto* backend = command
                        .add_option("--backend", arguments->backend,
                                    "For --check numbers, nan and crash: what runs the compiled graph")
                        ->check(aBackend());
    addLimits(command, *arguments);
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([=, &context] {
        const auto checked = [&]() -> Result<int> {
            if (oracle->count() > 0) {
                if (shell->count() > 0) return invalidInput("--oracle and --command are two ways to ask: give one");
                arguments->bisect.command = oracleCommand(arguments->oracle);
            }
            if (shell->count() > 0 || oracle->count() > 0) {
                if (check->count() > 0 && arguments->check != "command")
                    return invalidInput((shell->count() > 0 ? "--command" : "--oracle") +
                                        (" is for --check command, not " + arguments->check));
                arguments->check = "command";
            }
            const std::string& how = arguments->check;
            if (how == "numbers" && judge->count() > 0) arguments->bisect.command = judgeCommand(arguments->judge);
            for (const CLI::Option* unused : {inputs, tolerance, backend, judge}) {
                const bool meant = unused == tolerance || unused == judge ? how == "numbers" : how != "command";
                if (unused->count() > 0 && !meant)
                    return invalidInput(unused->get_name() + " has no meaning for --check " + how);
            }
            return runBisect(*arguments);
        };
        context.status = statusOf(checked());
    });
}

/// What --json writes.
std::vector<JsonReport> bisectReports() {
    const Json probe{{"rewrites", "integer: done of all that are searched"},
                     {"step?", "integer: counted from 1; 0 is the graph as opened; null: compiled anew"},
                     {"in_step", "integer: rewrites done of that step; -1: all"},
                     {"bad", "boolean: the graph is wrong there"},
                     {"detail", "string: how that was seen"},
                     {"command", "string: which repeats the test"}};
    const Json level{{"level", "string: graph, stage, pass or rewrite"},
                     {"name", "string"},
                     {"probes", "integer: tests until it was known"}};
    return {{"--json",
             {{"found", "boolean: the rewrite is known"},
              {"bad_as_opened", "boolean: it is bad without any rewrite"},
              {"searched", "integer: rewrites among which it is"},
              {"probes", Json::array({probe})},
              {"levels", Json::array({level})},
              {"failure", "string: of --check crash, as minify has it"},
              {"note", "string: what was left out of the search"},
              {"step?", shapeOfStep()},
              {"rewrite?", shapeOfRewrite()},
              {"value?", Json{{"output", "string: whose worst element the culprit changed"},
                              {"index", Json::array({"integer"})},
                              {"without", "string: the element before the culprit"},
                              {"with", "string: and after it"}}}}}};
}

}  // namespace

extern const Command bisectCommand{.name = "bisect",
                                   .summary = "Finds the rewrite that broke the graph; status 0 if one was found",
                                   .add = addBisectOptions,
                                   .refuses = "nothing is wrong with the graph after all rewrites",
                                   .reports = bisectReports};

}  // namespace cutaway::cli
