#include "engine/session/session_bisect.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "cutaway/guarded.h"
#include "cutaway/plugins.h"
#include "engine/minify/bisect.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"
#include "engine/plugins/plugin_calls.h"
#include "engine/plugins/text_rewrites.h"
#include "engine/runtime/reference.h"
#include "engine/session/arguments.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/run_inputs.h"
#include "engine/session/session_gradients.h"
#include "engine/support/process.h"
#include "engine/support/shell_words.h"
#include "engine/support/temp_dir.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

/// Runs the command on the graph as a Python file that needs nothing but PyTorch.
Result<Verdict> runCommand(const Module& graph, const BisectOptions& options, const std::filesystem::path& file,
                           const Progress& progress) {
    if (const auto oracle = oracleOf(options.command)) {
        CT_TRY(const OracleVerdict verdict, askOracle(*oracle, pluginText(graph), options.timeoutSeconds, progress));
        return Verdict{verdict.fails, "the oracle says that it " + std::string(verdict.fails ? "fails" : "is good") +
                                          (verdict.sentence.empty() ? "" : ": " + verdict.sentence)};
    }
    PrintOptions print;
    print.runnable = true;
    {
        std::ofstream out(file, std::ios::binary);
        out << printText(graph, print).text;
        if (!out.flush()) return Error{ErrorCode::ToolFailed, "cannot write the file", file.string(), {}};
    }
    ProcessOptions process;
    process.argv = {"sh", "-c", commandOn(options.command, file.string())};
    process.wallSeconds = options.timeoutSeconds;
    process.addressSpaceBytes = options.memoryBytes;
    CT_TRY(ChildProcess child, ChildProcess::start(process));
    const ProcessEnd end = child.wait(progress);
    if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "the search was stopped", {}, {}};
    if (end.how == ProcessEnd::How::Exited && (end.exitCode == 126 || end.exitCode == 127))
        return Error{ErrorCode::ToolFailed, "the command cannot be run: " + end.errors, options.command, {}};
    return Verdict{!end.ok(), "the command " + end.text()};
}

/// One search in a recorded run.
class RecordedSearch {
  public:
    RecordedSearch(Session::State& state, RunId id, const CompileTrace& trace, const BisectOptions& options,
                   const BisectWatch& watch, const Progress& progress)
        : m_state(state), m_id(id), m_trace(trace), m_options(options), m_watch(watch), m_progress(progress) {}

    Result<BisectReport> run() {
        if (m_options.check == BisectCheck::Command && m_options.command.empty())
            return invalidInput("bisecting by a command needs the command");
        m_first = m_trace.failed() || m_fromOpened ? 0 : firstComparable(m_trace);
        if (m_first > 0 && m_options.check != BisectCheck::Command) {
            CT_TRY(BisectReport before, searchBefore());
            if (before.found) return before;
        }
        CT_TRY(const bool derivative, derivativeAtFault());
        if (derivative) return m_report;
        CT_TRY(const TempDir folder, TempDir::create("bisect"));
        m_file = folder.file("graph.py");
        if (hasTest() && m_options.check != BisectCheck::Command) {
            // From this graph on all take the same inputs, since what was frozen before has its values as constants.
            const Snapshot& good = m_trace.steps[static_cast<size_t>(m_first)].before;
            CT_TRY(CalledGraph called, calledFor(good, m_state, m_options.inputsFile));
            m_inputs = std::move(called.user);
            CT_TRY(m_expected, interpreted(*good, FaultSide::Before));
        }
        CT_TRY(const BisectOutcome outcome,
               cutaway::bisect(
                   m_trace, m_first, [this](const Module& graph) { return test(graph); }, m_progress,
                   [this](const BisectOutcome& soFar) {
                       if (m_watch) m_watch(describe(soFar));
                   }));
        BisectReport report = describe(outcome);
        if (report.found && outcome.good == 0 && m_options.check == BisectCheck::Command)
            CT_TRY_VOID(testAsOpened(report));
        if (report.found && m_options.check == BisectCheck::Numbers && !m_trace.failed())
            CT_TRY_VOID(compareSides(report));
        report.note = m_report.note;
        if (m_first > 0)
            report.note +=
                std::string(report.note.empty() ? "" : "; ") + "searched from " +
                (hasTest() ? m_trace.steps[static_cast<size_t>(m_first)].info.name : std::string("the end")) +
                " on: the graphs before it take or return other values";
        return report;
    }

  private:
    /// The graphs that take or return other values than the last: the results that they have in common with the graph
    /// as opened are compared with its. Differentiation puts results before them, and is looked at by itself.
    Result<BisectReport> searchBefore() {
        CompileTrace early = m_trace;
        early.steps.resize(static_cast<size_t>(jointAtFirst() ? m_first - 1 : m_first));
        RecordedSearch search(m_state, m_id, early, m_options, m_watch, m_progress);
        search.m_fromOpened = true;
        return search.run();
    }

    /// Whether the graphs that are compared begin with the joint graph.
    bool jointAtFirst() const {
        const std::optional<int> at = m_trace.failed() ? std::nullopt : jointStep(m_trace);
        return at && *at >= 0 && m_first == *at + 1;
    }

    /// Later graphs are compared with the joint graph, so in training the joint graph's gradients are checked first, by
    /// finite differences. True if they are wrong: then the report names the derivative.
    Result<bool> derivativeAtFault() {
        if (m_options.check != BisectCheck::Numbers || !jointAtFirst()) return false;
        const int at = m_first - 1;
        GradientCheckOptions options;
        options.inputsFile = m_options.inputsFile;
        options.timeoutSeconds = m_options.timeoutSeconds;
        options.memoryBytes = m_options.memoryBytes;
        const auto check = gradientCheckOf(m_state, m_id, m_trace, options, {m_progress.cancel, {}});
        if (!check && check.error().code == ErrorCode::Cancelled) return check.error();
        if (!check) m_report.note = "the gradients were not held against differences: " + check.error().message;
        else if (!check->wrong() && check->all.verdict != GradientVerdict::Right) m_report.note = check->summary;
        if (!check || !check->wrong()) return false;

        const Step& step = m_trace.steps[static_cast<size_t>(at)];
        const DerivativeRow* guilty = check->guilty();
        size_t rewrite = 0;  // of no single call: the one that makes the joint graph
        for (size_t i = 0; guilty && i < step.rewrites.size(); ++i)
            if (step.rewrites[i].body.empty() && nodeKey(0, step.rewrites[i].nodeId) == guilty->node) rewrite = i;
        const int done = static_cast<int>(rewrite) + 1;
        m_report.found = true;
        m_report.culprit = {m_id, at, done};
        m_report.step = step.info;
        m_report.rewrite = step.rewrites[rewrite];
        m_report.rewrite.key = keyIn(m_report.rewrite.body, m_report.rewrite.nodeId);
        m_report.searched = step.info.rewrites;
        m_report.sections = {{at, step.info.graphName, step.info.stage,
                              step.info.name + "#" + std::to_string(step.info.occurrence), step.info.rewrites}};
        m_report.good = done - 1;
        m_report.bad = done;
        const std::string inputs =
            m_options.inputsFile.empty() ? std::string() : "--inputs " + shellWord(m_options.inputsFile);
        m_report.probes = {{step.info.rewrites,
                            {m_id, at, -1},
                            true,
                            check->summary,
                            commandLine(m_state, "checked-run", m_trace.request, {}, inputs)}};
        describeLevels(m_report);
        if (m_watch) m_watch(m_report);
        return true;
    }

    bool hasTest() const { return !m_trace.failed() && m_first < static_cast<int>(m_trace.steps.size()); }

    Result<std::vector<Tensor>> interpreted(const Module& given, FaultSide side) const {
        CalledGraph called{Snapshot(std::shared_ptr<void>(), &given), m_inputs};
        if (m_fromOpened) {
            CT_TRY(called, calledFor(called.graph, m_state, m_options.inputsFile));
        }
        CT_TRY(ReferenceRun run, runReference(*called.graph, called.user,
                                              {.timeoutSeconds = m_options.timeoutSeconds,
                                               .memoryBytes = m_options.memoryBytes,
                                               .faultSide = side},
                                              {m_progress.cancel, {}}));
        return std::move(run.outputs);
    }

    Result<Verdict> test(const Module& graph) const {
        if (m_options.check == BisectCheck::Command) return runCommand(graph, m_options, m_file, m_progress);
        auto actual = interpreted(graph, FaultSide::After);
        if (!actual && actual.error().code == ErrorCode::Cancelled) return actual.error();
        if (!actual) return Verdict{true, "does not run: " + actual.error().message};
        if (m_fromOpened && actual->size() > m_expected.size()) actual->resize(m_expected.size());
        if (const auto judge = judgeOf(m_options.command)) return judgedBy(*judge, *actual, m_expected, m_progress);
        return m_options.check == BisectCheck::Nan ? findNonFinite(*actual, m_expected)
                                                   : compareOutputs(*actual, m_expected, m_options.tolerance);
    }

    /// No test was good, so nothing says yet that the graph before the first rewrite is (spec: BIS-1).
    Result<void> testAsOpened(BisectReport& report) const {
        CT_TRY(const Verdict verdict, test(*m_trace.steps[static_cast<size_t>(m_first)].before));
        report.probes.push_back({0, {m_id, m_first, 0}, verdict.bad, verdict.detail, commandOf({m_id, m_first, 0})});
        if (!verdict.bad) return {};
        report.found = false;
        report.badAsOpened = true;
        report.levels = {{"graph", "as opened", static_cast<int>(report.probes.size())}};
        return {};
    }

    Result<Snapshot> graphAt(int step, int rewrites) const {
        CT_TRY(const Snapshot part,
               replayRewrites(m_trace.steps[static_cast<size_t>(step)], m_trace, rewrites, m_progress.cancel.get()));
        return wholeAt(m_trace, step, part, rewrites > 0);
    }

    /// Finds the element of the results that differs most between the graphs before and after the culprit.
    Result<void> compareSides(BisectReport& report) const {
        std::vector<Tensor> sides[2];
        Snapshot graph;
        for (int i = 0; i < 2; ++i) {
            CT_TRY(graph, graphAt(report.culprit.step, report.culprit.rewrites - 1 + i));
            auto outputs = interpreted(*graph, FaultSide::After);
            if (!outputs && outputs.error().code == ErrorCode::Cancelled) return outputs.error();
            if (!outputs) return {};  // the last test says so
            sides[i] = std::move(*outputs);
        }
        double largest = 0;
        for (size_t i = 0; i < std::min(sides[0].size(), sides[1].size()); ++i) {
            const Tensor &without = sides[0][i], &with = sides[1][i];
            if (!without.defined() || !with.defined()) continue;
            const Comparison found = compareOutput(with, without, m_options.tolerance);
            const auto element = found.sameType ? worstElement(found, with, without) : std::nullopt;
            if (!element || (report.value && found.maxAbsoluteError <= largest)) continue;
            largest = found.maxAbsoluteError;
            report.value = BisectValue{outputName(*graph, i), *element};
        }
        return {};
    }

    /// Repeats a test: the graph there on the same inputs, or as the command gets it.
    std::string commandOf(const Place& place) const {
        CompileRequest request = m_trace.request;
        const Step& step = m_trace.steps[static_cast<size_t>(place.step)];
        int64_t fuel = place.rewrites;
        for (int i = 0; i < place.step; ++i)
            if (const Step& before = m_trace.steps[static_cast<size_t>(i)]; countsFuel(before.info))
                fuel += before.info.rewrites;
        if (m_options.check == BisectCheck::Command || !countsFuel(step.info)) {
            const std::string at =
                "--step " + shellWord(step.info.key() + ":" + std::to_string(std::max(0, place.rewrites)));
            if (m_options.check != BisectCheck::Command)
                return commandLine(m_state, "text", request, {}, at + " --runnable | python -");
            constexpr const char* kFile = "bisect_graph.py";
            if (const auto oracle = oracleOf(m_options.command))
                return commandLine(
                    m_state, "text", request, {},
                    at + " > " + kFile + " && cutaway-cli plugin ask " + shellWord(*oracle) + " " + kFile);
            return commandLine(m_state, "text", request, {},
                               at + " --runnable > " + kFile + " && " + commandOn(m_options.command, kFile));
        }
        if (m_trace.failed()) return commandLine(m_state, "compile", request, fuel, {});
        const std::string inputs =
            m_options.inputsFile.empty() ? std::string() : "--inputs " + shellWord(m_options.inputsFile);
        return commandLine(m_state, "run", request, fuel, inputs);
    }
    /// Whether rewrites of the step cost fuel: not those of required passes and stages.
    bool countsFuel(const StepInfo& step) const {
        const std::vector<PlannedPass>& plan = planned();
        const auto one = std::find_if(plan.begin(), plan.end(), [&](const PlannedPass& each) {
            return each.pass->name == step.name && each.stage->name == step.stage && each.graphName == step.graphName;
        });
        return one == plan.end() || !one->required();
    }
    const std::vector<PlannedPass>& planned() const {
        if (m_plan.empty())
            if (auto plan = makePlan(compiler(), m_trace.request, *m_trace.own, m_trace.input->origin.stage))
                m_plan = std::move(*plan);
        return m_plan;
    }

    BisectReport describe(const BisectOutcome& outcome) const {
        BisectReport report;
        report.found = outcome.found && outcome.step >= 0;
        report.searched = outcome.total;
        report.good = outcome.good;
        report.bad = outcome.bad;
        for (const BisectRange& range : outcome.ranges) {
            const StepInfo& info = m_trace.steps[static_cast<size_t>(range.step)].info;
            report.sections.push_back(
                {range.step, info.graphName, info.stage, info.name + "#" + std::to_string(info.occurrence), range.end});
        }
        for (const BisectTry& tried : outcome.tries) {
            const Place place{m_id, tried.step, tried.inStep};
            report.probes.push_back({tried.rewrites, place, tried.verdict.bad, tried.verdict.detail, commandOf(place)});
        }
        if (report.found) {
            const Step& step = m_trace.steps[static_cast<size_t>(outcome.step)];
            report.culprit = {m_id, outcome.step, outcome.rewrite + 1};
            report.step = step.info;
            report.rewrite.index = outcome.rewrite;
            if (outcome.rewrite >= 0) report.rewrite = step.rewrites[static_cast<size_t>(outcome.rewrite)];
            report.rewrite.key = keyIn(report.rewrite.body, report.rewrite.nodeId);
        }
        describeLevels(report);
        return report;
    }

    Session::State& m_state;
    RunId m_id;
    const CompileTrace& m_trace;
    const BisectOptions& m_options;
    const BisectWatch& m_watch;
    const Progress& m_progress;
    bool m_fromOpened = false;  // begin with the graph as opened, although later ones take or return other values
    BisectReport m_report;      // of a derivative at fault; else its note
    int m_first = 0;
    std::filesystem::path m_file;
    std::vector<Tensor> m_inputs, m_expected;
    mutable std::vector<PlannedPass> m_plan;
};

}  // namespace

std::string_view nameOf(BisectCheck check) {
    switch (check) {
        case BisectCheck::Numbers: return "numbers";
        case BisectCheck::Nan: return "nan";
        case BisectCheck::Command: return "command";
        case BisectCheck::Crash: return "crash";
    }
    return "";
}

std::string commandLine(const Session::State& state, std::string_view command, CompileRequest request,
                        std::optional<int64_t> fuel, const std::string& rest) {
    std::string line = "cutaway-cli " + std::string(command) + " " + shellWord(state.info.path);
    if (!state.settings.graph.empty()) line += " --graph " + shellWord(state.settings.graph);
    for (const auto& [symbol, size] : state.settings.sizes)
        line += " --size " + shellWord(symbol + "=" + std::to_string(size));
    if (fuel) request.fuel = fuel;
    for (const std::string& part : {request.text(), rest})
        if (!part.empty()) line += " " + part;
    return line;
}

void describeLevels(BisectReport& report) {
    report.levels.clear();
    if (report.bad <= report.good && !report.found) return;
    int good = 0, bad = report.searched, made = 0;
    const auto settle = [&] {
        if (bad <= good) return;
        std::vector<const BisectSection*> left;
        int begin = 0;
        for (const BisectSection& section : report.sections) {
            if (begin < bad && section.end > good) left.push_back(&section);
            begin = section.end;
        }
        const auto add = [&](const char* level, const std::string& name) {
            for (const BisectLevel& bisectLevel : report.levels)
                if (bisectLevel.level == level) return;
            report.levels.push_back({level, name, made});
        };
        const auto agree = [&](auto&& part) {
            return !left.empty() && std::all_of(left.begin(), left.end(), [&](const BisectSection* each) {
                return part(*each) == part(*left.front());
            });
        };
        if (!agree([](const BisectSection& s) { return s.graph; })) return;
        add("graph", left.front()->graph);
        if (!agree([](const BisectSection& s) { return s.stage; })) return;
        add("stage", left.front()->stage);
        if (left.size() > 1) return;
        add("pass", left.front()->pass);
    };
    for (const BisectProbe& probe : report.probes) {
        ++made;
        if (probe.bad) bad = std::min(bad, probe.rewrites);
        else good = std::max(good, probe.rewrites);
        settle();
    }
    if (!report.found) return;
    if (report.levels.empty()) {  // nothing had to be tested
        report.levels = {{"graph", report.step.graphName, made},
                         {"stage", report.step.stage, made},
                         {"pass", report.step.name + "#" + std::to_string(report.step.occurrence), made}};
    }
    if (!report.rewrite.body.empty()) report.levels.front().name += ", in its body " + report.rewrite.body;
    if (report.rewrite.index >= 0)
        report.levels.push_back(
            {"rewrite",
             std::to_string(report.rewrite.index + 1) + " (" + report.rewrite.rule + ") at " + report.rewrite.node,
             made});
}

Result<BisectReport> bisectRecorded(Session::State& state, RunId id, const BisectOptions& options,
                                    const BisectWatch& watch, const Progress& progress) {
    auto report = guarded([&]() -> Result<BisectReport> {
        CT_TRY(Session::State::Run * found, state.run(id));
        return RecordedSearch(state, id, found->trace, options, watch, progress).run();
    });
    // A folder that somebody else has made must not run commands.
    if (report || options.check == BisectCheck::Command || !isReproducible(report.error())) return report;
    return withReproducer(report.error(), [&] {
        Failure failure = state.failureOf("bisect", id, nullptr);
        failure.bisect = options;
        return failure;
    });
}

}  // namespace cutaway
