// Runs the compiler's passes on a graph, and records every step.
#include <chrono>

#include "engine/autograd/joint_graph.h"
#include "engine/interpret/constants.h"
#include "engine/ir/verify.h"
#include "engine/passes/body_round.h"
#include "engine/passes/defined_operators.h"
#include "engine/passes/pass_fuel.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/request_names.h"
#include "engine/passes/whole_program.h"
#include "engine/rewrite/rewrite_watch.h"

namespace cutaway {
namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// After the last pass of a stage with Stage::again, adds its passes once more for the subgraphs that they have made.
class BodyRounds {
  public:
    void beforePass(const PlannedPass& one, const Snapshot& current) {
        if (one.stage == m_stage && one.graphName == m_graphName) return;
        m_stage = one.stage;
        m_graphName = one.graphName;
        m_before = current;
        m_passes.clear();
        m_rounds = 0;
    }
    /// `next`: the place behind the pass that has run.
    Result<void> afterPass(size_t next, const Snapshot& current, std::vector<PlannedPass>& plan, CompileTrace& trace) {
        const PlannedPass& one = plan[next - 1];
        if (!one.stage->again) return {};
        if (m_rounds == 0) m_passes.push_back(one);
        if (next < plan.size() && plan[next].stage == m_stage && plan[next].graphName == m_graphName) return {};
        std::vector<const Pass*> passes;
        for (const PlannedPass& each : m_passes) passes.push_back(each.pass);
        const auto round = BodyRound::make(*m_before, *current, passes);
        if (!round) return {};
        if (++m_rounds > kMost)
            return Error{ErrorCode::InvalidInput,
                         "the " + std::string(m_stage->name) +
                             " passes make new graphs in the graphs that they have made, again and again",
                         round->names(),
                         {"a pass or a rule of your own that makes a graph must not find in it what it looks for"}};
        m_before = current;
        const std::vector<const Pass*> again = round->passes();
        std::vector<PlannedPass> more = m_passes;
        for (size_t i = 0; i < more.size(); ++i) {
            more[i].pass = again[i];
            more[i].occurrence += m_rounds * occurrences(m_passes[i].pass->name);
        }
        plan.insert(plan.begin() + static_cast<std::ptrdiff_t>(next), more.begin(), more.end());
        trace.rounds.push_back(round);
        return {};
    }

  private:
    int occurrences(std::string_view name) const {
        return static_cast<int>(std::count_if(m_passes.begin(), m_passes.end(),
                                              [&](const PlannedPass& each) { return each.pass->name == name; }));
    }
    static constexpr int kMost = 16;  // rounds; PyTorch has no limit but Python's recursion limit
    const Stage* m_stage = nullptr;
    std::string_view m_graphName;
    std::vector<PlannedPass> m_passes;  // of the first round
    Snapshot m_before;
    int m_rounds = 0;
};

bool isDisabled(const Pass& pass, const CompileRequest& request) {
    const auto& names = request.disabledPasses;
    return std::find(names.begin(), names.end(), pass.name) != names.end();
}

Step unchangedStep(const Pass& pass, const Snapshot& current) {
    Step step;
    step.pass = &pass;
    step.before = step.after = current;
    step.info.name = std::string(pass.name);
    step.info.summary = std::string(pass.summary);
    step.info.nodesBefore = step.info.nodesAfter = static_cast<int>(current->graph().size());
    return step;
}

/// The step of a pass that is switched off.
Step skip(const Pass& pass, const Snapshot& current) {
    Step step = unchangedStep(pass, current);
    step.info.state = StepState::Disabled;
    return step;
}

/// The step of a pass that only looks (Pass::compare).
Step compare(const Pass& pass, const Snapshot& stageInput, const Snapshot& current, const CompileRequest& request) {
    const Clock::time_point start = Clock::now();
    Step step = unchangedStep(pass, current);
    const OptionalPass* settings = request.enabled(pass.name);
    step.info.summary += ": " + pass.compare(*stageInput, *current, settings ? *settings : OptionalPass{});
    step.info.milliseconds = 1000 * secondsSince(start);
    return step;
}

/// One run under way.
class Run {
  public:
    Run(CompileTrace& trace, const std::function<void(const StepInfo&)>& ended, const Progress& progress,
        const RunEnds& ends = {})
        : m_trace(trace), m_ended(ended), m_progress(progress), m_ends(ends) {}

    /// Takes over the first steps of another run with the same plan up to there; called before run().
    void share(const CompileTrace& other, size_t steps) {
        m_trace.own = other.own;
        m_trace.rounds = other.rounds;
        for (size_t i = 0; i < steps; ++i) {
            const Step& step = other.steps[i];
            if (!step.required) m_used += step.info.rewrites;
            m_graphs[step.info.graphName] = step.after;
            for (const auto& [graphName, graph] : step.made) m_graphs[graphName] = graph;
            record(step, step.before);
            m_trace.stages.back().after = opHistogram(*step.after);
        }
    }

    /// Runs the passes of the plan, recording each step. After an error the trace holds the steps that were done.
    Result<void> run(std::vector<PlannedPass> plan) {
        const Clock::time_point start = Clock::now();
        const std::string graphName(plan.empty() ? "main" : plan.front().graphName);
        if (!m_graphs.contains(graphName)) m_graphs[graphName] = m_trace.input;
        for (size_t at = 0; at < plan.size(); ++at) {
            const PlannedPass one = plan[at];  // rounds add to the plan
            sayProgress(at, plan);
            if (m_progress.cancelled()) return cancelledAt(*one.pass);
            if (const RewriteWatch* watch = RewriteWatch::current()) watch->begins(one.stage->name, one.pass->name);
            Step step = runOne(one);
            // An interrupted pass has done only some of its rewrites, or failed because it could not do the others.
            if (m_progress.cancelled()) return cancelledAt(*one.pass);
            const Snapshot before = step.before, after = step.after;
            const bool failed = step.info.state == StepState::Failed;
            record(std::move(step), before);
            if (!failed) CT_TRY_VOID(m_rounds.afterPass(at + 1, after, plan, m_trace));
            const bool ends =
                at + 1 == plan.size() || plan[at + 1].stage != one.stage || plan[at + 1].graphName != one.graphName;
            if (failed || ends) m_trace.stages.back().after = opHistogram(*after);
            recordMade();
            m_trace.seconds = secondsSince(start);
            if (failed) return {};
            if (const auto left = passFuelLeft(*one.pass); left && *left <= 0) return cancelledAt(*one.pass);
            if (m_ends && m_ends(m_trace)) return cancelledAt(*one.pass);
        }
        return {};
    }

  private:
    void sayProgress(size_t at, const std::vector<PlannedPass>& plan) const {
        m_progress.say(static_cast<double>(at) / static_cast<double>(plan.size()),
                       "pass " + std::to_string(at + 1) + " of " + std::to_string(plan.size()) + ", " +
                           std::string(plan[at].pass->name));
    }

    /// Of a limit on this pass alone.
    std::optional<int64_t> passFuelLeft(const Pass& pass) const {
        if (!m_passFuel || m_passFuel->pass != pass.name) return std::nullopt;
        int64_t left = m_passFuel->rewrites;
        for (const Step& step : m_trace.steps)
            if (step.info.name == pass.name) left -= step.info.rewrites;
        return left;
    }

    Error cancelledAt(const Pass& pass) const {
        m_trace.cancelledAt = std::string(pass.name);
        return Error{ErrorCode::Cancelled, "compilation was cancelled", m_trace.cancelledAt, {}};
    }

    Step runOne(const PlannedPass& one) {
        Snapshot& current = m_graphs[std::string(one.graphName)];
        m_rounds.beforePass(one, current);
        if (m_stage != one.stage || m_graphName != one.graphName) m_stageInput = current;
        m_stage = one.stage;
        m_graphName = one.graphName;
        const CompileRequest& request = m_trace.request;
        const bool limited = request.fuel && !one.required();
        std::optional<int64_t> fuel = limited ? std::optional(*request.fuel - m_used) : std::nullopt;
        if (const auto left = passFuelLeft(*one.pass)) fuel = std::min(*left, fuel.value_or(*left));
        Step step = isDisabled(*one.pass, request) ? skip(*one.pass, current)
                    : one.pass->compare            ? compare(*one.pass, m_stageInput, current, request)
                                        : runPass(*one.pass, current, PassContext(request, &m_trace.hooks), fuel,
                                                  m_progress.cancel.get(), &m_working, nullptr,
                                                  followedBy(*one.pass, one.graphName, m_trace));
        step.info.index = static_cast<int>(m_trace.steps.size());
        step.info.graphName = std::string(one.graphName);
        step.info.stage = std::string(one.stage->name);
        step.info.occurrence = one.occurrence;
        step.required = one.required();
        step.prepares = one.pass->prepares;
        if (!step.required) m_used += step.info.rewrites;
        if (one.stage == &kFreeze || one.stage == &kLayout) {
            step.info.constantBytesBefore = constantBytes(*step.before);
            step.info.constantBytesAfter =
                step.after == step.before ? step.info.constantBytesBefore : constantBytes(*step.after);
        }
        current = step.after;
        if (!one.graphNames.empty()) hand(one, step);
        return step;
    }

    /// Gives each graph of a split its graph.
    void hand(const PlannedPass& one, Step& step) {
        if (step.made.size() != one.graphNames.size() && step.info.state != StepState::Failed) {
            step.info.state = StepState::Failed;
            step.info.error = "makes " + std::to_string(step.made.size()) + " graphs for " +
                              std::to_string(one.graphNames.size()) + " tracks";
        }
        if (step.info.state == StepState::Failed) return;
        for (size_t i = 0; i < one.graphNames.size(); ++i) {
            step.made[i].first = std::string(one.graphNames[i]);
            m_graphs[step.made[i].first] = step.made[i].second;
        }
        m_made = step.made;
    }

    void record(Step step, const Snapshot& before) {
        const StepInfo& info = step.info;
        auto& stages = m_trace.stages;
        if (stages.empty() || stages.back().stage != info.stage || stages.back().graphName != info.graphName) {
            StageInfo stage;
            stage.graphName = info.graphName;
            stage.stage = info.stage;
            stage.before = opHistogram(*before);
            stages.push_back(std::move(stage));
        }
        if (step.prepares && step.after != before) stages.back().before = opHistogram(*step.after);
        stages.back().seconds += info.milliseconds / 1000;
        m_trace.steps.push_back(std::move(step));
        if (m_ended) m_ended(m_trace.steps.back().info);
    }

    /// A split stage has one row for itself, and one for each graph that it makes: from the graph before the stage.
    void recordMade() {
        if (m_made.empty()) return;
        const StageInfo split = m_trace.stages.back();
        for (const auto& [graphName, graph] : m_made) {
            StageInfo made;
            made.graphName = graphName;
            made.stage = split.stage;
            made.before = split.before;
            made.after = opHistogram(*graph);
            m_trace.stages.push_back(std::move(made));
        }
        m_made.clear();
    }

    CompileTrace& m_trace;
    const std::function<void(const StepInfo&)>& m_ended;
    const Progress& m_progress;
    RunEnds m_ends;
    std::map<std::string, Snapshot> m_graphs;  // by graph, as it stands
    BodyRounds m_rounds;
    WorkingCopy m_working;
    std::optional<PassFuel> m_passFuel = askedPassFuel();
    const Stage* m_stage = nullptr;
    std::string_view m_graphName;
    Snapshot m_stageInput;
    int64_t m_used = 0;                                    // fuel
    std::vector<std::pair<std::string, Snapshot>> m_made;  // by the split that has just run
};

}  // namespace

Snapshot CompileTrace::resultOf(std::string_view graphName) const {
    Snapshot found;
    for (const Step& step : steps) {
        if (step.info.graphName == graphName) found = step.after;
        for (const auto& [made, graph] : step.made)
            if (made == graphName) found = graph;
    }
    return found;
}

bool CompileTrace::isSplit() const { return splitStepOf(*this) != nullptr; }

namespace {

Result<void> runInto(CompileTrace& trace, const std::vector<Part>& compiler,
                     const std::function<void(const StepInfo&)>& ended, const Progress& progress, const RunEnds& ends) {
    CT_TRY_VOID(checkNames(trace.request));
    CT_TRY(trace.input, withDefinedOperators(trace.input, trace.request));
    CT_TRY(trace.own, UserPasses::make(trace.request, trace.hooks));
    CT_TRY_VOID(checkDisabled(trace.request, *trace.own));
    CT_TRY_VOID(checkInputNames(*trace.input, trace.request.gradients));
    CT_TRY_VOID(checkCalls(*trace.input, Calls::Possible));
    CT_TRY(std::vector<PlannedPass> plan, makePlan(compiler, trace.request, *trace.own, trace.input->origin.stage));
    return Run(trace, ended, progress, ends).run(std::move(plan));
}

Result<void> deriveInto(CompileTrace& trace, const CompileTrace& from, size_t shared,
                        const std::function<void(const StepInfo&)>& ended, const Progress& progress) {
    CT_TRY_VOID(checkNames(trace.request));
    CT_TRY(std::vector<PlannedPass> plan, makePlan(compiler(), trace.request, *from.own, trace.input->origin.stage));
    const StepInfo& next = from.steps[shared].info;
    const auto begin = std::find_if(plan.begin(), plan.end(), [&](const PlannedPass& one) {
        return one.pass->name == next.name && one.stage->name == next.stage && one.graphName == next.graphName &&
               one.occurrence == next.occurrence;
    });
    if (begin == plan.end())
        return Error{ErrorCode::NotFound, "the request's plan has no step " + next.key(), {}, {"compile anew"}};
    plan.erase(plan.begin(), begin);
    Run run(trace, ended, progress);
    run.share(from, shared);
    return run.run(std::move(plan));
}

/// What was done of a run, which may have been cancelled.
Result<CompileTrace> finished(CompileTrace trace, const Result<void>& done) {
    if (done) return trace;
    if (done.error().code != ErrorCode::Cancelled || trace.steps.empty()) return done.error();
    trace.cancelled = true;
    trace.stages.back().after = opHistogram(*trace.result());
    return trace;
}

}  // namespace

Result<CompileTrace> deriveRun(const CompileTrace& run, int step, const CompileRequest& request,
                               const CompileHooks& hooks, const std::function<void(const StepInfo&)>& ended,
                               const Progress& progress) {
    if (step < 0 || step >= static_cast<int>(run.steps.size()))
        return Error{ErrorCode::NotFound, "the run has no pass at step " + std::to_string(step), {}, {}};
    CompileTrace trace;
    trace.request = request;
    trace.hooks = hooks;
    trace.input = run.input;
    const Result<void> done = deriveInto(trace, run, static_cast<size_t>(step), ended, progress);
    return finished(std::move(trace), done);
}

Result<CompileTrace> runCompiler(const std::vector<Part>& compiler, const Snapshot& input,
                                 const CompileRequest& request, const CompileHooks& hooks,
                                 const std::function<void(const StepInfo&)>& ended, const Progress& progress,
                                 const RunEnds& ends) {
    CompileTrace trace;
    trace.request = request;
    trace.hooks = hooks;
    trace.input = input;
    const Result<void> done = runInto(trace, compiler, ended, progress, ends);
    return finished(std::move(trace), done);
}

}  // namespace cutaway
