#pragma once
// Between the windows and the engine: puts work on the job queue and brings results back to the window's thread. What
// was asked for before the latest request of its kind, or before the current model was opened, is dropped. Follows the
// Selection: a new place loads its difference and texts, a new node its details.
#include <QHash>
#include <QObject>
#include <QSet>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cutaway/jobs.h"
#include "ui/models/explain_model.h"
#include "ui/models/log_model.h"
#include "ui/models/node_model.h"
#include "ui/models/step_kinds.h"
#include "ui/models/text_diff.h"
#include "ui/session/selection.h"
#include "ui/session/source.h"

namespace cutaway::ui {

/// What is on show: the difference of two places.
struct Shown {
    Comparison comparison;
    std::shared_ptr<const UnionGraph> graph;
};
struct ShownText {
    Comparison comparison;
    QVector<DiffLine> lines;
};
struct Run {
    RunId id = 0;
    int number = 1;  // for people: counted from 1 since the model was opened
    CompileOptions options;
    std::vector<StepInfo> steps;
    std::vector<std::vector<RewriteInfo>> rewrites;  // by step
    bool stopped = false;  // before its last pass
    /// Whether the step's rewrites can be done one by one.
    static bool replays(const StepInfo& step) { return !isSchedule(step); }
    QString title() const;  // "Run 1: inference, CPU"
};

class SessionController : public QObject {
    Q_OBJECT

  public:
    SessionController(std::unique_ptr<Source> source, Selection& selection, QObject* parent = nullptr);
    ~SessionController() override;

    /// `graph`: of a file with several, the one to work on; empty for the first.
    void open(const QString& path, const QString& graph = {});
    /// Forgets model and runs; nothing is open then.
    void close();
    /// Compiles, telling of every step when it is done (compilingChanged); then shows the first change of the new run, or, with
    /// `comparedWith`, the difference of both results.
    void compile(const CompileOptions& options, std::optional<RunId> comparedWith = {});
    /// Compiles again with a pass or a rule ("pass/rule") on or off; then shows the difference of both results.
    void setEnabled(RunId run, const QString& name, bool enabled);
    void build(RunId run, Target target);
    void run(RunId run, const RunOptions& options);
    /// Searches the run for the rewrite that broke the graph; then shows it, every test in the log.
    void bisect(RunId run, const BisectOptions& options);
    /// Which rules apply at the current node before the current step, and why others do not; answers with explained().
    void explain();
    /// The graph at a place as a Python program that runs in PyTorch.
    void runnableText(const Place& place, std::function<void(const QString&)> then);
    /// Stops everything that runs or waits. A compile that has done some steps ends soon, with these as its run.
    void cancel();
    bool isBusy() const { return !m_pending.isEmpty(); }

    const std::optional<ModelInfo>& model() const { return m_model; }
    QString path() const { return m_path; }
    /// Names of the graphs in the file, if there are several, and the one that is open.
    const QStringList& graphs() const { return m_graphs; }
    QString graph() const { return m_graph; }
    /// The compiler's passes in running order.
    std::vector<StepInfo> passes() const { return m_source->passes(); }
    const std::vector<Run>& runs() const { return m_runs; }
    /// The run under way with the steps that are done; null before the first. It has no id, and its graphs cannot be asked for yet.
    const Run* compiling() const { return m_compiling ? &*m_compiling : nullptr; }
    const Run* runOf(RunId id) const;
    /// The single rewrite that leads to a place; null if the place is none.
    const RewriteInfo* rewriteAt(const Place& place) const;
    /// The first rewrite of a step, counted from 1, after which the node is not as it was before the step; 0 if there is none
    /// or the node was not touched. Replays the step some times (the logarithm of its rewrites).
    void findRewrite(RunId run, int step, NodeId node, std::function<void(int)> then);
    /// "3 fuse_bias_add", "as opened": for titles.
    QString placeName(const Place& place) const;
    LogModel& log() { return m_log; }
    Selection& selection() { return m_selection; }

  signals:
    void modelOpened();
    void modelClosed();
    /// Another step of the run under way is done, or there is no such run any more.
    void compilingChanged();
    void compiled(cutaway::RunId run);
    void shown(std::shared_ptr<const cutaway::ui::Shown> what);
    void textShown(std::shared_ptr<const cutaway::ui::ShownText> what);
    void nodeShown(std::shared_ptr<const cutaway::ui::NodeFacts> facts);
    void explained(std::shared_ptr<const cutaway::ui::Explained> what);
    void bisected(std::shared_ptr<const cutaway::BisectReport> report);
    void built(cutaway::RunId run, std::shared_ptr<const cutaway::BuildInfo> info);
    void ran(cutaway::RunId run, std::shared_ptr<const cutaway::RunReport> report);
    /// Also in the log.
    void problem(const cutaway::ui::LogEntry& entry);
    void progress(const QString& what, double fraction);
    void busyChanged(bool busy);

  private:
    template <class T>
    void ask(const QString& tag, const QString& doing, std::function<Result<T>(Source&, const Progress&)> work,
             std::function<void(T)> then, std::function<void()> orElse = {});
    void settled(const QString& tag);
    void stop(bool keepSteps);
    void stepEnded(int compile, const CompileOptions& options, const StepInfo& step);
    void forgetCompiling();
    void fail(const Error& error, const QString& doing);
    void loadPlace();
    void loadNode();
    void finishBisect(const BisectReport& report);
    void finishCompile(Run run, std::optional<RunId> comparedWith);

    std::unique_ptr<Source> m_source;
    Selection& m_selection;
    LogModel m_log;
    std::optional<ModelInfo> m_model;
    QString m_path, m_graph;
    QStringList m_graphs;
    std::vector<Run> m_runs;
    std::optional<Run> m_compiling;
    int m_compile = 0;  // counts them: what an earlier one still says is not heard
    std::shared_ptr<const Shown> m_shown;
    std::shared_ptr<const std::vector<RuleInfo>> m_rules;  // texts of all rules of run m_rulesOf, once somebody wants them
    RunId m_rulesOf = -1;
    QHash<QString, int> m_generation;
    QHash<QString, QString> m_pending;  // tag -> what is being done
    int m_epoch = 0;                    // rises when everything old is void
    std::unique_ptr<JobQueue> m_queue;  // last: its thread uses the source
};

}  // namespace cutaway::ui
