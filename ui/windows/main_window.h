#pragma once
// The main window: makes the windows of the table (window_table.h) and the menus of the commands (commands.h), arranges
// them, and shows what goes on. It holds no knowledge of graphs, nor of single windows.
#include <QMainWindow>
#include <memory>
#include <vector>

#include "ui/windows/window.h"

class QLabel;
class QMenu;
class QToolBar;

namespace cutaway::ui {

struct Command;
class ActivityList;
class DockTabs;
class OptionsChip;
class ProblemBar;
class WelcomePage;

class MainWindow : public QMainWindow {
    Q_OBJECT

  public:
    explicit MainWindow(std::unique_ptr<Source> source, QWidget* parent = nullptr);
    ~MainWindow() override;

    void open(const QString& path, const QString& graph = {});
    /// Compiles the model that is being opened with the default options, not those chosen last time, so that a command
    /// line always does the same.
    void compileWhenOpened();
    SessionController& controller() { return *m_controller; }
    Selection& selection() { return *m_selection; }
    Stepper& stepper() { return *m_stepper; }

    /// The window of that class: get<GraphWindow>().
    template <class W>
    W& get() const {
        for (Window* window : m_windows)
            if (auto* found = qobject_cast<W*>(window)) return *found;
        qFatal("no row of the windows' table makes this window");
    }
    /// By the name in the table ("steps", "graph", …); null if there is none.
    Window* window(const QString& name) const;
    const QList<Window*>& windows() const { return m_windows; }
    /// Shows a window, in front of those it shares a place with, and puts the focus into it.
    void raiseWindow(QDockWidget* dock);
    /// Where the windows stand before somebody moves them.
    void arrangeWindows();
    /// As saveState() has it.
    void restoreArrangement(const QByteArray& state);
    /// Whether somebody can see it: not behind another tab.
    bool isOnScreen(const QWidget* widget) const;
    /// Nothing runs, no layout is under way, and what is on show belongs to the current place.
    bool isSettled() const;
    /// Updates which commands are enabled and ticked.
    void updateCommands();
  public slots:
    void say(const QString& message);
    void logProblem(const cutaway::ui::LogEntry& entry);

  signals:
    void settledChanged();

  protected:
    // main_focus.cpp
    bool focusNextPrevChild(bool next) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

    void closeEvent(QCloseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

  private:
    void makeWindows();
    void makeBars();
    // main_bars.cpp
    void updateBars();
    void makeStatusBar();
    void connectSession();
    void restoreLooks();
    // main_menus.cpp
    void makeMenus();
    void addWindowActions(QMenu& menu);
    QAction* addCommand(QMenu& menu, const Command& command);
    QToolBar* makeActionBar();
    void addOptionsChip(QToolBar& bar);
    // main_welcome.cpp
    void makeWelcome();
    void showWelcome();
    void showWindows();
    QByteArray arrangement() const;

    void updateTitle();
    void updateActivities();
    QVector<Activity> activities() const;
    void stopLatest();
    void stop(const QString& tag);
    void updateTitleBars();

    Selection* m_selection;
    SessionController* m_controller;
    Stepper* m_stepper;
    QList<Window*> m_windows;  // in the order of the table
    std::vector<std::pair<const Command*, QAction*>> m_commands;
    ProblemBar* m_problems = nullptr;
    DockTabs* m_tabs = nullptr;
    OptionsChip* m_options = nullptr;
    QToolBar *m_stepping = nullptr, *m_lines = nullptr;
    ActivityList* m_activities = nullptr;
    QLabel* m_place = nullptr;
    WelcomePage* m_welcome = nullptr;
    int m_stepsWidth = 0;      // that Steps had before the window was made narrower
    QByteArray m_arrangement;  // of the windows, while the welcome page stands in their place
};

}  // namespace cutaway::ui
