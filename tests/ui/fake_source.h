#pragma once
// A compile session of hand-made structs: three passes over the graph of fusedBias, told by their names in `calls`.
#include <QMutex>
#include <QMutexLocker>
#include <QStringList>
#include <QThread>
#include <atomic>
#include <stdexcept>

#include "tests/ui/graphs.h"
#include "ui/session/source.h"

namespace cutaway::testing {

class FakeSource : public ui::Source {
  public:
    /// What the test looks at and steers while the engine's thread runs.
    struct Control {
        std::atomic<bool> hold{false};              // calls wait until it is false or they are cancelled
        std::atomic<const char*> held{nullptr};     // so do calls that begin like this
        std::atomic<const char*> thrown{nullptr};   // and these throw
        std::atomic<const char*> failing{nullptr};  // the pass of this name fails, and none comes after it
        std::atomic<int> tail{4};
        std::atomic<int> slowAfter{
            -1};  // a compile waits after that many steps until the number changes or it is cancelled
        QStringList calls() const {
            const QMutexLocker lock(&mutex);
            return made;
        }
        void note(const QString& call) {
            const QMutexLocker lock(&mutex);
            made << call;
        }
        mutable QMutex mutex;
        QStringList made;
    };
    explicit FakeSource(std::shared_ptr<Control> control) : m_control(std::move(control)) {}

    std::vector<PassInfo> passes(const CompileRequest& request) const override {
        std::vector<PassInfo> list = {{"pre_grad", "normalize", "What it does.", false},
                                      {"post_grad", "remove_noop_ops", "", false},
                                      {"post_grad", "fuse_bias_add", "", false},
                                      {"post_grad", "batch_tanh", "", true}};
        if (request.mode == Mode::Training) list.push_back({"joint", "partition", "", false});
        return list;
    }
    Result<ModelInfo> open(const std::string& path, const OpenSettings& settings, const Progress& progress) override {
        CT_TRY_VOID(arrive("open", progress));
        if (path.find("bad") != std::string::npos) {
            Error error = invalidInput("the archive has no models/ folder", path);
            error.notes = {"Save the program with torch.export.save."};
            return error;
        }
        ModelInfo info;
        info.path = path;
        info.name = "model";
        info.format = ".pt2";
        const bool several = path.find("folder") != std::string::npos;
        if (several && settings.graph.empty())
            info.graphs = {{"one.py", 8, 1, 1, {{"aten.mm.default", 2, ""}, {"aten.relu.default", 1, ""}}},
                           {"two.py", 1, 1, 1, {}}};
        else
            info.graphs.push_back(
                {settings.graph.empty() ? "main" : settings.graph, settings.graph.empty() ? 8 : 1, 1, 1, {}});
        info.remarks = {"one remark"};
        return info;
    }
    void close() override { m_control->note("close"); }
    Result<RunId> compile(const CompileRequest& options, const std::function<void(const StepInfo&)>& ended,
                          const Progress& progress) override {
        CT_TRY_VOID(arrive("compile", progress));
        const std::vector<StepInfo> all = stepsOf(options, m_control->failing);
        size_t done = 0;
        for (const StepInfo& step : all) {
            while (m_control->slowAfter == static_cast<int>(done) && !progress.cancelled()) QThread::msleep(1);
            if (progress.cancelled()) break;
            if (ended) ended(step);
            ++done;
        }
        if (done == 0) return Error{ErrorCode::Cancelled, "cancelled", {}, {}};
        const QMutexLocker lock(&m_control->mutex);
        m_runs.push_back({options, done});
        return static_cast<RunId>(m_runs.size());
    }
    Result<bool> wasCancelled(RunId run) override {
        const QMutexLocker lock(&m_control->mutex);
        const auto& [options, done] = m_runs[static_cast<size_t>(run - 1)];
        return done < stepsOf(options, m_control->failing).size();
    }
    Result<std::vector<StepInfo>> steps(RunId run) override {
        const QMutexLocker lock(&m_control->mutex);
        const auto& [options, done] = m_runs[static_cast<size_t>(run - 1)];
        std::vector<StepInfo> steps = stepsOf(options, m_control->failing);
        steps.resize(done);
        return steps;
    }
    static std::vector<StepInfo> stepsOf(const CompileRequest& options, const char* failing) {
        std::vector<StepInfo> steps;
        const auto& off = options.disabledPasses;
        const auto add = [&](const char* stage, const char* name, StepState state, int rewrites) {
            StepInfo step;
            step.index = static_cast<int>(steps.size());
            step.stage = stage;
            step.name = name;
            step.summary = std::string("What ") + name + " does.";
            step.state = std::find(off.begin(), off.end(), name) != off.end() ? StepState::Disabled : state;
            if (step.state == StepState::Changed) {
                step.added = 1;
                step.removed = 2;
                step.rewrites = rewrites;
            }
            step.milliseconds = 1.5;
            step.nodesBefore = 8;
            step.nodesAfter = step.state == StepState::Changed ? 7 : 8;
            steps.push_back(step);
        };
        add("pre_grad", "normalize", StepState::Unchanged, 0);
        add("pre_grad", "split_cat", StepState::Unchanged, 0);
        add("pre_grad", "fuse_conv", StepState::Unchanged, 0);
        add("post_grad", "remove_noop_ops", StepState::Unchanged, 0);
        add("post_grad", "fuse_bias_add", StepState::Changed, 2);
        add("post_grad", "reinplace", StepState::Changed, 1);
        const std::string_view last = failing ? failing : "";
        if (last == "schedule") add("schedule", "schedule", StepState::Unchanged, 0);
        for (StepInfo& step : steps) {
            if (step.name != last) continue;
            step.state = StepState::Failed;
            step.error = "y: no such shape";
            steps.resize(static_cast<size_t>(step.index) + 1);
            break;
        }
        return steps;
    }
    Result<std::vector<RewriteInfo>> rewrites(RunId, int step, const Progress& progress) override {
        CT_TRY_VOID(arrive("rewrites", progress));
        std::vector<RewriteInfo> rewrites;
        for (int i = 0; i < (step == 4 ? 2 : 1); ++i)
            rewrites.push_back({.index = i,
                                .rule = "mm_add_to_addmm",
                                .why = "the bias is added while the product is still in registers",
                                .node = "y",
                                .key = static_cast<NodeKey>(15)});
        return rewrites;
    }
    Result<UnionGraph> diff(const Place& before, const Place& after, const Progress& progress) override {
        CT_TRY_VOID(arrive("diff " + std::to_string(before.step) + " " + std::to_string(after.step), progress));
        UnionGraph graph = fusedBias(m_control->tail);
        if (before == after) {
            for (auto& node : graph.nodes) node.change = Change::Unchanged;
            for (auto& edge : graph.edges) edge.change = Change::Unchanged;
            graph.added = graph.removed = graph.edited = 0;
        }
        return graph;
    }
    Result<GraphText> text(const Place& place, bool runnable, const Progress& progress) override {
        CT_TRY_VOID(arrive("text", progress));
        GraphText text;
        const UnionGraph graph = fusedBias(m_control->tail);
        const auto line = [&](const std::string& words, NodeKey id) {
            text.text += words + "\n";
            text.lineNodes.push_back(id);
        };
        if (runnable) line("import torch", NodeKey::None);
        line("def forward(x, w, b):", NodeKey::None);
        const bool after = fused(place);
        for (const auto& node : graph.nodes)
            if (!node.info.op.empty() && node.change != (after ? Change::Removed : Change::Added))
                line("    " + node.info.name + " = " + node.info.op + "(…)", node.info.id);
        line("    return (r3,)", NodeKey::None);
        return text;
    }
    Result<ValueSummary> values(const Place&, NodeKey, const Progress& progress) override {
        CT_TRY_VOID(arrive("values", progress));
        ValueSummary summary;
        summary.elements = 4;
        summary.least = -1;
        summary.most = 2;
        summary.histogram = {1, 3};
        summary.first = {-1, 2};
        return summary;
    }
    Result<NodeDetails> node(const Place& place, NodeKey id, const Progress& progress) override {
        CT_TRY_VOID(arrive("node", progress));
        const UnionGraph graph = fusedBias(m_control->tail);
        for (const auto& node : graph.nodes) {
            const bool here =
                node.change == Change::Unchanged || node.change == (fused(place) ? Change::Added : Change::Removed);
            if (node.info.id != id || !here) continue;
            NodeDetails details;
            details.node = node.info;
            details.arguments = {{"self", "x"}};
            details.tensor = {{"shape", "[8, 16]"}, {"dtype", "f32"}};
            details.line = node.info.name + " = …";
            details.history.push_back({4, "created by fuse_bias_add", {static_cast<NodeKey>(14)}});
            return details;
        }
        return Error{ErrorCode::NotFound, "no such node", {}, {}};
    }
    Result<std::vector<RuleExplanation>> explain(const Place&, NodeKey node, const Progress& progress) override {
        CT_TRY_VOID(arrive("explain", progress));
        if (node == static_cast<NodeKey>(16)) return Error{ErrorCode::NotFound, "no such node", {}, {}};
        return std::vector<RuleExplanation>{{"normalize",
                                             "drop_noop",
                                             node,
                                             false,
                                             "needs `x` to be read only here, but `m` reads it too",
                                             {static_cast<NodeKey>(14)}},
                                            {"fuse_bias_add", "mm_add_to_addmm", node, true, "", {node}}};
    }
    Result<std::vector<RuleUse>> ruleUses(RunId, int step) override {
        return step == 4 ? std::vector<RuleUse>{{"mm_add_to_addmm", 7, 2, 0.25}, {"never_here", 3, 0, 0.01}}
                         : std::vector<RuleUse>{};
    }
    std::vector<RuleInfo> rules(const CompileRequest&) override {
        return {{"fuse_bias_add",
                 "mm_add_to_addmm",
                 "one kernel less",
                 "return aten.add.Tensor(m, b)",
                 "return aten.addmm(b, m)",
                 true,
                 {"aten.add.Tensor"}}};
    }
    Result<BisectReport> bisect(RunId run, const BisectOptions&, const BisectWatch& watch,
                                const Progress& progress) override {
        CT_TRY_VOID(arrive("bisect", progress));
        BisectReport report;
        report.found = true;
        report.searched = 3;
        report.culprit = {run, 4, 2};
        report.step.name = "fuse_bias_add";
        report.rewrite = {.index = 1, .rule = "mm_add_to_addmm", .node = "y", .key = static_cast<NodeKey>(15)};
        report.probes = {{3, {run, 5, 1}, true, "largest error 0.5 of 1"},
                         {1, {run, 4, 1}, false, "largest error 0"},
                         {2, {run, 4, 2}, true, "largest error 0.5 of 1"}};
        report.sections = {{4, "main", "post_grad", "fuse_bias_add#1", 2}, {5, "main", "post_grad", "dce#1", 3}};
        for (BisectProbe& probe : report.probes)
            probe.command = "cutaway-cli run /models/a.pt2 --fuel " + std::to_string(probe.rewrites);
        report.value = BisectValue{"out", {{0, 1}, "3.5", "4"}};
        report.good = 1;
        report.bad = 2;
        if (watch) watch(report);
        return report;
    }
    Result<BuildInfo> build(RunId, Target, const Progress& progress) override {
        CT_TRY_VOID(arrive("build", progress));
        BuildInfo info;
        info.source = "void kernel0();";
        info.compileSeconds = 0.5;
        KernelInfo kernel;
        kernel.name = "fused_addmm_relu";
        kernel.kind = "pointwise";
        kernel.source = "void fused_addmm_relu() {}";
        kernel.nodes = {static_cast<NodeKey>(16)};
        kernel.bytesRead = 2048;
        kernel.bytesWritten = 512;
        kernel.flops = 12000;
        info.kernels.push_back(kernel);
        return info;
    }
    Result<RunReport> run(RunId, const RunOptions&, const Progress& progress) override {
        CT_TRY_VOID(arrive("run", progress));
        RunReport report;
        OutputReport output;
        output.name = "output_0";
        output.type = "f32[8, 16]";
        output.minimum = -1;
        output.maximum = 2;
        output.mean = 0.25;
        output.compared = output.within = true;
        output.maxAbsoluteError = 1e-6;
        report.outputs.push_back(output);
        report.compared = true;
        report.inputsFrom = "sample inputs of the file";
        return report;
    }

    // Of runs for training: two values are saved at budget 1, one at less, and none of them at 0.
    static PartitionChoice choiceAt(double budget) {
        PartitionChoice choice;
        choice.budget = budget;
        choice.attempt = "the fastest backward";
        const auto save = [&](NodeKey node, const char* name, int64_t bytes) {
            SavedTensor& value = choice.saved.emplace_back();
            value.node = node;
            value.name = name;
            value.op = "aten.relu.default";
            value.type = "f32[8, 16]";
            value.bytes = bytes;
            value.why = std::string(name) + " is read by the backward";
            choice.savedBytes += bytes;
            choice.activationBytes += bytes;
        };
        if (budget >= 0.5) save(static_cast<NodeKey>(13), "t", 512);
        else choice.recomputed.push_back(static_cast<NodeKey>(13));
        if (budget >= 1) save(static_cast<NodeKey>(17), "r0", 256);
        else choice.recomputed.push_back(static_cast<NodeKey>(17));
        choice.recomputedRuntime = 1000 * static_cast<double>(choice.recomputed.size());
        return choice;
    }
    Result<double> budgetOf(RunId run) const {
        const QMutexLocker lock(&m_control->mutex);
        const CompileRequest& request = m_runs[static_cast<size_t>(run - 1)].options;
        if (request.mode == Mode::Training) return request.memoryBudget;
        return Error{ErrorCode::NotFound, "only a run for training is split into forward and backward", {}, {}};
    }
    Result<PartitionChoice> partition(RunId run, const Progress&) override {
        CT_TRY(const double budget, budgetOf(run));
        return choiceAt(budget);
    }
    Result<PartitionChoice> partitionAt(RunId run, double budget, const Progress& progress) override {
        CT_TRY_VOID(arrive("try " + std::to_string(budget).substr(0, 4), progress));
        if (const auto own = budgetOf(run); !own) return own.error();
        return choiceAt(budget);
    }
    Result<std::vector<BudgetPoint>> budgetCurve(RunId, const Progress& progress) override {
        CT_TRY_VOID(arrive("curve", progress));
        std::vector<BudgetPoint> points;
        for (const double budget : {0.0, 0.5, 1.0}) {
            const PartitionChoice choice = choiceAt(budget);
            points.push_back({budget, choice.activationBytes, choice.recomputedRuntime, choice.recomputed.size()});
        }
        return points;
    }
    Result<RunId> deriveWithBudget(RunId run, double budget, const std::function<void(const StepInfo&)>& ended,
                                   const Progress& progress) override {
        CompileRequest request;
        {
            const QMutexLocker lock(&m_control->mutex);
            request = m_runs[static_cast<size_t>(run - 1)].options;
        }
        request.memoryBudget = budget;
        m_control->note("derive");
        return compile(request, ended, progress);
    }
    Result<std::vector<NodeSide>> sides(RunId run, const Progress&) override {
        CT_TRY(const double budget, budgetOf(run));
        std::vector<NodeSide> sides;
        for (const unsigned id : {10, 13, 16, 17, 18})
            sides.push_back({static_cast<NodeKey>(id), id < 18 ? Side::Forward : Side::Backward, false});
        const PartitionChoice choice = choiceAt(budget);
        for (NodeSide& one : sides) {
            for (const SavedTensor& value : choice.saved) one.saved |= value.node == one.node;
            for (const NodeKey node : choice.recomputed)
                if (node == one.node) one.side = Side::Both;
        }
        return sides;
    }
    Result<std::string> explainPartition(RunId run, NodeKey node, const Progress&) override {
        if (const auto budget = budgetOf(run); !budget) return budget.error();
        return "node " + std::to_string(packed(node)) + " is saved";
    }
    Result<std::vector<SavedBytes>> heldBytes(RunId run, const Progress&) override {
        if (const auto budget = budgetOf(run); !budget) return budget.error();
        return std::vector<SavedBytes>{{static_cast<NodeKey>(13), "t", false, 512},
                                       {static_cast<NodeKey>(17), "r0", false, 768},
                                       {static_cast<NodeKey>(18), "r1", true, 256}};
    }
    Result<void> canBuild(RunId) override { return {}; }
    /// Training graphs do not run.
    Result<void> canRun(RunId run, Backend) override {
        const QMutexLocker lock(&m_control->mutex);
        if (m_runs[static_cast<size_t>(run - 1)].options.mode == Mode::Training) return unsupported("not for training");
        return {};
    }

  private:
    /// The second rewrite of step 4 does it.
    static bool fused(const Place& place) {
        return place.step > 4 || (place.step == 4 && (place.rewrites < 0 || place.rewrites >= 2));
    }
    Result<void> arrive(const std::string& call, const Progress& progress) {
        m_control->note(QString::fromStdString(call));
        if (m_control->thrown && call.starts_with(m_control->thrown)) throw std::runtime_error("something unforeseen");
        const auto waits = [&] {
            const char* held = m_control->held;
            return m_control->hold || (held && call.starts_with(held));
        };
        if (waits()) progress.say(0.25, "test 1 of 4");
        while (waits() && !progress.cancelled()) QThread::msleep(1);
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "cancelled", {}, {}};
        return {};
    }
    std::shared_ptr<Control> m_control;
    struct Compiled {
        CompileRequest options;
        size_t done = 0;
    };
    std::vector<Compiled> m_runs;
};

/// The steps of a run with default options.
inline std::vector<StepInfo> sampleSteps() {
    FakeSource source(std::make_shared<FakeSource::Control>());
    const auto run = source.compile({}, {}, {});
    return *source.steps(*run);
}

}  // namespace cutaway::testing
