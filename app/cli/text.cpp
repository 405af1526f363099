// text: a graph as FX text.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

void addTextOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, step;
        bool runnable = false;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    command.add_flag("--runnable", arguments->runnable, "A Python file that runs in PyTorch as it stands");
    command
        .add_option("--step", arguments->step,
                    "The graph after this step, by key, name or number, instead of the one in the file; after a single "
                    "rewrite of it with :N")
        ->type_name("STEP");
    arguments->compile.addTo(command);
    command.callback([arguments, &command, &context] {
        const auto run = [&]() -> Result<int> {
            const auto printed = [&](Session& session, const Place& place) -> Result<int> {
                CT_TRY(const GraphText text, session.text(place, arguments->runnable));
                return writeText("-", text.text);
            };
            if (!arguments->step.empty()) {
                CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
                CT_TRY(const StepPosition step, findStep(compiled.steps, arguments->step));
                return printed(compiled.session, {compiled.run, step.index, step.rewrites.value_or(-1)});
            }
            if (const std::string option = CompileArguments::given(command); !option.empty())
                return invalidInput(option + " says how to compile, and nothing is compiled without --step");
            Session session;
            CT_TRY(const OpenSettings settings, arguments->compile.open.resolved());
            CT_TRY_VOID(session.open(arguments->path, settings));
            return printed(session, {});
        };
        context.status = statusOf(run());
    });
}

}  // namespace

extern const Command textCommand{.name = "text", .summary = "The graph as FX text on stdout", .add = addTextOptions};

}  // namespace cutaway::cli
