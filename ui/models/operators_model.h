#pragma once
// The cache of operators that were compiled one by one, as a table.
#include <QAbstractTableModel>

#include "cutaway/operators.h"

namespace cutaway::ui {

class OperatorsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Operator, Inputs, Device, Size, Hits, LastUse, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setEntries(std::vector<OperatorEntry> entries);
    const std::vector<OperatorEntry>& entries() const { return m_entries; }
    const OperatorEntry& at(int row) const { return m_entries[static_cast<size_t>(row)]; }
    /// Of the entry with that library; -1 if there is none.
    int rowOf(const std::string& library) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<OperatorEntry> m_entries;
};

/// "f32[2, 3], f32[3], 2".
QString inputsText(const OperatorEntry& entry);

}  // namespace cutaway::ui
