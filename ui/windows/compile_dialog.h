#pragma once
// What to compile, asked before it is done: mode and device, passes off and in another order, rules of the user's own. The
// general answers come back next time (QSettings); the rest starts from the run on show.
#include <QDialog>

#include "cutaway/session.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QSpinBox;

namespace cutaway::ui {

class CompileDialog : public QDialog {
    Q_OBJECT

  public:
    /// `passes` in the order in which they run when nothing is moved; `from`: the options to start from.
    CompileDialog(const std::vector<StepInfo>& passes, const CompileOptions& from, QWidget* parent = nullptr);
    /// Valid once the dialog is accepted.
    const CompileOptions& options() const { return m_options; }
    /// The general answers of last time; what Ctrl+B uses without asking.
    static CompileOptions remembered();
    void accept() override;

    void addRuleFile(const QString& path, bool used);
    /// Moves the current pass up or down by one.
    void movePass(bool up);

  private:
    QWidget* makeGeneral(const std::vector<StepInfo>& passes, const CompileOptions& from);
    QWidget* makePasses(const std::vector<StepInfo>& passes, const CompileOptions& from);
    QWidget* makeRules(const CompileOptions& from);
    QWidget* makeRuleView();
    void replay(const PassMove& move);
    /// Why the answers cannot be used; empty if they can and `m_options` holds them.
    QString collect();

    QComboBox *m_mode, *m_target, *m_stage;
    QCheckBox *m_freeze, *m_parity;
    QSpinBox* m_fuel;
    QListWidget *m_passes, *m_files;
    QLineEdit *m_more, *m_rulesOff;
    QLabel* m_problem;
    std::vector<PassMove> m_moves;
    CompileOptions m_options;
};

}  // namespace cutaway::ui
