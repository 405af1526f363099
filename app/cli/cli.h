#pragma once
// What several commands of cutaway-cli share: options, opening and compiling.
#include <CLI/CLI.hpp>
#include <string>

#include "app/cli/command.h"
#include "app/cli/option_checks.h"
#include "app/cli/output.h"
#include "cutaway/session.h"
#include "cutaway/step_key.h"

namespace cutaway::cli {

/// --json FILE, the same in every command that reports something.
void addJson(CLI::App& command, std::string& path);
/// The model that a command works on.
CLI::Option* addModel(CLI::App& command, std::string& path);

/// --oracle NAME of bisect and minify.
CLI::Option* addOracle(CLI::App& command, std::string& oracle);

/// Options that choose what of a file to open; part of CompileArguments.
struct OpenArguments {
    std::string graph;
    std::vector<std::string> sizes;  // "s77=4"
    void addTo(CLI::App& command);
    Result<OpenSettings> resolved() const;
};

/// Options that choose how to compile; shared by all commands that do.
struct CompileArguments {
    std::vector<std::string> words;  // of the request's text
    CompileHooks hooks;
    OpenArguments open;
    void addTo(CLI::App& command);
    /// The options that give rules, alone.
    void addRulesTo(CLI::App& command);
    Result<CompileRequest> resolved() const;
    /// The backend of that name; with a GPU's, what is compiled is compiled for a GPU unless --device says otherwise.
    Result<Backend> backend(std::string_view name);
    /// The first of its options that the user has given, "" without one: for commands that do not always compile.
    static std::string given(const CLI::App& command);
    /// Whether the user has said an option of the request, "--mode".
    bool says(std::string_view option) const;
};

/// Opens and compiles; the step list of the run is `steps`.
struct Compiled {
    Session session;
    RunId run = 0;
    std::vector<StepInfo> steps;
};
/// `toRun`: its steps are not looked at, and what the cache of compiled graphs has is read.
Result<Compiled> openAndCompile(const std::string& path, const CompileArguments& arguments, bool toRun = false);
/// Steps and rewrites have numbers from 1 on wherever people see them.
inline int shownNumber(int index) { return index + 1; }

/// What a run computed, how long it took, and how far it is from what was expected.
void printRun(const RunReport& report);
/// Makes graphs of about so many nodes, runs every stage on them and prints medians; the exit status.
int benchCurve(const std::vector<int>& sizes, int repeat, const CompileArguments& compile, const std::string& json);

/// The group of options that choose how to compile.
constexpr const char* kCompiling = "Compiling";
constexpr int kMostRepeats = 1'000'000;

}  // namespace cutaway::cli
