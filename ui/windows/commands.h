#pragma once
// The commands of the menus: a table for each menu, with a row for each command, in the file with the functions of
// these rows. Menus, the tool bar, the list of keys and Go To are made from these tables.
#include <QMenu>
#include <functional>
#include <optional>
#include <span>

#include "ui/session/session_controller.h"

namespace cutaway::ui {

class MainWindow;

/// On the tool bar: groups stand in the order of their numbers, commands within one in the order of the menus.
struct OnBar {
    int group = 0;  // 0: not there
    bool withText = false;
};

constexpr int kCompileGroup = 2;  // behind which the options stand

struct Command {
    const char* text;         // "&Open…"
    const char* key = "";     // "Ctrl+O"
    const char* icon = "";    // a file in resources/icons
    const char* inside = "";  // the submenu that it stands in, if any
    bool first = false;       // of a group: a line stands before it
    OnBar bar = {};
    void (*run)(MainWindow&) = nullptr;
    /// Why it cannot be done now; empty if it can.
    QString (*whyNot)(MainWindow&) = nullptr;
    /// Whether it is ticked; only of those that can be.
    bool (*ticked)(MainWindow&) = nullptr;
    /// It is a submenu, filled whenever it opens.
    void (*fill)(MainWindow&, QMenu&) = nullptr;
};

std::span<const Command> fileCommands();
std::span<const Command> editCommands();
std::span<const Command> viewCommands();
std::span<const Command> runCommands();
std::span<const Command> debugCommands();
std::span<const Command> helpCommands();

/// Reasons for `whyNot`.
QString needsModel(MainWindow& main);
/// The reason that the latest run has; empty without a run, when the command itself says what is to be done first.
template <QString Run::*reason>
QString asRunSays(MainWindow& main);

/// A folder to write to, which may be new; empty if nobody wants to write.
QString askForNewFolder(MainWindow& main, const QString& title);

// What is also asked for by other means than a menu.
void askCompile(MainWindow& main);
void askBisect(MainWindow& main);
void chooseFile(MainWindow& main);
void chooseFolder(MainWindow& main);
void chooseGraph(MainWindow& main);
void compareWithGraph(MainWindow& main);
void compareWithFile(MainWindow& main);
void compareRecorded(MainWindow& main);
QString needsRecorded(MainWindow& main);
void explainHere(MainWindow& main);
// part_commands.cpp: what is about the current node in the picture.
void showInputsAlone(MainWindow& main);
void showUsersAlone(MainWindow& main);
void showNeighboursAlone(MainWindow& main);
void askPath(MainWindow& main);
void showWholeGraph(MainWindow& main);
void markOp(MainWindow& main);
void showItsKernel(MainWindow& main);
void runUpToHere(MainWindow& main);
QString needsNode(MainWindow& main);
QString needsPart(MainWindow& main);
/// What these offer for a node, as lines of its menu.
void addPartActions(MainWindow& main, QMenu& menu, NodeKey node);
void showNodeMenu(MainWindow& main, NodeKey node, QPoint at);
void showKeys(MainWindow& main);

/// The run whose steps are looked at, else the last; null before the first.
const Run* latestRun(MainWindow& main);
/// Its id; if there is none, shows a message that says what to do first.
std::optional<RunId> currentRun(MainWindow& main);

template <QString Run::*reason>
QString asRunSays(MainWindow& main) {
    if (const QString missing = needsModel(main); !missing.isEmpty()) return missing;
    const Run* run = latestRun(main);
    return run ? run->*reason : QString();
}

}  // namespace cutaway::ui
