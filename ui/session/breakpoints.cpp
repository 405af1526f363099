#include "ui/session/breakpoints.h"

#include <algorithm>

#include "ui/session/session_ask.h"

namespace cutaway::ui {

bool Breakpoints::anyEnabled() const {
    return std::any_of(m_all.begin(), m_all.end(), [](const Breakpoint& one) { return one.enabled; });
}

int Breakpoints::find(Breakpoint::Kind kind, const std::string& what) const {
    const auto found = std::find_if(m_all.begin(), m_all.end(),
                                    [&](const Breakpoint& one) { return one.kind == kind && one.what == what; });
    return found == m_all.end() ? -1 : static_cast<int>(found - m_all.begin());
}

void Breakpoints::add(const Breakpoint& breakpoint) {
    if (const int row = find(breakpoint.kind, breakpoint.what); row >= 0) return change(row, breakpoint);
    m_all.push_back(breakpoint);
    emit changed();
}

void Breakpoints::change(int row, const Breakpoint& breakpoint) {
    m_all[static_cast<size_t>(row)] = breakpoint;
    emit changed();
}

void Breakpoints::remove(int row) {
    m_all.erase(m_all.begin() + row);
    // The stop names its breakpoint by its place in the list.
    if (m_stop && m_stop->breakpoint == static_cast<size_t>(row)) m_stop.reset();
    else if (m_stop && m_stop->breakpoint > static_cast<size_t>(row)) --m_stop->breakpoint;
    emit changed();
    emit stopChanged();
}

bool Breakpoints::toggle(Breakpoint::Kind kind, const std::string& what) {
    const int row = find(kind, what);
    if (row >= 0) remove(row);
    else add({.kind = kind, .what = what});
    return row < 0;
}

void Breakpoints::setStop(std::optional<BreakpointStop> stop, const CompileRequest& request) {
    m_stop = std::move(stop);
    m_request = request;
    emit stopChanged();
}

// The controller's part of it.

void SessionController::compile(const CompileRequest& options, std::optional<RunId> comparedWith) {
    compileFrom(options, 0, comparedWith);
}

void SessionController::goOn() {
    if (const auto& stop = m_breakpoints->stop()) compileFrom(m_breakpoints->stoppedRequest(), stop->stops, {});
}

void SessionController::compileFrom(const CompileRequest& options, int passOver, std::optional<RunId> comparedWith) {
    AfterCompile then{comparedWith, {}, {}, std::make_shared<std::optional<BreakpointStop>>()};
    Compiler compiler = [options](Source& source, const auto& ended, const Progress& progress) {
        return source.compile(options, ended, progress);
    };
    if (m_breakpoints->anyEnabled())
        compiler = [options, passOver, breakpoints = m_breakpoints->all(), stop = then.stop](
                       Source& source, const auto& ended, const Progress& progress) -> Result<RunId> {
            CT_TRY(StoppedRun stopped, source.compileToBreakpoint(options, breakpoints, passOver, ended, progress));
            *stop = std::move(stopped.stop);
            return stopped.run;
        };
    compileBy(std::move(compiler), options, then);
}

/// Where the run that has just ended was stopped, if it was.
bool SessionController::showStop(const Run& run, const AfterCompile& then, bool show) {
    if (!then.stop) return false;
    m_breakpoints->setStop(*then.stop, run.options);
    const auto& stop = m_breakpoints->stop();
    if (!stop) return false;
    // The list may have changed meanwhile.
    const auto& all = m_breakpoints->all();
    const QString condition =
        stop->breakpoint < all.size() ? QString::fromStdString(all[stop->breakpoint].text()) : tr("a breakpoint");
    const QString said = tr("Stopped at %1: %2").arg(condition, QString::fromStdString(stop->detail));
    m_log.append({LogEntry::Level::Note, said, placeName(stop->place), {}, stop->place, stop->node});
    if (!show) return false;
    emit message(said);
    m_selection.go(comparisonAt(stop->place), stop->node);
    return true;
}

}  // namespace cutaway::ui
