#include "engine/minify/bisect.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "engine/passes/whole_program.h"

namespace cutaway {
namespace {

/// Numbers the rewrites of all searched steps consecutively: k stands for the graph after the first k of them.
class RewriteLine {
  public:
    RewriteLine(const CompileTrace& trace, int firstStep, size_t endStep)
        : m_trace(&trace), m_first(static_cast<size_t>(firstStep)) {
        for (size_t i = m_first; i < endStep; ++i) {
            m_total += trace.steps[i].info.rewrites;
            m_ends.push_back(m_total);
        }
    }
    int total() const { return m_total; }

    BisectTry place(int rewrites) const {
        const auto end = std::lower_bound(m_ends.begin(), m_ends.end(), rewrites);
        const auto at = static_cast<size_t>(end - m_ends.begin());
        const int before = at == 0 ? 0 : m_ends[at - 1];
        return {rewrites, static_cast<int>(m_first + at), rewrites - before, {}};
    }
    const Step& step(const BisectTry& at) const { return m_trace->steps[static_cast<size_t>(at.step)]; }

    std::vector<BisectRange> ranges() const {
        std::vector<BisectRange> all;
        for (size_t i = 0; i < m_ends.size(); ++i)
            if (m_ends[i] > (all.empty() ? 0 : all.back().end))
                all.push_back({static_cast<int>(m_first + i), m_ends[i]});
        return all;
    }
    /// Where to look between a good and a bad place: at the end of a graph if one lies there, else of a stage, else of
    /// a pass, that which is nearest to the middle.
    int between(int good, int bad) const {
        const int middle = good + (bad - good) / 2;
        const std::vector<BisectRange> all = ranges();
        for (const bool onlyGraphs : {true, false}) {
            if (const auto end = nearestEnd(all, good, bad, [&](const StepInfo& a, const StepInfo& b) {
                    return a.graphName != b.graphName || (!onlyGraphs && a.stage != b.stage);
                }))
                return *end;
        }
        return nearestEnd(all, good, bad, [](const StepInfo&, const StepInfo&) { return true; }).value_or(middle);
    }

  private:
    template <class Differ>
    std::optional<int> nearestEnd(const std::vector<BisectRange>& all, int good, int bad, Differ&& differ) const {
        const int middle = good + (bad - good) / 2;
        std::optional<int> best;
        for (size_t i = 0; i + 1 < all.size(); ++i) {
            const int end = all[i].end;
            if (end <= good || end >= bad) continue;
            if (!differ(m_trace->steps[static_cast<size_t>(all[i].step)].info,
                        m_trace->steps[static_cast<size_t>(all[i + 1].step)].info))
                continue;
            if (!best || std::abs(end - middle) < std::abs(*best - middle)) best = end;
        }
        return best;
    }

    const CompileTrace* m_trace;
    size_t m_first;
    std::vector<int> m_ends;
    int m_total = 0;
};

/// Narrows (good, bad] until bad is found bad while bad - 1 is good. `between` chooses what is tested next.
Result<void> searchSteps(BisectOutcome& outcome, const std::function<Result<bool>(int)>& isBad,
                         const std::function<int(int, int)>& between, const BisectFollow& follow) {
    while (outcome.bad - outcome.good > 1) {
        const int middle = between(outcome.good, outcome.bad);
        CT_TRY(const bool broken, isBad(middle));
        (broken ? outcome.bad : outcome.good) = middle;
        if (follow) follow(outcome);
    }
    return {};
}

/// The failing pass runs on its own: with k rewrites of fuel it verifies or it does not.
Result<BisectOutcome> bisectFailure(const CompileTrace& trace, const Progress& progress, const BisectFollow& follow) {
    const Step& failed = trace.steps.back();
    BisectOutcome outcome;
    outcome.step = static_cast<int>(trace.steps.size()) - 1;
    outcome.total = failed.info.rewrites;
    auto fails = [&](int fuel) -> Result<bool> {
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "the search was stopped", {}, {}};
        progress.say(-1, failed.info.name + " with " + std::to_string(fuel) + (fuel == 1 ? " rewrite" : " rewrites"));
        const Step partial = runAgain(failed, trace, fuel, progress.cancel.get());
        const bool broken = partial.info.state == StepState::Failed;
        outcome.tries.push_back({fuel, outcome.step, fuel, {broken, partial.info.error}});
        return broken;
    };
    outcome.found = true;
    if (failed.info.rewrites == 0) return outcome;  // the pass fails before it edits anything
    outcome.ranges = {{outcome.step, outcome.total}};
    outcome.bad = outcome.total;
    CT_TRY_VOID(searchSteps(
        outcome, fails, [](int good, int bad) { return good + (bad - good) / 2; }, follow));
    outcome.rewrite = outcome.bad - 1;
    return outcome;
}

}  // namespace

Result<BisectOutcome> bisect(const CompileTrace& trace, int firstStep, const GraphTest& test, const Progress& progress,
                             const BisectFollow& follow) {
    if (trace.failed()) return bisectFailure(trace, progress, follow);
    const RewriteLine line(trace, firstStep, trace.steps.size());
    BisectOutcome outcome;
    outcome.total = line.total();
    outcome.ranges = line.ranges();
    auto isBad = [&](int rewrites) -> Result<bool> {
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "the search was stopped", {}, {}};
        BisectTry at = line.place(rewrites);
        const Step& step = line.step(at);
        const size_t number = outcome.tries.size() + 1,
                     all = std::max<size_t>(number, 1 + std::bit_width(static_cast<unsigned>(line.total())));
        progress.say(static_cast<double>(number - 1) / static_cast<double>(all),
                     "test " + std::to_string(number) + " of about " + std::to_string(all) +
                         ": the graph after rewrite " + std::to_string(rewrites) + " of " +
                         std::to_string(line.total()) + " (" + step.info.name + ")");
        CT_TRY(const Snapshot part, replayRewrites(step, trace, at.inStep, progress.cancel.get()));
        CT_TRY(const Snapshot graph, wholeAt(trace, at.step, part, at.inStep > 0));
        CT_TRY(at.verdict, test(*graph));
        outcome.tries.push_back(at);
        return at.verdict.bad;
    };
    if (line.total() == 0) return outcome;
    CT_TRY(outcome.found, isBad(line.total()));
    if (!outcome.found) return outcome;
    outcome.bad = line.total();
    if (follow) follow(outcome);
    CT_TRY_VOID(searchSteps(
        outcome, isBad, [&](int good, int bad) { return line.between(good, bad); }, follow));
    const BisectTry culprit = line.place(outcome.bad);
    outcome.step = culprit.step;
    outcome.rewrite = culprit.inStep - 1;
    return outcome;
}

}  // namespace cutaway
