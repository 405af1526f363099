#pragma once
// All that a menu bar offers, menus inside menus too, each once.
#include <QAction>
#include <QMenu>
#include <QMenuBar>
#include <QVector>

namespace cutaway::ui {

struct MenuAction {
    QString menu;  // the one of the bar, "File"
    QAction* action = nullptr;
    bool submenu = false;
};

inline void addMenuActions(QVector<MenuAction>& found, const QMenu& menu, const QString& name) {
    for (QAction* action : menu.actions()) {
        if (action->isSeparator()) continue;
        found.append({name, action, action->menu() != nullptr});
        if (action->menu()) addMenuActions(found, *action->menu(), name);
    }
}

inline QVector<MenuAction> menuActions(const QMenuBar& bar) {
    QVector<MenuAction> found;
    for (const QAction* top : bar.actions())
        if (const QMenu* menu = top->menu()) addMenuActions(found, *menu, top->text().remove('&'));
    return found;
}

}  // namespace cutaway::ui
