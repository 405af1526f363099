#pragma once
// The breakpoints that compiles stop at, and the stop of the last compile.
#include <QObject>
#include <optional>
#include <vector>

#include "cutaway/breakpoints.h"

namespace cutaway::ui {

class Breakpoints : public QObject {
    Q_OBJECT

  public:
    using QObject::QObject;
    const std::vector<Breakpoint>& all() const { return m_all; }
    bool anyEnabled() const;
    /// The row of one with that condition; -1 if there is none.
    int find(Breakpoint::Kind kind, const std::string& what) const;
    void add(const Breakpoint& breakpoint);
    void change(int row, const Breakpoint& breakpoint);
    void remove(int row);
    /// Removes the one with that condition, else adds it; true if there is one now.
    bool toggle(Breakpoint::Kind kind, const std::string& what);

    /// Of the last compile; none: it went on to its end.
    const std::optional<BreakpointStop>& stop() const { return m_stop; }
    /// The row of the breakpoint that stopped it; -1 if it is no longer in the list, which the stop outlives.
    int stoppedRow() const;
    /// What that compile was asked for.
    const CompileRequest& stoppedRequest() const { return m_request; }
    void setStop(const BreakpointStop& stop, const Breakpoint& breakpoint, const CompileRequest& request);
    void clearStop();

  signals:
    void changed();
    void stopChanged();

  private:
    std::vector<Breakpoint> m_all;
    std::optional<BreakpointStop> m_stop;
    Breakpoint m_stoppedBy;
    CompileRequest m_request;
};

}  // namespace cutaway::ui
