#pragma once
// Where dialogs for files begin: in the folder of the model that was opened last, then where something was chosen.
#include <QDir>
#include <QFileInfo>
#include <QString>

namespace cutaway::ui {

inline QString& startFolder() {
    static QString folder = QDir::currentPath();
    return folder;
}

/// From here on dialogs begin where the file or folder lies. Returns it, so that what a dialog answers passes through.
inline QString beginAt(const QString& chosen) {
    if (!chosen.isEmpty()) startFolder() = QFileInfo(chosen).absolutePath();
    return chosen;
}

}  // namespace cutaway::ui
