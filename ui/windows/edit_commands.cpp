// The Edit menu: back and forth, search, changes, Go To, copying.
#include <QApplication>
#include <QSettings>

#include "ui/windows/command_palette.h"
#include "ui/windows/commands.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"

namespace cutaway::ui {
namespace {

/// In the text if that is what somebody reads, else in the graph.
void nextChange(MainWindow& main, bool forward) {
    auto& text = main.get<TextWindow>();
    auto& graph = main.get<GraphWindow>();
    const bool reads = text.isAncestorOf(QApplication::focusWidget()) || !main.isOnScreen(&graph.view());
    if (reads && main.isOnScreen(text.widget())) text.goToChange(forward);
    else graph.goToChange(forward);
}

/// Everything that can be reached: what can be done now, passes, files, nodes.
void showPalette(MainWindow& main) {
    const auto tr = [](const char* text) { return MainWindow::tr(text); };
    QVector<PaletteEntry> entries;
    for (const MenuAction& each : menuActions(*main.menuBar()))
        if (!each.made && !each.action->menu() && each.action->isEnabled())
            entries.append({tr("action"), each.title, [chosen = each.action] { chosen->trigger(); }});
    auto& steps = main.get<StepsWindow>();
    for (const StepInfo& step : steps.model().steps()) {
        const QString name = QString::fromStdString(step.name);
        const QString key = QString::fromStdString(step.key());
        // A run of other passes may have come since the list was made: then there is no such step.
        entries.append({tr("pass"), name, [&steps, key] { static_cast<void>(steps.select(key)); }});
    }
    for (const QString& path : QSettings().value(QStringLiteral("recent")).toStringList())
        entries.append({tr("file"), path, [&main, path] { main.open(path); }});
    if (const auto& graph = main.get<SearchWindow>().graph())
        for (const auto& node : graph->nodes)
            entries.append(
                {tr("node"),
                 QString::fromStdString(node.info.name) + QStringLiteral("  ") + QString::fromStdString(node.info.op),
                 [&main, id = node.info.id] { main.get<GraphWindow>().goTo(id); }});
    auto* box = new CommandPalette(std::move(entries), &main);
    box->move(main.mapToGlobal(QPoint((main.width() - box->width()) / 2, 60)));
    box->show();
}

const Command kEditCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Back"),
     .key = "Alt+Left",
     .icon = "back",
     .bar = {4},
     .run = [](MainWindow& main) { main.selection().goBack(); },
     .whyNot =
         [](MainWindow& main) {
             return main.selection().canGoBack() ? QString() : MainWindow::tr("There is nothing to go back to.");
         }},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Forward"),
     .key = "Alt+Right",
     .icon = "forward",
     .bar = {4},
     .run = [](MainWindow& main) { main.selection().goForward(); },
     .whyNot =
         [](MainWindow& main) {
             return main.selection().canGoForward() ? QString() : MainWindow::tr("There is nothing to go forward to.");
         }},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Search Nodes"),
     .key = "Ctrl+F",
     .icon = "search",
     .first = true,
     .bar = {5},
     .run = [](MainWindow& main) { main.get<SearchWindow>().focusField(); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Next Hit"),
     .key = "F3",
     .icon = "next-hit",
     .run = [](MainWindow& main) { main.get<SearchWindow>().nextHit(true); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Previous Hit"),
     .key = "Shift+F3",
     .icon = "previous-hit",
     .run = [](MainWindow& main) { main.get<SearchWindow>().nextHit(false); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Ne&xt Change"),
     .key = "F8",
     .icon = "change-next",
     .first = true,
     .run = [](MainWindow& main) { nextChange(main, true); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "P&revious Change"),
     .key = "Shift+F8",
     .run = [](MainWindow& main) { nextChange(main, false); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Go To…"),
     .key = "Ctrl+K",
     .icon = "go-to",
     .first = true,
     .bar = {5},
     .run = showPalette},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Copy Graph as Python"),
     .key = "Ctrl+Shift+C",
     .icon = "copy",
     .first = true,
     .run = [](MainWindow& main) { main.get<TextWindow>().copyRunnable(); },
     .whyNot = needsModel},
};

}  // namespace

std::span<const Command> editCommands() { return kEditCommands; }

}  // namespace cutaway::ui
