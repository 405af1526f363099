#pragma once
// The Plugins window: what is installed, from where, what it gives, what it has taken, and what went wrong with it.
#include <QElapsedTimer>

#include "cutaway/jobs.h"
#include "ui/models/plugins_model.h"
#include "ui/windows/window.h"

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTableView;

namespace cutaway::ui {

class PluginsWindow : public Window {
    Q_OBJECT

  public:
    PluginsWindow(const WindowRow& tableRow, const WindowParts& parts);
    std::optional<Activity> activity() const override;
    void stopActivity() override;

  protected:
    void showEvent(QShowEvent* event) override;

  private:
    /// Lists what is there once `first` is done.
    void refresh(std::function<Result<void>()> first = {});
    void checkChosen();
    /// Asks the chosen plugin's colourings about the graph on show: the first, then the next; after the last, none.
    void colorGraph();
    const PluginInfo* chosen() const;
    void follow();

    PluginsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QTableView* m_table;
    QLabel* m_state;
    QPlainTextEdit* m_details;
    QPushButton *m_refresh, *m_check, *m_color;
    QString m_said, m_checking;
    std::string m_colored;  // the colouring that is on the graph
    SessionController& m_controller;
    Selection& m_selection;
    QElapsedTimer m_since;
    int m_listing = 0, m_working = 0;
    std::shared_ptr<CancelToken> m_cancel;
    JobQueue m_lists, m_works;  // last, so destroyed first
};

}  // namespace cutaway::ui
