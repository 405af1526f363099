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

#include "ui/models/words.h"
#include "ui/windows/action_icons.h"
#include "ui/windows/activity_list.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/explain_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/kernels_window.h"
#include "ui/windows/log_window.h"
#include "ui/windows/node_window.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/results_window.h"
#include "ui/windows/rewrite_bar.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"

namespace cutaway::ui {
namespace {

constexpr int kMessageMilliseconds = 8000;
const QString kLayout = QStringLiteral("layout");

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
    makeDocks();
    makeStatusBar();
    makeMenus();
    decorateActions(*this);
    insertToolBar(findChild<QToolBar*>(QStringLiteral("stepping")), makeActionBar(*this));
    arrangeDocks();
    updateTitle();

    connect(m_controller, &SessionController::problem, m_problems, &ProblemBar::showProblem);
    connect(m_problems, &ProblemBar::goTo, m_selection, &Selection::setPlace);
    connect(m_controller, &SessionController::modelOpened, this, [this] {
        m_problems->hide();
        updateTitle();
        say(tr("Opened. Compile it with Ctrl+B."));
    });
    connect(m_controller, &SessionController::compiled, this, [this](RunId run) {
        int changed = 0;
        const Run& now = *m_controller->runOf(run);
        for (const StepInfo& step : now.steps) changed += step.state == StepState::Changed;
        say((changed ? tr("%1 of %2 changed the graph. F10 goes to the next change.")
                     : tr("%1 of %2 changed the graph."))
                .arg(changed)
                .arg(counted(static_cast<qsizetype>(now.steps.size()), tr("pass"), tr("passes"))));
    });
    connect(m_selection, &Selection::placeChanged, this, &MainWindow::updateTitle);
    connect(m_selection, &Selection::nodeChanged, this, &MainWindow::updateTitle);
    for (auto* window : {static_cast<QObject*>(m_graph), static_cast<QObject*>(m_text), static_cast<QObject*>(m_steps),
                         static_cast<QObject*>(m_stepper), static_cast<QObject*>(m_explain)})
        connect(window, SIGNAL(message(QString)), this, SLOT(say(QString)));
    connect(&m_graph->view(), &GraphView::menuWanted, this, &MainWindow::showNodeMenu);
    connect(m_text, &TextWindow::menuWanted, this, &MainWindow::showNodeMenu);
    connect(m_explain, &ExplainWindow::rewritesWanted, m_steps, &StepsWindow::setFilter);
    connect(m_controller, &SessionController::message, this, &MainWindow::say);
    connect(m_search, &SearchWindow::hitChosen, m_graph, &GraphWindow::goTo);
    connect(m_controller, &SessionController::severalGraphs, this, &MainWindow::chooseGraph);
    connect(&m_graph->view(), &GraphView::nodeActivated, this, &MainWindow::showNode);
    qApp->installEventFilter(this);
    for (QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
        connect(dock, &QDockWidget::visibilityChanged, this, &MainWindow::updateTitleBars, Qt::QueuedConnection);
        connect(dock, &QDockWidget::topLevelChanged, this, &MainWindow::updateTitleBars, Qt::QueuedConnection);
    }
    connect(m_graph, &GraphWindow::settled, this, &MainWindow::settledChanged);
    connect(m_text, &TextWindow::settled, this, &MainWindow::settledChanged);
    connect(m_controller, &SessionController::busyChanged, this, &MainWindow::settledChanged);
    const QSettings settings;
    if (settings.contains(QStringLiteral("window/geometry")))
        restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
    else resize(1440, 900);
    if (settings.contains(QStringLiteral("window/state")))
        restoreState(settings.value(QStringLiteral("window/state")).toByteArray());
    makeWelcome();
}

MainWindow::~MainWindow() {
    // The controller's thread and signals end before the docks that listen to them.
    delete m_controller;
}

void MainWindow::makeDocks() {
    m_steps = new StepsWindow(*m_controller, *m_selection, *m_stepper, this);
    m_graph = new GraphWindow(*m_controller, *m_selection, this);
    m_text = new TextWindow(*m_controller, *m_selection, this);
    m_node = new NodeWindow(*m_controller, *m_selection, this);
    m_explain = new ExplainWindow(*m_controller, *m_selection, this);
    m_log = new LogWindow(*m_controller, *m_selection, this);
    m_kernels = new KernelsWindow(*m_controller, *m_selection, this);
    m_results = new ResultsWindow(*m_controller, this);
    m_search = new SearchWindow(*m_controller, *m_selection, this);
    m_docks = {m_steps, m_graph, m_text, m_node, m_explain, m_log, m_kernels, m_results, m_search};
    m_problems = new ProblemBar(this);
    m_bar = new RewriteBar(*m_controller, *m_selection, *m_stepper);
    auto* stepping = new QToolBar(tr("Stepping"), this);
    stepping->setObjectName(QStringLiteral("stepping"));
    stepping->setMovable(false);
    m_bar->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    stepping->addWidget(m_bar);
    connect(m_bar, &RewriteBar::explainWanted, this, &MainWindow::explainHere);
    auto* top = new QToolBar(tr("Problems"), this);
    top->setObjectName(QStringLiteral("problems"));
    top->setMovable(false);
    top->toggleViewAction()->setVisible(false);
    QAction* shown = top->addWidget(m_problems);
    m_problems->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    shown->setVisible(false);
    top->hide();
    addToolBar(Qt::TopToolBarArea, stepping);
    addToolBarBreak(Qt::TopToolBarArea);
    addToolBar(Qt::TopToolBarArea, top);
    connect(m_controller, &SessionController::problem, this, [top, shown] {
        shown->setVisible(true);
        top->show();
    });
    connect(m_controller, &SessionController::modelOpened, top, &QWidget::hide);
    for (QPushButton* button : m_problems->findChildren<QPushButton*>())
        connect(button, &QPushButton::clicked, top, &QWidget::hide);
}

void MainWindow::arrangeDocks() {
    const QList<QDockWidget*> all = {m_steps,   m_graph, m_text,    m_kernels, m_node,
                                     m_explain, m_log,   m_results, m_search};
    for (QDockWidget* dock : all) {
        removeDockWidget(dock);
        dock->setFloating(false);
    }
    addDockWidget(Qt::LeftDockWidgetArea, m_steps);
    splitDockWidget(m_steps, m_graph, Qt::Horizontal);
    splitDockWidget(m_graph, m_node, Qt::Horizontal);
    splitDockWidget(m_graph, m_log, Qt::Vertical);
    tabifyDockWidget(m_graph, m_text);
    tabifyDockWidget(m_graph, m_kernels);
    tabifyDockWidget(m_node, m_explain);
    tabifyDockWidget(m_log, m_results);
    tabifyDockWidget(m_log, m_search);
    for (QDockWidget* dock : all) dock->show();
    m_graph->raise();
    m_node->raise();
    m_log->raise();
    resizeDocks({m_steps, m_graph, m_node}, {400, 720, 340}, Qt::Horizontal);
    resizeDocks({m_graph, m_log}, {680, 190}, Qt::Vertical);
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
    connect(&m_graph->view(), &GraphView::layoutStarted, this, [this](int nodes) {
        m_layout.emplace();
        m_layout->tag = kLayout;
        m_layout->doing = tr("Laying out %1").arg(counted(nodes, tr("node"), tr("nodes")));
        m_layout->since.start();
        updateActivities();
    });
    connect(&m_graph->view(), &GraphView::sceneShown, this, [this] {
        m_layout.reset();
        updateActivities();
    });
}

void MainWindow::updateActivities() {
    QVector<Activity> all = m_controller->activities();
    if (m_layout) all << *m_layout;
    m_activities->setActivities(all);
}

/// What was begun last is what somebody waits for.
void MainWindow::stopLatest() {
    const QVector<Activity> all = m_controller->activities();
    const bool layingOut = m_layout && m_graph->view().builder().isBusy();
    if (layingOut && (all.isEmpty() || all.last().since < m_layout->since)) return stop(kLayout);
    if (!all.isEmpty()) stop(all.last().tag);
}

void MainWindow::stop(const QString& tag) {
    if (tag == kLayout) m_graph->view().builder().settleForPlain();
    else m_controller->cancel(tag);
}

void MainWindow::say(const QString& message) { statusBar()->showMessage(message, kMessageMilliseconds); }

bool MainWindow::isSettled() const {
    return !m_controller->isBusy() && !m_graph->view().builder().isBusy() &&
           (!m_selection->hasPlace() || (m_graph->isSettled() && m_text->isSettled()));
}

QDockWidget* MainWindow::window(const QString& name) const {
    // An empty name would find any dock.
    return name.isEmpty() ? nullptr : findChild<QDockWidget*>(name, Qt::FindDirectChildrenOnly);
}

QStringList MainWindow::windowNames() const {
    QStringList names;
    for (const QDockWidget* dock : m_docks) names << dock->objectName();
    return names;
}

void MainWindow::open(const QString& path, const QString& graph) { m_controller->open(path, graph); }

void MainWindow::compileWhenOpened() {
    const auto once = static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection);
    connect(
        m_controller, &SessionController::modelOpened, this, [this] { m_controller->compile({}); }, once);
}

void MainWindow::compile() {
    if (!m_controller->model()) {
        say(tr("Nothing to compile yet: open a model first (Ctrl+O)."));
        return;
    }
    const CompileRequest options = CompileDialog::remembered();
    m_controller->compile(options);
    QStringList own;
    if (options.mode == Mode::Training) own << tr("for training");
    if (options.parity) own << tr("as PyTorch does where it is known to be wrong");
    if (!own.isEmpty())
        say(tr("Compiling %1, as chosen last time in Compile With (Ctrl+Shift+B).").arg(own.join(tr(" and "))));
}

void MainWindow::updateTitle() {
    const QString file = QFileInfo(m_controller->path()).fileName();
    const QString graph = m_controller->graph();
    setWindowTitle(file.isEmpty()    ? tr("Cutaway")
                   : graph.isEmpty() ? tr("%1 – Cutaway").arg(file)
                                     : tr("%1: %2 – Cutaway").arg(file, graph));
    setWindowFilePath(m_controller->path());
    m_place->setText(m_selection->hasPlace() ? m_controller->placeName(m_selection->place()) : QString());
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
