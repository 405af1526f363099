// The table of the Partition window, and how it follows the current node.
#include <QApplication>
#include <QClipboard>
#include <QLabel>
#include <QScrollBar>
#include <QShortcut>
#include <algorithm>

#include "ui/windows/columns.h"
#include "ui/windows/partition_window.h"
#include "ui/windows/plot_view.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {

void PartitionWindow::arrangeTable() {
    m_columns = new Columns(m_table->horizontalHeader(), objectName(), {PartitionModel::Why});
    m_table->setMinimumHeight(80);
    auto* copy = new QShortcut(QKeySequence::Copy, m_table);
    copy->setContext(Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, &PartitionWindow::copyRows);
}

void PartitionWindow::listSaved(const std::vector<SavedTensor>& saved) {
    m_following = true;
    const int at = m_table->verticalScrollBar()->value();
    m_saved.setSaved(saved);
    if (!m_fitted && m_seen) fitColumns(*m_table);
    m_fitted = m_seen;
    m_table->verticalScrollBar()->setValue(at);
    m_following = false;
    showNode(m_selection.node());
}

void PartitionWindow::showNode(NodeKey node) {
    const auto& now = m_controller.partition();
    const auto* shown = static_cast<const QSortFilterProxyModel*>(m_table->model());
    const int row = m_saved.rowOf(node);
    m_following = true;
    if (row >= 0) m_table->selectRow(shown->mapFromSource(m_saved.index(row, 0)).row());
    else m_table->clearSelection();
    m_following = false;
    m_why->setText(row >= 0 ? tr("%1: %2").arg(QString::fromStdString(m_saved.at(row).name),
                                               QString::fromStdString(m_saved.at(row).why))
                            : tr("Choose a row to see why its value is saved."));
    int held = -1;
    for (size_t i = 0; now && held < 0 && i < now->held.size(); ++i)
        if (now->held[i].node == node) held = static_cast<int>(i);
    m_held->setCurrent(held);
}

void PartitionWindow::chooseRow() {
    const QModelIndex shown = m_table->selectionModel()->selectedRows().value(0);
    if (m_following || !shown.isValid()) return;
    const int row = static_cast<const QSortFilterProxyModel*>(m_table->model())->mapToSource(shown).row();
    m_selection.setNode(m_saved.at(row).node);
    showNode(m_saved.at(row).node);
}

void PartitionWindow::copyRows() {
    QModelIndexList rows = m_table->selectionModel()->selectedRows();
    std::sort(rows.begin(), rows.end());
    QStringList lines;
    for (const QModelIndex& row : rows) {
        QStringList cells;
        for (int column = 0; column < PartitionModel::ColumnCount; ++column)
            cells << row.siblingAtColumn(column).data().toString();
        lines << cells.join(QChar('\t'));
    }
    QApplication::clipboard()->setText(lines.join(QChar('\n')));
}

}  // namespace cutaway::ui
