#pragma once
// Messages, newest last. A problem has three parts: what failed, where, what to do next; and may carry the place it
// happened at.
#include <QAbstractTableModel>
#include <optional>

#include "cutaway/session.h"

namespace cutaway::ui {

struct LogEntry {
    enum class Level { Note, Warning, Problem };
    Level level = Level::Note;
    QString what, where, next;
    std::optional<Place> place;
    NodeKey node = NodeKey::None;
    QString folder = {};  // what was written, which the row opens in the file manager: a folder, or a file in one
};

/// Kind of failure first, then the engine's message; notes say what to do next.
LogEntry entryOf(const Error& error, const QString& doing);

class LogModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { What, Where, Next, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;

    void append(LogEntry entry);
    /// An entry that leads nowhere.
    void append(LogEntry::Level level, const QString& what) { append({level, what, {}, {}, {}, NodeKey::None}); }
    void clear();
    const LogEntry& at(int row) const { return m_entries[row]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    QVector<LogEntry> m_entries;
};

}  // namespace cutaway::ui
