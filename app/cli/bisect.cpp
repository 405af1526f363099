// bisect: which rewrite broke the graph.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

Json toJson(const BisectReport& report) {
    Json probes = Json::array();
    for (const BisectProbe& probe : report.probes)
        probes.push_back({{"rewrites", probe.rewrites},
                          {"step", shownNumber(probe.place.step)},
                          {"in_step", probe.place.rewrites},
                          {"bad", probe.bad},
                          {"detail", probe.detail}});
    Json json{
        {"found", report.found}, {"searched", report.searched}, {"probes", std::move(probes)}, {"note", report.note}};
    if (report.found) {
        json["step"] = cli::toJson(report.step);
        json["rewrite"] = report.rewrite.index < 0 ? Json() : cli::toJson(report.rewrite);
    }
    return json;
}

void print(const BisectReport& report) {
    if (!report.note.empty()) std::cout << "note: " << report.note << "\n";
    for (const BisectProbe& probe : report.probes)
        std::cout << (probe.bad ? "  bad   " : "  good  ") << "after " << probe.rewrites
                  << (probe.rewrites == 1 ? " rewrite: " : " rewrites: ") << probe.detail << "\n";
    std::cout << report.probes.size() << (report.probes.size() == 1 ? " test among " : " tests among ")
              << report.searched << (report.searched == 1 ? " rewrite\n" : " rewrites\n");
    if (!report.found) return;
    if (report.rewrite.index < 0) {
        std::cout << "step " << report.step.name << " fails before its first rewrite: " << report.step.error << "\n";
        return;
    }
    std::cout << "culprit: step " << report.step.name << ", rewrite " << shownNumber(report.rewrite.index) << " ("
              << report.rewrite.rule << ") at " << report.rewrite.node
              << (report.rewrite.why.empty() ? "" : ": " + report.rewrite.why) << "\n";
}

void addOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, check = "numbers", json;
        BisectOptions bisect;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    auto* check =
        command
            .add_option(
                "--check", arguments->check,
                "What is bad: other numbers than the graph as opened, a new NaN or infinity, or a command that fails")
            ->check(oneOf({"numbers", "nonfinite", "command"}));
    auto* shell =
        command
            .add_option("--command", arguments->bisect.command,
                        "Shell command that fails on a bad graph; {} stands for the graph as a runnable Python file")
            ->type_name("COMMAND");
    auto* inputs = command
                       .add_option("--inputs", arguments->bisect.inputsFile,
                                   "Input tensors (safetensors); default: the file's sample inputs, else random ones")
                       ->type_name("FILE");
    auto* tolerance = command.add_option("--tolerance", arguments->bisect.tolerance,
                                         "For --check numbers: largest error that is good, as a share of the expected "
                                         "value and of what is usual in its tensor");
    tolerance->type_name("X")->check(shareOrNumber());
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([=, &context] {
        const auto run = [&]() -> Result<int> {
            auto& bisect = arguments->bisect;
            if (shell->count() > 0) {
                if (check->count() > 0 && arguments->check != "command")
                    return invalidInput("--command is for --check command, not " + arguments->check);
                arguments->check = "command";
            }
            for (const CLI::Option* unused : {inputs, tolerance})
                if (unused->count() > 0 &&
                    (arguments->check == "command" || (unused == tolerance && arguments->check != "numbers")))
                    return invalidInput(unused->get_name() + " has no meaning for --check " + arguments->check);
            bisect.check = arguments->check == "command"     ? BisectCheck::Command
                           : arguments->check == "nonfinite" ? BisectCheck::NonFinite
                                                             : BisectCheck::Numbers;
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const BisectReport report, compiled.session.bisect(compiled.run, bisect));
            if (arguments->json.empty()) print(report);
            const int written = arguments->json.empty() ? 0 : writeText(arguments->json, dump(toJson(report)));
            if (!report.found)
                return Error{
                    ErrorCode::NotFound,
                    "nothing to find: the graph after all " + std::to_string(report.searched) + " rewrites is good",
                    arguments->path,
                    {}};
            return written;
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> reports() {
    const Json probe{{"rewrites", "integer: done in the whole run"},
                     {"step", "integer: counted from 1; 0 is the graph as opened"},
                     {"in_step", "integer: rewrites done of that step; -1: all"},
                     {"bad", "boolean: the graph is wrong there"},
                     {"detail", "string: how that was seen"}};
    return {{"--json",
             {{"found", "boolean: the rewrite is known"},
              {"searched", "integer: rewrites among which it is"},
              {"probes", Json::array({probe})},
              {"note", "string: what was left out of the search"},
              {"step?", shapeOfStep()},
              {"rewrite?", shapeOfRewrite()}}}};
}

}  // namespace

extern const Command bisectCommand{.name = "bisect",
                                   .summary = "Finds the rewrite that broke the graph; status 0 if one was found",
                                   .add = addOptions,
                                   .refuses = "nothing is wrong with the graph after all rewrites",
                                   .reports = reports};

}  // namespace cutaway::cli
