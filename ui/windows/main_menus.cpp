// The menus and the tool bar of the main window, made from the tables of commands and windows.
#include <QActionGroup>
#include <QCoreApplication>
#include <QToolBar>
#include <algorithm>
#include <map>

#include "ui/windows/commands.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/icons.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/options_chip.h"

namespace cutaway::ui {
namespace {

struct MenuRow {
    const char* title;
    std::span<const Command> (*commands)();
    bool windows = false;  // lists them before its commands
};
constexpr MenuRow kMenus[] = {
    {QT_TRANSLATE_NOOP("cutaway::ui", "&File"), fileCommands},
    {QT_TRANSLATE_NOOP("cutaway::ui", "&Edit"), editCommands},
    {QT_TRANSLATE_NOOP("cutaway::ui", "&View"), viewCommands, true},
    {QT_TRANSLATE_NOOP("cutaway::ui", "&Run"), runCommands},
    {QT_TRANSLATE_NOOP("cutaway::ui", "&Debug"), debugCommands},
    {QT_TRANSLATE_NOOP("cutaway::ui", "&Help"), helpCommands},
};

QString translated(const char* text) { return QCoreApplication::translate("cutaway::ui", text); }

/// The submenu of that title, made when its first command comes.
QMenu& innerMenu(QMenu& menu, const QString& title) {
    for (const QAction* action : menu.actions())
        if (action->menu() && action->text() == title) return *action->menu();
    return *menu.addMenu(title);
}

}  // namespace

void MainWindow::makeMenus() {
    for (const MenuRow& row : kMenus) {
        QMenu* menu = menuBar()->addMenu(translated(row.title));
        menu->setToolTipsVisible(true);
        if (row.windows) addWindowActions(*menu);
        for (const Command& command : row.commands()) {
            if (command.first) menu->addSeparator();
            QMenu& place = *command.inside ? innerMenu(*menu, translated(command.inside)) : *menu;
            m_commands.emplace_back(&command, addCommand(place, command));
        }
    }
    connect(m_controller, &SessionController::modelOpened, this, &MainWindow::updateCommands);
    connect(m_controller, &SessionController::neighboursKnown, this, &MainWindow::updateCommands);
    connect(m_controller, &SessionController::modelClosed, this, &MainWindow::updateCommands);
    connect(m_controller, &SessionController::compiled, this, &MainWindow::updateCommands);
    connect(m_selection, &Selection::placeChanged, this, &MainWindow::updateCommands);
    connect(m_selection, &Selection::nodeChanged, this, &MainWindow::updateCommands);
    connect(m_selection, &Selection::historyChanged, this, &MainWindow::updateCommands);
    connect(&get<GraphWindow>().view(), &GraphView::sceneShown, this, &MainWindow::updateCommands);
    connect(m_stepper, &Stepper::allSoFarChanged, this, &MainWindow::updateCommands);
    updateCommands();
}

QAction* MainWindow::addCommand(QMenu& menu, const Command& command) {
    QAction* action = nullptr;
    if (command.fill) {
        QMenu* filled = menu.addMenu(translated(command.text));
        markFilled(*filled);
        connect(filled, &QMenu::aboutToShow, this, [this, filled, fill = command.fill] {
            filled->clear();
            fill(*this, *filled);
        });
        action = filled->menuAction();
    } else {
        action = menu.addAction(translated(command.text), QKeySequence(QString::fromLatin1(command.key)));
        connect(action, &QAction::triggered, this, [this, run = command.run] {
            run(*this);
            updateCommands();
        });
    }
    if (*command.icon) action->setIcon(iconNamed(QString::fromLatin1(command.icon)));
    action->setCheckable(command.ticked != nullptr);
    if (command.ticked && *command.inside) {  // one of several
        auto* group = menu.findChild<QActionGroup*>();
        (group ? group : new QActionGroup(&menu))->addAction(action);
    }
    return action;
}

/// A window each, then the boxes that hide them.
void MainWindow::addWindowActions(QMenu& menu) {
    for (Window* window : m_windows) {
        QAction* action = menu.addAction(window->windowTitle(), QKeySequence(QString::fromLatin1(window->row().key)),
                                         this, [this, window] { raiseWindow(window); });
        offer(*action, {});
        // Not while the welcome page is there.
        connect(window->toggleViewAction(), &QAction::enabledChanged, action,
                [this, action](bool enabled) { offer(*action, enabled ? QString() : needsModel(*this)); });
    }
    QMenu* shown = menu.addMenu(tr("Show or &Hide"));
    markFilled(*shown);
    for (const Window* window : m_windows) shown->addAction(window->toggleViewAction());
}

void MainWindow::updateCommands() {
    for (const auto& [command, action] : m_commands) {
        offer(*action, command->whyNot ? command->whyNot(*this) : QString());
        if (command->ticked) action->setChecked(command->ticked(*this));
    }
    if (m_options) m_options->follow();
}

QToolBar* MainWindow::makeActionBar() {
    auto* bar = new QToolBar(tr("Actions"), this);
    bar->setObjectName(QStringLiteral("actions"));
    bar->setMovable(false);
    bar->setIconSize({16, 16});
    bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    std::map<int, std::vector<std::pair<const Command*, QAction*>>> groups;
    for (const auto& each : m_commands)
        if (each.first->bar.group > 0) groups[each.first->bar.group].push_back(each);
    for (const auto& [number, commands] : groups) {
        for (const auto& [command, action] : commands) {
            // The style shows the text of an important action only.
            action->setPriority(command->bar.withText ? QAction::NormalPriority : QAction::LowPriority);
            action->setIconText(action->text().remove('&').remove(QStringLiteral("…")));
            bar->addAction(action);
        }
        if (number == kCompileGroup) addOptionsChip(*bar);
        bar->addSeparator();
    }
    return bar;
}

void MainWindow::addOptionsChip(QToolBar& bar) {
    m_options = new OptionsChip(*m_controller);
    QAction* there = bar.addWidget(m_options);
    connect(m_options, &OptionsChip::shown, there, &QAction::setVisible);
    connect(m_options, &OptionsChip::message, this, &MainWindow::say);
    connect(m_options, &OptionsChip::choiceWanted, this, [this] {
        askCompile(*this);
        updateCommands();
    });
    m_options->follow();
}

}  // namespace cutaway::ui
