#pragma once
// Tabs of docks do what the title bar of a dock alone does, which they stand for: a double click and dragging them out
// detach the window, and so does their menu, which also puts it beside the others or hides it.
#include <QMainWindow>
#include <QObject>
#include <QPointer>
#include <QTabBar>

class QDockWidget;

namespace cutaway::ui {

class DockTabs : public QObject {
    Q_OBJECT

  public:
    explicit DockTabs(QMainWindow& main);
    /// Takes care of the tab bars that there are now: Qt makes them as docks come together.
    void follow();

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    QDockWidget* dockAt(const QTabBar& bar, QPoint at) const;
    void showMenu(QDockWidget* dock, QPoint at);
    void drag(QTabBar& bar, QPoint at);
    static void detach(QDockWidget& dock, QPoint at);

    QMainWindow& m_main;
    QPointer<QDockWidget> m_pressed;  // its tab is
    bool m_out = false;               // it was dragged out and follows the mouse
};

/// Takes a dock from among its tabs to the right of them, or below them.
void placeBeside(QMainWindow& main, QDockWidget& dock, Qt::Orientation way);

}  // namespace cutaway::ui
