#include "ui/windows/partition_window.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSlider>
#include <QSplitter>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <cmath>

#include "ui/session/kept_requests.h"
#include "ui/windows/columns.h"
#include "ui/windows/number_box.h"
#include "ui/windows/plot_view.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {
namespace {

constexpr int kTicks = 1000;  // of the slider: as fine as the engine tells budgets apart

}  // namespace

PartitionWindow::PartitionWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_controller(parts.controller),
      m_selection(parts.selection),
      m_saved(*new PartitionModel(this)),
      m_pages(new QStackedWidget),
      m_empty(new QLabel),
      m_totals(new QLabel),
      m_why(new QLabel),
      m_slider(new QSlider(Qt::Horizontal)),
      m_number(new NumberBox),
      m_derive(new QPushButton),
      m_own(new QPushButton),
      m_graph(new QPushButton(tr("Show in &Graph"))),
      m_table(makeList(m_saved, PartitionModel::SortRole, tr("Saved values"))),
      m_curve(new PlotView(tr("Memory against recomputation"))),
      m_held(new PlotView(tr("Bytes held over time"))),
      m_areas(new QSplitter(Qt::Vertical)) {
    arrange();
    connectParts(parts);
    showPartition();
}

void PartitionWindow::arrange() {
    for (QLabel* label : {m_empty, m_totals, m_why}) {
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
    }
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setMargin(16);
    m_empty->setObjectName(QStringLiteral("noPartition"));
    m_totals->setObjectName(QStringLiteral("totals"));
    m_totals->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_why->setObjectName(QStringLiteral("why"));
    m_why->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_curve->setHint(tr("Memory against recomputation: computed when this window is looked at."));
    arrangeTable();
    auto* list = new QWidget;
    auto* rows = new QVBoxLayout(list);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->addWidget(m_table, 1);
    rows->addWidget(m_why);
    auto* plots = new QSplitter(Qt::Vertical);
    plots->addWidget(m_curve);
    plots->addWidget(m_held);
    plots->setChildrenCollapsible(false);
    m_areas->addWidget(list);
    m_areas->addWidget(plots);
    m_areas->setChildrenCollapsible(false);
    m_areas->setStretchFactor(0, 3);
    m_areas->setStretchFactor(1, 2);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    arrangeBudget(*column);
    column->addWidget(m_totals);
    column->addWidget(m_areas, 1);
    m_pages->addWidget(m_empty);
    m_pages->addWidget(page);
    setWidget(m_pages);
    setFocusProxy(m_slider);
}

void PartitionWindow::arrangeBudget(QVBoxLayout& column) {
    auto* name = new QLabel(tr("Memory &budget"));
    name->setBuddy(m_slider);
    m_slider->setRange(0, kTicks);
    m_slider->setSingleStep(kTicks / 100);
    m_slider->setPageStep(kTicks / 10);
    m_slider->setAccessibleName(tr("Memory budget"));
    m_slider->setToolTip(
        tr("How much the forward may save. 0: only the inputs; 1: all that the fastest backward needs. Enter compiles "
           "with it, Esc returns to the run's own."));
    m_number->setRange(0, 1);
    m_number->setDecimals(3);
    m_number->setSingleStep(0.01);
    m_number->setAccessibleName(tr("Memory budget as a number"));
    m_number->setToolTip(m_slider->toolTip());
    m_graph->setToolTip(tr("Go to the joint graph that was split, with the side of each node"));
    for (QWidget* widget : std::initializer_list<QWidget*>{m_slider, m_number, m_table, m_derive, m_own})
        widget->installEventFilter(this);
    auto* budget = new QHBoxLayout;
    budget->addWidget(name);
    budget->addWidget(m_slider, 1);
    budget->addWidget(m_number);
    auto* buttons = new QHBoxLayout;
    for (QPushButton* button : {m_derive, m_own, m_graph}) {
        button->setAutoDefault(false);
        buttons->addWidget(button);
    }
    buttons->addStretch();
    column.addLayout(budget);
    column.addLayout(buttons);
}

void PartitionWindow::connectParts(const WindowParts& parts) {
    connect(m_slider, &QSlider::valueChanged, this, [this](int tick) { setBudget(double(tick) / kTicks, true); });
    connect(m_slider, &QSlider::sliderReleased, this, &PartitionWindow::derive);
    connect(m_number, &QDoubleSpinBox::valueChanged, this, [this](double budget) { setBudget(budget, true); });
    connect(m_derive, &QPushButton::clicked, this, &PartitionWindow::derive);
    connect(m_own, &QPushButton::clicked, this, &PartitionWindow::backToOwn);
    connect(m_graph, &QPushButton::clicked, this, [this] {
        const auto& now = m_controller.partition();
        const Run* run = now ? m_controller.runOf(now->run) : nullptr;
        if (const auto split = run ? run->splitStep() : std::nullopt) m_selection.setPlace({run->id, *split, -1});
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &PartitionWindow::chooseRow);
    connect(m_curve, &PlotView::chosen, this,
            [this](int point) { setBudget(m_points[static_cast<size_t>(point)].budget, true); });
    connect(m_held, &PlotView::chosen, this, [this](int point) {
        m_selection.setNode(m_controller.partition()->held[static_cast<size_t>(point)].node);
    });
    connect(&parts.controller, &SessionController::partitionShown, this, &PartitionWindow::showPartition);
    connect(&parts.controller, &SessionController::candidateShown, this, &PartitionWindow::showChoice);
    connect(&parts.controller, &SessionController::curveShown, this,
            [this](const std::shared_ptr<const BudgetCurve>& curve) { showCurve(*curve); });
    connect(&parts.selection, &Selection::nodeChanged, this, &PartitionWindow::showNode);
    // The curve costs time: only when somebody looks.
    connect(this, &QDockWidget::visibilityChanged, this, [this](bool visible) {
        m_seen = visible;
        look();
    });
}

void PartitionWindow::look() {
    if (!m_seen) return;
    fitColumns(*m_table);
    m_controller.askCurve();
}

void PartitionWindow::showPartition() {
    const auto& now = m_controller.partition();
    const bool any = now && now->problem.isEmpty();
    m_pages->setCurrentIndex(any ? 1 : 0);
    m_empty->setText(
        now ? now->problem
            : tr("What the forward of a training run saves for its backward is listed here, and what another memory "
                 "budget would save.\n\nCompile the model with the mode Training (Ctrl+Shift+B)."));
    m_fitted = false;
    m_points.clear();
    m_curve->setPlot({});
    if (!any) return m_saved.setSaved({});
    m_own->setText(tr("Back to %1 (Esc)").arg(now->own.budget, 0, 'f', 3));
    setBudget(now->own.budget, false);
    showHeld();
    showChoice();
    look();
}

void PartitionWindow::setBudget(double budget, bool tried) {
    m_budget = budget;
    const QSignalBlocker quietSlider(m_slider), quietNumber(m_number);
    m_slider->setValue(static_cast<int>(std::lround(budget * kTicks)));
    if (m_number->value() != budget) m_number->setValue(budget);  // setValue rewrites what the user is typing
    const auto& now = m_controller.partition();
    const bool other = now && budget != now->own.budget;
    m_derive->setText(tr("&Compile with %1").arg(budget, 0, 'f', 3));
    m_derive->setEnabled(other);
    m_own->setEnabled(other);
    if (tried) m_controller.tryBudget(budget);
}

/// While a run with the budget is made, the window goes on showing what it will save.
void PartitionWindow::derive() {
    const auto& now = m_controller.partition();
    if (!now || !now->problem.isEmpty() || m_budget == now->own.budget) return;
    m_controller.deriveWithBudget(m_budget);
    const Run* run = m_controller.runOf(now->run);
    if (run == nullptr) return;
    CompileRequest asked = run->options;
    asked.memoryBudget = m_budget;
    rememberRequest(m_controller.modelKey(), asked);
}

void PartitionWindow::backToOwn() {
    if (const auto& now = m_controller.partition()) setBudget(now->own.budget, true);
}

bool PartitionWindow::eventFilter(QObject* watched, QEvent* event) {
    const bool key = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
    if (!key || !m_own->isEnabled()) return Window::eventFilter(watched, event);
    const auto* pressed = static_cast<QKeyEvent*>(event);
    const bool budget = watched == m_slider || watched == m_number;
    const bool enter = budget && (pressed->key() == Qt::Key_Return || pressed->key() == Qt::Key_Enter);
    const bool escape = pressed->key() == Qt::Key_Escape && pressed->modifiers() == Qt::NoModifier;
    if (!enter && !escape) return Window::eventFilter(watched, event);
    event->accept();  // else the menus' keys take it
    if (event->type() == QEvent::ShortcutOverride) return true;
    if (enter) {
        m_number->interpretText();
        derive();
    } else {
        backToOwn();
    }
    return true;
}

void PartitionWindow::showChoice() {
    const auto& now = m_controller.partition();
    if (!now || !now->problem.isEmpty()) return;
    const auto& tried = m_controller.candidate();
    const PartitionChoice& choice = tried ? *tried : now->own;
    listSaved(choice.saved);
    QString totals = tried ? totalsOf(choice, now->own) : totalsOf(choice);
    if (!choice.attempt.empty()) totals += tr("\nTaken: %1.").arg(QString::fromStdString(choice.attempt));
    m_totals->setText(totals);
    markCurve();
}

/// Table and plots stand where each has most room.
void PartitionWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    m_areas->setOrientation(width() > 2 * height() ? Qt::Horizontal : Qt::Vertical);
    const int letter = m_table->fontMetrics().averageCharWidth();
    m_columns->setRoom(PartitionModel::Producer, width() >= 80 * letter);
    // Once the table has its new width.
    QMetaObject::invokeMethod(
        this, [this] { fitColumns(*m_table); }, Qt::QueuedConnection);
}

std::span<const KeyHint> PartitionWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("Try another memory budget"), QT_TR_NOOP("arrow keys, Page Up and Page Down")},
        {QT_TR_NOOP("Compile with the memory budget"), QT_TR_NOOP("Enter")},
        {QT_TR_NOOP("Return to the run's own memory budget"), QT_TR_NOOP("Esc")},
        {QT_TR_NOOP("Go along a plot, choose a point"), QT_TR_NOOP("arrow keys, Enter")},
    };
    return kKeys;
}

}  // namespace cutaway::ui
