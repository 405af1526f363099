#pragma once
// Small words for numbers: "1 node", "12 nodes".
#include <QString>

namespace cutaway::ui {

inline QString counted(qsizetype count, const QString& one, const QString& many) {
    return QStringLiteral("%1 %2").arg(count).arg(count == 1 ? one : many);
}

}  // namespace cutaway::ui
