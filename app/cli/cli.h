#pragma once
// The commands of cutaway-cli. Each adds its subcommand to the parser and leaves its exit status in `status`.
#include <CLI/CLI.hpp>
#include <string>

#include "cutaway/session.h"

namespace cutaway::cli {

/// What the commands share: where errors go and what the process returns.
struct Context {
    int status = 0;
};

/// Prints an error on stderr and returns the exit status 1.
int fail(const Error& error);
/// Writes text to a file, or to stdout for "-". Status 1 and a message if it cannot.
int writeText(const std::string& path, const std::string& text);

/// Options that choose what of a file to open; part of CompileArguments.
struct OpenArguments {
    std::string graph;
    std::vector<std::string> sizes;  // "s77=4"
    void addTo(CLI::App& command);
    Result<OpenSettings> resolved() const;
};

/// Options that choose how to compile; shared by compile, run, steps, diff and bench.
struct CompileArguments {
    std::string mode = "inference", device = "cpu";
    CompileOptions options;
    OpenArguments open;
    void addTo(CLI::App& command);
    /// --rules alone.
    void addRulesTo(CLI::App& command);
    CompileOptions resolved() const;
};

/// Opens and compiles; the step list of the run is `steps`.
struct Compiled {
    Session session;
    RunId run = 0;
    std::vector<StepInfo> steps;
};
Result<Compiled> openAndCompile(const std::string& path, const CompileArguments& arguments);
/// The step of that name or number, or an error listing the names.
Result<int> findStep(const std::vector<StepInfo>& steps, const std::string& name);

/// Makes graphs of about so many nodes, runs every stage on them and prints medians; the exit status.
int benchCurve(const std::vector<int>& sizes, int repeat, const CompileArguments& compile, const std::string& json);

void addInfo(CLI::App& app, Context& context);
void addText(CLI::App& app, Context& context);
void addCompile(CLI::App& app, Context& context);
void addSteps(CLI::App& app, Context& context);
void addDiff(CLI::App& app, Context& context);
void addRun(CLI::App& app, Context& context);
void addBench(CLI::App& app, Context& context);
void addBisect(CLI::App& app, Context& context);
void addExplain(CLI::App& app, Context& context);
void addRules(CLI::App& app, Context& context);

}  // namespace cutaway::cli
