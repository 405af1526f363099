#include <atomic>

#include "cutaway/operator_files.h"
#include "ui/session/source.h"

namespace cutaway::ui {
namespace {

class SessionSource : public Source {
  public:
    std::vector<PassInfo> passes(const CompileRequest& request) const override { return passList(request); }
    /// In a new session: work that is still running in the old one ends there.
    Result<ModelInfo> open(const std::string& path, const OpenSettings& settings, const Progress& progress) override {
        auto fresh = std::make_shared<Session>();
        auto opened = fresh->open(path, settings, progress);
        if (opened) m_session = std::move(fresh);
        return opened;
    }
    void close() override { m_session = std::make_shared<Session>(); }
    Result<RunId> compile(const CompileRequest& request, const std::function<void(const StepInfo&)>& ended,
                          const Progress& progress) override {
        return session()->compileWatched(request, {}, ended, progress);
    }
    Result<StoppedRun> compileToBreakpoint(const CompileRequest& request, const std::vector<Breakpoint>& breakpoints,
                                           const std::optional<Place>& past,
                                           const std::function<void(const StepInfo&)>& ended,
                                           const Progress& progress) override {
        return cutaway::compileToBreakpoint(*session(), request, breakpoints, past, {}, ended, progress);
    }
    Result<bool> wasCancelled(RunId run) override { return session()->wasCancelled(run); }
    Result<std::vector<StepInfo>> steps(RunId run) override { return session()->steps(run); }
    Result<std::vector<RewriteInfo>> rewrites(RunId run, int step, const Progress& progress) override {
        return session()->rewrites(run, step, progress);
    }
    Result<UnionGraph> diff(const Place& before, const Place& after, const Progress& progress) override {
        return session()->diff(before, after, progress);
    }
    Result<ModelInfo> inspect(const std::string& path) override { return inspectFile(path); }
    Result<Place> keepFile(const std::string& path, const OpenSettings& settings, const Progress& progress) override {
        return cutaway::keepFile(*session(), path, settings, progress);
    }
    /// In a session of its own, so that the open graph and its runs stay as they are.
    Result<PostGradPlaces> postGradBesideRecorded(const std::string& path, const RecordedPair& pair,
                                                  const CompileRequest& request, const Progress& progress) override {
        Session other;
        CT_TRY_VOID(other.open(path, {pair.before, {}}, progress));
        CT_TRY(const PostGradPlaces there, cutaway::postGradBesideRecorded(other, pair, request, progress));
        CT_TRY(const Place theirs, keepGraph(*session(), other, there.theirs));
        CT_TRY(const Place ours, keepGraph(*session(), other, there.ours));
        return PostGradPlaces{theirs, ours};
    }
    Result<GraphText> text(const Place& place, bool runnable, const Progress& progress) override {
        return session()->text(place, runnable, progress);
    }
    Result<std::string> definition(const Place& place, NodeKey id) override {
        return definitionToStart(*session(), place, id);
    }
    Result<NodeDetails> node(const Place& place, NodeKey id, const Progress& progress) override {
        return session()->node(place, id, progress);
    }
    Result<ValueSummary> values(const Place& place, NodeKey id, const Progress& progress) override {
        return session()->values(place, id, progress);
    }
    Result<std::vector<RuleExplanation>> explain(const Place& place, NodeKey node, const Progress& progress) override {
        return session()->explainAll(place, node, {}, progress);
    }
    Result<std::vector<RuleUse>> ruleUses(RunId run, int step) override { return session()->ruleUses(run, step); }
    std::vector<RuleInfo> rules(const CompileRequest& options) override {
        auto known = ruleList(options);
        return known ? std::move(*known)
                     : ruleList();  // rules that do not load fail the compile, not the list of those that do
    }
    Result<BisectReport> bisect(RunId run, const BisectOptions& options, const BisectWatch& watch,
                                const Progress& progress) override {
        return cutaway::bisect(*session(), run, options, watch, progress);
    }
    Result<BuildInfo> build(RunId run, Target target, const Progress& progress) override {
        return session()->build(run, target, progress);
    }
    Result<RunReport> run(RunId run, const RunOptions& options, const Progress& progress) override {
        return session()->run(run, options, progress);
    }
    Result<PartitionChoice> partition(RunId run, const Progress& progress) override {
        return session()->partition(run, progress);
    }
    Result<PartitionChoice> partitionAt(RunId run, double budget, const Progress& progress) override {
        return session()->partitionAt(run, budget, progress);
    }
    Result<std::vector<BudgetPoint>> budgetCurve(RunId run, const Progress& progress) override {
        return session()->budgetCurve(run, progress);
    }
    Result<RunId> deriveWithBudget(RunId run, double budget, const std::function<void(const StepInfo&)>& ended,
                                   const Progress& progress) override {
        return session()->deriveWithBudget(run, budget, {}, ended, progress);
    }
    Result<std::vector<NodeSide>> sides(RunId run, const Progress& progress) override {
        return session()->sides(run, progress);
    }
    Result<std::string> explainPartition(RunId run, NodeKey node, const Progress& progress) override {
        return session()->explainPartition(run, node, progress);
    }
    Result<std::vector<SavedBytes>> heldBytes(RunId run, const Progress& progress) override {
        return session()->heldBytes(run, progress);
    }
    Result<CheckedRun> checkedRun(const Place& place, const CheckedRunOptions& options,
                                  const std::function<void(const NodeNumbers&)>& row,
                                  const Progress& progress) override {
        const auto kept = session();
        return cutaway::checkedRun(*kept, place, options, row, progress);
    }
    Result<FirstDivergence> firstDivergence(RunId run, const CheckedRunOptions& options,
                                            const Progress& progress) override {
        const auto kept = session();
        return cutaway::firstDivergence(*kept, run, options, {}, progress);
    }
    Result<GradientCheck> checkGradients(RunId run, const Progress& progress) override {
        const auto kept = session();
        return cutaway::checkGradients(*kept, run, {}, progress);
    }
    Result<std::shared_ptr<const NodeValue>> valueAt(const Place& place, NodeKey node, ValueSide side,
                                                     const CheckedRunOptions& options,
                                                     const Progress& progress) override {
        const auto kept = session();
        return cutaway::valueAt(*kept, place, node, side, options, progress);
    }
    Result<MinifyReport> minify(const MinifyOptions& options, const std::function<void(const MinifyState&)>& watch,
                                const Progress& progress) override {
        const auto kept = session();
        return cutaway::minify(*kept, options, watch, progress);
    }
    Result<PackageComparison> comparePackage(RunId run, const PackagedModel& model, const Progress& progress) override {
        const auto kept = session();
        return cutaway::comparePackage(*kept, run, model, progress);
    }
    Result<std::vector<KernelCall>> kernelCalls(RunId run, const Progress& progress) override {
        const auto kept = session();
        return cutaway::kernelCalls(*kept, run, progress);
    }
    Result<std::vector<LoopKernel>> loopKernels(RunId run, const Progress& progress) override {
        const auto kept = session();
        return cutaway::loopKernels(*kept, run, progress);
    }
    Result<KernelLoops> kernelLoops(RunId run, const std::string& kernel, const std::optional<std::string>& plan,
                                    const Progress& progress) override {
        const auto kept = session();
        return cutaway::kernelLoops(*kept, run, kernel, plan, progress);
    }
    Result<std::string> kernelListing(RunId run, const std::string& kernel, Listing listing,
                                      const std::optional<std::string>& plan, const Progress& progress) override {
        const auto kept = session();
        return cutaway::kernelListing(*kept, run, kernel, listing, plan, progress);
    }
    Result<PlanRun> runWithPlan(RunId run, const std::string& kernel, const std::string& plan,
                                const PlanRunOptions& options, const Progress& progress) override {
        const auto kept = session();
        return cutaway::runWithPlan(*kept, run, kernel, plan, options, progress);
    }
    Result<std::vector<MemoryPlan>> memoryPlans(RunId run, const Progress& progress) override {
        const auto kept = session();
        return cutaway::memoryPlans(*kept, run, progress);
    }
    Result<DebugCompileReport> debugCompile(const DebugCompileOptions& options, const Progress& progress) override {
        const auto kept = session();
        return cutaway::debugCompile(*kept, options, progress);
    }
    Result<ExportReport> exportProgram(RunId run, const ExportOptions& options, const Progress& progress) override {
        const auto kept = session();
        return cutaway::exportProgram(*kept, run, options, progress);
    }
    Result<void> canBuild(RunId run) override { return session()->canBuild(run); }
    Result<void> canRun(RunId run, Backend backend) override { return session()->canRun(run, backend); }

  private:
    std::shared_ptr<Session> session() const { return m_session.load(); }
    std::atomic<std::shared_ptr<Session>> m_session = std::make_shared<Session>();
};

}  // namespace

std::unique_ptr<Source> makeSessionSource() { return std::make_unique<SessionSource>(); }

}  // namespace cutaway::ui
