#include "ui/session/memory_looks.h"

namespace cutaway::ui {

void MemoryLooks::list(RunId run) {
    clear();
    m_run = run;
    m_looking = true;
    const int own = m_generation;
    auto ended = [this, own](const std::shared_ptr<Result<Plans>>& plans) {
        QMetaObject::invokeMethod(
            this, [this, own, plans] { show(own, plans); }, Qt::QueuedConnection);
    };
    m_looks.post(
        "memory",
        [this, run, ended](const Progress& progress) {
            ended(std::make_shared<Result<Plans>>(m_source.memoryPlans(run, progress)));
        },
        {}, [ended](const Error& error) { ended(std::make_shared<Result<Plans>>(error)); });
    emit listed();
}

void MemoryLooks::show(int generation, const std::shared_ptr<Result<Plans>>& plans) {
    if (generation != m_generation) return;
    m_looking = false;
    if (*plans) m_plans = std::make_shared<const Plans>(std::move(**plans));
    else m_problem = QString::fromStdString(plans->error().text());
    emit listed();
}

void MemoryLooks::clear() {
    m_looks.cancelAll();
    ++m_generation;
    m_run.reset();
    m_plans.reset();
    m_problem.clear();
    m_looking = false;
    emit listed();
}

}  // namespace cutaway::ui
