#include "ui/windows/menu_actions.h"

#include <QAction>
#include <QMenu>

namespace cutaway::ui {
namespace {

constexpr const char* kFilled = "filled";

/// "Open…" is told as "Open".
QString plain(QString text) { return text.remove('&').remove(QStringLiteral("…")).trimmed(); }

bool isNamed(const QAction& action, const QString& name) {
    return action.shortcut().isEmpty() ? plain(action.text()) == name
                                       : action.shortcut().toString(QKeySequence::PortableText) == name;
}

QString toolTipOf(const QAction& action) {
    if (action.shortcut().isEmpty()) return plain(action.text());
    return QStringLiteral("%1 (%2)").arg(plain(action.text()), action.shortcut().toString(QKeySequence::NativeText));
}

void addActions(QVector<MenuAction>& found, const QMenu& menu, const QString& top, const QString& before, bool made) {
    for (QAction* action : menu.actions()) {
        if (action->isSeparator()) continue;
        const QString title = before + action->text().remove('&');
        found.append({top, title, action, made});
        if (const QMenu* inner = action->menu())
            addActions(found, *inner, top, title + QStringLiteral(": "), inner->property(kFilled).toBool());
    }
}

}  // namespace

QVector<MenuAction> menuActions(const QMenuBar& bar) {
    QVector<MenuAction> found;
    // Not the bar's children: one of those holds the menus for which there is no room.
    for (const QAction* top : bar.actions())
        if (const QMenu* menu = top->menu()) addActions(found, *menu, top->text().remove('&'), {}, false);
    return found;
}

QAction* actionNamed(const QMainWindow& window, const char* name) {
    for (const MenuAction& each : menuActions(*window.menuBar()))
        if (isNamed(*each.action, QString::fromLatin1(name))) return each.action;
    return nullptr;
}

void offer(QAction& action, const QString& whyNot) {
    action.setEnabled(whyNot.isEmpty());
    action.setStatusTip(whyNot);
    action.setToolTip(whyNot.isEmpty() ? toolTipOf(action) : QStringLiteral("%1\n%2").arg(toolTipOf(action), whyNot));
}

void markFilled(QMenu& menu) { menu.setProperty(kFilled, true); }

}  // namespace cutaway::ui
