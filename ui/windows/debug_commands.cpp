// The Debug menu: stepping, single rewrites, what can be asked about a node.
#include <QApplication>
#include <QClipboard>
#include <QInputDialog>
#include <algorithm>

#include "ui/windows/breakpoints_window.h"
#include "ui/windows/commands.h"
#include "ui/windows/explain_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/minify_window.h"
#include "ui/windows/numerics_window.h"
#include "ui/windows/run_dialogs.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"

namespace cutaway::ui {
namespace {

template <bool forward, bool onlyChanged>
void step(MainWindow& main) {
    main.stepper().step(forward, onlyChanged);
}

template <bool forward>
void rewrite(MainWindow& main) {
    main.stepper().rewrite(forward);
}

template <bool asB>
void mark(MainWindow& main) {
    main.get<StepsWindow>().markCurrent(asB);
}

void askFuel(MainWindow& main) {
    if (!currentRun(main)) return;
    const int count = main.stepper().fuelOfRun();
    if (count == 0) return main.say(MainWindow::tr("This run made no single rewrites."));
    bool given = false;
    const int number = QInputDialog::getInt(&main, MainWindow::tr("Go to rewrite"),
                                            MainWindow::tr("Rewrite of the whole run, 1 to %1:").arg(count),
                                            std::max(1, main.stepper().fuel()), 1, count, 1, &given);
    if (given) main.stepper().toFuel(number);
}

/// The rewrite of the current step that touched the current node.
void goToTouch(MainWindow& main) {
    const NodeKey node = main.selection().node();
    const StepInfo* step = main.stepper().currentStep();
    if (node == NodeKey::None || !step) return main.say(MainWindow::tr("Choose a step and a node first."));
    const Place place = main.selection().place();
    main.controller().findRewrite(
        place.run, step->index, node, [&main, name = QString::fromStdString(step->name), place, node](int number) {
            if (number == 0) return main.say(MainWindow::tr("No rewrite of %1 changed this node.").arg(name));
            main.selection().go(comparisonAt({place.run, place.step, number}), node);
        });
}

const Run* splitRun(MainWindow& main) {
    const Run* run = latestRun(main);
    return run && run->splitStep() ? run : nullptr;
}

QString needsPartition(MainWindow& main) {
    if (const QString missing = needsModel(main); !missing.isEmpty()) return missing;
    return splitRun(main) ? QString()
                          : MainWindow::tr("this run is not split into forward and backward: compile for training");
}

void showJoint(MainWindow& main) {
    if (const Run* run = splitRun(main)) main.selection().setPlace({run->id, *run->splitStep(), -1});
}

/// The last graphs of both graphs, as they are compiled.
void showForwardBesideBackward(MainWindow& main) {
    const Run* run = splitRun(main);
    const auto forward = run ? run->lastStepOf("forward") : std::nullopt;
    const auto backward = run ? run->lastStepOf("backward") : std::nullopt;
    if (forward && backward) main.selection().compare({{run->id, *forward, -1}, {run->id, *backward, -1}});
}

}  // namespace

void askBisect(MainWindow& main) {
    const auto run = currentRun(main);
    if (!run) return;
    BisectDialog dialog(main.controller().path(), &main);
    if (dialog.exec() == QDialog::Accepted) main.controller().bisect(*run, dialog.options());
}

namespace {

void showMinify(MainWindow& main) {
    auto& window = main.get<MinifyWindow>();
    main.raiseWindow(&window);
    window.prepare();
}

void compareValues(MainWindow& main) {
    auto& window = main.get<NumericsWindow>();
    main.raiseWindow(&window);
    window.start();
}

void toggleBreakpoint(MainWindow& main) { main.get<BreakpointsWindow>().togglePass(); }
void showBreakpoints(MainWindow& main) { main.raiseWindow(&main.get<BreakpointsWindow>()); }
QString needsStop(MainWindow& main) {
    if (const QString missing = needsModel(main); !missing.isEmpty()) return missing;
    return main.controller().breakpoints().stop() ? QString()
                                                  : MainWindow::tr("the last compile did not stop at a breakpoint");
}

void askDebugCompile(MainWindow& main) {
    const QString folder = askForNewFolder(main, MainWindow::tr("Folder for the bundle: an empty one or a new one"));
    if (folder.isEmpty()) return;
    DebugCompileOptions options;
    options.folder = folder.toStdString();
    if (const auto run = currentRun(main)) options.request = main.controller().runOf(*run)->options;
    main.controller().debugCompile(options);
}

const Command kDebugCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Next Changed Step"),
     .key = "F10",
     .icon = "step-next",
     .run = step<true, true>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Previous Changed Step"),
     .key = "Shift+F10",
     .icon = "step-previous",
     .run = step<false, true>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Next Step, Ch&anged or Not"),
     .key = "Ctrl+F10",
     .icon = "step-any-next",
     .run = step<true, false>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Previous &Step, Changed or Not"),
     .key = "Ctrl+Shift+F10",
     .icon = "step-any-previous",
     .run = step<false, false>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Next &Rewrite"),
     .key = "F11",
     .icon = "rewrite-next",
     .first = true,
     .run = rewrite<true>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Previous Re&write"),
     .key = "Shift+F11",
     .icon = "rewrite-previous",
     .run = rewrite<false>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Step &Out to the Whole Step"),
     .key = "Ctrl+F11",
     .icon = "step-out",
     .run = [](MainWindow& main) { main.stepper().out(); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Rewrite That Changed &This Node"),
     .key = "Ctrl+R",
     .icon = "touched",
     .run = goToTouch,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Go to Rewrite Number…"),
     .key = "Ctrl+G",
     .icon = "number",
     .run = askFuel,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Show Rewrites &Cumulatively"),
     .run = [](MainWindow& main) { main.stepper().setAllSoFar(!main.stepper().showsAllSoFar()); },
     .ticked = [](MainWindow& main) { return main.stepper().showsAllSoFar(); }},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Explain"),
     .key = "Ctrl+E",
     .icon = "explain",
     .run = explainHere,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Kernel of This Node"),
     .key = "Ctrl+Shift+K",
     .run = showItsKernel,
     .whyNot = needsNode},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Run &up to This Node"),
     .key = "Ctrl+Shift+R",
     .run = runUpToHere,
     .whyNot = needsNode},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Joint Graph with Its Partition"),
     .key = "Ctrl+J",
     .first = true,
     .run = showJoint,
     .whyNot = needsPartition},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Forward &Beside Backward"),
     .key = "Ctrl+Shift+J",
     .run = showForwardBesideBackward,
     .whyNot = needsPartition},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Find the Rewrite That Broke the Graph…"),
     .icon = "bisect",
     .first = true,
     .run = askBisect,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Minify a Failure"),
     .key = "Ctrl+Shift+M",
     .run = showMinify,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Compare &Values with the Reference"),
     .key = "Ctrl+Shift+N",
     .run = compareValues,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Toggle Breakpoint on This Pass"),
     .key = "F9",
     .first = true,
     .run = toggleBreakpoint,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Continue to the Next Breakpoint"),
     .key = "Ctrl+F9",
     .run = [](MainWindow& main) { main.controller().goOn(); },
     .whyNot = needsStop},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Breakpoints"), .run = showBreakpoints},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Debug &Compile into a Folder…"),
     .run = askDebugCompile,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Mark Step as A"),
     .key = "Ctrl+Shift+A",
     .icon = "mark-a",
     .first = true,
     .run = mark<false>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Mark Step as B"),
     .key = "Ctrl+Shift+D",
     .icon = "mark-b",
     .run = mark<true>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Compare with Another &Graph…"),
     .key = "Ctrl+Shift+Y",
     .run = compareWithGraph,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Compare with a F&ile…"), .run = compareWithFile, .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&PyTorch's Post-Grad Graph against Ours"),
     .run = compareRecorded,
     .whyNot = needsRecorded},
};

}  // namespace

void explainHere(MainWindow& main) {
    auto& window = main.get<ExplainWindow>();
    main.raiseWindow(&window);
    window.ask();
}

void showNodeMenu(MainWindow& main, NodeKey node, QPoint at) {
    const QString name = main.get<SearchWindow>().nameOf(node);
    QMenu menu;
    menu.addAction(MainWindow::tr("Explain rules at %1").arg(name), &main, [&main] { explainHere(main); });
    menu.addAction(MainWindow::tr("Go to the rewrite that changed it"), &main, [&main] { goToTouch(main); });
    menu.addAction(MainWindow::tr("List rewrites that started at it"), &main,
                   [&main, name] { main.get<StepsWindow>().setFilter(QStringLiteral("at ") + name); });
    const bool breaks = main.controller().breakpoints().find(Breakpoint::Kind::NodeDies, name.toStdString()) >= 0;
    menu.addAction(breaks ? MainWindow::tr("No longer break when this node is removed")
                          : MainWindow::tr("Break when this node is removed"),
                   &main, [&main, name] { main.get<BreakpointsWindow>().toggleDeath(name); });
    menu.addSeparator();
    addPartActions(main, menu, node);
    menu.addSeparator();
    menu.addAction(MainWindow::tr("Copy name"), &main, [name] { QApplication::clipboard()->setText(name); });
    menu.exec(at);
}

std::span<const Command> debugCommands() { return kDebugCommands; }

}  // namespace cutaway::ui
