#pragma once
// The Numerics window: each value of the current graph beside the graph that it came from, in its dtypes and in f64;
// what diverges first, and any value as a picture and as numbers.
#include "cutaway/jobs.h"
#include "ui/models/numerics_model.h"
#include "ui/windows/window.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSortFilterProxyModel;
class QSplitter;
class QTableView;

namespace cutaway::ui {

class Columns;
class ValueView;

class NumericsWindow : public Window {
    Q_OBJECT

  public:
    NumericsWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();
    std::optional<Activity> activity() const override;
    void stopActivity() override;
    /// Checks the graph at the current place.
    void start();
    /// Runs the graph at the current place up to a node and shows its value.
    void runUpTo(NodeKey node);

  protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

  private:
    void arrange();
    QWidget* makeBar();
    void connectParts();
    CheckedRunOptions options() const;
    void listJudges();
    void findFirst();
    void showState();
    void showNode(NodeKey node);
    void chooseRow();
    void readValue();
    void goTo(std::optional<size_t> row);

    SessionController& m_controller;
    Selection& m_selection;
    CheckedRuns& m_runs;
    NumericsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QLabel* m_summary;
    QComboBox* m_judge;
    QPushButton *m_start, *m_first, *m_gradients, *m_divergent, *m_nonFinite, *m_value;
    QCheckBox* m_heat;
    QLineEdit* m_filter;
    QTableView* m_table;
    QSortFilterProxyModel* m_sorted;
    Columns* m_columns = nullptr;
    ValueView* m_view;
    QSplitter* m_areas;
    bool m_ended = false;      // the comparison on show is whole
    bool m_following = false;  // the table shows what is current elsewhere
    int m_listing = 0;
    JobQueue m_lists;  // last, so that its thread ends first
};

}  // namespace cutaway::ui
