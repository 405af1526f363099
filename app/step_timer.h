#pragma once
// `cutaway --time-steps`: shows every changed step in turn, as a user going through with F10 would, and measures how
// long each takes until its picture is on show, for how long the event loop stood still meanwhile, and what panning
// costs.
#include <QElapsedTimer>
#include <QObject>
#include <vector>

#include "ui/windows/main_window.h"

namespace cutaway::ui {

class StepTimer : public QObject {
    Q_OBJECT

  public:
    /// Waits for the window's model, compiles as `request` says, then goes through the steps and quits. Exit status 1
    /// if something could not be shown.
    StepTimer(MainWindow& window, CompileRequest request);

  private:
    void wake();
    void next();
    void showStep(size_t which);
    void report(const QString& name);
    void finish();

    MainWindow& m_window;
    CompileRequest m_request;
    bool m_compiling = false, m_waking = false;
    std::vector<QString> m_names;  // keys of changed steps; filled once the run is there
    size_t m_at = 0;
    QElapsedTimer m_since, m_beat;
    double m_opened = -1;
    qint64 m_longest = 0;  // nanoseconds by which a beat of the event loop came late
};

}  // namespace cutaway::ui
