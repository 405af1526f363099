#pragma once
// The Breakpoints window: where compiles stop.
#include "ui/models/breakpoints_model.h"
#include "ui/windows/window.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTableView;

namespace cutaway::ui {

class BreakpointsWindow : public Window {
    Q_OBJECT

  public:
    BreakpointsWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();
    /// Adds or removes the breakpoint on the pass of the current step.
    void togglePass();
    /// Adds or removes the breakpoint on the removal of a node of the graphs on show.
    void toggleDeath(const QString& node);

  private:
    void addTyped();
    void removeChosen();
    void follow();
    void say(bool there, const Breakpoint& breakpoint);

    QString m_keptFor;  // the model whose list this is; empty before one is open
    SessionController& m_controller;
    Selection& m_selection;
    Breakpoints& m_breakpoints;
    BreakpointsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QComboBox* m_kind;
    QLineEdit* m_what;
    QPushButton *m_add, *m_remove, *m_goOn;
    QLabel* m_state;
    QTableView* m_table;
};

}  // namespace cutaway::ui
