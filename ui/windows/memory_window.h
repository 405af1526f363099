#pragma once
// The Memory window: what each value of the compiled model takes in memory, from which call to which, the peak, and
// who holds it.
#include "ui/models/memory_model.h"
#include "ui/windows/window.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSortFilterProxyModel;
class QSplitter;
class QTableView;

namespace cutaway::ui {

class Columns;
class MemoryView;

class MemoryWindow : public Window {
    Q_OBJECT

  public:
    MemoryWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();
    bool isSettled() const override;

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    void arrange();
    void connectParts();
    /// Plans the run that is looked at, once somebody can see it, and shows the graph of the current step.
    void follow();
    void showPlans();
    void showGraph();
    void showSummary();
    /// Lists what lives at the call.
    void showCall(int call);
    void choose(int value, int call);
    void chooseRow();
    void showNode(NodeKey node);
    void markRow();
    const std::string& graphNameOfPlace() const;

    SessionController& m_controller;
    Selection& m_selection;
    MemoryQuery& m_query;
    MemoryModel& m_model;  // a child, not a member: the view still asks it while this window closes
    MemoryChart m_chart;
    QLabel *m_summary, *m_living;
    QComboBox* m_graph;
    QPushButton *m_peak, *m_fit;
    MemoryView* m_view;
    QTableView* m_table;
    QSortFilterProxyModel* m_sorted;
    Columns* m_columns = nullptr;
    QSplitter* m_areas;
    int m_call = -1;
    bool m_onScreen = false;   // not behind another tab
    bool m_following = false;  // the table shows what is current elsewhere
};

}  // namespace cutaway::ui
