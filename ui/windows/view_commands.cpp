// The View menu, without the windows themselves: what the graph shows, themes, layouts.
#include <QInputDialog>
#include <QSettings>

#include "ui/windows/commands.h"
#include "ui/windows/dock_tabs.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/text_window.h"
#include "ui/windows/theme.h"

namespace cutaway::ui {
namespace {

constexpr const char* kModes = QT_TRANSLATE_NOOP("cutaway::ui", "&Graph Shows");
constexpr const char* kModules = QT_TRANSLATE_NOOP("cutaway::ui", "&Modules");
constexpr const char* kPart = QT_TRANSLATE_NOOP("cutaway::ui", "&Part of the Graph");
constexpr const char* kThemes = QT_TRANSLATE_NOOP("cutaway::ui", "&Theme");

template <GraphMode mode>
void showMode(MainWindow& main) {
    main.get<GraphWindow>().setMode(mode);
}

template <bool more>
void openLevel(MainWindow& main) {
    main.get<GraphWindow>().view().openLevel(more);
}

template <Theme theme>
void choose(MainWindow&) {
    QSettings().setValue(QStringLiteral("theme"), nameOf(theme));
    applyTheme(theme);
}
template <Theme theme>
bool isChosen(MainWindow&) {
    return themeNamed(QSettings().value(QStringLiteral("theme")).toString()) == theme;
}

void fillLayouts(MainWindow& main, QMenu& menu) {
    menu.addAction(MainWindow::tr("&Default"), &main, &MainWindow::arrangeWindows);
    menu.addAction(MainWindow::tr("&Graph Beside Text"), &main, [&main] {
        main.arrangeWindows();
        placeBeside(main, main.get<TextWindow>(), Qt::Horizontal);
    });
    QSettings settings;
    settings.beginGroup(QStringLiteral("layouts"));
    const QStringList names = settings.childKeys();
    for (const QString& name : names)
        menu.addAction(name, &main, [&main, name] {
            main.restoreArrangement(QSettings().value(QStringLiteral("layouts/") + name).toByteArray());
        });
    menu.addSeparator();
    menu.addAction(MainWindow::tr("&Save As…"), &main, [&main] {
        const QString name =
            QInputDialog::getText(&main, MainWindow::tr("Save window layout"), MainWindow::tr("Name:")).trimmed();
        if (!name.isEmpty())
            QSettings().setValue(QStringLiteral("layouts/") + QString(name).replace('/', '-'), main.saveState());
    });
    if (names.isEmpty()) return;
    QMenu* remove = menu.addMenu(MainWindow::tr("&Remove"));
    for (const QString& name : names)
        remove->addAction(name, &main, [name] { QSettings().remove(QStringLiteral("layouts/") + name); });
}

const Command kViewCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Difference"),
     .key = "Ctrl+1",
     .inside = kModes,
     .first = true,
     .run = showMode<GraphMode::Union>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Before"),
     .key = "Ctrl+2",
     .inside = kModes,
     .run = showMode<GraphMode::Before>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&After"),
     .key = "Ctrl+3",
     .inside = kModes,
     .run = showMode<GraphMode::After>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Side by Side"),
     .key = "Ctrl+4",
     .icon = "side-by-side",
     .inside = kModes,
     .run = showMode<GraphMode::SideBySide>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Fit Graph"),
     .key = "Ctrl+0",
     .icon = "fit",
     .run = [](MainWindow& main) { main.get<GraphWindow>().view().fit(); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Key of Colors"),
     .run = [](MainWindow& main) { main.get<GraphWindow>().showKey(!main.get<GraphWindow>().isKeyShown()); },
     .ticked = [](MainWindow& main) { return main.get<GraphWindow>().isKeyShown(); }},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Open One &Level More"),
     .key = "Ctrl+]",
     .inside = kModules,
     .run = openLevel<true>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Close One L&evel"),
     .key = "Ctrl+[",
     .inside = kModules,
     .run = openLevel<false>,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Open &All Modules"),
     .key = "Ctrl+Shift+]",
     .inside = kModules,
     .run = [](MainWindow& main) { main.get<GraphWindow>().view().openAllModules(); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Fold Modules Back"),
     .key = "Ctrl+Shift+[",
     .inside = kModules,
     .run = [](MainWindow& main) { main.get<GraphWindow>().view().foldModulesBack(); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "What the Node Is Made &Of"),
     .key = "Ctrl+Shift+I",
     .inside = kPart,
     .run = showInputsAlone,
     .whyNot = needsNode},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "What &Uses the Node"),
     .key = "Ctrl+Shift+U",
     .inside = kPart,
     .run = showUsersAlone,
     .whyNot = needsNode},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Path to Another Node…"),
     .key = "Ctrl+Shift+P",
     .inside = kPart,
     .run = askPath,
     .whyNot = needsNode},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Neighbours of the Node"),
     .key = "Ctrl+Shift+H",
     .inside = kPart,
     .run = showNeighboursAlone,
     .whyNot = needsNode},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Whole Graph"),
     .key = "Ctrl+Shift+W",
     .inside = kPart,
     .run = showWholeGraph,
     .whyNot = needsPart},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Mark All Calls of Its Operator"),
     .key = "Ctrl+Shift+L",
     .run = markOp,
     .whyNot = needsModel,
     .ticked = [](MainWindow& main) { return !main.get<GraphWindow>().view().canvas().markedOp().isEmpty(); }},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&System"),
     .inside = kThemes,
     .first = true,
     .run = choose<Theme::System>,
     .ticked = isChosen<Theme::System>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Light"),
     .inside = kThemes,
     .run = choose<Theme::Light>,
     .ticked = isChosen<Theme::Light>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Dark"),
     .inside = kThemes,
     .run = choose<Theme::Dark>,
     .ticked = isChosen<Theme::Dark>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Window &Layout"), .fill = fillLayouts},
};

}  // namespace

std::span<const Command> viewCommands() { return kViewCommands; }

}  // namespace cutaway::ui
