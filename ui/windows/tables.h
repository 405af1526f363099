#pragma once
// What the tables of several windows have in common.
#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QTableView>

namespace cutaway::ui {

/// Rows as lines of a list; a click on a header sorts, a third click restores the model's own order.
inline QTableView* makeList(QAbstractItemModel& model, int sortRole, const QString& name) {
    auto* table = new QTableView;
    auto* sorted = new QSortFilterProxyModel(table);
    sorted->setSourceModel(&model);
    sorted->setSortRole(sortRole);
    table->setModel(sorted);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setAlternatingRowColors(true);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setTextElideMode(Qt::ElideMiddle);  // names are told apart by their ends
    table->setTabKeyNavigation(false);
    table->setAccessibleName(name);
    table->verticalHeader()->hide();
    table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
    table->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    table->horizontalHeader()->setHighlightSections(false);
    table->horizontalHeader()->setSortIndicatorClearable(true);
    table->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
    table->setSortingEnabled(true);
    return table;
}

/// As wide as what is in them. A long text gives way where the table has less room; the first column takes what is
/// left.
inline void fitColumns(QTableView& table) {
    constexpr int kGap = 10;  // numbers on the right stand close to the next column
    const int letter = table.fontMetrics().averageCharWidth(), room = table.viewport()->width();
    table.resizeColumnsToContents();
    int all = 0, widest = 0;
    for (int column = 0; column < table.model()->columnCount(); ++column) {
        if (table.isColumnHidden(column)) continue;
        table.setColumnWidth(column, std::min(34 * letter, table.columnWidth(column) + kGap));
        all += table.columnWidth(column);
        if (table.columnWidth(column) > table.columnWidth(widest)) widest = column;
    }
    if (all > room) table.setColumnWidth(widest, std::max(28 * letter, table.columnWidth(widest) - (all - room)));
    else table.setColumnWidth(0, table.columnWidth(0) + room - all);
}

}  // namespace cutaway::ui
