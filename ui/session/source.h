#pragma once
// What the windows ask of a compile session, as an interface: the program passes the engine's Session, tests pass a
// source of hand-made structs. Called by several threads at once: one looks, others compile, run and search.
#include <functional>
#include <memory>

#include "cutaway/bisect.h"
#include "cutaway/breakpoints.h"
#include "cutaway/comparison.h"
#include "cutaway/debug_compile.h"
#include "cutaway/export.h"
#include "cutaway/gradients.h"
#include "cutaway/kernel_calls.h"
#include "cutaway/loops.h"
#include "cutaway/memory.h"
#include "cutaway/minify.h"
#include "cutaway/numerics.h"
#include "cutaway/packages.h"

namespace cutaway::ui {

class Source {
  public:
    virtual ~Source() = default;

    /// All passes of a run of this kind in running order, optional ones included.
    virtual std::vector<PassInfo> passes(const CompileRequest& request) const = 0;
    virtual Result<ModelInfo> open(const std::string& path, const OpenSettings& settings, const Progress& progress) = 0;
    /// Closes what is open; work on it that is still running is ended.
    virtual void close() = 0;
    /// `ended` is called after each step. When cancelled, the steps done so far become the run, if there are any.
    virtual Result<RunId> compile(const CompileRequest& request, const std::function<void(const StepInfo&)>& ended,
                                  const Progress& progress) = 0;
    /// The same up to a breakpoint that holds past a place, if there is one.
    virtual Result<StoppedRun> compileToBreakpoint(const CompileRequest&, const std::vector<Breakpoint>&,
                                                   const std::optional<Place>& /*past*/,
                                                   const std::function<void(const StepInfo&)>&, const Progress&) {
        return unsupported("compiles cannot be stopped here", {}, {});
    }
    virtual Result<bool> wasCancelled(RunId run) = 0;
    virtual Result<std::vector<StepInfo>> steps(RunId run) = 0;
    virtual Result<std::vector<RewriteInfo>> rewrites(RunId run, int step, const Progress& progress) = 0;
    virtual Result<UnionGraph> diff(const Place& before, const Place& after, const Progress& progress) = 0;
    /// Graphs beside the open one (cutaway/comparison.h).
    virtual Result<ModelInfo> inspect(const std::string& /*path*/) {
        return unsupported("files cannot be read here", {}, {});
    }
    virtual Result<Place> keepFile(const std::string& /*path*/, const OpenSettings&, const Progress&) {
        return unsupported("graphs of other files cannot be compared here", {}, {});
    }
    virtual Result<PostGradPlaces> postGradBesideRecorded(const std::string& /*path*/, const RecordedPair&,
                                                          const CompileRequest&, const Progress&) {
        return unsupported("recorded graphs cannot be compared here", {}, {});
    }
    virtual Result<GraphText> text(const Place& place, bool runnable, const Progress& progress) = 0;
    virtual Result<NodeDetails> node(const Place& place, NodeKey id, const Progress& progress) = 0;
    /// What a definition of the operator that the node calls begins with; NotFound where none is wanted.
    virtual Result<std::string> definition(const Place&, NodeKey) {
        return Error{ErrorCode::NotFound, "no definition is wanted", {}, {}};
    }
    virtual Result<ValueSummary> values(const Place& place, NodeKey id, const Progress& progress) = 0;
    /// Every rule that may start at the node, on the graph at `place`.
    virtual Result<std::vector<RuleExplanation>> explain(const Place& place, NodeKey node,
                                                         const Progress& progress) = 0;
    virtual Result<std::vector<RuleUse>> ruleUses(RunId run, int step) = 0;
    /// Texts of all rules, with the options' own.
    virtual std::vector<RuleInfo> rules(const CompileRequest& options) = 0;
    /// `watch` is called after each test, on the calling thread.
    virtual Result<BisectReport> bisect(RunId run, const BisectOptions& options, const BisectWatch& watch,
                                        const Progress& progress) = 0;
    virtual Result<BuildInfo> build(RunId run, Target target, const Progress& progress) = 0;
    virtual Result<RunReport> run(RunId run, const RunOptions& options, const Progress& progress) = 0;
    // The partition of a training run, as Session has it. Errors: the run has none, with the reason.
    virtual Result<PartitionChoice> partition(RunId run, const Progress& progress) = 0;
    virtual Result<PartitionChoice> partitionAt(RunId run, double budget, const Progress& progress) = 0;
    virtual Result<std::vector<BudgetPoint>> budgetCurve(RunId run, const Progress& progress) = 0;
    virtual Result<RunId> deriveWithBudget(RunId run, double budget, const std::function<void(const StepInfo&)>& ended,
                                           const Progress& progress) = 0;
    virtual Result<std::vector<NodeSide>> sides(RunId run, const Progress& progress) = 0;
    virtual Result<std::string> explainPartition(RunId run, NodeKey node, const Progress& progress) = 0;
    virtual Result<std::vector<SavedBytes>> heldBytes(RunId run, const Progress& progress) = 0;
    /// Each value beside its reference (cutaway/numerics.h).
    virtual Result<CheckedRun> checkedRun(const Place&, const CheckedRunOptions&,
                                          const std::function<void(const NodeNumbers&)>&, const Progress&) {
        return unsupported("values cannot be compared here", {}, {});
    }
    virtual Result<FirstDivergence> firstDivergence(RunId, const CheckedRunOptions&, const Progress&) {
        return unsupported("values cannot be compared here", {}, {});
    }
    /// Whether a training run's gradients are derivatives (cutaway/gradients.h).
    virtual Result<GradientCheck> checkGradients(RunId, const Progress&) {
        return unsupported("gradients cannot be checked here", {}, {});
    }
    virtual Result<std::shared_ptr<const NodeValue>> valueAt(const Place&, NodeKey, ValueSide, const CheckedRunOptions&,
                                                             const Progress&) {
        return unsupported("values cannot be read here", {}, {});
    }
    /// Makes the open graph smaller (cutaway/minify.h).
    virtual Result<MinifyReport> minify(const MinifyOptions&, const std::function<void(const MinifyState&)>&,
                                        const Progress&) {
        return unsupported("graphs cannot be minified here", {}, {});
    }
    /// What each call of the compiled program computes (cutaway/kernel_calls.h).
    virtual Result<std::vector<KernelCall>> kernelCalls(RunId, const Progress&) {
        return unsupported("there are no kernels to look at here", {}, {});
    }
    /// The loops of kernels (cutaway/loops.h).
    virtual Result<std::vector<LoopKernel>> loopKernels(RunId, const Progress&) {
        return unsupported("there are no kernels to look at here", {}, {});
    }
    virtual Result<KernelLoops> kernelLoops(RunId, const std::string& /*kernel*/,
                                            const std::optional<std::string>& /*plan*/, const Progress&) {
        return unsupported("there are no kernels to look at here", {}, {});
    }
    virtual Result<std::string> kernelListing(RunId, const std::string& /*kernel*/, Listing,
                                              const std::optional<std::string>& /*plan*/, const Progress&) {
        return unsupported("there are no kernels to look at here", {}, {});
    }
    virtual Result<PlanRun> runWithPlan(RunId, const std::string& /*kernel*/, const std::string& /*plan*/,
                                        const PlanRunOptions&, const Progress&) {
        return unsupported("plans cannot be run here", {}, {});
    }
    /// What each value takes in memory, and when (cutaway/memory.h).
    virtual Result<std::vector<MemoryPlan>> memoryPlans(RunId, const Progress&) {
        return unsupported("there is no memory to look at here", {}, {});
    }
    virtual Result<DebugCompileReport> debugCompile(const DebugCompileOptions&, const Progress&) {
        return unsupported("no bundle can be written here", {}, {});
    }
    /// The run as a folder that stands alone (cutaway/export.h).
    virtual Result<ExportReport> exportProgram(RunId, const ExportOptions&, const Progress&) {
        return unsupported("nothing can be exported here", {}, {});
    }
    /// Which calls of a compiled package a run computes the same (cutaway/packages.h).
    virtual Result<PackageComparison> comparePackage(RunId, const PackagedModel&, const Progress&) {
        return unsupported("packages cannot be compared here", {}, {});
    }
    /// Whether the two are possible at all; the error says why not.
    virtual Result<void> canBuild(RunId run) = 0;
    virtual Result<void> canRun(RunId run, Backend backend) = 0;
};

/// The engine's session.
std::unique_ptr<Source> makeSessionSource();

}  // namespace cutaway::ui
