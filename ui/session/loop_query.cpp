#include "ui/session/loop_query.h"

#include "ui/models/units.h"
#include "ui/session/ask_queue.h"

namespace cutaway::ui {

void LoopQuery::say(const QString& said, bool wrong) {
    m_said = said;
    m_wrong = wrong;
    emit changed();
}

void LoopQuery::list(RunId run) {
    if (m_run && *m_run != run) clear();
    m_run = run;
    askQueue<std::vector<LoopKernel>>(
        this, m_queue, "list", m_listingKernels,  // which the forms of a kernel may not replace
        [this, run](const Progress& progress) { return m_source.loopKernels(run, progress); },
        [this](Result<std::vector<LoopKernel>> kernels) {
            m_problem = kernels ? QString() : QString::fromStdString(kernels.error().text());
            m_kernels = kernels ? std::move(*kernels) : std::vector<LoopKernel>();
            emit listed();
        });
}

void LoopQuery::choose(const QString& kernel) {
    if (m_kernel == kernel && m_forms) return;
    stop();
    m_kernel = kernel;
    m_said.clear();
    m_wrong = false;
    m_forms.reset();
    look({});
}

void LoopQuery::look(const std::optional<std::string>& plan) {
    if (!m_run || m_kernel.isEmpty()) return;
    askQueue<KernelLoops>(
        this, m_queue, "loops", m_looking,
        [this, run = *m_run, kernel = m_kernel.toStdString(), plan](const Progress& progress) {
            return m_source.kernelLoops(run, kernel, plan, progress);
        },
        [this, plan](Result<KernelLoops> forms) {
            if (!forms) return say(QString::fromStdString(forms.error().text()), true);
            m_plan = plan;
            m_forms = std::make_shared<const KernelLoops>(std::move(*forms));
            emit formsChanged();
            say(plan ? tr("The plan is valid; the loops and C++ shown follow it.") : QString(), false);
        });
}

void LoopQuery::check(const QString& plan) { look(plan.toStdString()); }

void LoopQuery::want(Listing listing) {
    if (!m_run || !m_forms) return;
    m_hasListing = false;
    m_listing = tr("Compiling the kernel…");
    m_compiles.cancelAll();
    askQueue<std::string>(
        this, m_compiles, "listing", m_disassembling,
        [this, run = *m_run, kernel = m_kernel.toStdString(), plan = m_plan, listing](const Progress& progress) {
            return m_source.kernelListing(run, kernel, listing, plan, progress);
        },
        [this](Result<std::string> text) {
            m_hasListing = text.has_value();
            m_listing = QString::fromStdString(text ? *text : text.error().text());
            emit listingChanged();
        });
    emit listingChanged();
}

void LoopQuery::tryPlan(const QString& plan) {
    if (!m_run || m_kernel.isEmpty() || isRunning()) return;
    m_since.start();
    m_cancel = askQueue<PlanRun>(
        this, m_runs, "loops", m_running,
        [this, run = *m_run, kernel = m_kernel.toStdString(), text = plan.toStdString()](const Progress& progress) {
            return m_source.runWithPlan(run, kernel, text, {}, progress);
        },
        [this](Result<PlanRun> run) {
            m_cancel.reset();
            if (!run) return say(QString::fromStdString(run.error().text()), true);
            say(planRunText(*run), !run->same);
        });
    look(plan.toStdString());
    say(tr("Compiling and running by both plans…"), false);
}

void LoopQuery::stop() {
    if (!isRunning()) return;
    m_cancel->cancel();
    m_cancel.reset();
    ++m_running;
    say(tr("Stopped."), false);
}

void LoopQuery::clear() {
    stop();
    m_queue.cancelAll();
    ++m_listingKernels;
    ++m_disassembling;
    ++m_looking;
    m_run.reset();
    m_kernels.clear();
    m_kernel.clear();
    m_problem.clear();
    m_forms.reset();
    emit listed();
    emit formsChanged();
    say({}, false);
}

QString planRunText(const PlanRun& run) {
    const QString results = run.sameBits ? LoopQuery::tr("same results to the bit")
                            : run.same   ? LoopQuery::tr("same results within tolerance, %1")
                                         : LoopQuery::tr("results differ: %1");
    return LoopQuery::tr("Kernel: %1 as chosen, %2 by this plan. Run: %3 and %4. Medians of %5; ")
               .arg(durationText(run.chosen.kernelMilliseconds), durationText(run.given.kernelMilliseconds),
                    durationText(run.chosen.milliseconds), durationText(run.given.milliseconds))
               .arg(run.repeats) +
           (run.sameBits ? results : results.arg(QString::fromStdString(run.difference))) + QChar('.');
}

}  // namespace cutaway::ui
