#include "ui/windows/graph_window.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QSettings>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/step_kinds.h"
#include "ui/models/steps_model.h"
#include "ui/models/words.h"
#include "ui/windows/elided_label.h"
#include "ui/windows/legend_mark.h"

namespace cutaway::ui {
namespace {

/// The time of each kernel, shared out evenly among the nodes that it computes; null before any is timed.
std::shared_ptr<const QHash<quint64, double>> timesOf(const BuildInfo& info) {
    auto times = std::make_shared<QHash<quint64, double>>();
    for (const KernelInfo& kernel : info.kernels)
        for (const NodeKey node : kernel.nodes)
            if (kernel.microseconds > 0)
                (*times)[packed(node)] += kernel.microseconds / static_cast<double>(kernel.nodes.size());
    if (times->isEmpty()) return nullptr;
    return times;
}

}  // namespace

GraphWindow::GraphWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow), m_controller(parts.controller), m_selection(parts.selection), m_view(new GraphView) {
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(makeBar());
    column->addWidget(makePartBar());
    column->addWidget(m_view, 1);
    column->addWidget(makeLegend());
    column->addWidget(makeKey());
    setWidget(page);
    setFocusProxy(&m_view->canvas());
    m_view->clear(tr(
        "The difference that a step made is drawn here.\nOpen a model with File > Open, or drop it on this window; then compile it with Run > Compile."));

    connect(&parts.controller, &SessionController::shown, this,
            [this](const std::shared_ptr<const Shown>& what) { showWhat(*what); });
    connect(&parts.controller, &SessionController::modelOpened, this, [this] {
        m_shown.reset();
        m_view->setTimes(nullptr);
        m_view->startAnew(ModuleFolding::fromText(QSettings().value(modulesSetting()).toString()));
    });
    connect(m_view, &GraphView::modulesChanged, this, [this] {
        const QString text = m_view->modules().text();
        if (text.isEmpty()) QSettings().remove(modulesSetting());
        else QSettings().setValue(modulesSetting(), text);
    });
    connect(&parts.controller, &SessionController::timed, this,
            [this](RunId, const std::shared_ptr<const BuildInfo>& info) { m_view->setTimes(timesOf(*info)); });
    connect(&parts.controller, &SessionController::partitionShown, this, &GraphWindow::showSides);
    connect(&parts.controller, &SessionController::candidateShown, this, &GraphWindow::showSides);
    connect(&parts.controller.checkedRuns(), &CheckedRuns::heatChanged, this, &GraphWindow::showSides);
    connect(&parts.controller.kernelQuery(), &KernelQuery::changed, this, &GraphWindow::showKernels);
    connect(&parts.controller.coloring(), &GraphColoring::changed, this, &GraphWindow::showSides);
    connect(&parts.selection, &Selection::nodeChanged, this, [this](NodeKey id) {
        if (m_view->canvas().currentId() != id) m_view->goTo(id);
    });
    connect(m_view, &GraphView::nodeChosen, &parts.selection, &Selection::setNode);
    connectHistory();
    connect(m_view, &GraphView::message, this, &GraphWindow::message);
    connect(m_view, &GraphView::menuWanted, this, &GraphWindow::menuWanted);
    connect(m_view, &GraphView::nodeActivated, this, &GraphWindow::nodeOpened);
    connect(m_view, &GraphView::layoutStarted, this, [this](int nodes) {
        m_layout.emplace();
        m_layout->tag = objectName();
        m_layout->doing = tr("Laying out %1").arg(counted(nodes, tr("node"), tr("nodes")));
        m_layout->since.start();
        emit activityChanged();
    });
    connect(m_view, &GraphView::sceneShown, this, [this] {
        m_layout.reset();
        emit activityChanged();
    });
    connect(m_view, &GraphView::sceneShown, this, &GraphWindow::sceneShown);
    connect(m_view, &GraphView::layoutStarted, this, [this](int nodes) {
        m_drawing = true;
        m_note->setText(tr("laying out %1…").arg(counted(nodes, tr("node"), tr("nodes"))));
    });
}

QString GraphWindow::modulesSetting() const { return QStringLiteral("modules/") + m_controller.modelKey(); }

QWidget* GraphWindow::makeBar() {
    auto* bar = new QWidget;
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(6, 4, 6, 4);
    m_mode = new QComboBox;
    m_mode->addItems({tr("Difference"), tr("Before"), tr("After"), tr("Side by side")});
    m_mode->setToolTip(tr("What is drawn; kept nodes do not move between these"));
    m_mode->setAccessibleName(tr("Graph mode"));
    connect(m_mode, &QComboBox::currentIndexChanged, this,
            [this](int mode) { m_view->setMode(static_cast<GraphMode>(mode)); });
    m_fold = new QCheckBox(tr("Fold unchanged"));
    m_fold->setChecked(true);
    m_fold->setToolTip(tr("Draw regions without change as one box each; Enter or double-click opens a box"));
    m_hops = new QSpinBox;
    m_hops->setRange(0, 20);
    m_hops->setValue(2);
    m_hops->setPrefix(tr("Context: "));
    m_hops->setToolTip(tr("How far around a change unchanged nodes are drawn, in edges"));
    m_hops->setAccessibleName(tr("Context around a change, in edges"));
    const auto refold = [this] {
        m_hops->setEnabled(m_fold->isChecked());
        m_view->setFolding(m_fold->isChecked(), m_hops->value());
    };
    connect(m_fold, &QCheckBox::toggled, this, refold);
    connect(m_hops, &QSpinBox::valueChanged, this, refold);
    auto* fit = new QToolButton;
    fit->setText(tr("Fit"));
    fit->setToolTip(tr("Show all (Ctrl+0)"));
    connect(fit, &QToolButton::clicked, this, [this] { m_view->fit(); });
    m_title = new ElidedLabel;
    m_title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    row->addWidget(m_title, 1);
    for (QWidget* widget : std::initializer_list<QWidget*>{makeModules(), m_mode, m_fold, m_hops, fit})
        row->addWidget(widget);
    return bar;
}

QWidget* GraphWindow::makeLegend() {
    auto* bar = new QWidget;
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(6, 3, 6, 3);
    for (Change change : {Change::Added, Change::Removed, Change::Edited, Change::Unchanged})
        m_marks.push_back(markOf(change, tr("%1 in this step").arg(legendWord(change)), bar));
    for (const Side side : {Side::Forward, Side::Backward, Side::Both})
        m_sideMarks.push_back(markOf(side, wordsOf(SideMark{side, false}), bar));
    m_sideMarks.push_back(
        new LegendMark(savedWord(), tr("Saved by the forward for the backward"), paintSavedMark, bar));
    for (int heat = 0; heat < kHeats; ++heat)
        m_heatMarks.push_back(markOf(static_cast<Heat>(heat), wordsOf(static_cast<Heat>(heat)), bar));
    for (const auto* marks : {&m_marks, &m_sideMarks, &m_heatMarks})
        for (QWidget* mark : *marks) row->addWidget(mark);
    m_counts = new ElidedLabel;
    m_note = new ElidedLabel;
    for (ElidedLabel* label : {m_counts, m_note}) label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_note->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row->addSpacing(8);
    row->addWidget(m_counts, 1);
    row->addWidget(m_note, 2);
    return bar;
}

bool GraphWindow::isSettled() const {
    if (m_view->builder().isBusy()) return false;
    return !m_selection.hasPlace() || (!m_drawing && m_shown && *m_shown == m_selection.comparison());
}

std::span<const KeyHint> GraphWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("Follow an edge, go to the neighbour"), QT_TR_NOOP("arrow keys")},
        {QT_TR_NOOP("Describe the node, open the fold"), QT_TR_NOOP("Enter, double click")},
        {QT_TR_NOOP("Open a closed module, with Ctrl all equal ones"), QT_TR_NOOP("Right, Enter, double click")},
        {QT_TR_NOOP("Close the module around"), QT_TR_NOOP("Left, double click on its name")},
        {QT_TR_NOOP("Only what is up to so many edges away"), QT_TR_NOOP("1 to 9")},
        {QT_TR_NOOP("Only the path from the current node"), QT_TR_NOOP("Ctrl+click")},
        {QT_TR_NOOP("Zoom at the pointer"), QT_TR_NOOP("wheel, + and −")},
        {QT_TR_NOOP("Move the picture"), QT_TR_NOOP("drag, Shift+arrow keys")},
    };
    return kKeys;
}

void GraphWindow::goTo(NodeKey id) {
    m_selection.setNode(id);
    m_view->goTo(id);
}

void GraphWindow::goToChange(bool forward) {
    const NodeKey next = m_view->nextChange(forward);
    if (next == NodeKey::None)
        return emit message(m_counts->text().isEmpty() ? tr("Nothing is compared here.")
                                                       : tr("No changed node: %1.").arg(m_counts->text()));
    goTo(next);
}

void GraphWindow::setMode(GraphMode mode) { m_mode->setCurrentIndex(static_cast<int>(mode)); }

QString GraphWindow::pictureTitle() const {
    QStringList parts{QFileInfo(m_controller.path()).fileName() + QStringLiteral(": ") + m_title->text(),
                      m_counts->text()};
    parts.removeAll(QString());
    return parts.join(QStringLiteral(" · "));
}

/// Of graphs that ids do not compare; empty where all pairs are sure.
static QString uncertainPairs(const UnionGraph& graph) {
    int likely = 0, unsure = 0;
    for (const UnionGraph::Node& node : graph.nodes) {
        if (node.change == Change::Added || node.change == Change::Removed) continue;
        likely += node.certainty == Certainty::Likely;
        unsure += node.certainty == Certainty::Unsure;
    }
    QStringList parts;
    if (likely) parts << GraphWindow::tr("%1 likely the same").arg(likely);
    if (unsure) parts << GraphWindow::tr("%1 perhaps the same").arg(unsure);
    return parts.join(QStringLiteral(", "));
}

/// Steps of the schedule change no node; from fuse_nodes on they show which ones share a kernel.
static QString schedulingOnly(const UnionGraph& graph) {
    int kernels = 0;
    for (const UnionGraph::Node& node : graph.nodes) kernels = std::max(kernels, node.kernel + 1);
    return kernels ? GraphWindow::tr("scheduling only: %1 outlined")
                         .arg(counted(kernels, GraphWindow::tr("shared kernel"), GraphWindow::tr("shared kernels")))
                   : GraphWindow::tr("scheduling only: no node changed");
}

void GraphWindow::showWhat(const Shown& what) {
    const Comparison& pair = what.comparison;
    m_shown = pair;
    m_scheduled = std::any_of(what.graph->nodes.begin(), what.graph->nodes.end(),
                              [](const UnionGraph::Node& node) { return node.kernel >= 0; });
    m_drawing = true;
    const bool single = pair.before == pair.after;
    const QString title =
        what.beside ? tr("Forward beside backward, run %1").arg(m_controller.runOf(pair.after.run)->number)
        : comparisonAt(pair.after) == pair
            ? m_controller.placeName(pair.after)
            : tr("%1 against %2").arg(m_controller.placeName(pair.before), m_controller.placeName(pair.after));
    m_title->setText(title);
    m_mode->setEnabled(!single);
    enterBeside(what);
    showSides();
    showKernels();
    // A graph alone has no unchanged part: all of it is on show.
    m_fold->setEnabled(!single);
    m_hops->setEnabled(!single && m_fold->isChecked());
    m_counts->setText(countsOf(what));
    const bool returns = m_returnPlace == pair;
    m_view->showGraph(what.beside ? graphOnShow() : what.graph, title, m_selection.node(),
                      returns ? m_returnTo : nullptr);
    m_returnPlace.reset();
    // A step is about its change, but who compares any two places looks at what was looked at before.
    const bool step = single || what.beside || comparisonAt(pair.after) == pair;
    if (!returns && !step) m_view->wantInView(m_selection.node());
}

QString GraphWindow::countsOf(const Shown& what) const {
    const Comparison& pair = what.comparison;
    const auto& graph = *what.graph;
    if (what.beside) return sidesCounted(*graphOnShow());
    const Run* split = m_controller.runOf(pair.after.run);
    if (split && split->splitStep() == pair.after.step && pair == comparisonAt(pair.after))
        return tr("forward and backward");
    QString counts = changeCounts(graph.added, graph.removed, graph.edited);
    if (graph.moved > 0 && !counts.isEmpty()) counts += QStringLiteral(" ↕%1").arg(graph.moved);
    if (const QString pairs = uncertainPairs(graph); !pairs.isEmpty())
        counts += (counts.isEmpty() ? QString() : QStringLiteral(" · ")) + pairs;
    // Wires may change, or the order alone, and no node.
    const bool wires = std::any_of(graph.edges.begin(), graph.edges.end(),
                                   [](const auto& edge) { return edge.change != Change::Unchanged; });
    const Run* run = m_controller.runOf(pair.after.run);
    const bool step = comparisonAt(pair.after) == pair && run && pair.after.step >= 0 &&
                      pair.after.step < static_cast<int>(run->steps.size());
    const StepInfo* info = step ? &run->steps[static_cast<size_t>(pair.after.step)] : nullptr;
    const bool changed = info && info->state == StepState::Changed;
    return !counts.isEmpty()              ? counts
           : pair.before == pair.after    ? QString()
           : wires                        ? tr("only edges changed")
           : changed && isSchedule(*info) ? schedulingOnly(graph)
           : graph.moved > 0 ? tr("order only: %1 moved").arg(counted(graph.moved, tr("node"), tr("nodes")))
           : changed         ? tr("only names changed")
                             : tr("no change");
}

void GraphWindow::sceneShown(const QString& note) {
    const GraphScene* scene = m_view->canvas().scene();
    QString text = counted(scene->picture.total, tr("node"), tr("nodes"));
    if (scene->picture.modules)
        text += QStringLiteral(", ") + counted(scene->picture.modules, tr("closed module"), tr("closed modules"));
    if (scene->picture.folded) text += tr(", %1 folded").arg(scene->picture.folded);
    const auto far =
        std::count_if(scene->edges.begin(), scene->edges.end(), [](const auto& edge) { return edge.stub; });
    if (far)
        text += QStringLiteral(", ") + tr("%1 drawn as labels").arg(counted(far, tr("long edge"), tr("long edges")));
    m_note->setText(note.isEmpty() ? text : note + QStringLiteral(" · ") + text);
    if (!note.isEmpty()) emit message(note);
    if (m_selection.node() != NodeKey::None) m_view->setCurrent(m_selection.node(), false);
    if (m_fitNext) m_view->fit();
    m_fitNext = m_drawing = false;
    showPartBar();
    emit settled();
}

}  // namespace cutaway::ui
