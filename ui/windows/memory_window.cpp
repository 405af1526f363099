#include "ui/windows/memory_window.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "cutaway/words.h"
#include "ui/models/units.h"
#include "ui/models/words.h"
#include "ui/windows/columns.h"
#include "ui/windows/memory_view.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {
namespace {}  // namespace

MemoryWindow::MemoryWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_query(parts.controller.memoryQuery()),
      m_model(*new MemoryModel(this)),
      m_summary(new QLabel),
      m_living(new QLabel),
      m_graph(new QComboBox),
      m_peak(new QPushButton(tr("Peak"))),
      m_fit(new QPushButton(tr("All Calls"))),
      m_view(new MemoryView),
      m_table(makeList(m_model, MemoryModel::SortRole, tr("Values live at the call"))),
      m_sorted(static_cast<QSortFilterProxyModel*>(m_table->model())),
      m_areas(new QSplitter(Qt::Vertical)) {
    arrange();
    connectParts();
    showPlans();
}

void MemoryWindow::arrange() {
    m_summary->setWordWrap(true);
    m_summary->setObjectName(QStringLiteral("memorySummary"));
    m_living->setWordWrap(true);
    m_living->setObjectName(QStringLiteral("memoryLiving"));
    m_graph->setAccessibleName(tr("Graph whose memory is shown"));
    m_graph->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_peak->setToolTip(tr("Show the values live at peak memory"));
    m_fit->setToolTip(tr("Show all calls (0); the wheel zooms in"));
    auto* line = new QHBoxLayout;
    line->addWidget(m_summary, 1);
    line->addWidget(m_graph);
    for (QPushButton* button : {m_peak, m_fit}) {
        button->setAutoDefault(false);
        line->addWidget(button);
    }
    m_columns = new Columns(m_table->horizontalHeader(), objectName());
    m_table->horizontalHeader()->setStretchLastSection(true);
    auto* list = new QWidget;
    auto* rows = new QVBoxLayout(list);
    rows->setContentsMargins(0, 4, 0, 0);
    rows->addWidget(m_living);
    rows->addWidget(m_table, 1);
    m_areas->addWidget(m_view);
    m_areas->addWidget(list);
    m_areas->setSizes({600, 400});
    m_areas->setStretchFactor(0, 3);
    m_areas->setStretchFactor(1, 2);
    m_areas->setChildrenCollapsible(false);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addLayout(line);
    column->addWidget(m_areas, 1);
    setWidget(page);
    setFocusProxy(m_view);
}

void MemoryWindow::connectParts() {
    connect(m_view, &MemoryView::chosen, this, &MemoryWindow::choose);
    connect(m_fit, &QPushButton::clicked, m_view, &MemoryView::fit);
    connect(m_peak, &QPushButton::clicked, this, [this] {
        if (!m_chart.isEmpty()) showCall(m_chart.plan().peak);
    });
    connect(m_graph, &QComboBox::activated, this, &MemoryWindow::showGraph);
    // Not when the current row changes: getting the focus makes a row current, although the user chose none.
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &MemoryWindow::chooseRow);
    connect(m_table, &QTableView::doubleClicked, this, [this](const QModelIndex& shown) {
        emit nodeWanted(m_chart.at(m_model.valueAt(m_sorted->mapToSource(shown).row())).node);
    });
    connect(&m_query, &MemoryQuery::listed, this, &MemoryWindow::showPlans);
    connect(&m_selection, &Selection::nodeChanged, this, &MemoryWindow::showNode);
    connect(&m_selection, &Selection::placeChanged, this, &MemoryWindow::follow);
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool onScreen) {
        m_onScreen = onScreen;
        follow();
    });
    connect(&m_controller, &SessionController::modelOpened, this, &MemoryWindow::showSummary);
    connect(&m_controller, &SessionController::modelClosed, this, &MemoryWindow::showSummary);
}

bool MemoryWindow::isSettled() const { return !m_onScreen || !m_query.isLooking(); }

const std::string& MemoryWindow::graphNameOfPlace() const {
    static const std::string kNone;
    if (!m_selection.hasPlace()) return kNone;
    const Place place = m_selection.place();
    const Run* run = m_controller.runOf(place.run);
    if (!run || place.step < 0 || static_cast<size_t>(place.step) >= run->steps.size()) return kNone;
    return run->steps[static_cast<size_t>(place.step)].graphName;
}

void MemoryWindow::follow() {
    if (!m_selection.hasPlace() || !m_onScreen) return;
    const RunId run = m_selection.place().run;
    if (m_query.run() != run && m_controller.runOf(run)) return m_query.list(run);
    const int graphName = m_graph->findData(QString::fromStdString(graphNameOfPlace()));
    if (graphName < 0 || graphName == m_graph->currentIndex()) return;
    m_graph->setCurrentIndex(graphName);
    showGraph();
}

void MemoryWindow::showPlans() {
    m_graph->clear();
    if (m_query.plans())
        for (const MemoryPlan& plan : *m_query.plans()) {
            const QString graphName = QString::fromStdString(plan.graphName);
            m_graph->addItem(graphName, graphName);
        }
    m_graph->setVisible(m_graph->count() > 1);
    m_graph->setCurrentIndex(
        std::max(m_graph->count() > 0 ? 0 : -1, m_graph->findData(QString::fromStdString(graphNameOfPlace()))));
    showGraph();
    emit settled();
}

void MemoryWindow::showGraph() {
    const int graphName = m_graph->currentIndex();
    m_chart = MemoryChart();
    if (m_query.plans() && graphName >= 0)
        // Shares the plans, which live as long as anyone looks at one.
        m_chart = MemoryChart({m_query.plans(), &(*m_query.plans())[static_cast<size_t>(graphName)]});
    m_view->setChart(m_chart);
    for (QPushButton* button : {m_peak, m_fit}) button->setEnabled(!m_chart.isEmpty());
    showSummary();
    showCall(m_chart.isEmpty() ? -1 : m_chart.plan().peak);
    fitColumns(*m_table);
    showNode(m_selection.node());
}

void MemoryWindow::showSummary() {
    const Run* run = m_query.run() ? m_controller.runOf(*m_query.run()) : nullptr;
    m_view->setHint(m_query.isLooking()            ? tr("Planning memory…")
                    : !m_query.problem().isEmpty() ? tr("There is no plan.")
                    : m_query.plans()              ? tr("This graph computes nothing.")
                                                   : QString());
    if (!run)
        return m_summary->setText(
            tr("Shows for each value of the compiled model the memory it takes, and when, over the calls: the peak, "
               "and what holds it.\n\nCompile the model first (Ctrl+B)."));
    if (!m_query.problem().isEmpty()) return m_summary->setText(m_query.problem());
    if (!m_query.plans() || m_graph->currentIndex() < 0) return m_summary->setText(run->title());
    const MemoryPlan& plan = (*m_query.plans())[static_cast<size_t>(m_graph->currentIndex())];
    QStringList words{
        run->title(), counted(static_cast<qsizetype>(plan.calls.size()), tr("call"), tr("calls")),
        tr("arena %1, peak live %2").arg(sizeText(plan.arena), sizeText(plan.largestLive())),
        tr("plus inputs %1, constants %2").arg(sizeText(plan.inputs.bytes), sizeText(plan.constants.bytes))};
    QStringList sizes, assumed;
    for (const auto& [symbol, value] : plan.sizes)
        (plan.assumed.contains(symbol) ? assumed : sizes)
            << QStringLiteral("%1 = %2").arg(QString::fromStdString(symbol)).arg(value);
    if (!sizes.isEmpty()) words << tr("example sizes %1").arg(sizes.join(QStringLiteral(", ")));
    if (!assumed.isEmpty())
        words << tr("data-dependent sizes, assumed at their maximum: %1").arg(assumed.join(QStringLiteral(", ")));
    m_summary->setText(words.join(QStringLiteral(" · ")));
}

void MemoryWindow::showCall(int call) {
    m_call = call;
    m_following = true;
    m_model.show(m_chart, call);
    m_following = false;
    m_view->setCall(call);
    m_living->setVisible(!m_chart.isEmpty());
    markRow();
    if (m_chart.isEmpty()) return;
    const MemoryCall& shown = m_chart.call(call);
    const QString at = tr("Live at call %1 of %2, %3 (%4)")
                           .arg(call + 1)
                           .arg(m_chart.calls())
                           .arg(QString::fromStdString(shown.name), QString::fromStdString(shown.kind));
    m_living->setText((call == m_chart.plan().peak ? at + tr(", the peak") : at) + QStringLiteral(": ") +
                      counted(m_model.rowCount(), tr("value"), tr("values")) + QStringLiteral(", ") +
                      sizeText(m_chart.plan().live[static_cast<size_t>(call)]));
}

/// A click between bars lists what lives there, and leaves the node.
void MemoryWindow::choose(int value, int call) {
    showCall(call);
    if (value < 0) return;
    m_view->setCurrent(value);
    markRow();
    m_selection.setNode(m_chart.at(value).node);
}

void MemoryWindow::chooseRow() {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (m_following || !shown.isValid()) return;
    const int value = m_model.valueAt(m_sorted->mapToSource(shown).row());
    m_view->setCurrent(value);
    m_selection.setNode(m_chart.at(value).node);
}

void MemoryWindow::showNode(NodeKey node) {
    // Several values may be one node's: what the user chose here stays.
    const int current = m_view->current();
    if (m_chart.isEmpty() || (current >= 0 && m_chart.at(current).node == node)) return;
    m_view->setCurrent(m_chart.valueOf(node));
    markRow();
}

void MemoryWindow::markRow() {
    m_following = true;
    const int row = m_model.rowOf(m_view->current());
    if (row < 0) m_table->clearSelection();
    else m_table->selectRow(m_sorted->mapFromSource(m_model.index(row, 0)).row());
    m_following = false;
}

/// The list stands beside the bars where the window is wide.
void MemoryWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    const auto wanted = width() > 2 * height() ? Qt::Horizontal : Qt::Vertical;
    if (m_areas->orientation() == wanted) return;
    m_areas->setOrientation(wanted);
    m_areas->setSizes({600, 400});
}

std::span<const KeyHint> MemoryWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("From value to value in the memory plan"), QT_TR_NOOP("arrow keys, Home, End")},
        {QT_TR_NOOP("Choose the marked value's node"), QT_TR_NOOP("Enter")},
        {QT_TR_NOOP("Zoom in on calls, out, all of them"), QT_TR_NOOP("wheel, + and −, 0")},
    };
    return kKeys;
}

}  // namespace cutaway::ui
