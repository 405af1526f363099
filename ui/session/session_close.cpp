// Closing the open model.
#include "ui/session/session_controller.h"

namespace cutaway::ui {

void SessionController::close() {
    if (!m_model) return;
    ++m_epoch;  // answers that are on their way belong to nothing
    for (auto& queue : m_queues) queue->cancelAll();
    m_pending.clear();
    forgetCompiling();
    m_model.reset();
    m_path.clear();
    m_graph.clear();
    m_graphs.clear();
    m_keptNames.clear();
    m_runs.clear();
    m_breakpoints->clearStop();
    m_rules.reset();
    m_rulesOf = -1;
    m_shown.reset();
    forgetPartition();
    m_shownNode = NodeKey::None;
    m_selection.clear();
    // On the queue for looking: closing waits for no other work, and the next opening comes after it.
    m_queues[static_cast<size_t>(Lane::Looks)]->post("close", [this](const Progress&) { m_source->close(); });
    emit modelClosed();
    emit activitiesChanged();
    emit busyChanged(false);
}

}  // namespace cutaway::ui
