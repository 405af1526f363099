#include "ui/session/kernel_query.h"

#include "ui/session/ask_queue.h"

namespace cutaway::ui {

void KernelQuery::want(RunId run, bool again) {
    if (m_run == run && !again) return;
    if (m_run != run) m_marks.reset();
    m_run = run;
    m_queue.cancelAll();
    askQueue<std::vector<KernelCall>>(
        this, m_queue, "kernels", m_generation,
        [this, run](const Progress& progress) { return m_source.kernelCalls(run, progress); },
        [this](Result<std::vector<KernelCall>> calls) {
            if (!calls) return;  // who asks for kernels by their window is told why there are none
            m_marks = std::make_shared<const KernelMarks>(std::move(*calls));
            emit changed();
        });
}

void KernelQuery::clear() {
    m_queue.cancelAll();
    ++m_generation;
    m_run.reset();
    m_marks.reset();
    emit changed();
}

}  // namespace cutaway::ui
