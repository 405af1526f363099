// cutaway-cli: the engine without a window. Exit status 0 only on success; errors on stderr.
#include "app/cli/cli.h"
#include "cutaway/program.h"

int main(int argc, char** argv) {
    cutaway::beginProgram();
    CLI::App app{"Cutaway's engine on the command line: opens models, compiles them step by step, runs the result"};
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("cutaway-cli ") + CUTAWAY_VERSION);
    cutaway::cli::Context context;
    cutaway::cli::addInfo(app, context);
    cutaway::cli::addText(app, context);
    cutaway::cli::addCompile(app, context);
    cutaway::cli::addSteps(app, context);
    cutaway::cli::addDiff(app, context);
    cutaway::cli::addRun(app, context);
    cutaway::cli::addBench(app, context);
    cutaway::cli::addBisect(app, context);
    cutaway::cli::addExplain(app, context);
    cutaway::cli::addRules(app, context);
    CLI11_PARSE(app, argc, argv);
    return context.status;
}
