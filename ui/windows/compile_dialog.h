#pragma once
// What to compile, asked before it is done: the mode, passes off and in another order, rules of the user's own. The
// general answers come back next time (request_form.h); the rest starts from the run on show.
#include <QDialog>
#include <functional>
#include <map>

#include "cutaway/session.h"

class QLabel;
class QLineEdit;
class QListWidget;

namespace cutaway::ui {

class RequestForm;
class RulesPage;

class CompileDialog : public QDialog {
    Q_OBJECT

  public:
    /// The passes of a kind of run in the order in which they run when nothing is moved.
    using Passes = std::function<std::vector<PassInfo>(const CompileRequest&)>;
    /// `from`: the options to start from.
    CompileDialog(Passes passes, const CompileRequest& from, QWidget* parent = nullptr);
    /// The file's own release of PyTorch, which the list of releases names.
    void markRelease(Release release);
    /// Valid once the dialog is accepted.
    const CompileRequest& options() const { return m_options; }
    void accept() override;

    void addRuleFile(const QString& path, bool used);
    /// Moves the current pass up or down by one.
    void movePass(bool up);

  private:
    /// Mode and freezing, on which the list of passes depends.
    CompileRequest kindOfRun() const;
    QWidget* makePasses(const CompileRequest& from);
    void listPasses();
    bool isTicked(const PassInfo& pass) const;
    void replay(const PassMove& move);
    /// Why the answers cannot be used; empty if they can and `m_options` holds them.
    QString collect();
    bool check();
    void makeUsual();

    Passes m_passesOf;
    std::vector<PassInfo> m_listed;
    std::map<QString, bool>
        m_ticks;  // what somebody has ticked or unticked, or the options have; else a pass is as by default
    RequestForm* m_form;
    QListWidget* m_passes;
    QLineEdit* m_settings;
    RulesPage* m_rules = nullptr;
    QLabel* m_problem;
    std::vector<PassMove> m_moves;
    CompileRequest m_options;
};

}  // namespace cutaway::ui
