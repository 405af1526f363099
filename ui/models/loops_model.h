#pragma once
// The kernels of a run as a table: what they compute and how long that takes.
#include <QAbstractTableModel>

#include "cutaway/loops.h"

namespace cutaway::ui {

class LoopsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    // The longest comes last: it takes the room that is left.
    enum Column { Name, Calls, Time, Kind, Nodes, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setKernels(std::vector<LoopKernel> kernels);
    const LoopKernel& at(int row) const { return m_kernels[static_cast<size_t>(row)]; }
    /// Row of the kernel that computes the node, or of that name; -1 if none does.
    int rowOf(NodeKey node) const;
    int rowOf(const QString& name) const;
    bool isTimed() const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<LoopKernel> m_kernels;
};

}  // namespace cutaway::ui
