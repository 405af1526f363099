#include "ui/windows/kernels_window.h"

#include <QApplication>
#include <QClipboard>
#include <QLabel>
#include <QShortcut>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/results_model.h"
#include "ui/models/units.h"
#include "ui/models/words.h"
#include "ui/windows/code_view.h"
#include "ui/windows/columns.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {

KernelsWindow::KernelsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_selection(parts.selection),
      m_kernels(*new KernelsModel(this)),
      m_summary(new QLabel),
      m_table(makeList(m_kernels, KernelsModel::SortRole, tr("Kernels"))),
      m_areas(new QSplitter(Qt::Vertical)),
      m_texts(new QTabWidget),
      m_source(new CodeView(Language::Cpp, tr("Kernel source"), tr("Source of the chosen kernel"))),
      m_compileLog(
          new CodeView(Language::Cpp, tr("Compile log"), tr("The compiler's messages about the generated code"))) {
    m_summary->setWordWrap(true);
    m_columns = new Columns(m_table->horizontalHeader(), objectName());
    m_texts->setDocumentMode(true);
    m_texts->addTab(m_source, tr("Source"));
    m_texts->addTab(m_compileLog, tr("Compile Log"));
    m_areas->addWidget(m_table);
    m_areas->addWidget(m_texts);
    m_areas->setChildrenCollapsible(false);
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(m_summary);
    column->addWidget(m_areas, 1);
    setWidget(page);
    clear();

    // Not when the current row changes: getting the focus makes a row current, although the user chose none.
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this,
            [this] { showKernel(rowAt(m_table->selectionModel()->selectedRows().value(0))); });
    connect(&parts.controller, &SessionController::built, this,
            [this, &controller = parts.controller](RunId run, const std::shared_ptr<const BuildInfo>& info) {
                showBuild(*info, controller.runOf(run) ? controller.runOf(run)->title() : QString());
            });
    // The outputs stay in front; the kernels get their times.
    connect(&parts.controller, &SessionController::timed, this,
            [this, &controller = parts.controller](RunId run, const std::shared_ptr<const BuildInfo>& info) {
                listKernels(*info, controller.runOf(run) ? controller.runOf(run)->title() : QString());
            });
    connect(&parts.controller, &SessionController::ran, this,
            [this](RunId, const std::shared_ptr<const RunReport>& report) {
                if (report->repeats > 1 && m_kernels.microseconds() > 0)
                    m_summary->setText(tr("%1 · a run: %2").arg(m_said, timesText(*report)));
            });
    connect(&parts.controller, &SessionController::modelOpened, this, &KernelsWindow::clear);
    connect(&parts.selection, &Selection::nodeChanged, this, [this](NodeKey node) {
        const auto* shown = static_cast<const QSortFilterProxyModel*>(m_table->model());
        if (const int row = m_kernels.rowOf(node); row >= 0)
            m_table->selectRow(shown->mapFromSource(m_kernels.index(row, 0)).row());
        else m_table->clearSelection();
    });
    auto* copy = new QShortcut(QKeySequence::Copy, m_table);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, &KernelsWindow::copyRows);
}

int KernelsWindow::rowAt(const QModelIndex& shown) const {
    return shown.isValid() ? static_cast<const QSortFilterProxyModel*>(m_table->model())->mapToSource(shown).row() : -1;
}

void KernelsWindow::clear() {
    m_kernels.setKernels({});
    m_source->setCode({});
    m_compileLog->setCode({});
    m_summary->setText(
        tr("The kernels of the compiled model are listed here, next to the nodes they came from.\n\nCompile it "
           "(Ctrl+B), then choose Run > Generate Code (F7)."));
}

void KernelsWindow::listKernels(const BuildInfo& info, const QString& run) {
    m_kernels.setKernels(info.kernels);
    for (const int column : {KernelsModel::Time, KernelsModel::Share})
        m_columns->setRoom(column, m_kernels.microseconds() > 0);
    fitColumns(*m_table);
    QStringList said{run, counted(static_cast<qsizetype>(info.kernels.size()), tr("kernel"), tr("kernels")),
                     info.compileSeconds > 0 ? tr("compiled in %1").arg(durationText(info.compileSeconds * 1000))
                                             : tr("kernels from the cache")};
    if (m_kernels.microseconds() > 0)
        said << tr("medians of kernels together %1").arg(durationText(m_kernels.microseconds() / 1000));
    m_said = said.join(QStringLiteral(" · "));
    m_summary->setText(m_said);
    m_compileLog->setCode(info.compileLog.empty() ? tr("// The compiler printed no messages.")
                                                  : QString::fromStdString(info.compileLog));
    m_source->setCode(QString::fromStdString(info.source));
}

void KernelsWindow::showBuild(const BuildInfo& info, const QString& run) {
    listKernels(info, run);
    show();
    raise();
}

void KernelsWindow::showKernel(int row) {
    if (row < 0 || row >= m_kernels.rowCount()) return;
    const KernelInfo& kernel = m_kernels.at(row);
    QString text = QString::fromStdString(kernel.source);
    for (const std::string& reason : kernel.reasons) text += QStringLiteral("\n// ") + QString::fromStdString(reason);
    m_source->setCode(text);
    if (kernel.nodes.empty() ||
        std::find(kernel.nodes.begin(), kernel.nodes.end(), m_selection.node()) != kernel.nodes.end())
        return;
    m_selection.setNode(kernel.nodes.back());
}

void KernelsWindow::copyRows() {
    QModelIndexList rows = m_table->selectionModel()->selectedRows();
    std::sort(rows.begin(), rows.end());
    QStringList lines;
    for (const QModelIndex& row : rows) {
        QStringList cells;
        for (int column = 0; column < KernelsModel::ColumnCount; ++column)
            cells << row.siblingAtColumn(column).data().toString();
        lines << cells.join(QChar('\t'));
    }
    QApplication::clipboard()->setText(lines.join(QChar('\n')));
}

/// List and source stand where each has most room.
void KernelsWindow::resizeEvent(QResizeEvent* event) {
    Window::resizeEvent(event);
    m_areas->setOrientation(width() > 2 * height() ? Qt::Horizontal : Qt::Vertical);
}

}  // namespace cutaway::ui
