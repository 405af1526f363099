#pragma once
// Asks cutaway-layout for positions. One request at a time: a new one kills the running process. Past the time limit,
// or when the process fails, our plain layout answers instead and the note says so. Nothing here blocks: formatting,
// parsing and the plain layout run on the thread pool.
#include <QObject>
#include <QProcess>
#include <QTimer>
#include <memory>

#include "ui/graph/layout_problem.h"

namespace cutaway::ui {

class LayoutClient : public QObject {
    Q_OBJECT

  public:
    explicit LayoutClient(QObject* parent = nullptr);
    ~LayoutClient() override;

    /// Starts a layout and drops the one before it. Returns the number that `finished` will carry.
    int request(LayoutProblem problem);
    /// Stops waiting for dot; the plain layout answers at once. Does nothing when idle.
    void useSimpleLayout(const QString& reason);
    void cancel();
    bool isBusy() const { return m_busy; }

    /// Default: 1300. Counted from the request.
    void setTimeLimit(int milliseconds) { m_timeLimit = milliseconds; }
    /// Default: cutaway-layout beside this program, else on the path.
    void setProgram(const QString& program) { m_program = program; }
    static QString defaultProgram();

  signals:
    /// `note` says what was unusual (time limit reached, process failed); empty otherwise.
    void finished(int request, std::shared_ptr<const cutaway::ui::LayoutAnswer> answer, const QString& note);

  private:
    void startProcess(const QByteArray& text);
    void stopProcess();
    void readOutput(QProcess* process, int exitCode, QProcess::ExitStatus status);
    void finish(std::shared_ptr<const LayoutAnswer> answer, const QString& note);

    std::shared_ptr<const LayoutProblem> m_problem;
    QProcess* m_process = nullptr;
    QTimer m_deadline;
    QString m_program;
    int m_timeLimit = 1300;
    int m_generation = 0;
    bool m_busy = false;
};

}  // namespace cutaway::ui
