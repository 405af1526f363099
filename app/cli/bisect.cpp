// bisect: which rewrite broke the graph.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

Json toJson(const BisectReport& report) {
    Json probes = Json::array();
    for (const BisectProbe& probe : report.probes)
        probes.push_back({{"rewrites", probe.rewrites}, {"step", probe.place.step}, {"in_step", probe.place.rewrites}, {"bad", probe.bad}, {"detail", probe.detail}});
    Json json{{"found", report.found}, {"searched", report.searched}, {"probes", std::move(probes)}, {"note", report.note}};
    if (report.found) {
        json["step"] = cli::toJson(report.step);
        json["rewrite"] = report.rewrite.index < 0 ? Json() : cli::toJson(report.rewrite);
    }
    return json;
}

void print(const BisectReport& report) {
    if (!report.note.empty()) std::cout << "note: " << report.note << "\n";
    for (const BisectProbe& probe : report.probes)
        std::cout << (probe.bad ? "  bad   " : "  good  ") << "after " << probe.rewrites << " rewrites: " << probe.detail << "\n";
    std::cout << report.probes.size() << " tests among " << report.searched << " rewrites\n";
    if (!report.found) return;
    if (report.rewrite.index < 0) {
        std::cout << "step " << report.step.name << " fails before its first rewrite: " << report.step.error << "\n";
        return;
    }
    std::cout << "culprit: step " << report.step.name << ", rewrite " << report.rewrite.index << " (" << report.rewrite.rule << ") at " << report.rewrite.node
              << (report.rewrite.why.empty() ? "" : ": " + report.rewrite.why) << "\n";
}

}  // namespace

void addBisect(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("bisect", "Finds the rewrite that broke the graph; status 0 if one was found");
    struct Arguments {
        std::string path, check = "numbers", json;
        BisectOptions bisect;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    command->add_option("MODEL", arguments->path)->required();
    command->add_option("--check", arguments->check, "What is bad: other numbers than the graph as opened, a new NaN or infinity, or a command that fails")
        ->check(CLI::IsMember({"numbers", "nonfinite", "command"}));
    command->add_option("--command", arguments->bisect.command, "Shell command for --check command; {} stands for the graph as a runnable Python file");
    command->add_option("--inputs", arguments->bisect.inputsFile, "Input tensors (safetensors); default: the file's sample inputs, else random ones");
    command->add_option("--tolerance", arguments->bisect.tolerance, "Largest error that is good, as a share of the largest expected value")->check(CLI::NonNegativeNumber);
    command->add_option("--json", arguments->json, "Write the report as JSON to a file, or - for stdout");
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        auto& bisect = arguments->bisect;
        if (!bisect.command.empty()) arguments->check = "command";
        bisect.check = arguments->check == "command" ? BisectCheck::Command : arguments->check == "nonfinite" ? BisectCheck::NonFinite : BisectCheck::Numbers;
        auto compiled = openAndCompile(arguments->path, arguments->compile);
        if (!compiled) {
            context.status = fail(compiled.error());
            return;
        }
        auto report = compiled->session.bisect(compiled->run, bisect);
        if (!report) {
            context.status = fail(report.error());
            return;
        }
        if (arguments->json.empty()) print(*report);
        else context.status = writeText(arguments->json, dump(toJson(*report)));
        if (!report->found) context.status = fail(Error{ErrorCode::NotFound, "nothing to find: the graph after all " + std::to_string(report->searched) + " rewrites is good", arguments->path, {}});
    });
}

}  // namespace cutaway::cli
