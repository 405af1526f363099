// cutaway-cli: the engine without a window. Exit status 0 only on success; errors on stderr.
#include <algorithm>
#include <iostream>
#include <sstream>

#include "app/cli/cli.h"
#include "cutaway/guarded.h"
#include "cutaway/program.h"
#include "cutaway/version.h"
#include "cutaway/words.h"

namespace {

using namespace cutaway;

/// What CLI11 has to say: help on stdout, mistakes in options on stderr.
int answer(const CLI::App& app, const CLI::ParseError& error) {
    std::ostringstream help, problem;
    const int status = app.exit(error, help, problem);
    std::cout << help.str();
    if (!problem.str().empty()) cli::remark(problem.str().substr(0, problem.str().find_last_not_of('\n') + 1));
    return status == 0 ? 0 : cli::kMisused;
}

/// A command that does not exist, before CLI11 says that one is required.
std::optional<Error> unknownCommand(const std::string& given) {
    if (given.empty() || given.front() == '-') return std::nullopt;
    std::vector<std::string_view> names;
    for (const cli::Command* command : cli::commands()) names.push_back(command->name);
    if (std::find(names.begin(), names.end(), given) != names.end()) return std::nullopt;
    std::string all;
    for (const std::string_view name : names) all.append(all.empty() ? "there are: " : ", ").append(name);
    Error error{ErrorCode::NotFound, "no command named '" + given + "'", {}, {all}};
    if (std::string near = suggestion(given, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

int run(int argc, char** argv) {
    CLI::App app{"Cutaway's engine on the command line: opens models, compiles them step by step, runs the result",
                 "cutaway-cli"};
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();  // --help and the manual tell them
    app.set_version_flag("--version", "cutaway-cli " + version() + "\n" + buildText());
    cli::Context context;
    for (const cli::Command* command : cli::commands())
        command->add(*app.add_subcommand(command->name, command->summary), context);
    cli::refuseEmptyValues(app);
    if (const auto error = unknownCommand(argc > 1 ? argv[1] : "")) {
        cli::fail(*error);
        return cli::kMisused;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return answer(app, error);
    }
    return context.status;
}

}  // namespace

int main(int argc, char** argv) {
    cli::Output output;  // first: no file may be opened under the descriptor of a closed stream
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
