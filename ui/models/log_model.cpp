#include "ui/models/log_model.h"

#include <QApplication>
#include <QStyle>

namespace cutaway::ui {

LogEntry entryOf(const Error& error, const QString& doing) {
    LogEntry entry;
    entry.level = error.code == ErrorCode::Cancelled ? LogEntry::Level::Note : LogEntry::Level::Problem;
    entry.what = error.code == ErrorCode::Cancelled
                     ? QObject::tr("%1: cancelled").arg(doing)
                     : QStringLiteral("%1: %2").arg(doing, QString::fromStdString(error.message));
    entry.where = QString::fromStdString(error.where);
    QStringList notes;
    for (const std::string& note : error.notes) notes << QString::fromStdString(note);
    // Each is a sentence, whose full stop is left out.
    for (qsizetype i = 0; notes.size() > 1 && i < notes.size(); ++i) {
        notes[i] = notes[i].left(1).toUpper() + notes[i].mid(1);
        const bool last = i + 1 == notes.size();
        if (!last && !QStringLiteral(".:!?").contains(notes[i].right(1))) notes[i] += QChar('.');
    }
    if (notes.isEmpty() && error.code == ErrorCode::Internal)
        notes << QObject::tr("This is a bug in Cutaway. Please report it with the model and the text above.");
    entry.next = notes.join(QStringLiteral(" "));
    return entry;
}

void LogModel::append(LogEntry entry) {
    const int row = static_cast<int>(m_entries.size());
    beginInsertRows({}, row, row);
    m_entries.append(std::move(entry));
    endInsertRows();
}

void LogModel::clear() {
    beginResetModel();
    m_entries.clear();
    endResetModel();
}

int LogModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}
int LogModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant LogModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const LogEntry& entry = m_entries[at.row()];
    if (role == Qt::DisplayRole || role == Qt::ToolTipRole) {
        const QString parts[] = {entry.what, entry.where, entry.next};
        return parts[at.column()];
    }
    if (role == Qt::DecorationRole && at.column() == What && qApp->inherits("QApplication")) {
        const auto icon = entry.level == LogEntry::Level::Problem   ? QStyle::SP_MessageBoxCritical
                          : entry.level == LogEntry::Level::Warning ? QStyle::SP_MessageBoxWarning
                                                                    : QStyle::SP_MessageBoxInformation;
        return QApplication::style()->standardIcon(icon);
    }
    if (role == Qt::AccessibleTextRole && at.column() == What) {
        const QString levels[] = {tr("note"), tr("warning"), tr("problem")};
        return levels[static_cast<int>(entry.level)] + QStringLiteral(": ") + entry.what;
    }
    return {};
}

QVariant LogModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    const QString names[] = {tr("Message"), tr("Where"), tr("What to do next")};
    return section >= 0 && section < ColumnCount ? names[section] : QVariant();
}

}  // namespace cutaway::ui
