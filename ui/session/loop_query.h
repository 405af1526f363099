#pragma once
// Looking at the loops of a run's kernels, and runs by other plans, for the windows: on threads of their own, so that a
// run under way does not stop anyone from looking at other kernels.
#include <QElapsedTimer>
#include <QObject>
#include <memory>
#include <optional>

#include "cutaway/jobs.h"
#include "ui/session/source.h"

namespace cutaway::ui {

class LoopQuery : public QObject {
    Q_OBJECT

  public:
    explicit LoopQuery(Source& source) : m_source(source) {}

    /// The kernels of a run; the one of the same name stays chosen.
    void list(RunId run);
    /// The forms of a kernel by the plan that was chosen for it.
    void choose(const QString& kernel);
    /// The forms of the same kernel by this plan.
    void check(const QString& plan);
    /// The machine code of the kernel by the plan whose forms are shown.
    void want(Listing listing);
    /// Runs it as it was planned and by this plan.
    void tryPlan(const QString& plan);
    void stop();
    void clear();

    std::optional<RunId> run() const { return m_run; }
    const std::vector<LoopKernel>& kernels() const { return m_kernels; }
    /// Why there are none; empty if there are some.
    const QString& problem() const { return m_problem; }
    const QString& kernel() const { return m_kernel; }
    /// By the plan that was asked for last; null while there are none.
    const std::shared_ptr<const KernelLoops>& forms() const { return m_forms; }
    /// What came of the last check or run, or how far it is; `isWrong`: it failed.
    const QString& said() const { return m_said; }
    bool isWrong() const { return m_wrong; }
    bool isRunning() const { return m_cancel != nullptr; }
    QElapsedTimer since() const { return m_since; }

    /// That was asked for last; why there is none, where `isListed` is false.
    const QString& listing() const { return m_listing; }
    bool isListed() const { return m_hasListing; }

  signals:
    void listingChanged();
    void listed();
    /// Another kernel, or the same by another plan.
    void formsChanged();
    /// Running or not, said.
    void changed();

  private:
    void look(const std::optional<std::string>& plan);
    void say(const QString& said, bool wrong);

    Source& m_source;
    std::optional<RunId> m_run;
    std::vector<LoopKernel> m_kernels;
    QString m_problem, m_kernel, m_said, m_listing;
    bool m_hasListing = false;
    std::optional<std::string> m_plan;  // of the forms; none: the compiler's
    std::shared_ptr<const KernelLoops> m_forms;
    bool m_wrong = false;
    QElapsedTimer m_since;
    int m_listingKernels = 0, m_looking = 0, m_running = 0,
        m_disassembling = 0;  // request numbers by kind: only the latest is answered
    std::shared_ptr<CancelToken> m_cancel;
    JobQueue m_queue, m_runs, m_compiles;  // last, so destroyed first: their threads use the rest
};

/// "kernel 0.0123 ms → 0.0081 ms, run 1.2 ms → 1.1 ms; the same results to the bit".
QString planRunText(const PlanRun& run);

}  // namespace cutaway::ui
