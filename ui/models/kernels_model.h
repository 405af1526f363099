#pragma once
// The kernels of a build as a table, with what they read, write and cost.
#include <QAbstractTableModel>

#include "cutaway/session.h"

namespace cutaway::ui {

class KernelsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    // What is looked for first stands first: in a narrow window the rest is scrolled to.
    enum Column { Name, Time, Share, Kind, NodeCount, Read, Written, Flops, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setKernels(std::vector<KernelInfo> kernels);
    const KernelInfo& at(int row) const { return m_kernels[static_cast<size_t>(row)]; }
    /// Row of the kernel that computes the node; -1 if none does.
    int rowOf(NodeKey node) const;
    /// Time of all kernels; 0 until they are timed.
    double microseconds() const { return m_total; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    QVariant text(const KernelInfo& kernel, int column) const;

    std::vector<KernelInfo> m_kernels;
    double m_total = 0;
};

}  // namespace cutaway::ui
