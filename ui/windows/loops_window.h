#pragma once
// The Loops window: a kernel as what it computes, as the plan by which it runs, as loops after each step of lowering
// as C++ and as machine code, beside each other. The plan can be edited, checked and run.
#include "ui/models/loops_model.h"
#include "ui/windows/window.h"

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSortFilterProxyModel;
class QSplitter;
class QTableView;
class QTabWidget;

namespace cutaway::ui {

class CodeView;
class Columns;

class LoopsWindow : public Window {
    Q_OBJECT

  public:
    LoopsWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();
    /// The C++ of a kernel, at the line of the current node.
    void showCode(const QString& kernel);
    std::optional<Activity> activity() const override;
    void stopActivity() override;

  protected:
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void arrange();
    QWidget* makePlan();
    QWidget* makeLoops();
    QWidget* makeListing();
    void connectParts();
    /// Lists the kernels of the run that is looked at, once somebody can see them.
    void follow();
    void showList();
    void showForms();
    void showStep();
    /// Asks for the listing of the forms that are shown, if somebody sees it.
    void wantListing();
    void showListing();
    void showState();
    void showNode(NodeKey node);
    void chooseRow();
    int wrongLine() const;
    void showSaid();
    // loops_lines.cpp
    const KernelCall* callOnShow() const;
    void markNode();
    void chooseLine(int line);
    void run();

    SessionController& m_controller;
    Selection& m_selection;
    LoopQuery& m_query;
    LoopsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QLabel *m_summary, *m_result;
    QTableView* m_table;
    QSortFilterProxyModel* m_sorted;
    Columns* m_columns = nullptr;
    CodeView *m_kernel, *m_loops, *m_source, *m_listing;
    QPlainTextEdit* m_plan;
    QPushButton *m_check, *m_run, *m_restore;
    QComboBox *m_steps, *m_listings;
    QLabel* m_why;  // there is no listing
    QTabWidget* m_code;
    std::shared_ptr<const KernelLoops> m_listed;  // whose listing was asked for
    QSplitter *m_areas, *m_texts;
    QString m_chosenPlan, m_planOf;
    bool m_onScreen = false;   // not behind another tab
    bool m_following = false;  // the table shows what is current elsewhere
};

}  // namespace cutaway::ui
