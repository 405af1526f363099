#include "cutaway/breakpoints.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "cutaway/guarded.h"
#include "cutaway/node_query.h"
#include "cutaway/step_key.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/reference.h"
#include "engine/session/arguments.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/describe.h"
#include "engine/session/lent_hooks.h"
#include "engine/session/session_state.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

using Kind = Breakpoint::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 6> kKinds = {{{Kind::Pass, "pass"},
                                                                      {Kind::NodeBorn, "born"},
                                                                      {Kind::NodeDies, "dies"},
                                                                      {Kind::OpAppears, "appears"},
                                                                      {Kind::OpDisappears, "disappears"},
                                                                      {Kind::NonFinite, "nonfinite"}}};

bool isQuery(Kind kind) { return kind == Kind::OpAppears || kind == Kind::OpDisappears; }

std::optional<uint64_t> wholeNumber(std::string_view text) {
    uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(value)
                                                                                            : std::nullopt;
}

/// What held, and for which node.
struct BreakpointHit {
    NodeKey node = NodeKey::None;
    std::string detail;
};

/// One condition while a run is made.
class Condition {
  public:
    static Result<Condition> make(const Breakpoint& breakpoint) {
        Condition condition;
        condition.m_breakpoint = breakpoint;
        if (isQuery(breakpoint.kind)) {
            CT_TRY(condition.m_query, NodeQuery::parse(breakpoint.what));
        }
        if (breakpoint.kind == Kind::Pass) {
            CT_TRY(condition.m_key, parseStepKey(breakpoint.what));
        }
        return condition;
    }
    const Breakpoint& breakpoint() const { return m_breakpoint; }
    /// Counts a step at which it holds; true from the `hits`-th on.
    bool count() { return ++m_count >= m_breakpoint.hits; }

    bool holdsForPass(const StepInfo& step) const {
        return m_key.pass == step.name && (m_key.graphName.empty() || m_key.graphName == step.graphName) &&
               (m_key.stage.empty() || m_key.stage == step.stage) &&
               (!m_key.occurrence || *m_key.occurrence == step.occurrence);
    }
    /// Of the difference between the step's first graph and another.
    std::optional<BreakpointHit> holdsIn(const UnionGraph& difference) const {
        for (const UnionGraph::Node& node : difference.nodes)
            if (holdsFor(node)) return BreakpointHit{node.info.id, "`" + node.info.name + "` " + verb(node.change)};
        return std::nullopt;
    }

  private:
    static std::string verb(Change change) {
        return change == Change::Added ? "is new" : change == Change::Removed ? "is removed" : "is edited";
    }
    bool holdsFor(const UnionGraph::Node& node) const {
        switch (m_breakpoint.kind) {
            case Kind::NodeBorn: return node.change == Change::Added && isMeant(node);
            case Kind::NodeDies: return node.change == Change::Removed && isMeant(node);
            case Kind::OpAppears:
                return (node.change == Change::Added || node.change == Change::Edited) && m_query.matches(node);
            case Kind::OpDisappears: return node.change == Change::Removed && m_query.matches(node);
            case Kind::Pass:
            case Kind::NonFinite: break;
        }
        return false;
    }
    bool isMeant(const UnionGraph::Node& node) const {
        if (node.info.name == m_breakpoint.what) return true;
        const auto number = wholeNumber(m_breakpoint.what);
        return number && static_cast<uint64_t>(node.info.id) == *number;
    }

    Breakpoint m_breakpoint;
    NodeQuery m_query;
    StepKey m_key;
    int m_count = 0;
};

/// Looks at every step of a run as it is made.
class Watch {
  public:
    Watch(Session::State& state, std::vector<Condition> conditions, std::vector<size_t> numbers,
          const std::optional<Place>& past, const Progress& progress)
        : m_state(state),
          m_conditions(std::move(conditions)),
          m_numbers(std::move(numbers)),
          m_past(past),
          m_progress(progress) {}

    /// Whether the run ends behind its last step.
    bool look(const CompileTrace& trace) {
        const Step& step = trace.steps.back();
        if (step.info.state == StepState::Disabled) return false;
        std::optional<BreakpointStop> first;
        for (size_t i = 0; i < m_conditions.size(); ++i) {
            auto stop = lookFor(m_conditions[i], trace, step);
            if (!stop || !m_conditions[i].count() || !isPast(stop->place)) continue;
            if (first && first->place.rewrites <= stop->place.rewrites) continue;
            stop->breakpoint = m_numbers[i];
            first = std::move(stop);
        }
        if (!first) return false;
        if (first->place.rewrites == step.info.rewrites) first->place.rewrites = -1;
        m_stop = std::move(first);
        return true;
    }
    const std::optional<BreakpointStop>& stop() const { return m_stop; }

  private:
    bool isPast(const Place& place) const {
        if (!m_past || place.step != m_past->step) return !m_past || place.step > m_past->step;
        return m_past->rewrites >= 0 && place.rewrites > m_past->rewrites;
    }
    std::optional<BreakpointStop> lookFor(const Condition& condition, const CompileTrace& trace, const Step& step) {
        BreakpointStop stop;
        stop.place = {0, step.info.index, step.info.rewrites};
        if (condition.breakpoint().kind == Kind::Pass) {
            stop.detail = "the pass has run";
            return condition.holdsForPass(step.info) ? std::optional(std::move(stop)) : std::nullopt;
        }
        if (step.after == step.before) return std::nullopt;
        const auto holds = [&](const Snapshot& graph) { return holdsAt(condition, step, graph); };
        std::optional<BreakpointHit> held = holds(step.after);
        if (!held) return std::nullopt;
        // The first rewrite after which it holds, as bisecting finds it.
        int without = 0, with = step.info.rewrites;
        while (with - without > 1) {
            const int middle = without + (with - without) / 2;
            const auto graph = replayRewrites(step, trace, middle, m_progress.cancel.get());
            if (!graph) break;
            if (auto there = holds(*graph)) {
                with = middle;
                held = std::move(there);
            } else without = middle;
        }
        stop.place.rewrites = with;
        stop.node = held->node;
        stop.detail = held->detail;
        return stop;
    }
    std::optional<BreakpointHit> holdsAt(const Condition& condition, const Step& step, const Snapshot& graph) {
        if (condition.breakpoint().kind != Kind::NonFinite)
            return condition.holdsIn(describeUnion(*step.before, *graph));
        const auto before = nonFinite(step.before), after = nonFinite(graph);
        if (!before || !after || *after <= *before) return std::nullopt;
        return BreakpointHit{NodeKey::None, std::to_string(*after) + " results are not finite, " +
                                                std::to_string(*before) + " were before the pass"};
    }
    /// None: the graph does not run on its own.
    std::optional<int64_t> nonFinite(const Snapshot& graph) {
        if (const auto it = m_nonFinite.find(graph); it != m_nonFinite.end()) return it->second;
        const auto count = [&]() -> Result<int64_t> {
            CT_TRY(const CalledGraph called, calledFor(graph, m_state, {}));
            CT_TRY(const ReferenceRun run,
                   runReference(*called.graph, called.user, {.faultSide = FaultSide::After}, {m_progress.cancel, {}}));
            int64_t all = 0;
            for (const Tensor& output : run.outputs) all += nonFiniteCount(output);
            return all;
        }();
        const auto found = count ? std::optional(*count) : std::nullopt;
        m_nonFinite[graph] = found;
        return found;
    }

    Session::State& m_state;
    std::vector<Condition> m_conditions;
    std::vector<size_t> m_numbers;  // of each condition, the number of its breakpoint
    std::optional<Place> m_past;
    const Progress& m_progress;
    std::optional<BreakpointStop> m_stop;
    std::map<Snapshot, std::optional<int64_t>> m_nonFinite;  // lookups only
};

}  // namespace

std::string_view nameOf(Kind kind) {
    return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& row) { return row.first == kind; })->second;
}

std::string Breakpoint::text() const {
    std::string out(nameOf(kind));
    if (kind != Kind::NonFinite) out += "=" + what;
    return hits == 1 ? out : out + "@" + std::to_string(hits);
}

Result<Breakpoint> parseBreakpoint(std::string_view text) {
    Breakpoint made;
    if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
        const auto hits = wholeNumber(text.substr(at + 1));
        if (!hits || *hits < 1 || *hits > 1'000'000)
            return invalidInput("a breakpoint stops at the n-th time, \"pass=decompose@2\", and '" +
                                std::string(text.substr(at + 1)) + "' is not such a number");
        made.hits = static_cast<int>(*hits);
        text = text.substr(0, at);
    }
    const size_t equals = text.find('=');
    const std::string_view kind = text.substr(0, equals);
    const auto row = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& each) { return each.second == kind; });
    if (row == kKinds.end())
        return invalidInput("no breakpoint is called '" + std::string(kind) +
                            "'; there are pass=NAME, born=NODE, dies=NODE, appears=QUERY, disappears=QUERY, nonfinite");
    made.kind = row->first;
    if (equals != std::string_view::npos) made.what = text.substr(equals + 1);
    if (made.what.empty() != (made.kind == Kind::NonFinite))
        return invalidInput(made.what.empty()
                                ? std::string(kind) + " needs to know which: " + std::string(kind) + "=..."
                                : "nonfinite stands alone");
    if (const auto sound = Condition::make(made); !sound) return sound.error();
    return made;
}

Result<StoppedRun> compileToBreakpoint(Session& session, const CompileRequest& request,
                                       const std::vector<Breakpoint>& breakpoints, const std::optional<Place>& past,
                                       const CompileHooks& hooks, const std::function<void(const StepInfo&)>& ended,
                                       const Progress& progress) {
    return guarded([&]() -> Result<StoppedRun> {
        if (!session.isOpen())
            return Error{ErrorCode::NotFound, "no model is open", {}, {"open a .pt2 file or FX text first"}};
        std::vector<Condition> conditions;
        std::vector<size_t> numbers;
        for (size_t i = 0; i < breakpoints.size(); ++i) {
            if (!breakpoints[i].enabled) continue;
            CT_TRY(Condition condition, Condition::make(breakpoints[i]));
            conditions.push_back(std::move(condition));
            numbers.push_back(i);
        }
        Session::State& state = session.state();
        Watch watch(state, std::move(conditions), std::move(numbers), past, progress);
        CompileHooks lent = hooks;
        CompileRequest whole = request;
        CT_TRY_VOID(lendHooks(*state.input, whole, lent));
        CT_TRY(CompileTrace trace, runPipelineWatched(state.input, whole, lent, ended, progress,
                                                      [&](const CompileTrace& soFar) { return watch.look(soFar); }));
        StoppedRun stopped;
        CT_TRY(stopped.run, state.finish(std::move(trace)));
        stopped.stop = watch.stop();
        if (stopped.stop) stopped.stop->place.run = stopped.run;
        return stopped;
    });
}

}  // namespace cutaway
