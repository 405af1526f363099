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
    /// `written`: to buffers and inputs; `gradients`: of training. Both behind the outputs.
    void setOutputs(std::vector<OutputReport> outputs, std::vector<OutputReport> written = {},
                    std::vector<OutputReport> gradients = {});

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<OutputReport> m_outputs;  // and behind them what is written, and the gradients
    int m_firstWritten = 0, m_firstGradient = 0;
};

/// "median 28 ms, half of 20 runs 27 ms to 30 ms"; where they vary more than timing does, also that.
QString timesText(const RunReport& report);
/// "loss 0.25 (the returned scalar) · forward 1.2 ms, backward 3 ms · activations saved 1.5 MiB, estimated 1.5 MiB".
QString trainingText(const TrainingReport& report);

}  // namespace cutaway::ui
