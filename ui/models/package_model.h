#pragma once
// A compiled package as a list: its files, what its models take, hold and give, and their calls with ours beside them.
#include <QAbstractTableModel>

#include "cutaway/packages.h"

namespace cutaway::ui {

class PackageModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Name, What, Ours, Match, Detail, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    /// What a row stands for; a call has its position, of one that is ours alone `ours`.
    struct Row {
        QString what, name, detail;
        std::string file;      // to read; of what is a text
        std::string constant;  // its name in the code; of a constant
        int call = -1, ours = -1;
        QString oursName, match, why;
    };
    using QAbstractTableModel::QAbstractTableModel;

    void setPackage(const CompiledPackage& package, size_t model);
    /// Puts ours beside the calls; null: takes them away.
    void setComparison(const PackageComparison* comparison);
    const Row& at(int row) const { return m_rows[static_cast<size_t>(row)]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    std::vector<Row> m_rows;
};

}  // namespace cutaway::ui
