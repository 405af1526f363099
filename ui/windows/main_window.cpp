#include "ui/windows/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QSettings>
#include <QShortcut>
#include <QStatusBar>
#include <QToolBar>
#include <algorithm>
#include <map>

#include "ui/models/words.h"
#include "ui/windows/activity_list.h"
#include "ui/windows/commands.h"
#include "ui/windows/dock_tabs.h"
#include "ui/windows/filmstrip_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/loops_window.h"
#include "ui/windows/node_window.h"
#include "ui/windows/package_window.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/window_table.h"

namespace cutaway::ui {
namespace {

constexpr int kMessageMilliseconds = 8000;

}  // namespace

MainWindow::MainWindow(std::unique_ptr<Source> source, QWidget* parent)
    : QMainWindow(parent),
      m_selection(new Selection(this)),
      m_controller(new SessionController(std::move(source), *m_selection, this)),
      m_stepper(new Stepper(*m_controller, *m_selection, this)) {
    setObjectName(QStringLiteral("mainWindow"));
    setAcceptDrops(true);
    setDockNestingEnabled(true);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    m_tabs = new DockTabs(*this);
    makeWindows();
    makeStatusBar();
    makeMenus();
    makeBars();
    arrangeWindows();
    updateTitle();
    connectSession();
    qApp->installEventFilter(this);
    restoreLooks();
    makeWelcome();
}

MainWindow::~MainWindow() {
    // The controller's thread and signals end before the docks that listen to them. A window that is shown to its end
    // lays its tables out once more, when their models are gone.
    hide();
    delete m_controller;
}

void MainWindow::connectSession() {
    connect(m_controller, &SessionController::modelOpened, this, [this] {
        m_problems->hide();
        updateBars();
        updateTitle();
        say(tr("Opened. Compile it with Ctrl+B."));
    });
    connect(m_controller, &SessionController::compiled, this, [this](RunId run) {
        int changed = 0;
        const Run& now = *m_controller->runOf(run);
        for (const StepInfo& step : now.steps) {
            changed += step.state == StepState::Changed;
            if (step.state == StepState::Failed)
                return say(tr("%1 failed after %2.")
                               .arg(QString::fromStdString(step.name), counted(step.index, tr("pass"), tr("passes"))));
        }
        say((changed ? tr("%1 of %2 changed the graph. F10 goes to the next change.")
                     : tr("%1 of %2 changed the graph."))
                .arg(changed)
                .arg(counted(static_cast<qsizetype>(now.steps.size()), tr("pass"), tr("passes"))));
    });
    connect(m_selection, &Selection::placeChanged, this, &MainWindow::updateTitle);
    connect(m_selection, &Selection::nodeChanged, this, &MainWindow::updateTitle);
    connect(m_stepper, &Stepper::message, this, &MainWindow::say);
    connect(m_controller, &SessionController::message, this, &MainWindow::say);
    connect(m_controller, &SessionController::severalGraphs, this, [this] { chooseGraph(*this); });
    connect(m_controller, &SessionController::busyChanged, this, &MainWindow::settledChanged);
}

void MainWindow::restoreLooks() {
    const QSettings settings;
    if (settings.contains(QStringLiteral("window/geometry")))
        restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
    else resize(1440, 900);
    if (settings.contains(QStringLiteral("window/state")))
        restoreArrangement(settings.value(QStringLiteral("window/state")).toByteArray());
}

void MainWindow::makeWindows() {
    const WindowParts parts{*m_controller, *m_selection, *m_stepper};
    for (const WindowRow& row : windowRows()) {
        Window* window = row.make(row, parts);
        window->setParent(this);
        m_windows << window;
        connect(window, &Window::message, this, &MainWindow::say);
        connect(window, &Window::settled, this, &MainWindow::settledChanged);
        connect(window, &Window::activityChanged, this, &MainWindow::updateActivities);
        connect(window, &Window::menuWanted, this, [this](NodeKey node, QPoint at) { showNodeMenu(*this, node, at); });
        connect(window, &Window::nodeOpened, this, [this](NodeKey node) {
            m_selection->setNode(node);
            raiseWindow(&get<NodeWindow>());
        });
        connect(window, &Window::nodeWanted, this, [this](NodeKey node) { get<GraphWindow>().goTo(node); });
        connect(window, &Window::kernelWanted, this, [this](const QString& kernel) {
            raiseWindow(&get<LoopsWindow>());
            get<LoopsWindow>().showCode(kernel);
        });
        connect(window, &Window::statesWanted, this, [this](const std::vector<Place>& places) {
            raiseWindow(&get<FilmstripWindow>());
            get<FilmstripWindow>().showStates(places);
        });
        connect(window, &Window::bisectWanted, this, [this] { askBisect(*this); });
        connect(window, &Window::rewritesWanted, this,
                [this](const QString& words) { get<StepsWindow>().setFilter(words); });
        connect(window, &QDockWidget::visibilityChanged, this, &MainWindow::updateTitleBars, Qt::QueuedConnection);
        connect(window, &QDockWidget::topLevelChanged, this, &MainWindow::updateTitleBars, Qt::QueuedConnection);
    }
}

void MainWindow::arrangeWindows() {
    std::map<Area, QList<Window*>> areas;
    for (Window* window : m_windows) {
        removeDockWidget(window);
        window->setFloating(false);
        areas[window->row().area] << window;
    }
    const auto first = [&](Area area) { return areas[area].first(); };
    addDockWidget(Qt::LeftDockWidgetArea, first(Area::Left));
    splitDockWidget(first(Area::Left), first(Area::Centre), Qt::Horizontal);
    splitDockWidget(first(Area::Centre), first(Area::Right), Qt::Horizontal);
    splitDockWidget(first(Area::Centre), first(Area::Bottom), Qt::Vertical);
    for (const auto& [area, tabs] : areas)
        for (Window* tab : tabs.mid(1)) tabifyDockWidget(tabs.first(), tab);
    for (Window* window : m_windows) window->show();
    for (const auto& [area, tabs] : areas) tabs.first()->raise();
    updateBars();
    resizeDocks({first(Area::Left), first(Area::Centre), first(Area::Right)}, {400, 720, 340}, Qt::Horizontal);
    resizeDocks({first(Area::Centre), first(Area::Bottom)}, {680, 190}, Qt::Vertical);
}

void MainWindow::makeStatusBar() {
    m_place = new QLabel;
    m_place->setTextFormat(Qt::PlainText);
    m_activities = new ActivityList;
    statusBar()->addPermanentWidget(m_activities);
    statusBar()->addPermanentWidget(m_place);
    auto* escape = new QShortcut(Qt::Key_Escape, this);
    connect(escape, &QShortcut::activated, this, &MainWindow::stopLatest);
    connect(m_activities, &ActivityList::cancelWanted, this, &MainWindow::stop);
    connect(m_controller, &SessionController::activitiesChanged, this, &MainWindow::updateActivities);
}

/// In the order in which they began.
QVector<Activity> MainWindow::activities() const {
    QVector<Activity> all = m_controller->activities();
    for (const Window* window : m_windows)
        if (const auto own = window->activity()) all << *own;
    std::stable_sort(all.begin(), all.end(), [](const Activity& a, const Activity& b) { return a.since < b.since; });
    return all;
}

void MainWindow::updateActivities() { m_activities->setActivities(activities()); }

/// What was begun last is what somebody waits for.
void MainWindow::stopLatest() {
    if (const QVector<Activity> all = activities(); !all.isEmpty()) stop(all.last().tag);
}

void MainWindow::stop(const QString& tag) {
    if (Window* own = window(tag)) own->stopActivity();
    else m_controller->cancel(tag);
}

void MainWindow::say(const QString& message) { statusBar()->showMessage(message, kMessageMilliseconds); }

void MainWindow::logProblem(const LogEntry& entry) {
    m_controller->log().append(entry);
    emit m_controller->problem(entry);
}

bool MainWindow::isSettled() const {
    return !m_controller->isBusy() &&
           std::all_of(m_windows.begin(), m_windows.end(), [](const Window* window) { return window->isSettled(); });
}

Window* MainWindow::window(const QString& name) const {
    for (Window* window : m_windows)
        if (window->objectName() == name) return window;
    return nullptr;
}

void MainWindow::open(const QString& path, const QString& graph) {
    if (!isPackage(path.toStdString())) return m_controller->open(path, graph);
    raiseWindow(&get<PackageWindow>());
    get<PackageWindow>().open(path);
}

void MainWindow::compileWhenOpened() {
    const auto once = static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection);
    connect(
        m_controller, &SessionController::modelOpened, this, [this] { m_controller->compile({}); }, once);
}

void MainWindow::updateTitle() {
    const QString file = shortPath(m_controller->path());
    const QString graph = m_controller->graph();
    setWindowTitle(file.isEmpty()    ? tr("Cutaway")
                   : graph.isEmpty() ? tr("%1 – Cutaway").arg(file)
                                     : tr("%1: %2 – Cutaway").arg(file, graph));
    setWindowFilePath(m_controller->path());
    m_place->setText(m_selection->hasPlace() ? m_controller->placeName(m_selection->place()) : QString());
}

/// What a narrow window took from Steps it gets back when there is room again: Qt gives that to others.
void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    auto& steps = get<StepsWindow>();
    const bool wider = width() > event->oldSize().width();
    if (wider && !steps.isFloating() && steps.isVisible() && steps.width() < m_stepsWidth)
        resizeDocks({&steps}, {m_stepsWidth}, Qt::Horizontal);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    QSettings settings;
    settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
    settings.setValue(QStringLiteral("window/state"), arrangement());
    QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls() && event->mimeData()->urls().size() == 1 &&
        event->mimeData()->urls().first().isLocalFile())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    event->acceptProposedAction();
    open(event->mimeData()->urls().first().toLocalFile());
}

}  // namespace cutaway::ui
