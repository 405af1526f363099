#pragma once
// Tables of what a run gave: outputs with their comparison, kernels with their cost.
#include <QAbstractTableModel>

#include "cutaway/session.h"

namespace cutaway::ui {

class OutputsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Name, Type, Minimum, Maximum, Mean, NonFinite, Error, Verdict, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setOutputs(std::vector<OutputReport> outputs);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<OutputReport> m_outputs;
};

class KernelsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Name, Kind, NodeCount, Read, Written, Flops, Time, Share, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setKernels(std::vector<KernelInfo> kernels);
    const KernelInfo& at(int row) const { return m_kernels[static_cast<size_t>(row)]; }
    /// Row of the kernel that computes the node; -1 if none does.
    int rowOf(NodeId node) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<KernelInfo> m_kernels;
    double m_total = 0;  // microseconds
};

/// "1.5 MiB", "312 B".
QString bytesText(int64_t bytes);
/// "1.2 G", "640": decimal multiples.
QString countText(int64_t count);

}  // namespace cutaway::ui
