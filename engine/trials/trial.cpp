#include "engine/trials/trial.h"

#include <algorithm>
#include <chrono>

#include "cutaway/guarded.h"
#include "engine/autograd/gradient_check.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/shared_values.h"
#include "engine/ir/fingerprint.h"
#include "engine/passes/pass_fuel.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"
#include "engine/rewrite/rewrite_watch.h"
#include "engine/session/arguments.h"
#include "engine/session/checked_graphs.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/describe.h"
#include "engine/session/halves.h"
#include "engine/session/session_gradients.h"
#include "engine/session/session_state.h"
#include "engine/support/fault_points.h"
#include "engine/support/machine.h"
#include "engine/trials/guilty_pass.h"

namespace cutaway {
namespace {

using Level = TrialCheck::Level;

TrialOutcome good(std::string detail) { return {std::nullopt, std::move(detail), 0}; }

TrialOutcome bad(FailureKind kind, const std::string& message, std::string pass = {}, std::string op = {}) {
    FailureSignature signature;
    signature.kind = kind;
    signature.message = normalisedMessage(message);
    signature.pass = std::move(pass);
    signature.op = std::move(op);
    return {signature, message, 0};
}

/// The same message wherever memory ran out, since the place depends on chance.
TrialOutcome outOfMemory(const std::string& detail, const std::string& pass) {
    TrialOutcome outcome = bad(FailureKind::Memory, std::string(kTooMuchMemory), pass);
    outcome.detail = detail;
    return outcome;
}

/// The operator of the node that an error's place names: "conv_3", "true_graph_0/conv_3".
std::string opAt(const Module& module, const std::string& where) {
    const size_t slash = where.rfind('/');
    const Module* body = slash == std::string::npos ? &module : module.body(where.substr(0, slash));
    const Node* node =
        body ? body->graph().findByName(where.substr(slash == std::string::npos ? 0 : slash + 1)) : nullptr;
    return node && node->isCall() ? node->op().name() : std::string();
}

/// What a trial may keep of values: a part of the memory that is left.
int64_t shareOfMemory() {
    const auto available = availableMemory();
    return available ? available->bytes / 4 : int64_t{1} << 30;
}

class Trial {
  public:
    Trial(const std::shared_ptr<const Module>& module, const CompileRequest& request, std::vector<Tensor> inputs,
          const TrialCheck& check, StatusPage& board)
        : m_check(check), m_board(board) {
        Session::State& state = m_session.state();
        state.input = module;
        state.sampleInputs = std::move(inputs);
        state.info = describeModel("trial", *module);
        m_request = request;
        m_progress.report = [this](double, const std::string& what) { m_board.at(what); };
    }

    TrialOutcome run() {
        m_hooks.cacheFile = "off";
        auto compiled = compile();
        if (!compiled) return failed(compiled.error());
        const CompileTrace& trace = (*compiled)->trace;
        if (trace.failed()) {
            TrialOutcome outcome = failedStep(trace);
            outcome.near = callsChangedBy(trace, static_cast<int>(trace.steps.size()) - 1);
            return outcome;
        }
        if (m_check.level == Level::Compiles) return good("compiles");
        auto compared = compare(**compiled);
        return compared ? *compared : failed(compared.error());
    }

  private:
    Result<Session::State::Run*> compile() {
        // Without kernels there is no need of a schedule.
        CompileRequest request = m_request;
        request.passesOnly |= m_check.level != Level::Compiles && m_check.backend == Backend::Reference;
        const auto ended = [this](const StepInfo& step) {
            if (step.state == StepState::Changed) m_board.changed(step.name);
        };
        CT_TRY(const RunId run, m_session.compileWatched(request, m_hooks, ended, m_progress));
        return m_session.state().run(run);
    }

    TrialOutcome failed(const Error& error) {
        if (error.code == ErrorCode::Limit) return outOfMemory(error.message, {});
        return bad(FailureKind::Run, error.message, {}, opAt(*m_session.state().input, error.where));
    }

    static TrialOutcome failedStep(const CompileTrace& trace) {
        const Step& step = trace.steps.back();
        const std::string error = step.error.message.substr(0, step.error.message.find('\n'));
        const std::string pass = step.info.stage + "/" + step.info.name;
        // The place is a name, which differs between graphs that fail alike.
        const std::string op = opAt(*step.before, step.error.where);
        if (step.error.code == ErrorCode::Limit && !step.invalidResult) return outOfMemory(error, pass);
        const FailureKind kind = step.invalidResult                  ? FailureKind::InvalidGraph
                                 : step.info.stage == kSchedule.name ? FailureKind::Build
                                                                     : FailureKind::PassError;
        return bad(kind, error, pass, op);
    }

    Result<std::vector<Tensor>> interpreted(const Module& graph, const std::vector<Tensor>& inputs) {
        CT_TRY(const Snapshot ready, readyToRun(graph, inputs));
        const Module& module = ready ? *ready : graph;
        CT_TRY(const Snapshot complete, withConstants(module, m_progress));
        InterpretOptions options;
        options.begin = [this](const Node& node) { m_board.at(node.name()); };
        // A pass leaves most of a graph as it was, and a trial runs it before and behind several.
        return m_values.interpret(complete ? *complete : module, inputs, options);
    }

    /// A graph, and what it computes.
    struct EvaluatedGraph {
        Snapshot graph;
        std::vector<Tensor> inputs, outputs;
    };
    Result<EvaluatedGraph> ran(Snapshot graph, FaultSide side) {
        const FaultSideScope scope(side);
        EvaluatedGraph out{std::move(graph), {}, {}};
        CT_TRY(CalledGraph called, calledFor(out.graph, m_session.state(), {}));
        out.inputs = std::move(called.user);
        CT_TRY(out.outputs, interpreted(*called.graph, out.inputs));
        return out;
    }

    Result<TrialOutcome> compare(Session::State::Run& run) {
        const CompileTrace& trace = run.trace;
        // Overwrites the last pass's name: from here on a process that ends, ends while a graph runs.
        m_board.at("start of the run");
        // One after the other: the libraries' kernels use all cores by themselves.
        CT_TRY(const std::vector<EvaluatedGraph> before, beforePasses(trace));
        CT_TRY(const EvaluatedGraph last, afterPasses(run));
        const EvaluatedGraph &opened = before.front(), &middle = before.back();
        if (m_check.level == Level::NonFinite) return lookForNonFinite(trace, opened, middle, last);
        if (m_check.level == Level::Runs) return good("runs");
        // Differentiating adds results; those that both graphs have are compared first.
        if (before.size() > 1) {
            CT_TRY(const Verdict verdict, judged(middle.outputs, opened.outputs));
            if (verdict.bad) return wrong(verdict, guilty(trace, 0, firstComparable(trace), opened, middle));
        }
        CT_TRY(const Verdict verdict, judged(last.outputs, middle.outputs));
        if (verdict.bad) return wrong(verdict, guiltyBehind(trace, middle, last));
        CT_TRY(auto derivative, wrongDerivative(trace));
        return derivative ? *derivative : good(verdict.detail + hidden(middle.outputs));
    }

    /// Graphs after differentiation are compared with the joint graph; whether that one is right is checked here by
    /// finite differences. Trials that look for a failure of another pass skip this.
    Result<std::optional<TrialOutcome>> wrongDerivative(const CompileTrace& trace) {
        const std::string pass = "capture/differentiate";
        const bool asks = m_check.level == Level::Numbers && m_check.backend == Backend::Reference &&
                          (m_check.derivatives || m_check.pass == pass);
        const std::optional<int> step = asks ? jointStep(trace) : std::nullopt;
        if (!step || *step < 0) return std::nullopt;
        CT_TRY(const ReadyGraph joint,
               readyGraph(trace.steps[static_cast<size_t>(*step)].after, m_session.state(), {}, m_progress));
        GradientCheckPlan plan;
        plan.eachGradient = false;
        plan.begin = [this](const Node& node) { m_board.at(node.name()); };
        CT_TRY(const GradientCheck check, checkGradients(joint, plan));
        if (!check.wrong()) return std::nullopt;
        TrialOutcome outcome = bad(FailureKind::Numbers, "gradients are not derivatives", pass,
                                   check.guilty() ? check.guilty()->op : std::string());
        outcome.detail = summaryOf(check);
        return outcome;
    }

    /// Compares the leading results, as many as are expected: later passes may have added others behind them.
    Result<Verdict> judged(std::vector<Tensor> actual, const std::vector<Tensor>& expected) const {
        if (actual.size() > expected.size()) actual.resize(expected.size());
        if (!m_check.judge.empty()) return judgedBy(m_check.judge, actual, expected, m_progress);
        return m_check.level == Level::Numbers ? compareOutputs(actual, expected, m_tolerance)
                                               : findNonFinite(actual, expected);
    }

    /// A hint for the user where results are NaN or infinite before the passes, since these hide other differences.
    static std::string hidden(const std::vector<Tensor>& outputs) {
        int64_t count = 0, all = 0;
        for (const Tensor& output : outputs) {
            count += nonFiniteCount(output);
            all += output.defined() ? output.numel() : 0;
        }
        return count == 0 ? std::string()
                          : "; " + std::to_string(count) + " of " + std::to_string(all) +
                                " elements are not finite before the passes already: try inputs of your own (--inputs)";
    }

    TrialOutcome wrong(const Verdict& verdict, std::string pass) {
        const bool finite = m_check.level != Level::Numbers;
        TrialOutcome outcome =
            bad(finite ? FailureKind::NonFinite : FailureKind::Numbers,
                finite ? "the passes make it" : (verdict.otherType ? kOtherType : "other numbers"), std::move(pass));
        outcome.detail = verdict.detail;
        outcome.near = std::move(m_near);
        return outcome;
    }

    /// The pass between `right` and `wrong` that changes the results, "stage/pass". Empty if nobody asked (namesPass)
    /// or no pass changes them, because compiled code does.
    std::string guilty(const CompileTrace& trace, int first, int end, const EvaluatedGraph& right,
                       const EvaluatedGraph& wrong) {
        if (!m_check.namesPass) return {};
        // What was run already is not run again, unless a fault is asked for that acts on one side only.
        std::vector<std::pair<Hash128, bool>> known;
        if (askedFaults().find('@') == std::string::npos) known.emplace_back(fingerprint(*right.graph), false);
        if (m_check.backend == Backend::Reference) known.emplace_back(fingerprint(*wrong.graph), true);
        const auto step = guiltyStep(trace, first, end, m_check.pass, [&](const Snapshot& graph) {
            const Hash128 content = fingerprint(*graph);
            for (const auto& [of, isWrong] : known)
                if (of == content) return isWrong;
            const auto found = ran(graph, FaultSide::After);
            const auto verdict = found ? judged(found->outputs, right.outputs) : Result<Verdict>(found.error());
            const bool isWrong = !verdict || verdict->bad;
            known.emplace_back(content, isWrong);
            return isWrong;
        });
        if (!step) return {};
        m_near = callsChangedBy(trace, *step);
        return passOf(trace.steps[static_cast<size_t>(*step)]);
    }
    std::string guiltyBehind(const CompileTrace& trace, const EvaluatedGraph& middle, const EvaluatedGraph& last) {
        return guilty(trace, firstComparable(trace), static_cast<int>(trace.steps.size()), middle, last);
    }

    /// The graph as it was given, and the first one behind passes that add results or take inputs away, if any.
    Result<std::vector<EvaluatedGraph>> beforePasses(const CompileTrace& trace) {
        std::vector<EvaluatedGraph> out;
        // Differentiating adds results, which only the graphs behind it have; freezing takes inputs away.
        const int first = firstComparable(trace);
        const bool changes = first > 0 && first < static_cast<int>(trace.steps.size());
        // Trials that look for a pass behind these need not run the graph as it was opened.
        const auto isIt = [&](const Step& step) { return passOf(step) == m_check.pass; };
        const bool behind = changes && m_check.level == Level::Numbers && !m_check.pass.empty() &&
                            std::none_of(trace.steps.begin(), trace.steps.begin() + first, isIt);
        if (!behind) {
            CT_TRY(EvaluatedGraph opened, ran(trace.input, FaultSide::Before));
            out.push_back(std::move(opened));
        }
        if (changes) {
            CT_TRY(EvaluatedGraph middle, ran(trace.steps[static_cast<size_t>(first)].before, FaultSide::Before));
            out.push_back(std::move(middle));
        }
        return out;
    }

    Result<EvaluatedGraph> afterPasses(Session::State::Run& run) {
        CT_TRY(const Snapshot after, finalGraph(run.trace));
        if (m_check.backend == Backend::Reference) return ran(after, FaultSide::After);
        EvaluatedGraph out{after, {}, {}};
        CT_TRY(CalledGraph called, calledFor(after, m_session.state(), {}));
        out.inputs = std::move(called.user);
        CT_TRY(out.outputs, compiled(run, called.graph == after ? nullptr : called.graph, out.inputs));
        return out;
    }

    /// `given`: the graph with values of its own for constants, or null.
    Result<std::vector<Tensor>> compiled(Session::State::Run& run, const Snapshot& given,
                                         const std::vector<Tensor>& inputs) {
        RunOptions options;
        options.backend = m_check.backend;
        CT_TRY(const Execution execution, run.trace.isSplit()
                                              ? runCompiledHalves(run, inputs, options, m_progress)
                                              : runCompiled(run, {}, given, inputs, options, m_progress));
        m_tolerance = std::max(m_check.tolerance, toleranceOf(execution));
        return execution.outputs;
    }

    TrialOutcome lookForNonFinite(const CompileTrace& trace, const EvaluatedGraph& opened, const EvaluatedGraph& middle,
                                  const EvaluatedGraph& last) {
        const auto count = [](const std::vector<Tensor>& tensors) {
            int64_t all = 0;
            for (const Tensor& tensor : tensors) all += nonFiniteCount(tensor);
            return all;
        };
        const int64_t before = count(middle.outputs), after = count(last.outputs);
        if (after > 0 && before == 0) {
            TrialOutcome outcome = bad(FailureKind::NonFinite, "the passes make it", guiltyBehind(trace, middle, last));
            outcome.detail = std::to_string(after) + " elements are not finite, none were before the passes";
            outcome.near = std::move(m_near);
            return outcome;
        }
        // NaN or infinity was there before the passes, from finite inputs: the graph itself makes it.
        if (before > 0 && count(opened.inputs) == 0) {
            TrialOutcome outcome = bad(FailureKind::NonFinite, "the graph makes it");
            outcome.detail = std::to_string(before) + " elements are not finite, and all inputs are";
            return outcome;
        }
        return good("no new NaN or infinity");
    }

    Session m_session;
    CompileRequest m_request;
    CompileHooks m_hooks;
    TrialCheck m_check;
    StatusPage& m_board;
    Progress m_progress;
    SharedValues m_values{shareOfMemory()};
    double m_tolerance = m_check.tolerance;        // or that of what has run
    std::vector<std::vector<std::string>> m_near;  // of the step to blame
};

}  // namespace

namespace {

/// Keeps on the board which rewrite is being made, of those that fuel counts, or of the pass that has its own.
class RewritesOnStatusPage {
  public:
    explicit RewritesOnStatusPage(StatusPage& board)
        : m_board(board),
          m_watch([this](std::string_view pass, const RewriteInfo& rewrite) { note(pass, rewrite); },
                  [this](std::string_view stage, std::string_view pass) {
                      m_board.inPass(std::string(stage) + "/" + std::string(pass));
                  }) {
        m_board.rewrites(0, {});
    }

  private:
    void note(std::string_view pass, const RewriteInfo& rewrite) {
        const bool required = std::any_of(pipeline().begin(), pipeline().end(), [&](const StagePass& row) {
            return row.pass->name == pass && (row.pass->required || row.stage->required);
        });
        if (m_limit ? m_limit->pass != pass : required) return;
        m_board.rewrites(++m_count, LastRewrite{std::string(pass), rewrite.rule, rewrite.index, rewrite.node,
                                                rewrite.body, static_cast<int64_t>(index(rewrite.nodeId))});
    }
    StatusPage& m_board;
    std::optional<PassFuel> m_limit = askedPassFuel();
    int64_t m_count = 0;
    RewriteWatch m_watch;
};

}  // namespace

TrialOutcome tryHere(const std::shared_ptr<const Module>& module, const CompileRequest& request,
                     std::vector<Tensor> inputs, const TrialCheck& check, StatusPage& board) {
    const auto start = std::chrono::steady_clock::now();
    const RewritesOnStatusPage rewrites(board);
    auto outcome = guarded(
        [&]() -> Result<TrialOutcome> { return Trial(module, request, std::move(inputs), check, board).run(); });
    if (!outcome) outcome = bad(FailureKind::Run, outcome.error().message);
    outcome->milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return *outcome;
}

}  // namespace cutaway
