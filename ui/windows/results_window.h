#pragma once
// The Results window: outputs of the last execution against what was expected, and the kernels of the last build with
// their source.
#include <QDockWidget>

#include "ui/models/results_model.h"
#include "ui/session/session_controller.h"

class QLabel;
class QPlainTextEdit;
class QTableView;
class QTabWidget;

namespace cutaway::ui {

class ResultsWindow : public QDockWidget {
    Q_OBJECT

  public:
    ResultsWindow(SessionController& controller, Selection& selection, QWidget* parent = nullptr);

  private:
    void showReport(const RunReport& report, const QString& run);
    void showBuild(const BuildInfo& info, const QString& run);
    void showKernel(int row);
    QWidget* makeOutputs();
    QWidget* makeKernels();

    Selection& m_selection;
    OutputsModel& m_outputs;  // children, not members: views still ask them while this window closes
    KernelsModel& m_kernels;
    QTabWidget* m_tabs;
    QLabel *m_verdict = nullptr, *m_summary = nullptr;
    QTableView *m_outputTable = nullptr, *m_kernelTable = nullptr;
    QPlainTextEdit *m_source = nullptr, *m_compileLog = nullptr;
};

}  // namespace cutaway::ui
