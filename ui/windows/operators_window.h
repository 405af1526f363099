#pragma once
// The Operators window: what was compiled one operator at a time, and what can be done with it.
#include <QElapsedTimer>

#include "cutaway/jobs.h"
#include "ui/models/operators_model.h"
#include "ui/windows/window.h"

class QLabel;
class QPushButton;
class QTableView;

namespace cutaway::ui {

class OperatorsWindow : public Window {
    Q_OBJECT

  public:
    OperatorsWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();
    std::optional<Activity> activity() const override;
    void stopActivity() override;
    /// Asks for an operator and its arguments, and compiles it.
    void askOperator();
    void compile(const OperatorOptions& options);

  protected:
    void showEvent(QShowEvent* event) override;

  private:
    void refresh();
    void runChosen(const OperatorRunOptions& options, const QString& doing);
    void removeChosen();
    const OperatorEntry* chosen() const;
    void choose(const std::string& library);
    void follow();
    void say(const QString& text);
    /// One thing at a time: what is under way ends first.
    template <class T>
    void start(const QString& doing, std::function<Result<T>(const Progress&)> work, std::function<void(T)> then);

    OperatorsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QTableView* m_table;
    QLabel* m_state;
    QPushButton *m_compile, *m_run, *m_time, *m_compare, *m_remove;
    QString m_doing, m_said, m_remarks;
    std::string m_wanted;  // the library of the row to choose once the list is there
    QElapsedTimer m_since;
    int m_listing = 0, m_working = 0;
    std::shared_ptr<CancelToken> m_cancel;
    JobQueue m_lists, m_works;  // last, so destroyed first
};

}  // namespace cutaway::ui
