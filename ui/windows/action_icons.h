#pragma once
// Icons and tool tips of the menus' actions, the tool bar that is made of some of them, and which of them need a model:
// one table.
class QAction;
class QMainWindow;
class QString;
class QToolBar;

namespace cutaway::ui {

/// Gives every action of the menu bar that the table knows its icon, and every one with a key a tool tip that names it.
void decorateActions(QMainWindow& window);
/// Greys what cannot be done while nothing is open.
void enableModelActions(QMainWindow& window, bool enabled);
/// Can be chosen, or says in its tips why not.
void offer(QAction& action, const QString& whyNot);
/// By its key ("Ctrl+O"), or by its text if it has none; null if there is none.
QAction* actionNamed(const QMainWindow& window, const char* name);
/// The actions that are used most, as buttons.
QToolBar* makeActionBar(QMainWindow& window);

}  // namespace cutaway::ui
