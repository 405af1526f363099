#include "app/cli/command.h"

namespace cutaway::cli {

// In the order of --help and of the manual.
// clang-format off
#define CUTAWAY_COMMANDS(row) \
    row(infoCommand)          \
    row(textCommand)          \
    row(compileCommand)       \
    row(stepsCommand)         \
    row(diffCommand)          \
    row(runCommand)           \
    row(benchCommand)         \
    row(loopsCommand)         \
    row(memoryCommand)        \
    row(exportCommand)        \
    row(packageCommand)       \
    row(compileOpCommand)     \
    row(cacheCommand)         \
    row(partitionCommand)     \
    row(bisectCommand)        \
    row(minifyCommand)        \
    row(batchCommand)         \
    row(checkedRunCommand)    \
    row(debugCompileCommand)  \
    row(explainCommand)       \
    row(rulesCommand)         \
    row(operatorsCommand)     \
    row(pluginCommand)        \
    row(settingsCommand)      \
    row(releasesCommand)      \
    row(runReproCommand)      \
    row(manualCommand)
// clang-format on

#define CUTAWAY_DECLARE(command) extern const Command command;
#define CUTAWAY_LIST(command) &command,
CUTAWAY_COMMANDS(CUTAWAY_DECLARE)

std::span<const Command* const> commands() {
    static constexpr const Command* kCommands[] = {CUTAWAY_COMMANDS(CUTAWAY_LIST)};
    return kCommands;
}

std::span<const ExitStatus> exitStatuses() {
    static constexpr ExitStatus kStatuses[] = {
        {"0", "What was asked for was done."},
        {"1",
         "It was not: stderr says what failed, where, and what to do next. Also when the answer is no, as each command "
         "tells: outputs that differ, nothing to find."},
        {"2", "The command line could not be understood: stderr names the option and what it takes."},
        {"128 + N", "Signal N ended it. 141: the program that read the output ended first, as `head` does."},
    };
    return kStatuses;
}

}  // namespace cutaway::cli
