#include "ui/windows/numerics_window.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>

#include "cutaway/plugins.h"
#include "ui/session/ask_queue.h"
#include "ui/windows/columns.h"
#include "ui/windows/tables.h"
#include "ui/windows/value_view.h"

namespace cutaway::ui {

NumericsWindow::NumericsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_runs(parts.controller.checkedRuns()),
      m_model(*new NumericsModel(this)),
      m_summary(new QLabel),
      m_judge(new QComboBox),
      m_start(new QPushButton),
      m_first(new QPushButton(tr("First &Step That Diverges"))),
      m_gradients(new QPushButton(tr("Check Gra&dients"))),
      m_divergent(new QPushButton(tr("First D&ivergent"))),
      m_nonFinite(new QPushButton(tr("First N&ot Finite"))),
      m_value(new QPushButton(tr("Show Val&ue"))),
      m_heat(new QCheckBox(tr("Colour the &graph"))),
      m_filter(new QLineEdit),
      m_table(makeList(m_model, NumericsModel::SortRole, tr("Compared values"))),
      m_sorted(static_cast<QSortFilterProxyModel*>(m_table->model())),
      m_view(new ValueView),
      m_areas(new QSplitter(Qt::Horizontal)) {
    arrange();
    connectParts();
    showState();
}

QWidget* NumericsWindow::makeBar() {
    m_judge->addItem(tr("Farther from f64 than the reference"), static_cast<int>(Judge::F64Error));
    m_judge->addItem(tr("PyTorch's same()"), static_cast<int>(Judge::Same));
    m_judge->addItem(tr("Any bit difference"), static_cast<int>(Judge::Strict));
    m_judge->setAccessibleName(tr("Report as wrong"));
    m_judge->setToolTip(
        tr("Report as wrong: a value much farther from the f64 run than the reference is, what PyTorch's "
           "same() refuses, any bit difference, or what a plugin's judge refuses"));
    m_start->setToolTip(tr("Run the current graph beside its reference, in its dtypes and in f64 (Ctrl+Shift+N)"));
    m_first->setToolTip(tr("Check after each step that changed the graph, until a value diverges"));
    m_gradients->setToolTip(
        tr("Compare the gradients of a training run with central differences in f64, and name the call whose "
           "derivative is wrong"));
    m_divergent->setToolTip(tr("Go to the first value that diverges, in the order in which they ran"));
    m_nonFinite->setToolTip(tr("Go to the first value with a NaN, or with an infinity that the reference lacks"));
    m_value->setToolTip(tr("Run up to the chosen value and show it (Enter in the table)"));
    m_heat->setChecked(true);
    m_filter->setPlaceholderText(tr("Filter"));
    m_filter->setAccessibleName(tr("Filter values"));
    m_filter->setClearButtonEnabled(true);
    auto* bar = new QWidget;
    auto* rows = new QVBoxLayout(bar);
    rows->setContentsMargins(0, 0, 0, 0);
    auto* first = new QHBoxLayout;
    for (QWidget* widget : std::initializer_list<QWidget*>{m_start, m_first, m_gradients, m_judge})
        first->addWidget(widget);
    first->addStretch();
    auto* second = new QHBoxLayout;
    for (QWidget* widget : std::initializer_list<QWidget*>{m_divergent, m_nonFinite, m_value, m_heat})
        second->addWidget(widget);
    second->addWidget(m_filter, 1);
    rows->addLayout(first);
    rows->addLayout(second);
    for (QPushButton* button : {m_start, m_first, m_gradients, m_divergent, m_nonFinite, m_value})
        button->setAutoDefault(false);
    return bar;
}

void NumericsWindow::arrange() {
    m_summary->setWordWrap(true);
    m_summary->setTextFormat(Qt::PlainText);
    m_summary->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_summary->setObjectName(QStringLiteral("numericsSummary"));
    m_columns = new Columns(m_table->horizontalHeader(), objectName(),
                            {NumericsModel::Relative, NumericsModel::Cosine, NumericsModel::Type});
    m_sorted->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_sorted->setFilterKeyColumn(-1);
    // A low window scrolls: all windows of this area are as high as the highest of them wants to be.
    auto* shown = new QScrollArea;
    shown->setWidget(m_view);
    shown->setWidgetResizable(true);
    shown->setFrameShape(QFrame::NoFrame);
    m_areas->addWidget(m_table);
    m_areas->addWidget(shown);
    m_areas->setMinimumHeight(110);  // the wrapped text above must not take all the room
    m_areas->setChildrenCollapsible(false);
    m_areas->setStretchFactor(0, 3);
    m_areas->setStretchFactor(1, 2);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(makeBar());
    column->addWidget(m_summary);
    column->addWidget(m_areas, 1);
    setWidget(page);
    setFocusProxy(m_table);
    m_view->setHint(tr("Choose a row and press Enter: the run up to it is repeated, and its value is shown here."));
}

void NumericsWindow::connectParts() {
    connect(m_start, &QPushButton::clicked, this, [this] { m_runs.isRunning() ? m_runs.stop() : start(); });
    connect(m_first, &QPushButton::clicked, this, &NumericsWindow::findFirst);
    connect(m_gradients, &QPushButton::clicked, this, [this] { m_runs.checkGradients(m_selection.place().run); });
    connect(m_divergent, &QPushButton::clicked, this, [this] { goTo(m_runs.result()->firstDivergent); });
    connect(m_nonFinite, &QPushButton::clicked, this, [this] { goTo(m_runs.result()->firstNonFinite); });
    connect(m_value, &QPushButton::clicked, this, &NumericsWindow::readValue);
    connect(m_table, &QTableView::activated, this, &NumericsWindow::readValue);
    connect(m_view, &ValueView::sideChosen, this, &NumericsWindow::readValue);
    connect(m_heat, &QCheckBox::toggled, &m_runs, &CheckedRuns::showHeat);
    connect(m_filter, &QLineEdit::textChanged, m_sorted, &QSortFilterProxyModel::setFilterFixedString);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &NumericsWindow::chooseRow);
    connect(&m_runs, &CheckedRuns::reset, this, [this] {
        m_model.setRows(m_runs.rows());
        fitColumns(*m_table);
    });
    connect(&m_runs, &CheckedRuns::rowsAdded, this, [this] { m_model.appendRows(m_runs.rows()); });
    connect(&m_runs, &CheckedRuns::changed, this, &NumericsWindow::showState);
    connect(&m_runs, &CheckedRuns::valueShown, this, [this](const std::shared_ptr<const ShownValue>& value) {
        const int row = m_model.rowOf(value->node);
        m_view->setValue(*value, row < 0 ? QString() : QString::fromStdString(m_model.at(row).name));
    });
    connect(&m_selection, &Selection::nodeChanged, this, &NumericsWindow::showNode);
    for (const auto any : {&SessionController::modelOpened, &SessionController::modelClosed})
        connect(&m_controller, any, this, &NumericsWindow::showState);
    connect(&m_controller, &SessionController::compiled, this, &NumericsWindow::showState);
    connect(&m_selection, &Selection::placeChanged, this, &NumericsWindow::showState);
}

CheckedRunOptions NumericsWindow::options() const {
    CheckedRunOptions options;
    const QVariant chosen = m_judge->currentData();
    const bool plugin = chosen.userType() == QMetaType::QString;
    options.judge.judge = plugin ? Judge::Plugin : static_cast<Judge>(chosen.toInt());
    if (plugin) options.judge.plugin = chosen.toString().toStdString();
    return options;
}

/// Judges of plugins, which are asked what they give in processes of theirs, behind our own.
void NumericsWindow::listJudges() {
    askQueue<std::vector<PluginInfo>>(
        this, m_lists, "plugins", m_listing,
        [](const Progress&) -> Result<std::vector<PluginInfo>> { return installedPlugins(); },
        [this](Result<std::vector<PluginInfo>> plugins) {
            if (!plugins) return;
            const QString before = m_judge->currentText();
            for (int i = m_judge->count(); i-- > 0;)
                if (m_judge->itemData(i).userType() == QMetaType::QString) m_judge->removeItem(i);
            for (const PluginInfo& plugin : *plugins)
                for (const PluginItem& item : plugin.items)
                    if (plugin.on && plugin.problem.empty() && item.kind == "judge")
                        m_judge->addItem(QString::fromStdString(item.summary + " (" + plugin.name + ")"),
                                         QString::fromStdString(plugin.name + "." + item.name));
            if (const int same = m_judge->findText(before); same >= 0) m_judge->setCurrentIndex(same);
        });
}

void NumericsWindow::showEvent(QShowEvent* event) {
    Window::showEvent(event);
    listJudges();
}

void NumericsWindow::start() {
    if (!m_selection.hasPlace()) return emit message(tr("Compile the model first: values are those of its graphs."));
    m_runs.start(m_selection.place(), options());
}

void NumericsWindow::findFirst() {
    if (m_selection.hasPlace()) m_runs.findFirst(m_selection.place().run, options());
}

std::optional<Activity> NumericsWindow::activity() const {
    if (!m_runs.isRunning()) return {};
    Activity now;
    now.tag = QString::fromLatin1(row().name);
    now.doing = tr("Comparing values");
    now.progress = m_runs.summary();
    now.fraction = m_runs.fraction();
    now.since = m_runs.since();
    return now;
}

void NumericsWindow::stopActivity() { m_runs.stop(); }

void NumericsWindow::showState() {
    const auto& result = m_runs.result();
    if (result) fitColumns(*m_table);
    if (result && !m_ended && result->firstDivergent) {  // the list does not stand at what is equal
        const int row = m_model.rowOf(result->nodes[*result->firstDivergent].node);
        m_table->scrollTo(m_sorted->mapFromSource(m_model.index(row, 0)), QAbstractItemView::PositionAtCenter);
    }
    m_ended = result.has_value();
    const Run* run = m_selection.hasPlace() ? m_controller.runOf(m_selection.place().run) : nullptr;
    const bool place = run != nullptr, trains = place && run->options.mode == Mode::Training;
    m_start->setText(m_runs.isRunning() ? tr("S&top (Esc)") : tr("&Compare Values"));
    m_start->setEnabled(place || m_runs.isRunning());
    m_first->setEnabled(place && !m_runs.isRunning());
    m_gradients->setEnabled(trains && !m_runs.isRunning());
    m_gradients->setVisible(trains);
    m_divergent->setEnabled(result && result->firstDivergent);
    m_nonFinite->setEnabled(result && result->firstNonFinite);
    m_value->setEnabled(m_table->selectionModel()->hasSelection());
    QStringList lines;
    if (m_runs.summary().isEmpty())
        lines << tr(
            "Each value of the current graph is compared with the graph that it came from, in its dtypes and in "
            "f64. Compiled code has values at its results only: what lies between them is fused.");
    else if (m_runs.place()) lines << tr("%1: %2").arg(m_controller.placeName(*m_runs.place()), m_runs.summary());
    else lines << m_runs.summary();
    if (result && result->firstNonFinite) {
        const NodeNumbers& first = result->nodes[*result->firstNonFinite];
        lines << tr("First not finite: %1, %2 NaN and %3 infinite of %4.")
                     .arg(QString::fromStdString(first.name))
                     .arg(first.nans)
                     .arg(first.infinities)
                     .arg(first.elements);
    }
    if (result)
        for (const std::string& remark : result->remarks) lines << QString::fromStdString(remark);
    m_summary->setText(lines.join('\n'));
    emit activityChanged();
}

void NumericsWindow::goTo(std::optional<size_t> row) {
    if (!row) return;
    if (m_runs.place() && *m_runs.place() != m_selection.place()) m_selection.setPlace(*m_runs.place());
    m_filter->clear();
    const NodeKey node = m_runs.rows()[*row].node;
    m_selection.setNode(node);
    emit nodeWanted(node);
}

void NumericsWindow::showNode(NodeKey node) {
    const int row = m_model.rowOf(node);
    m_following = true;
    const QModelIndex shown = row < 0 ? QModelIndex() : m_sorted->mapFromSource(m_model.index(row, 0));
    if (shown.isValid()) m_table->selectRow(shown.row());
    else m_table->clearSelection();
    m_following = false;
    m_value->setEnabled(shown.isValid());
}

void NumericsWindow::chooseRow() {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    m_value->setEnabled(shown.isValid());
    if (m_following || !shown.isValid()) return;
    m_selection.setNode(m_model.at(m_sorted->mapToSource(shown).row()).node);
}

void NumericsWindow::readValue() {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (!shown.isValid() || !m_runs.place()) return;
    const NodeNumbers& row = m_model.at(m_sorted->mapToSource(shown).row());
    m_view->setHint(tr("Running up to %1…").arg(QString::fromStdString(row.name)));
    m_runs.readValue(*m_runs.place(), row.node, m_view->side());
}

void NumericsWindow::runUpTo(NodeKey node) {
    m_view->setHint(tr("Running up to the node…"));
    m_runs.readValue(m_selection.place(), node, m_view->side());
}

/// Table and value stand where each has most room.
void NumericsWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    m_areas->setOrientation(width() > height() ? Qt::Horizontal : Qt::Vertical);
}

std::span<const KeyHint> NumericsWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("Run up to the chosen value and show it"), QT_TR_NOOP("Enter")},
    };
    return kKeys;
}

}  // namespace cutaway::ui
