#pragma once
// Keys that a view keeps for itself where a window has a shortcut of the same name.
#include <QKeyEvent>

namespace cutaway::ui {

/// Keeps Enter for the view while it has something to choose. To be called first in the view's event().
inline void keepEnter(QEvent* event, bool hasChoice) {
    if (event->type() != QEvent::ShortcutOverride || !hasChoice) return;
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Return || key == Qt::Key_Enter) event->accept();
}

}  // namespace cutaway::ui
