// The Run menu: compile, execute, generate code, time; one operator alone.
#include "cutaway/backends.h"
#include "ui/windows/commands.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/main_window.h"
#include "ui/windows/operators_window.h"
#include "ui/windows/request_form.h"
#include "ui/windows/run_dialogs.h"

namespace cutaway::ui {

const Run* latestRun(MainWindow& main) {
    const SessionController& controller = main.controller();
    if (const Run* run = controller.runOf(main.selection().place().run)) return run;
    return controller.runs().empty() ? nullptr : &controller.runs().back();
}

std::optional<RunId> currentRun(MainWindow& main) {
    if (const Run* run = latestRun(main)) return run->id;
    main.say(MainWindow::tr("Compile the model first (Ctrl+B)."));
    return {};
}

namespace {

/// With the options of last time, and says which those are.
void compile(MainWindow& main) {
    const CompileRequest options = rememberedRequest(main.controller().modelKey());
    main.controller().compile(options);
    QStringList own;
    if (options.mode != Mode::Inference) own << MainWindow::tr("for %1").arg(modeTitle(options.mode));
    if (options.freeze) own << MainWindow::tr("frozen");
    if (options.parity) own << MainWindow::tr("with PyTorch parity");
    if (options.memoryBudget != CompileRequest().memoryBudget)
        own << MainWindow::tr("with a memory budget of %1").arg(options.memoryBudget);
    if (!own.isEmpty())
        main.say(MainWindow::tr("Compiling %1, as chosen last time for this model (Ctrl+Shift+B chooses anew).")
                     .arg(own.join(MainWindow::tr(" and "))));
}

void askCompile(MainWindow& main) {
    const Run* run = main.stepper().run();
    CompileDialog dialog([&main](const CompileRequest& kind) { return main.controller().passes(kind); },
                         run ? run->options : rememberedRequest(main.controller().modelKey()), &main);
    if (dialog.exec() != QDialog::Accepted) return;
    rememberRequest(main.controller().modelKey(), dialog.options());
    main.controller().compile(dialog.options());
}

void askExecute(MainWindow& main) {
    const auto run = currentRun(main);
    if (!run) return;
    const Run& now = *latestRun(main);
    ExecuteDialog dialog(main.controller().path(), now.notTimed, now.splitStep().has_value(), now.options.target,
                         &main);
    if (dialog.exec() == QDialog::Accepted) main.controller().run(*run, dialog.options());
}

void generateCode(MainWindow& main) {
    if (const auto run = currentRun(main)) main.controller().build(*run, latestRun(main)->options.target);
}

void timeGenerated(MainWindow& main) {
    const auto run = currentRun(main);
    if (!run) return;
    constexpr int kRepeats = 20;
    RunOptions options;
    options.backend = compiledBackend(latestRun(main)->options.target);
    options.repeat = kRepeats;
    main.controller().run(*run, options);
}

void askOperator(MainWindow& main) {
    main.raiseWindow(&main.get<OperatorsWindow>());
    main.get<OperatorsWindow>().askOperator();
}

const Command kRunCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Compile"),
     .key = "Ctrl+B",
     .icon = "compile",
     .bar = {2, true},
     .run = compile,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Compile &With…"),
     .key = "Ctrl+Shift+B",
     .icon = "compile-with",
     .bar = {2},
     .run = askCompile,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Execute…"),
     .key = "F5",
     .icon = "execute",
     .first = true,
     .bar = {3, true},
     .run = askExecute,
     .whyNot = asRunSays<&Run::notExecuted>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Generate Code"),
     .key = "F7",
     .icon = "code",
     .bar = {3},
     .run = generateCode,
     .whyNot = asRunSays<&Run::notBuilt>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Time Generated Code (20 Runs)"),
     .key = "F6",
     .icon = "time",
     .bar = {3},
     .run = timeGenerated,
     .whyNot = asRunSays<&Run::notTimed>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Compile One &Operator…"), .first = true, .run = askOperator},
};

}  // namespace

std::span<const Command> runCommands() { return kRunCommands; }

}  // namespace cutaway::ui
