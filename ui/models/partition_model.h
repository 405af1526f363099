#pragma once
// What the forward of a training run saves for the backward, as a table, and the numbers of a choice in words.
#include <QAbstractTableModel>

#include "cutaway/partition.h"

namespace cutaway::ui {

class PartitionModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Name, Bytes, Type, Producer, Why, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setSaved(std::vector<SavedTensor> saved);
    const SavedTensor& at(int row) const { return m_saved[static_cast<size_t>(row)]; }
    /// -1 if it is not saved.
    int rowOf(NodeKey node) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    QString text(const SavedTensor& value, int column) const;

    std::vector<SavedTensor> m_saved;
};

/// "4 values saved, 1.5 MiB, of them 1.2 MiB activations; 3 nodes computed again".
QString totalsOf(const PartitionChoice& choice);
/// The same beside what the run itself has: "1.2 MiB (own 1.5 MiB)".
QString totalsOf(const PartitionChoice& choice, const PartitionChoice& own);

}  // namespace cutaway::ui
