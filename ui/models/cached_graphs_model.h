#pragma once
// The cache of compiled graphs, as a table.
#include <QAbstractTableModel>

#include "cutaway/graph_cache.h"

namespace cutaway::ui {

class CachedGraphsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Model, Options, Size, Hits, LastUse, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setEntries(std::vector<CachedGraph> entries);
    const CachedGraph& at(int row) const { return m_entries[static_cast<size_t>(row)]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<CachedGraph> m_entries;
};

}  // namespace cutaway::ui
