#pragma once
// Small words: "1 node", "12 nodes"; what paths have in common.
#include <QString>
#include <QStringList>

namespace cutaway::ui {

inline QString counted(qsizetype count, const QString& one, const QString& many) {
    return QStringLiteral("%1 %2").arg(count).arg(count == 1 ? one : many);
}

/// A file by its name and its folder's, "gpt2_mini/model.pt2": names alone are often alike.
inline QString shortPath(const QString& path) {
    const QString own = path.section(QChar('/'), -2, -1, QString::SectionSkipEmpty);
    return own.isEmpty() ? path : own;
}

/// The folders that all paths begin with, "a/b/" of "a/b/c" and "a/b/d/e"; empty if there are none.
inline QString sharedFolders(const QStringList& paths) {
    QString shared = paths.value(0);
    for (const QString& path : paths) {
        while (!path.startsWith(shared)) shared.chop(1);
    }
    return shared.left(shared.lastIndexOf(QChar('/')) + 1);
}

}  // namespace cutaway::ui
