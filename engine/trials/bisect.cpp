// Bisecting: a recorded run, or a request that is compiled anew for each test.
#include "cutaway/bisect.h"

#include <limits>

#include "cutaway/backends.h"
#include "cutaway/guarded.h"
#include "cutaway/plugins.h"
#include "engine/passes/pipeline.h"
#include "engine/plugins/plugin_passes.h"
#include "engine/session/run_inputs.h"
#include "engine/session/session_bisect.h"
#include "engine/support/shell_words.h"
#include "engine/text/print.h"
#include "engine/trials/trial_server.h"

namespace cutaway {
namespace {

/// Compiles a request with more and less fuel, each time in a process of its own.
class FuelSearch {
  public:
    FuelSearch(Session::State& state, CompileRequest request, const BisectOptions& options, const BisectWatch& watch,
               const Progress& progress)
        : m_state(state),
          m_request(std::move(request)),
          m_options(options),
          m_watch(watch),
          m_progress(progress),
          m_check{TrialCheck::Level::Compiles, options.backend, options.tolerance} {}

    Result<BisectReport> run() {
        CT_TRY_VOID(checkBackend(m_options.backend, m_request.target));
        if (m_options.check == BisectCheck::Numbers) m_check.judge = judgeOf(m_options.command).value_or("");
        CT_TRY(m_request, withPlugins(m_request));
        if (needsLender(m_request))
            return unsupported("passes that the program lends cannot be tried in another process", {},
                               {"compile without them, or bisect by numbers"});
        CT_TRY(const bool fails, begin());
        if (!fails) return m_report;
        m_report.found = true;
        m_report.failure = m_wanted.title();
        CT_TRY(const bool atOnce, m_report.searched > 0 ? isBad(0) : Result<bool>(true));
        if (atOnce) {
            CT_TRY(const bool inPass, lookIntoPass());
            if (!inPass) return withoutRewrite();
        }
        while (m_report.bad - m_report.good > 1) {
            const int middle = m_report.good + (m_report.bad - m_report.good) / 2;
            CT_TRY(const bool bad, isBad(middle));
            (bad ? m_report.bad : m_report.good) = middle;
            tell();
        }
        return withRewrite();
    }

  private:
    /// Tries the whole request. What compiles may fail when it runs.
    Result<bool> begin() {
        std::vector<TrialCheck::Level> levels = {TrialCheck::Level::Compiles, TrialCheck::Level::Runs};
        if (m_options.check == BisectCheck::Numbers) levels = {TrialCheck::Level::Numbers};
        if (m_options.check == BisectCheck::Nan) levels = {TrialCheck::Level::NewNonFinite};
        for (const TrialCheck::Level level : levels) {
            m_check.level = level;
            CT_TRY(const TrialOutcome whole, attempt({}));
            m_report.searched = static_cast<int>(whole.rewrites);
            if (!whole.failure && level != levels.back()) continue;
            note(m_report.searched, whole, whole.failure.has_value());
            if (!whole.failure) return false;
            m_wanted = *whole.failure;
            m_wanted.op.clear();
            m_last = whole;
            m_report.bad = m_report.searched;
            tell();
            return true;
        }
        return false;
    }

    /// Whether the failure lies in rewrites of the pass that fails, which no fuel leaves out.
    Result<bool> lookIntoPass() {
        m_report.good = m_report.bad = 0;
        if (m_wanted.pass.empty()) return false;
        m_required = m_wanted.pass.substr(m_wanted.pass.find('/') + 1);
        CT_TRY(TrialOutcome whole, attempt({}));
        const auto count = static_cast<int>(whole.rewrites);
        if (!whole.failure || !isSameFailure(m_wanted, *whole.failure) || count == 0) {
            m_required.clear();
            return false;
        }
        m_report.searched = m_report.bad = count;
        m_report.note = "it fails without any rewrite that can be left out (" + std::to_string(m_report.probes.size()) +
                        " tests), so those of the required pass " + m_required + " are searched";
        // Earlier probes counted the rewrites that can be left out; from here on those of this pass are counted.
        m_report.probes.clear();
        note(count, whole, true);
        m_last = std::move(whole);
        CT_TRY(const bool withNone, isBad(0));
        if (withNone) {
            m_required.clear();
            m_report.note.clear();
            m_report.bad = 0;
        }
        return !withNone;
    }

    Result<TrialOutcome> attempt(std::optional<int64_t> fuel) {
        if (!m_server) {
            CT_TRY(TrialServer server, TrialServer::start(std::make_shared<const TensorTable>()));
            m_server.emplace(std::move(server));
        }
        TrialJob job;
        job.graph = printText(*m_state.input).text;
        job.stage = m_state.input->origin.stage;
        job.request = m_request;
        if (!m_required.empty()) {
            job.request.fuel = 0;
            job.passFuel = PassFuel{m_required, fuel.value_or(std::numeric_limits<int64_t>::max())};
        } else if (fuel) job.request.fuel = fuel;
        job.check = m_check;
        if (m_check.level != TrialCheck::Level::Compiles) {
            CT_TRY(RunInputs chosen,
                   chooseInputs(*m_state.input, m_state.sampleInputs, m_options.inputsFile, m_state.noSamples));
            job.inputs = std::move(chosen.user);
            for (const auto& [name, tensor] : m_state.input->tensors) job.constants.emplace_back(name, tensor);
        }
        const size_t number = m_report.probes.size() + 1;
        m_progress.say(-1, "test " + std::to_string(number) + ": compiling with " +
                               (fuel ? std::to_string(*fuel) + (*fuel == 1 ? " rewrite" : " rewrites")
                                     : std::string("all rewrites")));
        return m_server->run(job, {m_options.timeoutSeconds, m_options.memoryBytes}, m_progress);
    }

    /// A test that fails in another way finds another culprit, so it counts as good (spec: MIN-13).
    Result<bool> isBad(int rewrites) {
        CT_TRY(TrialOutcome outcome, attempt(rewrites));
        const bool bad = outcome.failure && isSameFailure(m_wanted, *outcome.failure);
        note(rewrites, outcome, bad);
        if (bad) m_last = std::move(outcome);
        return bad;
    }

    void note(int rewrites, const TrialOutcome& outcome, bool bad) {
        std::string rest;
        const bool runs = m_check.level != TrialCheck::Level::Compiles;
        if (runs && m_check.backend != Backend::Reference)
            rest = "--backend " + std::string(backendName(m_check.backend));
        if (runs && !m_options.inputsFile.empty())
            rest += (rest.empty() ? "--inputs " : " --inputs ") + shellWord(m_options.inputsFile);
        const bool inPass = !m_required.empty();
        const std::string limit =
            inPass ? "CUTAWAY_PASS_FUEL=" + shellWord(m_required + ":" + std::to_string(rewrites)) + " " : "";
        m_report.probes.push_back(
            {rewrites,
             {-1, -1, -1},
             bad,
             outcome.detail,
             limit + commandLine(m_state, runs ? "run" : "compile", m_request, inPass ? 0 : rewrites, rest)});
    }
    void tell() const {
        if (m_watch) m_watch(m_report);
    }

    /// It fails with none of the rewrites that could be left out: in a required pass, the scheduler, or the run.
    BisectReport withoutRewrite() {
        m_report.rewrite.index = -1;
        const std::string& pass = m_wanted.pass;  // "stage/pass", or the pass alone where the process died
        const size_t slash = pass.find('/');
        m_report.step.stage = slash == std::string::npos ? std::string() : pass.substr(0, slash);
        m_report.step.name = slash == std::string::npos ? pass : pass.substr(slash + 1);
        m_report.step.error = m_report.probes.back().detail;
        m_report.badAsOpened = pass.empty();
        m_report.found = !pass.empty();
        m_report.levels.clear();
        const auto made = static_cast<int>(m_report.probes.size());
        if (pass.empty()) m_report.levels = {{"graph", "with no rewrite that can be left out", made}};
        if (!m_report.step.stage.empty()) m_report.levels.push_back({"stage", m_report.step.stage, made});
        if (!pass.empty()) m_report.levels.push_back({"pass", m_report.step.name, made});
        return m_report;
    }

    /// The last rewrite of the last bad test. With one less the request is known to compile, so that it may be compiled
    /// here, which tells where in the run that rewrite stands.
    Result<BisectReport> withRewrite() {
        readLast();
        CompileRequest request = m_request;
        request.fuel = m_required.empty() ? m_report.good : 0;
        std::optional<PassFuelScope> limit;
        if (!m_required.empty()) limit.emplace(PassFuel{m_required, m_report.good});
        CompileHooks hooks{.cacheFile = "off"};
        CT_TRY_VOID(lendPlugins(request, hooks));
        CT_TRY(const CompileTrace trace,
               runPipelineWatched(m_state.input, request, hooks, {}, {m_progress.cancel, {}}));
        for (const Step& step : trace.steps) {
            if (!isSearched(step)) continue;
            const bool culprit = isCulprit(step);
            const int begin = m_report.sections.empty() ? 0 : m_report.sections.back().end;
            if (step.info.rewrites > 0 || culprit)
                m_report.sections.push_back({step.info.index, step.info.graphName, step.info.stage,
                                             step.info.name + "#" + std::to_string(step.info.occurrence),
                                             begin + step.info.rewrites + culprit});
            if (!culprit) continue;
            m_report.step = step.info;
            break;
        }
        // Steps behind the culprit were not compiled here, so their rewrites become one section without a step.
        if (m_report.sections.empty() || m_report.sections.back().end < m_report.searched)
            m_report.sections.push_back({-1, {}, {}, {}, m_report.searched});
        m_report.culprit = {-1, m_report.step.index, m_report.rewrite.index + 1};
        m_report.rewrite.key = keyIn(m_report.rewrite.body, m_report.rewrite.nodeId);
        describeLevels(m_report);
        return m_report;
    }
    /// Whether fuel counts the rewrites of the step.
    bool isSearched(const Step& step) const {
        if (!m_required.empty()) return step.info.name == m_required;
        const Pass& pass = *step.pass;
        return std::none_of(pipeline().begin(), pipeline().end(), [&](const StagePass& row) {
            return row.pass == &pass && (row.pass->required || row.stage->required);
        });
    }
    /// Whether the rewrite would be the next of this step, which has run out of fuel.
    bool isCulprit(const Step& step) const {
        if (step.info.name != m_pass || step.info.rewrites != m_report.rewrite.index) return false;
        const int before = m_report.sections.empty() ? 0 : m_report.sections.back().end;
        const Module* body = step.after->body(m_report.rewrite.body);
        return before + step.info.rewrites == m_report.good && body &&
               body->graph().find(m_report.rewrite.nodeId) != nullptr;
    }
    void readLast() {
        if (!m_last.lastRewrite) return;
        const LastRewrite& last = *m_last.lastRewrite;
        m_pass = m_report.step.name = last.pass;
        m_report.rewrite.index = last.index;
        m_report.rewrite.nodeId = static_cast<NodeId>(last.nodeId);
        m_report.rewrite.rule = last.rule;
        m_report.rewrite.node = last.node;
        m_report.rewrite.body = last.body;
    }

    Session::State& m_state;
    CompileRequest m_request;
    const BisectOptions& m_options;
    const BisectWatch& m_watch;
    const Progress& m_progress;
    TrialCheck m_check;
    std::optional<TrialServer> m_server;
    FailureSignature m_wanted;
    TrialOutcome m_last;  // of the latest bad test
    std::string m_pass;
    std::string m_required;  // the pass whose rewrites alone are searched, without any of those that can be left out
    BisectReport m_report;
};

/// The graph of the run after so many of the rewrites that were searched.
Place placeOf(int rewrites, const std::vector<BisectSection>& sections, RunId run, const std::vector<StepInfo>& steps) {
    int begin = 0;
    for (const BisectSection& section : sections) {
        if (rewrites <= section.end && section.step >= 0 && section.step < static_cast<int>(steps.size()))
            return {run, section.step, std::min(rewrites - begin, steps[static_cast<size_t>(section.step)].rewrites)};
        begin = section.end;
    }
    return {-1, -1, -1};
}

/// Puts the culprit that was found elsewhere into the recorded run. Where a process died, only the pass's name is
/// known.
void placeInto(BisectReport& report, RunId run, const std::vector<StepInfo>& steps) {
    if (!report.found) return;
    auto there =
        std::find_if(steps.begin(), steps.end(), [&](const StepInfo& step) { return step.key() == report.step.key(); });
    if (there == steps.end())
        there = std::find_if(steps.begin(), steps.end(),
                             [&](const StepInfo& step) { return step.name == report.step.name; });
    report.culprit = {run, -1, -1};
    for (BisectProbe& probe : report.probes) probe.place = placeOf(probe.rewrites, report.sections, run, steps);
    if (there == steps.end()) return;
    const bool whole = there->state == StepState::Failed || report.rewrite.index < 0;
    report.culprit = {run, there->index, whole ? -1 : std::min(report.rewrite.index + 1, there->rewrites)};
}

}  // namespace

Result<BisectReport> bisectCompile(Session& session, const CompileRequest& request, const BisectOptions& options,
                                   const BisectWatch& watch, const Progress& progress) {
    return guarded([&]() -> Result<BisectReport> {
        if (!session.isOpen()) return Error{ErrorCode::NotFound, "no model is open", {}, {}};
        return FuelSearch(session.state(), request, options, watch, progress).run();
    });
}

Result<BisectReport> bisect(Session& session, RunId run, const BisectOptions& options, const BisectWatch& watch,
                            const Progress& progress) {
    CT_TRY(const std::vector<StepInfo> steps, session.steps(run));
    CT_TRY(const CompileRequest request, session.requestOf(run));
    const bool compiled = options.backend != Backend::Reference;
    const bool anew = options.check == BisectCheck::Crash || (options.check != BisectCheck::Command && compiled);
    const bool failed = !steps.empty() && steps.back().state == StepState::Failed;
    if (!anew || (failed && needsLender(request)))
        return bisectRecorded(session.state(), run, options, watch, progress);
    CT_TRY(BisectReport report, bisectCompile(session, request, options, watch, progress));
    placeInto(report, run, steps);
    return report;
}

}  // namespace cutaway
