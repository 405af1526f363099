#include "ui/windows/results_window.h"

#include <QFontDatabase>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/steps_model.h"
#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

QTableView* makeTable(QAbstractItemModel& model, const QString& name) {
    auto* table = new QTableView;
    table->setModel(&model);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setAlternatingRowColors(true);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setAccessibleName(name);
    table->verticalHeader()->hide();
    table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    table->horizontalHeader()->setStretchLastSection(true);
    table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    return table;
}

/// As wide as what is in them, but a long name leaves room for the others.
void fitColumns(QTableView& table) {
    table.resizeColumnsToContents();
    const int most = 30 * table.fontMetrics().averageCharWidth();
    for (int column = 0; column < table.model()->columnCount(); ++column) table.setColumnWidth(column, std::min(most, table.columnWidth(column)));
}

QPlainTextEdit* makeSource(const QString& name, const QString& hint) {
    auto* edit = new QPlainTextEdit;
    edit->setReadOnly(true);
    edit->setLineWrapMode(QPlainTextEdit::NoWrap);
    edit->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    edit->setAccessibleName(name);
    edit->setPlaceholderText(hint);
    return edit;
}

}  // namespace

ResultsWindow::ResultsWindow(SessionController& controller, Selection& selection, QWidget* parent)
    : QDockWidget(tr("Results"), parent), m_selection(selection), m_outputs(*new OutputsModel(this)), m_kernels(*new KernelsModel(this)), m_tabs(new QTabWidget) {
    setObjectName(QStringLiteral("results"));
    m_tabs->setDocumentMode(true);
    m_tabs->addTab(makeOutputs(), tr("Outputs"));
    m_tabs->addTab(makeKernels(), tr("Kernels"));
    m_compileLog = makeSource(tr("Compile log"), tr("What the compiler said about the generated code is shown here after Run > Generate Code."));
    m_tabs->addTab(m_compileLog, tr("Compile log"));
    setWidget(m_tabs);
    connect(&controller, &SessionController::ran, this, [this, &controller](RunId run, const std::shared_ptr<const RunReport>& report) {
        showReport(*report, controller.runOf(run) ? controller.runOf(run)->title() : QString());
    });
    connect(&controller, &SessionController::built, this, [this, &controller](RunId run, const std::shared_ptr<const BuildInfo>& info) {
        showBuild(*info, controller.runOf(run) ? controller.runOf(run)->title() : QString());
    });
    connect(&controller, &SessionController::modelOpened, this, [this] {
        m_outputs.setOutputs({});
        m_kernels.setKernels({});
        m_source->clear();
        m_compileLog->clear();
        m_verdict->setText(tr("Execute the model with Run > Execute (F5): its outputs are listed here and compared with what is expected."));
        m_summary->setText(tr("Generate code with Run > Generate Code: its kernels are listed here, next to the nodes they came from."));
    });
    connect(&selection, &Selection::nodeChanged, this, [this](NodeId node) {
        if (const int row = m_kernels.rowOf(node); row >= 0) m_kernelTable->selectRow(row);
    });
}

QWidget* ResultsWindow::makeOutputs() {
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    m_verdict = new QLabel(tr("Open a model, compile it, then execute it with Run > Execute (F5): its outputs are listed here and compared with what is expected."));
    m_verdict->setWordWrap(true);
    m_outputTable = makeTable(m_outputs, tr("Outputs"));
    column->addWidget(m_verdict);
    column->addWidget(m_outputTable, 1);
    return page;
}

QWidget* ResultsWindow::makeKernels() {
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    m_summary = new QLabel(tr("Open a model, compile it, then choose Run > Generate Code: the kernels are listed here, next to the nodes they came from."));
    m_summary->setWordWrap(true);
    m_kernelTable = makeTable(m_kernels, tr("Kernels"));
    m_source = makeSource(tr("Kernel source"), tr("Source of the chosen kernel"));
    auto* split = new QSplitter(Qt::Horizontal);
    split->addWidget(m_kernelTable);
    split->addWidget(m_source);
    column->addWidget(m_summary);
    column->addWidget(split, 1);
    connect(m_kernelTable->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) { showKernel(row.row()); });
    return page;
}

void ResultsWindow::showKernel(int row) {
    if (row < 0 || row >= m_kernels.rowCount()) return;
    const KernelInfo& kernel = m_kernels.at(row);
    QString text = QString::fromStdString(kernel.source);
    for (const std::string& reason : kernel.reasons) text += QStringLiteral("\n// ") + QString::fromStdString(reason);
    m_source->setPlainText(text);
    if (kernel.nodes.empty()) return;
    for (NodeId node : kernel.nodes)
        if (node == m_selection.node()) return;
    m_selection.setNode(kernel.nodes.back());
}

void ResultsWindow::showReport(const RunReport& report, const QString& run) {
    m_outputs.setOutputs(report.outputs);
    fitColumns(*m_outputTable);
    QString text = run + QStringLiteral(" · ") + tr("inputs: %1").arg(QString::fromStdString(report.inputsFrom)) + QStringLiteral(" · ");
    text += report.repeats > 1 ? tr("median %1, fastest %2 of %3").arg(durationText(report.medianMilliseconds), durationText(report.minMilliseconds)).arg(report.repeats)
                               : durationText(report.medianMilliseconds);
    text += QStringLiteral(" · ");
    text += !report.compared ? tr("nothing to compare with") : report.matches ? tr("✓ outputs match") : tr("✗ outputs differ");
    m_verdict->setText(text);
    m_tabs->setCurrentIndex(0);
    show();
    raise();
}

void ResultsWindow::showBuild(const BuildInfo& info, const QString& run) {
    m_kernels.setKernels(info.kernels);
    fitColumns(*m_kernelTable);
    m_summary->setText(run + QStringLiteral(" · ") + counted(static_cast<qsizetype>(info.kernels.size()), tr("kernel"), tr("kernels")) + QStringLiteral(" · ") + tr("compiled in %1").arg(durationText(info.compileSeconds * 1000)));
    m_compileLog->setPlainText(info.compileLog.empty() ? tr("The compiler had nothing to say.") : QString::fromStdString(info.compileLog));
    m_source->setPlainText(QString::fromStdString(info.source));
    m_tabs->setCurrentIndex(1);
    show();
    raise();
}

}  // namespace cutaway::ui
