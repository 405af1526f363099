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
    emit changed();
}

bool Breakpoints::toggle(Breakpoint::Kind kind, const std::string& what) {
    const int row = find(kind, what);
    if (row >= 0) remove(row);
    else add({.kind = kind, .what = what});
    return row < 0;
}

int Breakpoints::stoppedRow() const { return m_stop ? find(m_stoppedBy.kind, m_stoppedBy.what) : -1; }

void Breakpoints::setStop(const BreakpointStop& stop, const Breakpoint& breakpoint, const CompileRequest& request) {
    m_stop = stop;
    m_stoppedBy = breakpoint;
    m_request = request;
    emit stopChanged();
}

void Breakpoints::clearStop() {
    m_stop.reset();
    emit stopChanged();
}

// The part of SessionController that deals with breakpoints.

void SessionController::compile(const CompileRequest& options, std::optional<RunId> comparedWith) {
    compileFrom(options, {}, comparedWith);
}

void SessionController::goOn() {
    if (const auto& stop = m_breakpoints->stop()) compileFrom(m_breakpoints->stoppedRequest(), stop->place, {});
}

void SessionController::compileFrom(const CompileRequest& options, const std::optional<Place>& past,
                                    std::optional<RunId> comparedWith) {
    AfterCompile then{comparedWith, {}, {}, std::make_shared<std::optional<BreakpointStop>>(), m_breakpoints->all()};
    Compiler compiler = [options](Source& source, const auto& ended, const Progress& progress) {
        return source.compile(options, ended, progress);
    };
    if (m_breakpoints->anyEnabled())
        compiler = [options, past, breakpoints = then.breakpoints, stop = then.stop](
                       Source& source, const auto& ended, const Progress& progress) -> Result<RunId> {
            CT_TRY(StoppedRun stopped, source.compileToBreakpoint(options, breakpoints, past, ended, progress));
            *stop = std::move(stopped.stop);
            return stopped.run;
        };
    compileBy(std::move(compiler), options, then);
}

/// Where the run that has just ended was stopped, if it was.
bool SessionController::showStop(const Run& run, const AfterCompile& then, bool show) {
    if (!then.stop) return false;
    const std::optional<BreakpointStop>& stop = *then.stop;
    if (!stop) {
        m_breakpoints->clearStop();
        return false;
    }
    const Breakpoint& breakpoint = then.breakpoints[stop->breakpoint];
    m_breakpoints->setStop(*stop, breakpoint, run.options);
    const QString said =
        tr("Stopped at %1: %2").arg(QString::fromStdString(breakpoint.text()), QString::fromStdString(stop->detail));
    m_log.append({LogEntry::Level::Note, said, placeName(stop->place), {}, stop->place, stop->node});
    if (!show) return false;
    emit message(said);
    m_selection.go(comparisonAt(stop->place), stop->node);
    return true;
}

}  // namespace cutaway::ui
