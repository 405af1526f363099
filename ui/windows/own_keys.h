#pragma once
// Keys that a view keeps for itself where a window has a shortcut of the same name.
#include <QKeyEvent>

namespace cutaway::ui {

/// Enter stays with the view while it has something to choose. From event(), before the base class's.
inline void keepEnter(QEvent* event, bool hasChoice) {
    if (event->type() != QEvent::ShortcutOverride || !hasChoice) return;
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Return || key == Qt::Key_Enter) event->accept();
}

}  // namespace cutaway::ui
