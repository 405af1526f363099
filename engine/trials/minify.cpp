#include "cutaway/minify.h"

#include <chrono>
#include <filesystem>
#include <limits>

#include "cutaway/backends.h"
#include "cutaway/guarded.h"
#include "engine/interpret/interpret.h"
#include "engine/minify/pytorch_minifier.h"
#include "engine/minify/reduce.h"
#include "engine/passes/pipeline.h"
#include "engine/session/describe.h"
#include "engine/session/run_inputs.h"
#include "engine/session/session_state.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"
#include "engine/support/shell_words.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "engine/trials/oracle.h"
#include "engine/trials/repro_folder.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMostBytesEachStep = int64_t{16} << 20;  // of inputs, while the search goes on
constexpr int64_t kMostBytes = int64_t{64} << 30;

/// Everything that decides what the answers are.
std::string searchOf(const Module& graph, const MinifyOptions& options) {
    Hasher hash;
    hash.add(std::string_view(printText(graph).text))
        .add(std::string_view(graph.origin.stage))
        .add(std::string_view(options.request.text()));
    hash.add(static_cast<int>(options.check)).add(static_cast<int>(options.backend)).add(options.tolerance);
    for (const std::string* text : {&options.command, &options.match, &options.signature, &options.inputsFile})
        hash.add(std::string_view(*text));
    return hash.finish().hex();
}

int nodesOf(const Candidate& candidate) { return static_cast<int>(candidate.module->graph().size()); }

class Search {
  public:
    Search(Session::State& state, const MinifyOptions& options, const std::function<void(const MinifyState&)>& watch,
           const Progress& progress)
        : m_state(state), m_options(options), m_watch(watch), m_progress(progress) {}

    Result<MinifyReport> run() {
        CT_TRY_VOID(checkOptions());
        CT_TRY(const std::shared_ptr<const Module> base, chooseBase());
        m_base = base;
        Candidate start{base, m_options.request, nullptr};
        CT_TRY_VOID(makeFolder());
        CT_TRY(Journal journal, Journal::open((fs::path(m_options.folder) / "journal").string(),
                                              searchOf(*base, m_options), m_options.restart));
        // A file that cannot be used is refused before anything is tried.
        if (!m_options.inputsFile.empty()) CT_TRY_VOID(inputsOf(*base));
        Oracle::Listener listener;
        listener.accepted = [this](const Candidate& best, const TrialJob& job, const std::string& how) {
            return accept(best, job, how);
        };
        listener.asked = [this] { tell(false); };
        m_oracle =
            std::make_unique<Oracle>(m_options, std::move(journal),
                                     BaseValues(base, [this, base] { return inputsOf(*base); }), listener, m_progress);
        std::optional<FailureSignature> wanted;
        if (!m_options.signature.empty()) {
            CT_TRY(wanted, parseSignature(m_options.signature));
        }
        m_report.nodesBefore = nodesOf(start);
        if (!m_options.restart) lookForEarlierResult();
        CT_TRY_VOID(m_oracle->begin(start, wanted));
        m_report.signature = m_oracle->signature();
        m_best = start;
        CT_TRY_VOID(accepted(start, "the whole graph"));
        const auto found = search(start);
        if (found) m_best = *found;
        else if (found.error().code == ErrorCode::Cancelled ||
                 (found.error().code == ErrorCode::Limit && m_oracle->isUsedUp())) {
            m_report.stopped = true;
            m_report.whyStopped = found.error().message;
        } else return found.error();
        CT_TRY_VOID(finish());
        return m_report;
    }

  private:
    Result<void> checkOptions() const {
        if (m_options.check == MinifyCheck::Command && m_options.command.empty())
            return invalidInput("minifying by a command needs the command");
        if (m_options.folder.empty()) return invalidInput("minifying needs a folder for the result");
        CT_TRY_VOID(checkBackend(m_options.backend, m_options.request.target));
        for (const std::string& name : m_options.without) {
            const auto all = reduceStrategies();
            if (std::none_of(all.begin(), all.end(), [&](const ReduceStrategy& each) { return each.name == name; }))
                return invalidInput("there is no strategy '" + name + "'", {});
        }
        return {};
    }

    Result<void> makeFolder() const {
        std::error_code error;
        fs::create_directories(fs::path(m_options.folder) / "checkpoints", error);
        if (error)
            return Error{ErrorCode::ToolFailed, "cannot make the folder: " + error.message(), m_options.folder, {}};
        return {};
    }

    /// The stage at which compiling a graph from within `stage` begins: the joint stage if capture has differentiated
    /// the graph (it takes or returns other values), else `stage`.
    std::string stageFrom(const Module& graph, const std::string& stage) const {
        const Graph &now = graph.graph(), &opened = m_state.input->graph();
        const bool early = stage == kPreGrad.name || stage == kCapture.name;
        const bool other = now.placeholders().size() != opened.placeholders().size() ||
                           now.outputs().size() != opened.outputs().size();
        return std::string(early && other ? kJoint.name : stage);
    }

    /// The graph as it was opened, or as it stands at the place.
    Result<std::shared_ptr<const Module>> chooseBase() {
        if (!m_options.place) return std::shared_ptr<const Module>(m_state.input);
        const Place& place = *m_options.place;
        CT_TRY(const Session::State::Run* const run, std::as_const(m_state).run(place.run));
        CT_TRY(const Snapshot graph, m_state.snapshot(place, m_progress.cancel.get()));
        const auto base = std::make_shared<Module>(*graph);
        const std::vector<Step>& steps = run->trace.steps;
        if (steps.empty() || place.step < 0) return std::shared_ptr<const Module>(base);
        const Step& step = steps[std::min(steps.size() - 1, static_cast<size_t>(place.step))];
        base->origin.stage = stageFrom(*graph, step.info.stage);
        m_where = " at " + step.info.key();
        // A half is compiled as any graph without gradients.
        if (step.info.graphName == "main" || step.info.graphName == "joint") return std::shared_ptr<const Module>(base);
        m_options.request.mode = Mode::Inference;
        m_options.request.gradients.clear();
        m_options.request.memoryBudget = CompileRequest().memoryBudget;
        m_options.request.solver = CompileRequest().solver;
        m_isBackward = step.info.graphName == "backward";
        return std::shared_ptr<const Module>(base);
    }

    /// Values of the given inputs: the file's, the samples, or random ones.
    Result<std::vector<Tensor>> inputsOf(const Module& base) const {
        if (m_options.place) return inputsThere(base);
        // The trials use no values, so none are read: the inputs of the result's file are made up one by one.
        if (m_options.inputsFile.empty() && m_state.sampleInputs.empty() && m_oracle && !m_oracle->usesValues())
            return std::vector<Tensor>();
        CT_TRY(RunInputs chosen, chooseInputs(base, m_state.sampleInputs, m_options.inputsFile, m_state.noSamples));
        return std::move(chosen.user);
    }

    /// Those of the opened graph come first; derivatives and what a forward saves are made up.
    Result<std::vector<Tensor>> inputsThere(const Module& base) const {
        CT_TRY(std::vector<Tensor> values, randomInputs(base, 0));
        if (m_isBackward) return values;
        CT_TRY(RunInputs chosen,
               chooseInputs(*m_state.input, m_state.sampleInputs, m_options.inputsFile, m_state.noSamples));
        for (size_t i = 0; i < std::min(values.size(), chosen.user.size()); ++i) values[i] = chosen.user[i];
        return values;
    }

    Result<Candidate> search(const Candidate& start) {
        if (!m_options.request.parity) return reduce(start, *m_oracle, {m_options.without});
        PyTorchMinifierOptions options;
        options.maxGranularity = m_options.maxGranularity;
        options.log = [this](const std::string& line) {
            m_line = line;
            tell(false);
        };
        return minifyAsPyTorch(start, *m_oracle, options);
    }

    void lookForEarlierResult() {
        const auto earlier = readRepro(resultFolder());
        if (!earlier) return;
        if (const auto graph = parseText(earlier->job.graph))
            m_nodesOnDisk = static_cast<int>((*graph)->graph().size());
    }

    ReproFolder reproOf(const TrialJob& job) const {
        ReproFolder repro;
        repro.job = job;
        repro.signature = m_report.signature;
        repro.detail = m_oracle->detail();
        if (m_options.check == MinifyCheck::Command) {
            if (m_options.check == MinifyCheck::Command) repro.command = m_options.command;
            repro.match = m_options.match;
        }
        repro.timeoutSeconds = m_options.timeoutSeconds;
        repro.memoryBytes = m_options.memoryBytes;
        repro.repeats = m_options.repeats;
        repro.origin = m_state.info.path + m_where + ", " + std::to_string(m_report.nodesBefore) + " nodes";
        repro.remarks = m_oracle->remarks();
        return repro;
    }

    std::string resultFolder() const { return (fs::path(m_options.folder) / "best").string(); }

    Result<void> accepted(const Candidate& best, const std::string& how) {
        CT_TRY(const TrialJob job, m_oracle->jobOf(best, m_oracle->usesValues()));
        return accept(best, job, how);
    }

    Result<void> accept(const Candidate& best, const TrialJob& job, const std::string& how) {
        m_best = best;
        m_report.steps.push_back({m_oracle->trials(), nodesOf(best), static_cast<int>(best.module->inputs.size()),
                                  static_cast<int>(best.module->graph().outputs().size()), how, secondsSince()});
        const fs::path checkpoint =
            fs::path(m_options.folder) / "checkpoints" / (std::to_string(nodesOf(best)) + ".py");
        CT_TRY_VOID(writeFile(checkpoint.string(), job.graph));
        // A resumed search repeats its way, with graphs larger than the result that is in the folder already.
        if (nodesOf(best) <= m_nodesOnDisk) {
            CT_TRY_VOID(writeRepro(resultFolder(), reproOf(job), kMostBytesEachStep));
            m_nodesOnDisk = nodesOf(best);
        }
        m_text = job.graph;
        m_line = how + ": " + std::to_string(nodesOf(best)) + " nodes";
        tell(true);
        return {};
    }

    void tell(bool fresh) {
        const int now = nodesOf(m_best.module ? m_best : Candidate{m_base, {}, nullptr});
        m_progress.say(-1, "trial " + std::to_string(m_oracle->trials()) + ", " + std::to_string(now) + " of " +
                               std::to_string(m_report.nodesBefore) + " nodes");
        if (!m_watch) return;
        MinifyState state;
        state.trials = m_oracle->trials();
        state.nodesBefore = m_report.nodesBefore;
        state.signature = m_report.signature;
        state.steps = m_report.steps;
        if (fresh) {
            state.best = m_text;
            state.graph = std::make_shared<const UnionGraph>(describeGraph(*m_best.module));
        }
        state.logLine = std::exchange(m_line, {});
        m_watch(state);
    }

    /// The result with its true inputs, tried once more in a process that knows nothing of the search.
    Result<void> finish() {
        const Progress unstopped;  // a search that was stopped still leaves a whole result
        CT_TRY(TrialJob job, m_oracle->jobOf(m_best, true));
        m_report.folder = resultFolder();
        m_report.command = "cutaway-cli run-repro " + shellWord(m_report.folder);
        // A resumed search was stopped before it reached the folder's result: that one is the smaller graph.
        if (nodesOf(m_best) > m_nodesOnDisk) {
            CT_TRY(ReproFolder earlier, readRepro(m_report.folder));
            CT_TRY(auto graph, parseText(earlier.job.graph));
            m_best.module = std::move(graph);
            job = std::move(earlier.job);
        }
        ReproFolder repro = reproOf(job);
        CT_TRY_VOID(writeRepro(m_report.folder, repro, kMostBytes));
        CT_TRY(const ReproFolder written, readRepro(m_report.folder));
        CT_TRY(const TrialOutcome outcome, tryRepro(written, unstopped));
        m_report.reproduced = outcome.failure && isSameFailure(m_report.signature, *outcome.failure);
        m_report.detail = outcome.detail;
        repro.detail = outcome.detail;
        if (m_report.reproduced) CT_TRY_VOID(writeRepro(m_report.folder, repro, kMostBytes));
        m_report.graph = (fs::path(m_report.folder) / "graph.py").string();
        m_report.text = job.graph;
        m_report.request = job.request;
        m_report.nodes = nodesOf(m_best);
        m_report.inputs = static_cast<int>(m_best.module->inputs.size());
        m_report.outputs = static_cast<int>(m_best.module->graph().outputs().size());
        m_report.trials = m_oracle->trials();
        m_report.made = m_oracle->made();
        m_report.overheadMilliseconds = m_oracle->overheadMilliseconds();
        m_report.seconds = secondsSince();
        return {};
    }

    double secondsSince() const { return std::chrono::duration<double>(Clock::now() - m_start).count(); }

    Session::State& m_state;
    MinifyOptions m_options;
    const std::function<void(const MinifyState&)>& m_watch;
    const Progress& m_progress;
    const Clock::time_point m_start = Clock::now();
    std::unique_ptr<Oracle> m_oracle;
    Candidate m_best;
    std::shared_ptr<const Module> m_base;
    std::string m_where;  // of the graph, if it is not the one that was opened
    bool m_isBackward = false;
    MinifyReport m_report;
    std::string m_text, m_line;
    int m_nodesOnDisk = std::numeric_limits<int>::max();  // of the result that the folder holds
};

}  // namespace

std::vector<std::pair<std::string, std::string>> minifyStrategies() {
    std::vector<std::pair<std::string, std::string>> all;
    for (const ReduceStrategy& each : reduceStrategies())
        all.emplace_back(std::string(each.name), std::string(each.summary));
    return all;
}

Result<MinifyReport> minify(Session& session, const MinifyOptions& options,
                            const std::function<void(const MinifyState&)>& watch, const Progress& progress) {
    return guarded([&]() -> Result<MinifyReport> {
        if (!session.isOpen())
            return Error{ErrorCode::NotFound, "no model is open", {}, {"open a .pt2 file or FX text first"}};
        return Search(session.state(), options, watch, progress).run();
    });
}

}  // namespace cutaway
