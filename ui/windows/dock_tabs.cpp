#include "ui/windows/dock_tabs.h"

#include <QCoreApplication>
#include <QDockWidget>
#include <QMenu>
#include <QMouseEvent>
#include <algorithm>
#include <utility>

namespace cutaway::ui {
namespace {

constexpr int kOutside = 24;       // pixels from the tab bar from where on a tab is dragged out
constexpr QPoint kGrabbed(40, 8);  // of a window that was dragged out, its place under the mouse

}  // namespace

DockTabs::DockTabs(QMainWindow& main) : QObject(&main), m_main(main) {}

void DockTabs::follow() {
    for (auto* bar : m_main.findChildren<QTabBar*>(Qt::FindDirectChildrenOnly)) {
        if (bar->property("dockTabs").toBool()) continue;
        bar->setProperty("dockTabs", true);
        bar->installEventFilter(this);
    }
}

QDockWidget* DockTabs::dockAt(const QTabBar& bar, QPoint at) const {
    const QString title = bar.tabText(bar.tabAt(at));
    const QList<QDockWidget*> docks = m_main.findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly);
    const auto found = std::find_if(docks.begin(), docks.end(), [&](const QDockWidget* dock) {
        return !dock->isFloating() && dock->windowTitle() == title;
    });
    return title.isEmpty() || found == docks.end() ? nullptr : *found;
}

bool DockTabs::eventFilter(QObject* watched, QEvent* event) {
    auto& bar = *static_cast<QTabBar*>(watched);
    const auto at = [event] { return static_cast<QMouseEvent*>(event)->position().toPoint(); };
    switch (event->type()) {
        case QEvent::MouseButtonPress:
            m_pressed = static_cast<QMouseEvent*>(event)->button() == Qt::LeftButton ? dockAt(bar, at()) : nullptr;
            m_out = false;
            break;
        case QEvent::MouseMove:
            if (m_pressed) drag(bar, at());
            return m_out;
        case QEvent::MouseButtonRelease: m_pressed = nullptr; return std::exchange(m_out, false);
        case QEvent::MouseButtonDblClick:
            if (QDockWidget* dock = dockAt(bar, at())) detach(*dock, bar.mapToGlobal(at()));
            return true;
        case QEvent::ContextMenu: {
            const auto* asked = static_cast<QContextMenuEvent*>(event);
            showMenu(dockAt(bar, asked->pos()), asked->globalPos());
            return true;
        }
        default: break;
    }
    return QObject::eventFilter(watched, event);
}

void DockTabs::drag(QTabBar& bar, QPoint at) {
    const bool outside = !bar.rect().adjusted(-kOutside, -kOutside, kOutside, kOutside).contains(at);
    if (!m_out && !outside) return;
    const QPoint global = bar.mapToGlobal(at);
    if (m_out) return m_pressed->move(global - kGrabbed);
    // The bar has begun to move the tab among the others: for it, that ends here.
    QMouseEvent release(QEvent::MouseButtonRelease, at, global, Qt::LeftButton, Qt::NoButton, Qt::NoModifier);
    const QPointer<QDockWidget> dock = m_pressed;
    QCoreApplication::sendEvent(&bar, &release);
    m_pressed = dock;
    m_out = true;
    detach(*dock, global);
}

void DockTabs::detach(QDockWidget& dock, QPoint at) {
    dock.setFloating(true);
    dock.move(at - kGrabbed);
    dock.show();
}

void DockTabs::showMenu(QDockWidget* dock, QPoint at) {
    if (!dock) return;
    QMenu menu;
    menu.addAction(tr("&Detach"), this, [dock, at] { detach(*dock, at); });
    menu.addAction(tr("Put &Beside the Others"), this, [this, dock] { placeBeside(m_main, *dock, Qt::Horizontal); });
    menu.addAction(tr("Put B&elow the Others"), this, [this, dock] { placeBeside(m_main, *dock, Qt::Vertical); });
    menu.addSeparator();
    menu.addAction(tr("&Hide"), dock, &QDockWidget::hide);
    menu.exec(at);
}

void placeBeside(QMainWindow& main, QDockWidget& dock, Qt::Orientation way) {
    QList<QDockWidget*> others = main.tabifiedDockWidgets(&dock);
    const auto shown = std::find_if(others.begin(), others.end(), [](const auto* other) { return !other->isHidden(); });
    if (shown == others.end()) return;
    QDockWidget* const anchor = *shown;
    others.removeOne(anchor);
    // Beside a dock with tabs Qt puts another tab.
    const int room = way == Qt::Horizontal ? dock.width() : dock.height();
    main.removeDockWidget(&dock);
    QList<bool> hidden;
    for (QDockWidget* other : others) {
        hidden << other->isHidden();
        main.removeDockWidget(other);
    }
    // Of the tabs one is left, which Qt takes for tabs until it stands anew.
    main.splitDockWidget(anchor, &dock, way == Qt::Horizontal ? Qt::Vertical : Qt::Horizontal);
    main.removeDockWidget(&dock);
    main.splitDockWidget(anchor, &dock, way);
    for (qsizetype i = 0; i < others.size(); ++i) {
        main.tabifyDockWidget(anchor, others[i]);
        others[i]->setHidden(hidden[i]);
    }
    dock.show();
    anchor->raise();
    main.resizeDocks({anchor, &dock}, {room / 2, room / 2}, way);
}

}  // namespace cutaway::ui
