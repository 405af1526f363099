#include "ui/windows/main_window.h"

#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QProgressBar>
#include <QSettings>
#include <QShortcut>
#include <QStatusBar>
#include <QToolBar>
#include <QToolButton>

#include "ui/models/words.h"
#include "ui/windows/action_icons.h"
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

constexpr int kLateMilliseconds = 200;
constexpr int kMessageMilliseconds = 8000;

}  // namespace

MainWindow::MainWindow(std::unique_ptr<Source> source, QWidget* parent)
    : QMainWindow(parent), m_selection(new Selection(this)), m_controller(new SessionController(std::move(source), *m_selection, this)),
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
        say((changed ? tr("%1 of %2 changed the graph. F10 goes to the next change.") : tr("%1 of %2 changed the graph.")).arg(changed).arg(counted(static_cast<qsizetype>(now.steps.size()), tr("pass"), tr("passes"))));
    });
    connect(m_selection, &Selection::placeChanged, this, &MainWindow::updateTitle);
    connect(m_selection, &Selection::nodeChanged, this, &MainWindow::updateTitle);
    for (auto* window : {static_cast<QObject*>(m_graph), static_cast<QObject*>(m_text), static_cast<QObject*>(m_steps), static_cast<QObject*>(m_stepper), static_cast<QObject*>(m_explain)})
        connect(window, SIGNAL(message(QString)), this, SLOT(say(QString)));
    connect(&m_graph->view(), &GraphView::menuWanted, this, &MainWindow::showNodeMenu);
    connect(m_text, &TextWindow::menuWanted, this, &MainWindow::showNodeMenu);
    connect(m_explain, &ExplainWindow::rewritesWanted, m_steps, &StepsWindow::setFilter);
    connect(m_graph, &GraphWindow::settled, this, &MainWindow::settledChanged);
    connect(m_text, &TextWindow::settled, this, &MainWindow::settledChanged);
    connect(m_controller, &SessionController::busyChanged, this, &MainWindow::settledChanged);
    const QSettings settings;
    if (settings.contains(QStringLiteral("window/geometry"))) restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
    else resize(1440, 900);
    if (settings.contains(QStringLiteral("window/state"))) restoreState(settings.value(QStringLiteral("window/state")).toByteArray());
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
    for (QPushButton* button : m_problems->findChildren<QPushButton*>()) connect(button, &QPushButton::clicked, top, &QWidget::hide);
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
    m_progress = new QProgressBar;
    m_progress->setMaximumWidth(200);
    m_progress->setTextVisible(false);
    m_cancel = new QToolButton;
    m_cancel->setText(tr("Cancel (Esc)"));
    m_cancel->setAccessibleName(tr("Cancel what is running"));
    m_cancel->setToolTip(tr("Stops what is running. The steps that a compile has done stay."));
    statusBar()->addPermanentWidget(m_progress);
    statusBar()->addPermanentWidget(m_cancel);
    statusBar()->addPermanentWidget(m_place);
    m_progress->hide();
    m_cancel->hide();
    m_late.setSingleShot(true);
    m_late.setInterval(kLateMilliseconds);
    const auto stop = [this] {
        if (m_controller->isBusy()) m_controller->cancel();
        if (m_graph->view().builder().isBusy()) m_graph->view().builder().settleForPlain();
    };
    connect(m_cancel, &QToolButton::clicked, this, stop);
    auto* escape = new QShortcut(Qt::Key_Escape, this);
    connect(escape, &QShortcut::activated, this, stop);
    connect(&m_late, &QTimer::timeout, this, &MainWindow::updateProgress);
    const auto changed = [this] {
        const bool busy = m_controller->isBusy() || m_graph->view().builder().isBusy();
        if (!busy) {
            m_late.stop();
            m_progress->hide();
            m_cancel->hide();
            if (statusBar()->currentMessage() == m_doing) statusBar()->clearMessage();
        } else if (!m_progress->isVisible() && !m_late.isActive()) {
            m_late.start();
        }
    };
    connect(m_controller, &SessionController::busyChanged, this, changed);
    connect(m_controller, &SessionController::progress, this, [this](const QString& what, double fraction) {
        m_doing = what;
        m_fraction = fraction;
        if (m_progress->isVisible()) updateProgress();
    });
    connect(&m_graph->view(), &GraphView::layoutStarted, this, [this, changed](int nodes) {
        m_doing = tr("Laying out %1").arg(counted(nodes, tr("node"), tr("nodes")));
        m_fraction = -1;
        changed();
    });
    connect(&m_graph->view(), &GraphView::sceneShown, this, changed);
}

void MainWindow::updateProgress() {
    m_progress->setRange(0, m_fraction < 0 ? 0 : 1000);
    if (m_fraction >= 0) m_progress->setValue(static_cast<int>(m_fraction * 1000));
    m_progress->setAccessibleName(m_doing);
    m_progress->show();
    m_cancel->show();
    statusBar()->showMessage(m_doing);
}

void MainWindow::say(const QString& message) { statusBar()->showMessage(message, kMessageMilliseconds); }

bool MainWindow::isSettled() const {
    return !m_controller->isBusy() && !m_graph->view().builder().isBusy() && (!m_selection->hasPlace() || (m_graph->isSettled() && m_text->isSettled()));
}

QDockWidget* MainWindow::window(const QString& name) const {
    // An empty name would find any dock.
    return name.isEmpty() ? nullptr : findChild<QDockWidget*>(name, Qt::FindDirectChildrenOnly);
}

QStringList MainWindow::windowNames() const {
    QStringList names;
    for (const QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) names << dock->objectName();
    return names;
}

void MainWindow::open(const QString& path, const QString& graph) { m_controller->open(path, graph); }

void MainWindow::compile() {
    if (!m_controller->model()) {
        say(tr("Nothing to compile yet: open a model first (Ctrl+O)."));
        return;
    }
    m_controller->compile(CompileDialog::remembered());
}

void MainWindow::updateTitle() {
    const QString file = QFileInfo(m_controller->path()).fileName();
    const QString graph = m_controller->graph();
    setWindowTitle(file.isEmpty() ? tr("Cutaway") : graph.isEmpty() ? tr("%1 – Cutaway").arg(file) : tr("%1: %2 – Cutaway").arg(file, graph));
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
    if (event->mimeData()->hasUrls() && event->mimeData()->urls().size() == 1 && event->mimeData()->urls().first().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    event->acceptProposedAction();
    open(event->mimeData()->urls().first().toLocalFile());
}

}  // namespace cutaway::ui
