#pragma once
// The main window: makes the docks, menus and status bar, and connects them to controller and selection. It holds no
// knowledge of graphs.
#include <QMainWindow>
#include <memory>
#include <optional>

#include "ui/session/session_controller.h"

class QActionGroup;
class QLabel;
class QPushButton;

namespace cutaway::ui {

class ActivityList;
class ExplainWindow;
class GraphWindow;
class KernelsWindow;
class LogWindow;
class NodeWindow;
class ProblemBar;
class ResultsWindow;
class RewriteBar;
class SearchWindow;
class Stepper;
class StepsWindow;
class TextWindow;
class WelcomePage;

class MainWindow : public QMainWindow {
    Q_OBJECT

  public:
    explicit MainWindow(std::unique_ptr<Source> source, QWidget* parent = nullptr);
    ~MainWindow() override;

    void open(const QString& path, const QString& graph = {});
    /// Compiles with the options of last time, and says which those are.
    void compile();
    /// Compiles what is being opened with the default options, whatever was chosen last time: a command does the same
    /// for everybody.
    void compileWhenOpened();
    SessionController& controller() { return *m_controller; }
    Selection& selection() { return *m_selection; }
    StepsWindow& steps() { return *m_steps; }
    GraphWindow& graph() { return *m_graph; }
    TextWindow& text() { return *m_text; }
    SearchWindow& search() { return *m_search; }
    Stepper& stepper() { return *m_stepper; }
    /// A dock by its object name ("steps", "graph", …); null if there is none.
    QDockWidget* window(const QString& name) const;
    QStringList windowNames() const;
    /// Shows a window, in front of those it shares a place with, and puts the focus into it.
    void raiseWindow(QDockWidget* dock);
    /// Whether somebody can see it: not behind another tab.
    bool isOnScreen(const QWidget* widget) const;
    /// Nothing runs, no layout is under way, and what is on show belongs to the current place.
    bool isSettled() const;
  public slots:
    void say(const QString& message);

  signals:
    void settledChanged();

  protected:
    // main_focus.cpp
    bool focusNextPrevChild(bool next) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

  private:
    void makeDocks();
    void arrangeDocks();
    void makeStatusBar();
    // main_welcome.cpp
    void makeWelcome();
    void showWelcome();
    void showWindows();
    QByteArray arrangement() const;
    // main_menus.cpp
    void makeMenus();
    void makeFileMenu();
    void makeEditMenu();
    void makeViewMenu();
    void makeRunMenu();
    void makeDebugMenu();
    void makeHelpMenu();
    QList<std::pair<QString, QAction*>> menuActions() const;
    void fillRecent(QMenu* menu);
    void fillLayouts(QMenu* menu);
    void chooseFile();
    void chooseGraph();
    void exportPicture();
    void exportText();
    void askFuel();
    void goToTouch();
    void showNodeMenu(NodeId node, QPoint at);
    void explainHere();
    void askBisect();
    void askCompile();
    void askExecute();
    void generateCode();
    void timeOnCpu();
    void showPalette();
    void showKeys();
    void showAbout();
    const Run* latestRun() const;
    std::optional<RunId> currentRun();
    void updateTitle();
    void updateActivities();
    void stopLatest();
    void stop(const QString& tag);
    void updateTitleBars();
    void nextChange(bool forward);
    void showNode(NodeId node);

    Selection* m_selection;
    SessionController* m_controller;
    Stepper* m_stepper;
    RewriteBar* m_bar = nullptr;
    QList<QDockWidget*> m_docks;  // as they were made; raising one changes its place among the children
    StepsWindow* m_steps = nullptr;
    GraphWindow* m_graph = nullptr;
    TextWindow* m_text = nullptr;
    NodeWindow* m_node = nullptr;
    ExplainWindow* m_explain = nullptr;
    LogWindow* m_log = nullptr;
    ResultsWindow* m_results = nullptr;
    KernelsWindow* m_kernels = nullptr;
    SearchWindow* m_search = nullptr;
    ProblemBar* m_problems = nullptr;
    ActivityList* m_activities = nullptr;
    QLabel* m_place = nullptr;
    WelcomePage* m_welcome = nullptr;
    QByteArray m_arrangement;          // of the windows, while the welcome page stands in their place
    std::optional<Activity> m_layout;  // of the graph, in the process that does it
};

}  // namespace cutaway::ui
