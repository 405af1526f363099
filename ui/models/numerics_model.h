#pragma once
// The values of a checked run as a table, in the order in which they ran.
#include <QAbstractTableModel>

#include "cutaway/node_numbers.h"

namespace cutaway::ui {

class NumericsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column {
        Verdict,
        Name,
        Op,
        Absolute,
        Relative,
        Ulp,
        Cosine,
        From64,
        Reference64,
        Type,
        Reference,
        ColumnCount
    };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    /// Replaces the rows. appendRows() takes all rows, too, and adds those behind the ones that are there.
    void setRows(const std::vector<NodeNumbers>& rows);
    void appendRows(const std::vector<NodeNumbers>& rows);
    const NodeNumbers& at(int row) const { return m_rows[static_cast<size_t>(row)]; }
    /// -1 if it is not there.
    int rowOf(NodeKey node) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    static QString text(const NodeNumbers& row, int column);
    static double number(const NodeNumbers& row, int column);

    std::vector<NodeNumbers> m_rows;
};

}  // namespace cutaway::ui
