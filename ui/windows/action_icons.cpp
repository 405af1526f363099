#include "ui/windows/action_icons.h"

#include <QAction>
#include <QCoreApplication>
#include <QMainWindow>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>

#include "ui/windows/icons.h"
#include "ui/windows/menu_actions.h"

namespace cutaway::ui {
namespace {

enum class OnBar { No, Icon, IconAndText };
struct Look {
    const char* action;  // its key, or its text if it has none
    const char* icon;    // null for none
    bool needsModel = true;
    OnBar bar = OnBar::No;
    const char* shortText = nullptr;  // on the bar
    bool lastOfGroup = false;
};
// In the order of the bar.
constexpr Look kLooks[] = {
    {"Ctrl+O", "open", false, OnBar::IconAndText, QT_TRANSLATE_NOOP("cutaway::ui", "Open"), true},
    {"Ctrl+B", "compile", true, OnBar::IconAndText, QT_TRANSLATE_NOOP("cutaway::ui", "Compile")},
    {"Ctrl+Shift+B", "compile-with", true, OnBar::Icon, nullptr, true},
    {"F5", "execute", true, OnBar::IconAndText, QT_TRANSLATE_NOOP("cutaway::ui", "Execute")},
    {"F7", "code", true, OnBar::Icon},
    {"F6", "time", true, OnBar::Icon, nullptr, true},
    {"Alt+Left", "back", false, OnBar::Icon},  // its history says whether it can
    {"Alt+Right", "forward", false, OnBar::Icon, nullptr, true},
    {"Ctrl+F", "search", true, OnBar::Icon},
    {"Ctrl+K", "go-to", false, OnBar::Icon},
    {"Ctrl+Shift+O", "open-folder", false},
    {"Open Recent", "recent", false},
    {"Ctrl+Q", "quit", false},
    {"F1", "keys", false},
    {"About Cutaway", "about", false},
    {"Ctrl+Shift+G", "graphs"},
    {"Ctrl+W", "close"},
    {"Ctrl+Shift+E", "picture"},
    {"Export Text", "export-text"},
    {"F3", "next-hit"},
    {"Shift+F3", "previous-hit"},
    {"Ctrl+Shift+C", "copy"},
    {"Ctrl+0", "fit"},
    {"Ctrl+1", nullptr},
    {"Ctrl+2", nullptr},
    {"Ctrl+3", nullptr},
    {"Ctrl+4", "side-by-side"},
    {"F8", "change-next"},
    {"Shift+F8", nullptr},
    {"F10", "step-next"},
    {"Shift+F10", "step-previous"},
    {"Ctrl+F10", "step-any-next"},
    {"Ctrl+Shift+F10", "step-any-previous"},
    {"F11", "rewrite-next"},
    {"Shift+F11", "rewrite-previous"},
    {"Ctrl+F11", "step-out"},
    {"Ctrl+R", "touched"},
    {"Ctrl+G", "number"},
    {"Ctrl+E", "explain"},
    {"Find the Rewrite That Broke the Graph", "bisect"},
    {"Ctrl+Shift+A", "mark-a"},
    {"Ctrl+Shift+D", "mark-b"},
};

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

}  // namespace

void offer(QAction& action, const QString& whyNot) {
    action.setEnabled(whyNot.isEmpty());
    action.setStatusTip(whyNot);
    action.setToolTip(whyNot.isEmpty() ? toolTipOf(action) : QStringLiteral("%1\n%2").arg(toolTipOf(action), whyNot));
}

QAction* actionNamed(const QMainWindow& window, const char* name) {
    for (const MenuAction& each : menuActions(*window.menuBar()))
        if (isNamed(*each.action, QString::fromLatin1(name))) return each.action;
    return nullptr;
}

void enableModelActions(QMainWindow& window, bool enabled) {
    for (const Look& look : kLooks)
        if (QAction* action = look.needsModel ? actionNamed(window, look.action) : nullptr) action->setEnabled(enabled);
}

void decorateActions(QMainWindow& window) {
    for (const MenuAction& each : menuActions(*window.menuBar())) {
        for (const Look& look : kLooks)
            if (look.icon && isNamed(*each.action, QString::fromLatin1(look.action)))
                each.action->setIcon(iconNamed(QString::fromLatin1(look.icon)));
        if (!each.action->shortcut().isEmpty()) each.action->setToolTip(toolTipOf(*each.action));
    }
}

QToolBar* makeActionBar(QMainWindow& window) {
    auto* bar = new QToolBar(QObject::tr("Actions"), &window);
    bar->setObjectName(QStringLiteral("actions"));
    bar->setMovable(false);
    bar->setIconSize({16, 16});
    bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    for (const Look& look : kLooks) {
        QAction* action = look.bar == OnBar::No ? nullptr : actionNamed(window, look.action);
        if (!action) continue;
        // The style shows the text of an important action only.
        action->setPriority(look.bar == OnBar::IconAndText ? QAction::NormalPriority : QAction::LowPriority);
        if (look.shortText) action->setIconText(QCoreApplication::translate("cutaway::ui", look.shortText));
        bar->addAction(action);
        if (look.lastOfGroup) bar->addSeparator();
    }
    return bar;
}

}  // namespace cutaway::ui
