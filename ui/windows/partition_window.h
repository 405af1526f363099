#pragma once
// The Partition window: what the forward of a training run saves for the backward, the memory budget with a slider that
// tries others while it moves and compiles with one when it is let go, and what memory costs in recomputation.

#include "ui/models/partition_model.h"
#include "ui/windows/window.h"

class QDoubleSpinBox;
class QLabel;
class QPushButton;
class QSlider;
class QSplitter;
class QStackedWidget;
class QTableView;

namespace cutaway::ui {

class Columns;
class PlotView;

class PartitionWindow : public Window {
    Q_OBJECT

  public:
    PartitionWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

  private:
    void arrange();
    void arrangeBudget(class QVBoxLayout& column);
    void arrangeTable();
    void connectParts(const WindowParts& parts);
    void showPartition();
    void showChoice();
    void listSaved(const std::vector<SavedTensor>& saved);
    double costOf(double budget, double runtime, size_t recomputed) const;
    void showCurve(const BudgetCurve& curve);
    void markCurve();
    void showHeld();
    void showNode(NodeKey node);
    void chooseRow();
    void copyRows();
    void look();
    /// `tried`: the engine is asked what this budget means.
    void setBudget(double budget, bool tried);
    void derive();
    void backToOwn();

    SessionController& m_controller;
    Selection& m_selection;
    PartitionModel& m_saved;  // a child, not a member: the view still asks it while this window closes
    QStackedWidget* m_pages;
    QLabel *m_empty, *m_totals, *m_why;
    QSlider* m_slider;
    QDoubleSpinBox* m_number;
    QPushButton *m_derive, *m_own, *m_graph;
    QTableView* m_table;
    Columns* m_columns = nullptr;
    PlotView *m_curve, *m_held;
    QSplitter* m_areas;
    std::vector<BudgetPoint> m_points;
    bool m_byNodes = false;  // the estimator counts nothing, so the curve counts nodes
    double m_budget = 1;
    bool m_seen = false, m_fitted = false;
    bool m_following = false;  // the table shows what is current elsewhere
};

}  // namespace cutaway::ui
