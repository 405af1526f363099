#pragma once
// The main window: makes the docks, menus and status bar, and connects them to controller and selection. It holds no
// knowledge of graphs.
#include <QMainWindow>
#include <QTimer>
#include <memory>

#include "ui/session/session_controller.h"

class QActionGroup;
class QLabel;
class QProgressBar;
class QPushButton;
class QToolButton;

namespace cutaway::ui {

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
    /// Compiles with the options of last time.
    void compile();
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
    /// Nothing runs, no layout is under way, and what is on show belongs to the current place.
    bool isSettled() const;
  public slots:
    void say(const QString& message);

  signals:
    void settledChanged();

  protected:
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
    std::optional<RunId> currentRun();
    void updateTitle();
    void updateProgress();

    Selection* m_selection;
    SessionController* m_controller;
    Stepper* m_stepper;
    RewriteBar* m_bar = nullptr;
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
    QProgressBar* m_progress = nullptr;
    QToolButton* m_cancel = nullptr;
    QLabel* m_place = nullptr;
    WelcomePage* m_welcome = nullptr;
    QByteArray m_arrangement;  // of the windows, while the welcome page stands in their place
    QTimer m_late;  // work that ends within 0.2 s shows no progress
    QString m_doing;
    double m_fraction = -1;
};

}  // namespace cutaway::ui
