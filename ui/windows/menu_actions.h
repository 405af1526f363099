#pragma once
// Finds the actions of a menu bar: for the list of keys, for Go To and by name.
#include <QMainWindow>
#include <QMenuBar>
#include <QVector>

namespace cutaway::ui {

struct MenuAction {
    QString menu;   // the one of the bar, "File"
    QString title;  // "Theme: Dark" for what stands in a submenu
    QAction* action = nullptr;
    bool made = false;  // not always there: in a menu that is filled when it opens
};

/// All that the menus offer, each once.
QVector<MenuAction> menuActions(const QMenuBar& bar);
/// By its key ("Ctrl+O"), or by its text if it has none; null if there is none.
QAction* actionNamed(const QMainWindow& window, const char* name);
/// Enables the action if `whyNot` is empty; otherwise disables it, and its tips say why.
void offer(QAction& action, const QString& whyNot);
/// Its contents are made when it opens.
void markFilled(QMenu& menu);

}  // namespace cutaway::ui
