#pragma once
// A command of cutaway-cli: a value that its own file defines and one row of command_table.cpp names. The parser,
// --help, the manual and the smoke tests are made from these.
#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "app/cli/json.h"

namespace cutaway::cli {

/// What the commands share: what the process returns.
struct Context {
    int status = 0;
};

/// What a report holds, for the manual; the smoke tests hold the reports to it. The shape is the report with a sentence
/// in place of each value (json_shape.h).
struct JsonReport {
    std::string options;  // that ask for it: "--json", "--json --node NODE"
    Json shape;
};

struct Command {
    const char* name;
    const char* summary;  // a sentence
    /// Adds its options, and the callback that does the work and leaves the exit status in the context.
    void (*add)(CLI::App& command, Context& context);
    /// What else exit status 1 says, beside that something failed; empty for nothing.
    const char* refuses = "";
    std::vector<JsonReport> (*reports)() = nullptr;
};

std::span<const Command* const> commands();

/// Exit statuses, the same for all commands.
constexpr int kFailed = 1, kMisused = 2;
struct ExitStatus {
    const char *status, *meaning;
};
std::span<const ExitStatus> exitStatuses();

}  // namespace cutaway::cli
