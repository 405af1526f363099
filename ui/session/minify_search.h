#pragma once
// Minifying for the windows: one search at a time, on a thread of its own; each better graph arrives as it is found.
#include <QElapsedTimer>
#include <QObject>
#include <QStringList>
#include <memory>
#include <optional>

#include "cutaway/jobs.h"
#include "ui/session/source.h"

namespace cutaway::ui {

class MinifySearch : public QObject {
    Q_OBJECT

  public:
    explicit MinifySearch(Source& source) : m_source(source) {}

    /// Begins, or goes on where the folder was left.
    void start(const MinifyOptions& options);
    /// Keeps the best; start() with the same folder goes on.
    void stop();
    void clear();

    bool isRunning() const { return m_cancel != nullptr; }
    bool isStopping() const { return m_stopping; }
    const MinifyState& state() const { return m_state; }
    const QString& best() const { return m_best; }
    const std::shared_ptr<const UnionGraph>& graph() const { return m_graph; }
    /// Once it has ended, by itself or stopped.
    const std::optional<MinifyReport>& report() const { return m_report; }
    /// Why it ended without a result; empty if it did not.
    const QString& problem() const { return m_problem; }
    const QStringList& lines() const { return m_lines; }
    QElapsedTimer since() const { return m_since; }

  signals:
    /// Running or not, trials, steps.
    void changed();
    /// A smaller graph, or none any more.
    void bestChanged();

  private:
    void take(MinifyState state);
    void ended(const Result<MinifyReport>& report);

    Source& m_source;
    MinifyState m_state;
    QString m_best, m_problem;
    std::shared_ptr<const UnionGraph> m_graph;
    std::optional<MinifyReport> m_report;
    QStringList m_lines;
    QElapsedTimer m_since;
    bool m_stopping = false;
    int m_generation = 0;
    std::shared_ptr<CancelToken> m_cancel;
    JobQueue m_queue;  // last, so destroyed first: its thread uses the rest
};

}  // namespace cutaway::ui
