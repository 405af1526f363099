#pragma once
// The values that live at one call as a table, the largest first.
#include <QAbstractTableModel>

#include "ui/models/memory_chart.h"

namespace cutaway::ui {

class MemoryModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Name, Bytes, Share, Type, First, Last, Maker, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    /// Those of `chart` that live at the call; none for an empty chart.
    void show(const MemoryChart& chart, int call);
    /// The value of a row, as the plan numbers it; the row of a value, -1 if it has none.
    int valueAt(int row) const { return static_cast<int>(m_rows[static_cast<size_t>(row)]); }
    int rowOf(int value) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    MemoryChart m_chart;
    std::vector<size_t> m_rows;
    int64_t m_all = 0;  // bytes
};

}  // namespace cutaway::ui
