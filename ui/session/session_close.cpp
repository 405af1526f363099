// Closing the open model, and work that does not end when it is told to.
#include <QTimer>

#include "ui/session/session_controller.h"

namespace cutaway::ui {

void SessionController::awaitEnd(const Pending& stopped, std::chrono::milliseconds patience) {
    QTimer::singleShot(patience, this, [this, stopped] { leaveBehind(stopped); });
}

/// Nothing if it has ended meanwhile. A thread cannot be ended from outside: what it holds would stay taken.
void SessionController::leaveBehind(const Pending& stopped) {
    if (!m_queues[static_cast<size_t>(stopped.lane)]->leaveBehind(*stopped.cancel)) return;
    const bool compile = stopped.lane == Lane::Compiles;
    const auto waiting = m_pending.constFind(QStringLiteral("compile"));
    if (compile && waiting != m_pending.constEnd() && waiting->cancel == stopped.cancel) {
        ++m_generation[waiting.key()];
        m_pending.erase(waiting);
        forgetCompiling();
    }
    QString what = tr("%1 does not end and was left behind").arg(compile ? tr("The compile") : stopped.shown.doing);
    if (!stopped.reached.isEmpty()) what += tr(" at %1").arg(stopped.reached);
    const QString next = tr("It gets only idle processor time, and ends with Cutaway.");
    const QString without = tr("To compile without that pass, untick it in Compile With (Ctrl+Shift+B), Passes.");
    const LogEntry entry{
        LogEntry::Level::Problem, what, {}, compile ? without + QChar(' ') + next : next, {}, NodeKey::None};
    m_log.append(entry);
    emit problem(entry);
    emit activitiesChanged();
    if (!isBusy()) emit busyChanged(false);
}

/// Everything that is under way is void.
void SessionController::dropAll() {
    ++m_epoch;
    for (auto& queue : m_queues) queue->cancelAll();
    for (const Pending& pending : m_pending) awaitEnd(pending, kPatience);
    m_pending.clear();
    forgetCompiling();
}

void SessionController::close() {
    if (!m_model) return;
    dropAll();
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
    m_queues[static_cast<size_t>(Lane::Queries)]->post("close", [this](const Progress&) { m_source->close(); });
    emit modelClosed();
    emit activitiesChanged();
    emit busyChanged(false);
}

}  // namespace cutaway::ui
