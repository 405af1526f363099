#pragma once
// The results of an execution: a table of outputs with their comparison.
#include <QAbstractTableModel>

#include "cutaway/session.h"

namespace cutaway::ui {

class OutputsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Name, Type, Minimum, Maximum, Mean, NonFinite, Error, Verdict, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setOutputs(std::vector<OutputReport> outputs);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<OutputReport> m_outputs;
};

}  // namespace cutaway::ui
