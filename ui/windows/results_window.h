#pragma once
// The Results window: outputs of the last execution against what was expected.
#include <QDockWidget>

#include "ui/models/results_model.h"
#include "ui/session/session_controller.h"

class QLabel;
class QTableView;

namespace cutaway::ui {

class ResultsWindow : public QDockWidget {
    Q_OBJECT

  public:
    explicit ResultsWindow(SessionController& controller, QWidget* parent = nullptr);

  private:
    void showReport(const RunReport& report, const QString& run);

    OutputsModel& m_outputs;  // a child, not a member: the view still asks it while this window closes
    QLabel* m_verdict;
    QTableView* m_table;
};

}  // namespace cutaway::ui
