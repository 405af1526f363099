#pragma once
// Looking at a run's memory plans, for the windows: on a thread of its own, since planning large graphs takes seconds.
#include <QObject>
#include <memory>
#include <optional>

#include "cutaway/jobs.h"
#include "ui/session/source.h"

namespace cutaway::ui {

class MemoryQuery : public QObject {
    Q_OBJECT

  public:
    using Plans = std::vector<MemoryPlan>;
    explicit MemoryQuery(Source& source) : m_source(source) {}

    void list(RunId run);
    void clear();

    std::optional<RunId> run() const { return m_run; }
    /// Null while they are made, and where there are none.
    const std::shared_ptr<const Plans>& plans() const { return m_plans; }
    /// Why there are none; empty if there are some.
    const QString& problem() const { return m_problem; }
    bool isLooking() const { return m_looking; }

  signals:
    void listed();

  private:
    Source& m_source;
    std::optional<RunId> m_run;
    std::shared_ptr<const Plans> m_plans;
    QString m_problem;
    bool m_looking = false;
    int m_generation = 0;  // answers to earlier requests are dropped
    JobQueue m_queue;      // last, so destroyed first: its thread uses the rest
};

}  // namespace cutaway::ui
