#pragma once
// The text difference as rows: unified (an edited line is two rows) or side by side (one row, two texts). Long
// stretches of equal lines can be folded to one row that says how many.
#include <QAbstractTableModel>

#include "ui/models/text_diff.h"

namespace cutaway::ui {

class TextModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Role { KindRole = Qt::UserRole, MarksRole, NodeRole, FoldRole };
    enum class Layout { Unified, SideBySide };
    /// Unified: old number, new number, sign, text. Side by side: number, text, number, text.
    enum Column { First, Second, Third, Fourth, ColumnCount };

    using QAbstractTableModel::QAbstractTableModel;

    void setLines(QVector<DiffLine> lines);
    void setLayout(Layout layout);
    Layout layout() const { return m_layout; }
    /// Folds equal lines farther than three from a change.
    void setFolded(bool folded);
    bool isFolded() const { return m_folded; }
    void unfold(int row);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

    /// First row that shows the node; -1 if none does.
    int rowOf(NodeKey node) const;
    NodeKey nodeAt(int row) const;
    /// First row at or after `row`, or at or before it, wrapping round, that has a change; -1 if none has.
    int nextChange(int row, bool forward = true) const;
    int changeCount() const;
    /// Rows as text, "+", "-" or " " first in the unified layout.
    QString plainText(int row) const;

  private:
    struct Row {
        int line = 0;
        DiffLine::Kind kind = DiffLine::Kind::Same;
        int folded = 0;  // equal lines that this row stands for
    };
    void rebuild();
    QVariant unified(const Row& row, int column) const;
    QVariant sideBySide(const Row& row, int column) const;
    bool onBeforeSide(const Row& row, int column) const;

    QVector<DiffLine> m_lines;
    QVector<Row> m_rows;
    QVector<bool> m_unfolded;  // per line: shown although far from a change
    Layout m_layout = Layout::Unified;
    bool m_folded = true;
};

}  // namespace cutaway::ui
