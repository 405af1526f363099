// The Run menu: compile, execute, generate code, time; one operator alone.
#include "cutaway/backends.h"
#include "ui/session/kept_requests.h"
#include "ui/windows/commands.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/main_window.h"
#include "ui/windows/operators_window.h"
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

/// With the model's options, and says which those are.
void compile(MainWindow& main) {
    const CompileRequest options = rememberedRequest(main.controller().modelKey());
    main.controller().compile(options);
    const QString words = optionWords(options).join(QStringLiteral(", "));
    if (!words.isEmpty()) main.say(MainWindow::tr("Compiling: %1 (Ctrl+Shift+B chooses anew).").arg(words));
}

}  // namespace

void askCompile(MainWindow& main) {
    const QString model = main.controller().modelKey();
    const Run* run = main.stepper().run();
    CompileDialog dialog([&main](const CompileRequest& kind) { return main.controller().passes(kind); },
                         run ? run->options : rememberedRequest(model), &main);
    if (const auto release = main.controller().releaseOfFile()) dialog.markRelease(*release);
    if (dialog.exec() != QDialog::Accepted) return;
    rememberRequest(model, dialog.options());
    main.controller().compile(dialog.options());
}

namespace {

/// Does it with the current run. Where there is none, the model is compiled first, and what the run then refuses is
/// said.
void withRun(MainWindow& main, QString Run::*refusal, void (*then)(MainWindow& main, const Run& run)) {
    if (const Run* run = latestRun(main)) return then(main, *run);
    SessionController& controller = main.controller();
    auto* waiting = new QObject(&controller);
    QObject::connect(&controller, &SessionController::compiled, waiting, [&main, refusal, then, waiting](RunId id) {
        waiting->deleteLater();
        // Once the compile has ended: a dialog may open.
        const auto goOn = [&main, refusal, then, id] {
            const Run* run = main.controller().runOf(id);
            if (!run || run->stopped) return;
            const QString why = run->*refusal;
            if (why.isEmpty()) then(main, *run);
            else main.say(why);
        };
        QMetaObject::invokeMethod(&main, goOn, Qt::QueuedConnection);
    });
    // A compile that is stopped or fails, and another model, leave nothing to go on with.
    QObject::connect(&controller, &SessionController::busyChanged, waiting, [waiting](bool busy) {
        if (!busy) waiting->deleteLater();
    });
    QObject::connect(&controller, &SessionController::modelOpened, waiting, &QObject::deleteLater);
    compile(main);
}

void askExecute(MainWindow& main) {
    withRun(main, &Run::notExecuted, [](MainWindow& window, const Run& run) {
        const RunId id = run.id;
        ExecuteDialog dialog(window.controller().path(), run.notTimed, run.splitStep().has_value(), run.options.target,
                             &window);
        if (dialog.exec() == QDialog::Accepted) window.controller().run(id, dialog.options());
    });
}

void generateCode(MainWindow& main) {
    withRun(main, &Run::notBuilt,
            [](MainWindow& window, const Run& run) { window.controller().build(run.id, run.options.target); });
}

void timeGenerated(MainWindow& main) {
    withRun(main, &Run::notTimed, [](MainWindow& window, const Run& run) {
        const SessionController& controller = window.controller();
        // Of several graphs in a file, nothing says which one the tensors beside it are for.
        const QString model = controller.graphs().size() > 1 ? QString() : controller.path();
        window.controller().run(run.id, timingOptions(run.options.target, model));
    });
}

void askOperator(MainWindow& main) {
    main.raiseWindow(&main.get<OperatorsWindow>());
    main.get<OperatorsWindow>().askOperator();
}

const Command kRunCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Compile"),
     .key = "Ctrl+B",
     .icon = "compile",
     .bar = {kCompileGroup, true},
     .run = compile,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Compile &With…"),
     .key = "Ctrl+Shift+B",
     .icon = "compile-with",
     .bar = {kCompileGroup},
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
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Time Generated Code"),
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
