// cutaway-cli: the engine without a window. Exit status 0 only on success; errors on stderr.
#include <algorithm>
#include <iostream>
#include <sstream>

#include "app/cli/cli.h"
#include "cutaway/guarded.h"
#include "cutaway/program.h"
#include "cutaway/words.h"

namespace {

using namespace cutaway;

/// What CLI11 has to say: help on stdout, mistakes in options on stderr.
int answer(const CLI::App& app, const CLI::ParseError& error) {
    std::ostringstream help, problem;
    const int status = app.exit(error, help, problem);
    std::cout << help.str();
    if (!problem.str().empty()) cli::remark(problem.str().substr(0, problem.str().find_last_not_of('\n') + 1));
    return status;
}

/// A command that does not exist, before CLI11 says that one is required.
std::optional<Error> unknownCommand(const CLI::App& app, const std::string& given) {
    if (given.empty() || given.front() == '-') return std::nullopt;
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        commands.push_back(command->get_name());
    if (std::find(commands.begin(), commands.end(), given) != commands.end()) return std::nullopt;
    std::string all;
    for (const std::string& name : commands) all += (all.empty() ? "there are: " : ", ") + name;
    Error error{ErrorCode::NotFound, "no command named '" + given + "'", {}, {all}};
    if (std::string near = suggestion(given, std::vector<std::string_view>(commands.begin(), commands.end()));
        !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

int run(int argc, char** argv) {
    CLI::App app{"Cutaway's engine on the command line: opens models, compiles them step by step, runs the result",
                 "cutaway-cli"};
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("cutaway-cli ") + CUTAWAY_VERSION);
    cli::Context context;
    cli::addInfo(app, context);
    cli::addText(app, context);
    cli::addCompile(app, context);
    cli::addSteps(app, context);
    cli::addDiff(app, context);
    cli::addRun(app, context);
    cli::addBench(app, context);
    cli::addBisect(app, context);
    cli::addExplain(app, context);
    cli::addRules(app, context);
    cli::addRunRepro(app, context);
    cli::addSettings(app, context);
    cli::refuseEmptyValues(app);
    if (const auto error = unknownCommand(app, argc > 1 ? argv[1] : "")) return cli::fail(*error);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return answer(app, error);
    }
    return context.status;
}

}  // namespace

int main(int argc, char** argv) {
    cli::Output output;  // first: it keeps closed streams from becoming files
    beginProgram();
    int status = 1;
    try {
        status = run(argc, argv);
    } catch (const cli::OutputFailed& failure) {
        return cli::Output::fail(failure);
    } catch (...) {
        status = cli::fail(currentError());
    }
    return output.finish() ? status : 1;
}
