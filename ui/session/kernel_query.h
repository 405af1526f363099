#pragma once
// Looking up what computes the nodes of a run, for the windows: on a thread of its own, since planning a large graph
// takes seconds.
#include <QObject>
#include <memory>
#include <optional>

#include "cutaway/jobs.h"
#include "ui/graph/kernel_marks.h"
#include "ui/session/source.h"

namespace cutaway::ui {

class KernelQuery : public QObject {
    Q_OBJECT

  public:
    explicit KernelQuery(Source& source) : m_source(source) {}

    /// Asks, unless it is known or was asked for already. `again`: the run was timed, so what is known is old.
    void want(RunId run, bool again = false);
    void clear();
    /// Of a run; null while it is looked up, where nothing computes it, and for other runs.
    std::shared_ptr<const KernelMarks> marks(RunId run) const { return m_run == run ? m_marks : nullptr; }

  signals:
    void changed();

  private:
    Source& m_source;
    std::optional<RunId> m_run;
    std::shared_ptr<const KernelMarks> m_marks;
    int m_generation = 0;  // answers to earlier requests are dropped
    JobQueue m_queue;      // last, so destroyed first: its thread uses the rest
};

}  // namespace cutaway::ui
