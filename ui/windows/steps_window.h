#pragma once
// The Steps window: the runs of the open model and, for one of them, the tree of stages, passes and rewrites.
#include <QTimer>

#include "cutaway/step_key.h"
#include "ui/models/steps_filter.h"
#include "ui/models/steps_model.h"
#include "ui/windows/window.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QStackedWidget;
class QTreeView;

namespace cutaway::ui {

class Columns;

class StepsWindow : public Window {
    Q_OBJECT

  public:
    StepsWindow(const WindowRow& tableRow, const WindowParts& parts);

    static std::span<const KeyHint> keys();
    void markCurrent(bool asB);
    Result<StepPosition> select(const QString& step);
    /// Lists what matches: passes, and rewrites by rule and node.
    void setFilter(const QString& text);
    const StepsModel& model() const { return m_model; }
    RunId currentRun() const { return m_model.run(); }

  private:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void choosePlace(const Place& place);
    void selectChosen();
    void showRun(RunId run);
    void followCompile();
    void addLatestSteps();
    void follow();
    void togglePass(const QString& pass, bool enabled);
    void filter(const QString& text);
    void showMenu(QPoint at);
    void copyRows();
    void resizeEvent(QResizeEvent* event) override;
    void giveRoom();
    void expandChanges();
    void spanRewrites();

    SessionController& m_controller;
    Selection& m_selection;
    Stepper& m_stepper;
    StepsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    StepsFilter* m_filtered;
    QComboBox* m_run;
    QLineEdit* m_filter;
    QLabel *m_hidden, *m_empty, *m_running;
    QTreeView* m_tree;
    Columns* m_columns = nullptr;
    int m_nodes = 0, m_time = 0;  // widths of these columns in pixels
    QStackedWidget* m_pages;
    QList<QPersistentModelIndex> m_spanned;
    bool m_following = false;
    std::vector<Place> m_chosen;  // by Ctrl+click: two are compared, more stand beside each other
    QTimer m_soon;                // passes can end faster than rows are worth painting
};

}  // namespace cutaway::ui
