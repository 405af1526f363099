// Menus of the main window. Kept apart from main_window.cpp because they only name what is done elsewhere.
#include <QActionGroup>
#include <QApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenuBar>
#include <QMessageBox>
#include <QSaveFile>
#include <QSettings>

#include "ui/models/words.h"
#include "ui/session/stepper.h"
#include "ui/windows/action_icons.h"
#include "ui/windows/command_palette.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/export_graph.h"
#include "ui/windows/graph_dialog.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/keys_dialog.h"
#include "ui/windows/main_window.h"
#include "ui/windows/run_dialogs.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"
#include "ui/windows/theme.h"

namespace cutaway::ui {

void MainWindow::makeMenus() {
    makeFileMenu();
    makeEditMenu();
    makeViewMenu();
    makeRunMenu();
    makeDebugMenu();
    makeHelpMenu();
}

void MainWindow::makeFileMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&File"));
    menu->addAction(tr("&Open…"), QKeySequence::Open, this, &MainWindow::chooseFile);
    menu->addAction(tr("Open &Folder…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O), this, [this] {
        const QString path = QFileDialog::getExistingDirectory(this, tr("Open a debug folder"));
        if (!path.isEmpty()) open(path);
    });
    menu->addAction(tr("Open Another &Graph…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_G), this,
                    &MainWindow::chooseGraph);
    QMenu* recent = menu->addMenu(tr("Open &Recent"));
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecent(recent); });
    menu->addAction(tr("&Close"), QKeySequence(Qt::CTRL | Qt::Key_W), m_controller, &SessionController::close);
    menu->addSeparator();
    menu->addAction(tr("Export &Picture…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E), this,
                    &MainWindow::exportPicture);
    menu->addAction(tr("Export &Text…"), this, &MainWindow::exportText);
    menu->addSeparator();
    menu->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
}

void MainWindow::fillRecent(QMenu* menu) {
    menu->clear();
    const QStringList recent = QSettings().value(QStringLiteral("recent")).toStringList();
    for (const QString& path : recent) menu->addAction(path, this, [this, path] { open(path); });
    if (recent.isEmpty()) menu->addAction(tr("No file was opened yet"))->setEnabled(false);
}

void MainWindow::chooseGraph() {
    const std::vector<GraphSummary>& graphs = m_controller->graphs();
    if (graphs.size() < 2)
        return say(m_controller->model() ? tr("This file holds one graph.") : tr("Open a file first (Ctrl+O)."));
    auto* dialog = new GraphDialog(graphs, QFileInfo(m_controller->path()).fileName(), m_controller->graph(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QDialog::accepted, this, [this, dialog, path = m_controller->path()] {
        if (!dialog->graph().isEmpty() && dialog->graph() != m_controller->graph()) open(path, dialog->graph());
    });
    dialog->open();
}

void MainWindow::chooseFile() {
    const QString last = QSettings().value(QStringLiteral("recent")).toStringList().value(0);
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Open a model or graph"), QFileInfo(last).absolutePath(),
                                     tr("Models and graphs (*.pt2 *.py *.txt *.log *.pt);;All files (*)"));
    if (!path.isEmpty()) open(path);
}

void MainWindow::exportPicture() {
    const GraphScene* scene = m_graph->view().canvas().scene();
    if (!scene) return say(tr("Nothing to export yet: open a model first."));
    const QString path = askForFile(this, tr("Export the graph"), QStringLiteral("graph"),
                                    {tr("SVG (*.svg)"), tr("PNG (*.png)"), tr("Graphviz (*.dot)")});
    if (path.isEmpty()) return;
    const auto done = exportGraph(*scene, m_graph->view().canvas().mode(), palette(), m_graph->pictureTitle(), path);
    if (done) return say(tr("Wrote %1").arg(path));
    const LogEntry entry = entryOf(done.error(), tr("Exporting the graph"));
    m_controller->log().append(entry);
    emit m_controller->problem(entry);
}

void MainWindow::exportText() {
    if (!m_selection->hasPlace()) return say(tr("Nothing to export yet: open a model first."));
    const QString path =
        askForFile(this, tr("Export the graph as a Python program"), QStringLiteral("graph"), {tr("Python (*.py)")});
    if (path.isEmpty()) return;
    m_controller->runnableText(m_selection->place(), [this, path](const QString& text) {
        QSaveFile file(path);
        if (file.open(QIODevice::WriteOnly) && file.write(text.toUtf8()) >= 0 && file.commit())
            return say(tr("Wrote %1").arg(path));
        const LogEntry entry{LogEntry::Level::Problem,
                             tr("Exporting the text: %1").arg(file.errorString()),
                             path,
                             tr("Choose a folder that you can write to."),
                             {},
                             NodeId::None};
        m_controller->log().append(entry);
        emit m_controller->problem(entry);
    });
}

void MainWindow::makeEditMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&Edit"));
    QAction* back = menu->addAction(tr("&Back"), QKeySequence(Qt::ALT | Qt::Key_Left), m_selection, &Selection::goBack);
    QAction* forward =
        menu->addAction(tr("&Forward"), QKeySequence(Qt::ALT | Qt::Key_Right), m_selection, &Selection::goForward);
    const auto refresh = [this, back, forward] {
        back->setEnabled(m_selection->canGoBack());
        forward->setEnabled(m_selection->canGoForward());
    };
    connect(m_selection, &Selection::historyChanged, this, refresh);
    refresh();
    menu->addSeparator();
    menu->addAction(tr("&Search Nodes"), QKeySequence::Find, m_search, &SearchWindow::focusField);
    menu->addAction(tr("&Next Hit"), QKeySequence(Qt::Key_F3), this, [this] { m_search->nextHit(true); });
    menu->addAction(tr("&Previous Hit"), QKeySequence(Qt::SHIFT | Qt::Key_F3), this,
                    [this] { m_search->nextHit(false); });
    menu->addSeparator();
    menu->addAction(tr("Ne&xt Change"), QKeySequence(Qt::Key_F8), this, [this] { nextChange(true); });
    menu->addAction(tr("P&revious Change"), QKeySequence(Qt::SHIFT | Qt::Key_F8), this, [this] { nextChange(false); });
    menu->addSeparator();
    menu->addAction(tr("&Go To…"), QKeySequence(Qt::CTRL | Qt::Key_K), this, &MainWindow::showPalette);
    menu->addSeparator();
    menu->addAction(tr("&Copy Graph as Python"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C), m_text,
                    &TextWindow::copyRunnable);
}

void MainWindow::makeViewMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&View"));
    for (qsizetype i = 0; i < m_docks.size(); ++i) {
        QAction* action =
            menu->addAction(m_docks[i]->windowTitle(), this, [this, dock = m_docks[i]] { raiseWindow(dock); });
        if (i < 9) action->setShortcut(QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_1 + i)));
        connect(m_docks[i]->toggleViewAction(), &QAction::enabledChanged, action,
                &QAction::setEnabled);  // not while the welcome page is there
    }
    QMenu* shown = menu->addMenu(tr("Show or &Hide"));
    for (QDockWidget* dock : m_docks) shown->addAction(dock->toggleViewAction());
    menu->addSeparator();
    QMenu* modes = menu->addMenu(tr("&Graph Shows"));
    const QString names[] = {tr("&Difference"), tr("&Before"), tr("&After"), tr("&Side by Side")};
    for (int i = 0; i < 4; ++i)
        modes->addAction(names[i], QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + i)), this,
                         [this, i] { m_graph->setMode(static_cast<GraphMode>(i)); });
    menu->addAction(tr("&Fit Graph"), QKeySequence(Qt::CTRL | Qt::Key_0), this, [this] { m_graph->view().fit(); });
    menu->addSeparator();
    QMenu* themes = menu->addMenu(tr("&Theme"));
    auto* group = new QActionGroup(themes);
    const Theme current = themeNamed(QSettings().value(QStringLiteral("theme")).toString());
    for (const auto& [theme, name] : {std::pair(Theme::System, tr("&System")), std::pair(Theme::Light, tr("&Light")),
                                      std::pair(Theme::Dark, tr("&Dark"))}) {
        QAction* action = themes->addAction(name, this, [theme = theme] {
            QSettings().setValue(QStringLiteral("theme"), nameOf(theme));
            applyTheme(theme);
        });
        action->setCheckable(true);
        action->setChecked(theme == current);
        group->addAction(action);
    }
    QMenu* layouts = menu->addMenu(tr("Window &Layout"));
    connect(layouts, &QMenu::aboutToShow, this, [this, layouts] { fillLayouts(layouts); });
}

void MainWindow::fillLayouts(QMenu* menu) {
    menu->clear();
    menu->addAction(tr("&Default"), this, &MainWindow::arrangeDocks);
    QSettings settings;
    settings.beginGroup(QStringLiteral("layouts"));
    const QStringList names = settings.childKeys();
    for (const QString& name : names)
        menu->addAction(name, this, [this, name] {
            restoreState(QSettings().value(QStringLiteral("layouts/") + name).toByteArray());
        });
    menu->addSeparator();
    menu->addAction(tr("&Save As…"), this, [this] {
        const QString name =
            QInputDialog::getText(this, tr("Save window layout"), tr("Name:")).trimmed().replace('/', '-');
        if (!name.isEmpty()) QSettings().setValue(QStringLiteral("layouts/") + name, saveState());
    });
    if (names.isEmpty()) return;
    QMenu* remove = menu->addMenu(tr("&Remove"));
    for (const QString& name : names)
        remove->addAction(name, this, [name] { QSettings().remove(QStringLiteral("layouts/") + name); });
}

void MainWindow::makeRunMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&Run"));
    menu->addAction(tr("&Compile"), QKeySequence(Qt::CTRL | Qt::Key_B), this, &MainWindow::compile);
    menu->addAction(tr("Compile &With…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_B), this,
                    &MainWindow::askCompile);
    menu->addSeparator();
    QAction* execute = menu->addAction(tr("&Execute…"), QKeySequence(Qt::Key_F5), this, &MainWindow::askExecute);
    QAction* build = menu->addAction(tr("&Generate Code"), QKeySequence(Qt::Key_F7), this, &MainWindow::generateCode);
    QAction* time = menu->addAction(tr("&Time on CPU"), QKeySequence(Qt::Key_F6), this, &MainWindow::timeOnCpu);
    menu->setToolTipsVisible(true);
    const auto refresh = [this, execute, build, time] {
        if (!m_controller->model()) return;  // greyed with all that needs one
        const Run* run = latestRun();        // without one they say what is to be done first
        offer(*execute, run ? run->notExecuted : QString());
        offer(*build, run ? run->notBuilt : QString());
        offer(*time, run ? run->notTimed : QString());
    };
    connect(m_controller, &SessionController::modelOpened, this, refresh);
    connect(m_controller, &SessionController::compiled, this, refresh);
    connect(m_selection, &Selection::placeChanged, this, refresh);
}

/// The one whose steps are looked at, else the last.
const Run* MainWindow::latestRun() const {
    if (const Run* run = m_controller->runOf(m_selection->place().run)) return run;
    return m_controller->runs().empty() ? nullptr : &m_controller->runs().back();
}

std::optional<RunId> MainWindow::currentRun() {
    if (const Run* run = latestRun()) return run->id;
    say(m_controller->model() ? tr("Compile the model first (Ctrl+B).") : tr("Open a model first (Ctrl+O)."));
    return {};
}

void MainWindow::askCompile() {
    if (!m_controller->model()) return compile();
    const Run* run = m_stepper->run();
    CompileDialog dialog([this](Mode mode) { return m_controller->passes(mode); },
                         run ? run->options : CompileDialog::remembered(), this);
    if (dialog.exec() == QDialog::Accepted) m_controller->compile(dialog.options());
}

void MainWindow::askExecute() {
    const auto run = currentRun();
    if (!run) return;
    ExecuteDialog dialog(m_controller->path(), this);
    if (dialog.exec() == QDialog::Accepted) m_controller->run(*run, dialog.options());
}

void MainWindow::generateCode() {
    if (const auto run = currentRun()) m_controller->build(*run, Target::Cpu);
}

void MainWindow::timeOnCpu() {
    const auto run = currentRun();
    if (!run) return;
    constexpr int kRepeats = 20;
    RunOptions options;
    options.backend = Backend::Cpu;
    options.repeat = kRepeats;
    m_controller->run(*run, options);
}

void MainWindow::makeHelpMenu() {
    QMenu* menu = menuBar()->addMenu(tr("&Help"));
    menu->addAction(tr("&Keys"), QKeySequence(Qt::Key_F1), this, &MainWindow::showKeys);
    menu->addAction(tr("&About Cutaway"), this, &MainWindow::showAbout);
}

/// What the menus offer, with its name: that of a submenu stands before its own. Without the lists of files and
/// layouts, which are filled when they open, and the check boxes that hide windows.
QList<std::pair<QString, QAction*>> MainWindow::menuActions() const {
    QSet<const QAction*> toggles;
    for (const QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly))
        toggles.insert(dock->toggleViewAction());
    QList<std::pair<QString, QAction*>> found;
    const auto list = [&](const auto& self, const QMenu& menu, const QString& before) -> void {
        for (QAction* action : menu.actions()) {
            const QString name = before + action->text().remove('&');
            if (action->menu()) self(self, *action->menu(), name + QStringLiteral(": "));
            else if (!action->isSeparator() && !toggles.contains(action)) found.append({name, action});
        }
    };
    for (const QAction* top :
         menuBar()->actions())  // not its children: one of those holds the menus for which there is no room
        if (const QMenu* menu = top->menu()) list(list, *menu, {});
    return found;
}

void MainWindow::showPalette() {
    QVector<PaletteEntry> entries;
    for (const auto& [name, action] : menuActions())
        if (action->isEnabled()) entries.append({tr("action"), name, [chosen = action] { chosen->trigger(); }});
    for (const StepInfo& step : m_steps->model().steps()) {
        const QString name = QString::fromStdString(step.name);
        entries.append({tr("pass"), name, [this, name] { m_steps->select(name); }});
    }
    for (const QString& path : QSettings().value(QStringLiteral("recent")).toStringList())
        entries.append({tr("file"), path, [this, path] { open(path); }});
    if (const auto& graph = m_search->graph())
        for (const auto& node : graph->nodes)
            entries.append(
                {tr("node"),
                 QString::fromStdString(node.info.name) + QStringLiteral("  ") + QString::fromStdString(node.info.op),
                 [this, id = node.info.id] { m_graph->goTo(id); }});
    auto* box = new CommandPalette(std::move(entries), this);
    box->move(mapToGlobal(QPoint((width() - box->width()) / 2, 60)));
    box->show();
}

void MainWindow::showKeys() { KeysDialog(*menuBar(), this).exec(); }

void MainWindow::showAbout() {
    QMessageBox::about(this, tr("About Cutaway"),
                       tr("<b>Cutaway %1</b><p>An interactive debugger for graph compilers.</p>")
                           .arg(QApplication::applicationVersion()));
}

}  // namespace cutaway::ui
