#pragma once
// The Results window: outputs of the last execution against what was expected.

#include "ui/models/results_model.h"
#include "ui/windows/window.h"

class QLabel;
class QPushButton;
class QTableView;

namespace cutaway::ui {

class ResultsWindow : public Window {
    Q_OBJECT

  public:
    ResultsWindow(const WindowRow& tableRow, const WindowParts& parts);

  private:
    void showReport(const RunReport& report, const QString& run);

    OutputsModel& m_outputs;  // a child, not a member: the view still asks it while this window closes
    QLabel *m_verdict, *m_match;
    QPushButton* m_find;  // where outputs differ
    QTableView* m_table;
};

}  // namespace cutaway::ui
