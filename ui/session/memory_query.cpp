#include "ui/session/memory_query.h"

#include "ui/session/ask_queue.h"

namespace cutaway::ui {

void MemoryQuery::list(RunId run) {
    clear();
    m_run = run;
    m_looking = true;
    askQueue<Plans>(
        this, m_queue, "memory", m_generation,
        [this, run](const Progress& progress) { return m_source.memoryPlans(run, progress); },
        [this](Result<Plans> plans) {
            m_looking = false;
            if (plans) m_plans = std::make_shared<const Plans>(std::move(*plans));
            else m_problem = QString::fromStdString(plans.error().text());
            emit listed();
        });
    emit listed();
}

void MemoryQuery::clear() {
    m_queue.cancelAll();
    ++m_generation;
    m_run.reset();
    m_plans.reset();
    m_problem.clear();
    m_looking = false;
    emit listed();
}

}  // namespace cutaway::ui
