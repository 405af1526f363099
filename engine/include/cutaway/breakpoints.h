#pragma once
// Conditions at which a compile stops. What it has done so far becomes its run, to be looked at like any other that was
// stopped; going on is compiling again, past the place where it stopped.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

struct Breakpoint {
    enum class Kind : uint8_t {
        Pass,          // a pass, by name or as a step's key or part of one
        NodeBorn,      // a node comes into being, by name or as the number of its key
        NodeDies,      // it is removed
        OpAppears,     // a step adds or edits a node that matches a query (node_query.h)
        OpDisappears,  // it removes one
        NonFinite,     // the graph returns a NaN or an infinity that it did not return before; interprets every graph
    };
    Kind kind = Kind::Pass;
    std::string what;
    int hits = 1;  // stops from the n-th step on at which the condition holds
    bool enabled = true;

    bool operator==(const Breakpoint&) const = default;
    /// "pass=decompose", "dies=relu_1@2": the second time; parseBreakpoint reads it back. Without `enabled`.
    std::string text() const;
};
/// Errors: no such kind, with those that there are; a query that does not parse; a count that is none.
Result<Breakpoint> parseBreakpoint(std::string_view text);
/// "pass", "born", "dies", "appears", "disappears", "nonfinite".
std::string_view nameOf(Breakpoint::Kind kind);

struct BreakpointStop {
    size_t breakpoint = 0;         // its place in the list
    Place place;                   // right after the rewrite, or the pass, at which the condition held
    NodeKey node = NodeKey::None;  // that it held for
    std::string detail;            // "`relu` is removed"
};
struct StoppedRun {
    RunId run = 0;
    std::optional<BreakpointStop> stop;  // none: the run went on to its end
};

/// Compiles until a breakpoint holds. Of several that hold at one step the one counts that holds after the fewest
/// rewrites. With `past`, a place of an earlier run of the same request, what holds there or before does not stop: a
/// place and no number of stops, since the list may be another one by now. Scheduling has none. Errors: as
/// Session::compileWatched; a breakpoint that is misshapen.
Result<StoppedRun> compileToBreakpoint(Session& session, const CompileRequest& request,
                                       const std::vector<Breakpoint>& breakpoints,
                                       const std::optional<Place>& past = {}, const CompileHooks& hooks = {},
                                       const std::function<void(const StepInfo&)>& ended = {},
                                       const Progress& progress = {});

}  // namespace cutaway
