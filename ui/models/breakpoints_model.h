#pragma once
// The breakpoints as a table: switched on and off by a check mark, their conditions and counts edited in place.
#include <QAbstractTableModel>

#include "ui/session/breakpoints.h"

namespace cutaway::ui {

class BreakpointsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Condition, Hits, Stopped, ColumnCount };
    BreakpointsModel(Breakpoints& breakpoints, QObject* parent = nullptr);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    bool setData(const QModelIndex& at, const QVariant& value, int role = Qt::EditRole) override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& at) const override;

  signals:
    /// Why what was typed is not a condition.
    void refused(const QString& why);

  private:
    Breakpoints& m_breakpoints;
};

/// "When pass decompose has run".
QString sentenceOf(const Breakpoint& breakpoint);

}  // namespace cutaway::ui
