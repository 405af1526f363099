// Where the keyboard goes in the main window: what is on the screen gets the focus and nothing else, menu keys work in
// text fields too. And the title bars of docks, which tabs make superfluous.
#include <QApplication>
#include <QKeyEvent>
#include <QStackedWidget>
#include <algorithm>

#include "ui/windows/dock_tabs.h"
#include "ui/windows/main_window.h"

namespace cutaway::ui {

/// A dock behind another one of its tabs is visible to Qt, but lies off the window.
bool MainWindow::isOnScreen(const QWidget* widget) const {
    for (const QWidget* at = widget; at; at = at->parentWidget())
        if (const auto* dock = qobject_cast<const QDockWidget*>(at))
            return dock->isVisible() && (dock->isFloating() || dock->geometry().intersects(rect()));
    return true;
}

bool MainWindow::focusNextPrevChild(bool next) {
    QWidget* const from = focusWidget() ? focusWidget() : this;
    const auto step = [next](QWidget* at) { return next ? at->nextInFocusChain() : at->previousInFocusChain(); };
    for (QWidget* at = step(from); at != from; at = step(at)) {
        if (!(at->focusPolicy() & Qt::TabFocus) || at->focusProxy() || at->window() != this) continue;
        if (!at->isEnabled() || !at->isVisibleTo(this) || !isOnScreen(at)) continue;
        at->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
        return true;
    }
    return false;
}

namespace {

/// What takes the keyboard when a window is raised: what the window names, unless it cannot have it now, else the first
/// part that can; the page itself where there is nothing but words on it, so that keys and screen readers are in that
/// window, and go on to what it is filled with.
QWidget* keyboardPlaceOf(const QDockWidget& dock) {
    const auto takes = [&dock](const QWidget* at) {
        return (at->focusPolicy() & Qt::TabFocus) && at->isEnabled() && at->isVisibleTo(&dock);
    };
    if (QWidget* named = dock.focusProxy(); named && takes(named)) return named;
    for (QWidget* inside : dock.widget()->findChildren<QWidget*>())
        if (takes(inside)) return inside;
    const auto* pages = qobject_cast<const QStackedWidget*>(dock.widget());
    return pages ? pages->currentWidget() : dock.widget();
}

}  // namespace

void MainWindow::raiseWindow(QDockWidget* dock) {
    if (!dock->toggleViewAction()->isEnabled()) return;  // the welcome page is there instead
    dock->show();
    dock->raise();
    dock->activateWindow();
    keyboardPlaceOf(*dock)->setFocus(Qt::ShortcutFocusReason);
}

/// A text field takes Ctrl+E, Ctrl+K and the like for editing; in this window they are the menus'. And how wide
/// somebody has made Steps.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize && watched == window(QStringLiteral("steps"))) {
        const auto* resized = static_cast<QResizeEvent*>(event);
        const bool byHand = QApplication::mouseButtons() != Qt::NoButton;
        m_stepsWidth = byHand ? resized->size().width() : std::max(m_stepsWidth, resized->oldSize().width());
    }
    if (event->type() == QEvent::ShortcutOverride && !QApplication::activeModalWidget() &&
        !QApplication::activePopupWidget()) {
        const auto* widget = qobject_cast<QWidget*>(watched);
        const QKeySequence keys(static_cast<QKeyEvent*>(event)->keyCombination());
        const auto isOurs = [&](const QAction* action) {
            return action->isEnabled() && action->shortcuts().contains(keys);
        };
        if (widget && isAncestorOf(widget)) {
            const QList<QAction*> actions = findChildren<QAction*>();
            if (std::any_of(actions.begin(), actions.end(), isOurs)) {
                event->ignore();
                return true;
            }
        }
    }
    return QMainWindow::eventFilter(watched, event);
}

/// The tab of a dock that shares its place says its name already.
void MainWindow::updateTitleBars() {
    m_tabs->follow();
    for (Window* dock : m_windows) {
        const QList<QDockWidget*> beside = tabifiedDockWidgets(dock);
        const bool tabbed =
            !dock->isFloating() && std::any_of(beside.begin(), beside.end(), [](const QDockWidget* other) {
                return !other->isHidden() && !other->isFloating();
            });
        QWidget* none = dock->titleBarWidget();
        if (tabbed == (none != nullptr)) continue;
        dock->setTitleBarWidget(tabbed ? new QWidget(dock) : nullptr);
        delete none;
    }
}

}  // namespace cutaway::ui
