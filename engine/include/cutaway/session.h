#pragma once
// The engine as a program: open models, compile them step by step, look at every step, run the result. Only one thread
// may open. From then on several may call at once: what is recorded is never changed, only more is added, so one thread
// can look while others compile, run and search. Every call that can take long is given a Progress.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/node_key.h"
#include "cutaway/partition.h"
#include "cutaway/request.h"
#include "cutaway/result.h"
#include "cutaway/snapshot.h"
#include "cutaway/trace.h"

namespace cutaway {

struct OpSummary {
    std::string op;
    int count = 0;
    std::string problem;  // why it cannot be run; empty if it can
};
struct GraphSummary {
    std::string name;
    int nodes = 0, inputs = 0, outputs = 0;
    std::vector<OpSummary> ops;  // by count, then name
};
struct ModelInfo {
    std::string path, name, format;
    std::string torch;  // the version of PyTorch that the file says wrote it, "2.15.0+cpu"; empty if it says none
    std::vector<GraphSummary> graphs;                // main first, then subgraphs
    int parameters = 0, buffers = 0, constants = 0;  // tensors
    int64_t parameterElements = 0, bytes = 0;        // bytes of all owned tensors, ties counted once
    std::vector<std::string> inputs, outputs;        // "ids: i64[2, 32]"
    /// Of a graph of a run: the positions, among the inputs of the graph as opened, of those that it takes still.
    /// Freezing makes constants of the others.
    std::vector<size_t> preservedArguments;
    std::vector<std::string> symbols;  // "s77 in [2, 64], for example 6"
    /// What else must hold of them, and for which call: "s77 % 2 == 0 (view: aten.view.default)". Runs refuse other
    /// sizes.
    std::vector<std::string> guards;
    std::vector<std::string> tensors;   // of files that are tensors only: "fc.weight: f32[8, 4]"
    std::vector<std::string> contents;  // of the file beside its graphs: entries, settings, counts of events
    std::vector<std::string> remarks;   // assumptions made while reading
};

using RunId = int;
/// A graph of a run: after the first `rewrites` rewrites of a step (0: before the step; negative: after all of it).
/// Step -1 is the graph as it was opened.
struct Place {
    RunId run = 0;
    int step = -1;
    int rewrites = -1;
    bool operator==(const Place&) const = default;
};

struct KernelInfo {
    std::string name;
    std::string source;                // of this kernel alone
    std::vector<NodeKey> nodes;        // that it computes
    std::vector<std::string> reasons;  // fusion: every yes and no that concerned it
    std::string kind;                  // "pointwise", "reduction", "library: mm (oneDNN)", "reference: aten.x"
    int64_t bytesRead = 0, bytesWritten = 0, flops = 0;
    double microseconds = 0;  // measured; 0 until timed
};
struct BuildInfo {
    std::string source, compileLog, library;  // whole file; the compiler's output; path of the library
    double compileSeconds = 0;
    std::vector<KernelInfo> kernels;
};
enum class Backend : uint8_t { Reference, Cpu, Cuda };
struct RunOptions {
    Backend backend = Backend::Reference;
    std::string inputsFile, expectFile;  // safetensors; empty = the model's sample inputs, else seeded random ones
    std::string gradientsFile;           // of training: where loss, outputs and gradients are written, safetensors
    std::string expectGradientsFile;     // of training: such a file, to compare with
    std::string valuesFile;              // safetensors; tensors named after nodes, taken in place of what those compute
    std::string judge;                   // a plugin's, which says whether a result may stand for the expected one
    int repeat = 1;
    bool cold = false;           // of compiled runs: each timed one finds nothing of its own in any cache
    double budgetSeconds = 0;    // of compiled runs: no further repeat once they took so long; 0: all of them
    double timeoutSeconds = 60;  // of the child process
};
/// The element of a result that is furthest from its expected value.
struct ElementDifference {
    std::vector<int64_t> index;
    std::string actual, expected;  // as many digits as tell neighbours apart
};
struct OutputReport {
    std::string name, type;
    double minimum = 0, maximum = 0, mean = 0;  // of the finite elements
    int64_t nonFinite = 0;
    bool compared = false, within = false;
    double maxAbsoluteError = 0, maxExpected = 0;
    std::optional<ElementDifference> worst;  // absent where no element differs
    std::string problem;                     // why it does not match
    std::string remark;                      // what else explains a difference, such as ties between equal keys
};
/// What a forward and its backward computed.
struct TrainingReport {
    double loss = 0;
    std::string lossFrom;                 // "the returned scalar", "the mean of squares of the results, summed"
    std::vector<OutputReport> gradients;  // by parameter or input
    double forwardMilliseconds = 0, backwardMilliseconds = 0;  // medians
    int64_t savedBytes = 0, estimatedSavedBytes = 0;           // of activations: as measured, and as types say
    int64_t heldBytes = 0;  // of everything that is handed over, inputs too, each memory once
};
/// What a run costs beside its own time. Weights, arena and milliseconds are of compiled runs; the interpreter leaves
/// them at 0.
struct RunCost {
    int64_t peakBytes = 0;         // the most that the process of the run has held of memory, its libraries included
    int64_t programPeakBytes = 0;  // the same of the calling process
    int64_t weightsBytes = 0;      // weights and constants, each memory once
    int64_t arenaBytes = 0;        // values and scratch memory of one run
    double loadMilliseconds = 0;   // until a new process had code and weights; 0 if one had them already
    double startMilliseconds = 0;  // from the request to the results, less the time of the runs themselves
};
struct RunReport {
    std::vector<OutputReport> outputs;
    std::optional<RunCost> cost;  // of the last process; of training forward and backward together
    double medianMilliseconds = 0, minMilliseconds = 0;
    double firstQuartile = 0, thirdQuartile = 0;  // milliseconds, between which lies half of the runs
    int repeats = 0;                              // as many as were made
    bool compared = false, matches = true;
    std::string inputsFrom;    // "sample inputs of the file", "random, seed 0", a path
    std::string expectedFrom;  // the path, and how its tensors were told apart; empty if nothing was compared
    std::optional<TrainingReport> training;
    /// What the run writes to buffers, parameters and inputs, by their names.
    std::vector<OutputReport> written;
    /// Compiled calls that their library did not take when it planned them, in a sentence each.
    std::vector<std::string> refused;
    /// What the run takes for granted, and what may be the cause of a difference, in a sentence each.
    std::vector<std::string> notes;
};

/// Whether each step of a run computes the same numbers as before: the interpreter runs the graphs on both sides of
/// every step that changed something.
struct NumbersOptions {
    std::string inputsFile;   // as RunOptions'
    double tolerance = 1e-4;  // |error| <= t (|expected| + max(1, 90th percentile of them)); t at least the dtype's
};
struct StepNumbers {
    StepInfo step;
    bool kept = true;
    std::string detail;  // "largest error 3e-07"; what differs; why it could not be compared
};
struct NumbersReport {
    bool kept = true;                // by every step
    std::vector<StepNumbers> steps;  // that changed the graph, up to the first that did not keep the numbers
    std::string inputsFrom;
};

class Session {
  public:
    Session();
    ~Session();
    Session(Session&&) noexcept;

    /// Reads a model or graph. On failure what was open stays open.
    Result<ModelInfo> open(const std::string& path, const Progress& progress = {});
    Result<ModelInfo> open(const std::string& path, const OpenSettings& settings, const Progress& progress = {});
    bool isOpen() const;
    const ModelInfo& model() const;

    /// Runs the passes and records every step. Earlier runs are kept.
    Result<RunId> compile(const CompileRequest& request, const CompileHooks& hooks = {}, const Progress& progress = {});
    /// The same for a caller that wants to follow: `ended` is called after each step, on the calling thread. When
    /// cancelled, the steps done so far become the run (see wasCancelled); without any it fails.
    Result<RunId> compileWatched(const CompileRequest& request, const CompileHooks& hooks,
                                 const std::function<void(const StepInfo&)>& ended, const Progress& progress = {});
    /// Whether the run was stopped before its last pass.
    Result<bool> wasCancelled(RunId run) const;
    std::vector<RunId> runs() const;
    Result<CompileRequest> requestOf(RunId run) const;
    Result<std::vector<StepInfo>> steps(RunId run) const;
    Result<std::vector<StageInfo>> stages(RunId run) const;
    /// Single rewrites of a step, in order.
    Result<std::vector<RewriteInfo>> rewrites(RunId run, int step, const Progress& progress = {});

    /// What each rule of a step tried and did, in the order in which they were first tried.
    Result<std::vector<RuleUse>> ruleUses(RunId run, int step) const;
    /// Whether a rule of the pipeline or of the run's own rules applies at a node of the graph at `place`, and if not,
    /// why. `rule` is its name, or "pass/name" where several passes have a rule of that name. Usually `place` is the
    /// graph before the rule's step. Nothing is changed.
    Result<RuleExplanation> explain(const Place& place, const std::string& rule, NodeKey node,
                                    const Progress& progress = {});
    /// The same for every rule that may start at the node, or for those of `pass`. A pass written as a function has to
    /// run to answer, so without `pass` only the pass of the step after `place` does; its answers come first.
    Result<std::vector<RuleExplanation>> explainAll(const Place& place, NodeKey node, const std::string& pass = {},
                                                    const Progress& progress = {});
    /// The same for a rule given as text ("rule NAME", "find" and "replace" with their statements).
    Result<RuleExplanation> explainText(const Place& place, const std::string& ruleText, NodeKey node,
                                        const Progress& progress = {});

    /// Difference between two places: usually the places before and after a step. Graphs of two runs, and graphs that
    /// are kept beside (cutaway/comparison.h), are paired by what their nodes are, each pair with its certainty.
    Result<UnionGraph> diff(const Place& before, const Place& after, const Progress& progress = {});
    Result<GraphText> text(const Place& place, bool runnable = false, const Progress& progress = {});
    Result<NodeDetails> node(const Place& place, NodeKey id, const Progress& progress = {});
    /// The numbers of a constant (NodeDetails::constant) and of what it is made from, or of a call that depends on
    /// constants alone; they are computed if need be. Errors: the node depends on inputs; it cannot be computed;
    /// Cancelled.
    Result<ValueSummary> values(const Place& place, NodeKey id, const Progress& progress = {});
    Result<ModelInfo> graphInfo(const Place& place);

    /// Generates and compiles the kernels: source, compile log, kernels. Nothing is loaded yet. Cached per run and
    /// target.
    Result<BuildInfo> build(RunId run, Target target, const Progress& progress = {});
    Result<RunReport> run(RunId run, const RunOptions& options, const Progress& progress = {});
    /// Whether code can be generated at all, known before it is tried; the error says why not.
    Result<void> canBuild(RunId run) const;
    Result<void> canRun(RunId run, Backend backend) const;

    /// Runs the graphs on both sides of every changed step. Random ops draw the same numbers before and after a step
    /// that replaces them. Inputs that a graph writes to count as results. Errors: the graph as opened does not run.
    Result<NumbersReport> checkNumbers(RunId run, const NumbersOptions& options = {}, const Progress& progress = {});

    // The partition of a training run into forward and backward. Errors of all: the run has none, with the reason.
    /// What the run's forward saves.
    Result<PartitionChoice> partition(RunId run, const Progress& progress = {});
    /// What it would save with another memory budget. Makes no step; what does not depend on the budget is computed
    /// once, so a slider may ask while it moves.
    Result<PartitionChoice> partitionAt(RunId run, double budget, const Progress& progress = {});
    /// Memory against recomputation over all budgets: neighbours differ, first the smallest budget.
    Result<std::vector<BudgetPoint>> budgetCurve(RunId run, const Progress& progress = {});
    /// A run like this one with another memory budget; it shares all steps before the partition.
    Result<RunId> deriveWithBudget(RunId run, double budget, const CompileHooks& hooks = {},
                                   const std::function<void(const StepInfo&)>& ended = {},
                                   const Progress& progress = {});
    /// Where each node of the joint graph is computed.
    Result<std::vector<NodeSide>> sides(RunId run, const Progress& progress = {});
    /// Why a node of the joint graph is saved, computed again, or on one side only: a sentence.
    Result<std::string> explainPartition(RunId run, NodeKey node, const Progress& progress = {});
    /// What is held for the backward after each call, by the types' sizes.
    Result<std::vector<SavedBytes>> heldBytes(RunId run, const Progress& progress = {});

    /// Internals for the command line and tests (engine/session/session_state.h).
    struct State;
    State& state() { return *m_state; }

  private:
    std::unique_ptr<State> m_state;
};

/// What a file holds, even one without a graph to open (tensors, compiled packages). Nothing stays open.
Result<ModelInfo> inspectFile(const std::string& path, const OpenSettings& settings = {});

/// One pass of the compiler, to choose from.
struct PassInfo {
    std::string stage, name, summary;
    bool optional = false;  // runs only if CompileRequest::enabledPasses names it
};
/// All passes that a run of this kind can have, in running order.
std::vector<PassInfo> passList(const CompileRequest& request);

/// Every rule in running order, with those of passes written as functions ("(code)").
std::vector<RuleInfo> ruleList();
/// And those of the options' own rules. Errors: rules that do not load.
Result<std::vector<RuleInfo>> ruleList(const CompileRequest& options);
/// The same as text that loads again, of one pass if `pass` is not empty; where a function stands, "(code)", and
/// comments for rules that are functions altogether.
Result<std::string> ruleTexts(const CompileRequest& options, const std::string& pass = {});

}  // namespace cutaway
