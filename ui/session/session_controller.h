#pragma once
// Between the windows and the engine: puts work on job queues and brings results back to the window's thread. Looking
// and each kind of long work have a queue of their own, so that none waits for another. Results of a request are
// dropped once a later one of its kind, or another model, was asked for. Follows the Selection: a new place loads its
// difference and texts, a new node its details. If loading fails or is cancelled, the place does not change.
#include <QElapsedTimer>
#include <QHash>
#include <QObject>
#include <QSet>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cutaway/jobs.h"
#include "ui/models/explain_model.h"
#include "ui/models/log_model.h"
#include "ui/models/node_model.h"
#include "ui/models/side_by_side.h"
#include "ui/models/step_kinds.h"
#include "ui/models/text_diff.h"
#include "ui/session/breakpoints.h"
#include "ui/session/checked_runs.h"
#include "ui/session/graph_coloring.h"
#include "ui/session/kernel_query.h"
#include "ui/session/loop_query.h"
#include "ui/session/memory_query.h"
#include "ui/session/minify_search.h"
#include "ui/session/selection.h"
#include "ui/session/source.h"

namespace cutaway::ui {

/// What is on show: the difference of two places.
struct Shown {
    Comparison comparison;
    bool beside = false;  // the forward of a training run beside its backward, in place of a difference
    std::shared_ptr<const UnionGraph> graph;
    std::shared_ptr<const NodeIndex> nodes;
};
/// What is known of the partition of a run into forward and backward.
struct RunPartition {
    RunId run = 0;
    QString problem;      // why there is none, and what to do; empty if there is one
    PartitionChoice own;  // with the run's memory budget
    std::vector<NodeSide> sides;
    std::vector<SavedBytes> held;
};
struct BudgetCurve {
    RunId run = 0;
    std::vector<BudgetPoint> points;
};
struct ShownText {
    Comparison comparison;
    QVector<DiffLine> lines;
};
/// "inference", "training", "forward mode (jvp)".
QString modeTitle(Mode mode);

struct Run {
    RunId id = 0;
    int number = 1;  // for people: counted from 1 since the model was opened
    CompileRequest options;
    std::vector<StepInfo> steps;
    std::vector<std::vector<RewriteInfo>> rewrites;  // by step
    bool stopped = false;                            // before its last pass
    QString notExecuted, notTimed, notBuilt;         // why these cannot be asked for; empty if they can
    /// The step that splits the joint graph into forward and backward.
    std::optional<int> splitStep() const;
    /// The last step of a graph; none if the run has no such graph.
    std::optional<int> lastStepOf(std::string_view graphName) const;
    QString title() const;  // "Run 1: inference, CPU"
};

/// Something that goes on, for its line in the status bar.
struct Activity {
    QString tag;              // for cancel()
    QString doing, progress;  // "Compiling", "pass 12 of 117, pointless_view"
    double fraction = -1;     // 0..1, negative when unknown
    QElapsedTimer since;
};

class SessionController : public QObject {
    Q_OBJECT

  public:
    SessionController(std::unique_ptr<Source> source, Selection& selection, QObject* parent = nullptr);
    ~SessionController() override;

    /// `graph`: the one to open, of a file with several; empty for the first, and then severalGraphs() reports the
    /// others.
    void open(const QString& path, const QString& graph = {});
    /// Closes the model and its runs.
    void close();
    /// Compiles, emitting compilingChanged after every step; then shows the first change of the new run, or, with
    /// `comparedWith`, the difference of both results.
    void compile(const CompileRequest& options, std::optional<RunId> comparedWith = {});
    /// Compiles again with a pass or a rule ("pass/rule") on or off; then shows the difference of both results.
    void setEnabled(RunId run, const QString& name, bool enabled);
    void build(RunId run, Target target);
    void run(RunId run, const RunOptions& options);
    /// What the current run's forward would save with another memory budget; answers with candidateShown(). Of many
    /// that are asked for quickly only the latest is computed. None: the run's own again.
    void tryBudget(std::optional<double> budget);
    /// Makes a run with another memory budget of the current one and shows the same step of it.
    void deriveWithBudget(double budget);
    /// Memory against recomputation of the current run, once for all runs that differ in their budget; answers with
    /// curveShown().
    void askCurve();
    const std::shared_ptr<const RunPartition>& partition() const { return m_partition; }
    const std::shared_ptr<const PartitionChoice>& candidate() const { return m_candidate; }
    /// The difference between a graph of another file, or another of this file, and the current graph. What is open
    /// stays.
    void compareWith(const QString& path, const QString& graph);
    /// The graphs at some places, each by itself.
    void graphsAt(const std::vector<Place>& places,
                  std::function<void(const std::vector<std::shared_ptr<const UnionGraph>>&)> then);
    void graphsOf(const QString& path, std::function<void(const std::vector<GraphSummary>&)> then);
    /// The graphs from before and after PyTorch's post-grad passes that belong to the open one, else the file's first.
    std::optional<RecordedPair> recordedPair() const;
    /// What our post-grad passes make of the former beside the latter.
    void compareRecorded(const CompileRequest& options);
    /// Searches the run for the rewrite that broke the graph; then shows it, every test in the log.
    void bisect(RunId run, const BisectOptions& options);
    /// Writes the open graph into a self-contained folder that runs it; what came of it is in the log.
    void debugCompile(const DebugCompileOptions& options);
    void exportProgram(RunId run, const ExportOptions& options);
    /// Which rules apply at the current node before the current step, and why others do not; answers with explained().
    void explain();
    /// The graph at a place as a Python program that runs in PyTorch.
    void runnableText(const Place& place, std::function<void(const QString&)> then);
    /// Stops one activity. A compile that has done some steps keeps these as its run. If loading a place is stopped,
    /// the selection returns to the place that is shown. What does not stop, such as a pass that hangs, is left behind
    /// after some seconds, a compile at the second call: its result is dropped, and nothing waits for it.
    void cancel(const QString& tag);
    /// The activities, in the order in which they began.
    QVector<Activity> activities() const;
    bool isBusy() const { return !m_pending.isEmpty() || m_triedBudget; }

    const std::optional<ModelInfo>& model() const { return m_model; }
    /// The release of PyTorch that is nearest to the one that wrote the file. Nullopt if the file names none.
    std::optional<Release> releaseOfFile() const { return m_model ? nearestRelease(m_model->torch) : std::nullopt; }
    QString path() const { return m_path; }
    /// Tells the open graph from others by what it is, wherever its file lies.
    QString modelKey() const { return m_modelKey; }
    /// The graphs in the file, if there are several, and the name of the one that is open.
    const std::vector<GraphSummary>& graphs() const { return m_graphs; }
    QString graph() const { return m_graph; }
    /// The compiler's passes in running order, for a mode.
    std::vector<PassInfo> passes(const CompileRequest& request) const { return m_source->passes(request); }
    const std::vector<Run>& runs() const { return m_runs; }
    /// The user looks at the run under way again, so it will be shown when it is done even if the place has changed
    /// meanwhile.
    void awaitCompile() { m_awaited = m_moves; }
    /// The run under way with the steps that are done; null before the first. It has no id, and its graphs cannot be
    /// asked for yet.
    const Run* compiling() const { return m_compiling ? &*m_compiling : nullptr; }
    const Run* runOf(RunId id) const;
    /// The single rewrite that leads to a place; null if the place is none.
    const RewriteInfo* rewriteAt(const Place& place) const;
    /// The first rewrite of a step, counted from 1, that changed the node; 0 if none did. Replays the step some times
    /// (the logarithm of its rewrites).
    void findRewrite(RunId run, int step, NodeKey node, std::function<void(int)> then);
    /// Which calls of a compiled package a run computes the same; `then` with nothing where it fails.
    void comparePackage(RunId run, std::shared_ptr<const PackagedModel> model,
                        std::function<void(std::shared_ptr<const PackageComparison>)> then);
    /// "3 fuse_bias_add", "as opened": for titles.
    QString placeName(const Place& place) const;
    /// Whether these are the forward and the backward of one run.
    bool isForwardBesideBackward(const Comparison& pair) const;
    LogModel& log() { return m_log; }
    CheckedRuns& checkedRuns() { return *m_checkedRuns; }
    GraphColoring& coloring() { return *m_coloring; }
    MinifySearch& minifySearch() { return *m_minifySearch; }
    KernelQuery& kernelQuery() { return *m_kernelQuery; }
    LoopQuery& loopQuery() { return *m_loopQuery; }
    MemoryQuery& memoryQuery() { return *m_memoryQuery; }
    /// Where compiles stop.
    Breakpoints& breakpoints() { return *m_breakpoints; }
    /// Compiles on from the last stop to the next.
    void goOn();
    Selection& selection() { return m_selection; }

  signals:
    void modelOpened();
    void modelClosed();
    /// The file holds several graphs and none was named, so the first is open. Comes after modelOpened().
    void severalGraphs();
    /// graphs() has the other graphs of a file that was opened at one of them. Comes some time after modelOpened().
    void neighboursKnown();
    /// Another step of the run under way is done, or there is no such run any more.
    void compilingChanged();
    void compiled(cutaway::RunId run);
    void shown(std::shared_ptr<const cutaway::ui::Shown> what);
    void textShown(std::shared_ptr<const cutaway::ui::ShownText> what);
    void nodeShown(std::shared_ptr<const cutaway::ui::NodeFacts> facts);
    void explained(std::shared_ptr<const cutaway::ui::Explained> what);
    /// Of the current run; null if there is no run.
    void partitionShown(std::shared_ptr<const cutaway::ui::RunPartition> what);
    /// With the budget that is being tried; null: with the run's own.
    void candidateShown(std::shared_ptr<const cutaway::PartitionChoice> choice);
    void curveShown(std::shared_ptr<const cutaway::ui::BudgetCurve> curve);
    /// After each test of a search, and when it ends; null when it begins.
    void bisecting(cutaway::RunId run, std::shared_ptr<const cutaway::BisectReport> soFar);
    void bisected(std::shared_ptr<const cutaway::BisectReport> report);
    void built(cutaway::RunId run, std::shared_ptr<const cutaway::BuildInfo> info);
    /// Generated code has run: its kernels, with their times.
    void timed(cutaway::RunId run, std::shared_ptr<const cutaway::BuildInfo> info);
    void ran(cutaway::RunId run, std::shared_ptr<const cutaway::RunReport> report);
    /// Also in the log.
    void problem(const cutaway::ui::LogEntry& entry);
    /// A message about something that was done and cannot be seen.
    void message(const QString& text);
    void activitiesChanged();
    void busyChanged(bool busy);

  private:
    enum class Lane { Queries, Compiles, Executions, Searches, Curves, Count };
    static constexpr const char* kQuery = "look";
    static constexpr std::chrono::milliseconds kPatience{5000}, kLittlePatience{300};  // with what was told to stop
    struct Pending {
        Lane lane = Lane::Queries;
        Activity shown;
        std::shared_ptr<CancelToken> cancel;
        QString reached;  // the progress that it told last
    };
    template <class T>
    void ask(Lane lane, const QString& tag, const QString& doing,
             std::function<Result<T>(Source&, const Progress&)> work, std::function<void(T)> then,
             std::function<void()> orElse = {});
    void settled(const QString& tag);
    bool drop(const QString& tag);
    // session_close.cpp
    void awaitEnd(const Pending& stopped, std::chrono::milliseconds patience);
    void leaveBehind(const Pending& stopped);
    void dropAll();
    void returnToShown();
    void opened(const QString& path, const QString& graph, ModelInfo info, const QString& key);
    void askNeighbours(const QString& path);
    void stepEnded(int compile, const CompileRequest& options, const StepInfo& step);
    void forgetCompiling();
    void fail(const Error& error, const QString& doing);
    void loadPlace();
    struct Loaded;
    static Result<Loaded> loadBoth(Source& source, const Comparison& what, bool beside, const Progress& progress);
    void loadNode();
    void switchOn(const std::string& pass, CompileRequest& options) const;
    void loadValues(NodeKey node, const std::shared_ptr<const NodeFacts>& facts);
    void nodeLoaded(NodeKey node, std::shared_ptr<const NodeFacts> facts);
    void wantKernels();
    void finishBisect(const BisectReport& report, bool show);
    /// What is shown of a run once it is compiled, instead of its first change.
    struct AfterCompile {
        std::optional<RunId> comparedWith;
        std::optional<int> step;
        std::optional<RunId> derivedFrom;  // it has another memory budget and shares the joint graph
        std::shared_ptr<std::optional<BreakpointStop>> stop = {};  // set when it ends; null: it knows no breakpoints
        std::vector<Breakpoint> breakpoints = {};                  // that it was given; the list may change meanwhile
    };
    using Compiler =
        std::function<Result<RunId>(Source&, const std::function<void(const StepInfo&)>& ended, const Progress&)>;
    void compileBy(Compiler compiler, const CompileRequest& options, const AfterCompile& then);
    void finishCompile(Run run, const AfterCompile& then, bool show);
    // breakpoints.cpp
    void compileFrom(const CompileRequest& options, const std::optional<Place>& past,
                     std::optional<RunId> comparedWith);
    bool showStop(const Run& run, const AfterCompile& then, bool show);
    // session_partition.cpp
    void loadPartition();
    void forgetPartition();
    void tryNextBudget();

    std::unique_ptr<Source> m_source;
    Selection& m_selection;
    LogModel m_log;
    std::optional<ModelInfo> m_model;
    QString m_path, m_graph, m_modelKey;
    QHash<RunId, QString> m_keptNames;  // of graphs beside the open one
    std::vector<GraphSummary> m_graphs;
    std::vector<Run> m_runs;
    std::optional<Run> m_compiling;
    int m_compile = 0;  // number of the latest: reports of earlier ones are dropped
    std::shared_ptr<const Shown> m_shown;
    std::shared_ptr<const SideBySide> m_beside;  // of m_shown, where it is a forward beside its backward
    NodeKey m_shownNode = NodeKey::None;
    std::shared_ptr<const NodeFacts> m_facts;  // of it, without its kernels
    bool m_returning = false;                  // to what is on show already
    int m_awaited = 0;                         // m_moves when the compile was asked for
    int m_moves = 0;  // changes of the place: work that ends does not move a user who has moved on
    std::shared_ptr<const std::vector<RuleInfo>>
        m_rules;  // texts of all rules of run m_rulesOf, once somebody wants them
    RunId m_rulesOf = -1;
    std::shared_ptr<const RunPartition> m_partition;
    std::shared_ptr<const PartitionChoice> m_candidate;
    std::optional<double> m_triedBudget;  // asked for, and not computed yet
    std::shared_ptr<const BudgetCurve> m_curve;
    RunId m_curveOf = -1;               // that is being computed
    QHash<RunId, RunId> m_derivedFrom;  // runs that differ in their memory budget, by the first of them
    QHash<QString, int> m_generation;
    QHash<QString, Pending> m_pending;  // by tag
    int m_epoch = 0;                    // rises when everything old is void
    std::array<std::unique_ptr<JobQueue>, static_cast<size_t>(Lane::Count)>
        m_queues;  // behind m_source, so destroyed before it: their threads use it
    std::unique_ptr<Breakpoints> m_breakpoints = std::make_unique<Breakpoints>();
    std::unique_ptr<CheckedRuns> m_checkedRuns;    // likewise
    std::unique_ptr<GraphColoring> m_coloring;     // likewise
    std::unique_ptr<MinifySearch> m_minifySearch;  // likewise
    std::unique_ptr<LoopQuery> m_loopQuery;        // likewise
    std::unique_ptr<KernelQuery> m_kernelQuery;
    std::unique_ptr<MemoryQuery> m_memoryQuery;
};

}  // namespace cutaway::ui
