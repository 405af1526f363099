// What the compiler's list can say: stages, when, repeat, any order, a split and what runs on each of its tracks.
#include <QtTest>

#include "engine/passes/pipeline.h"
#include "engine/passes/user_passes.h"
#include "engine/text/parse.h"
#include "tests/support/case_files.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

std::vector<Node*> lastFirst(Graph& graph) {
    std::vector<Node*> out;
    for (Node& node : graph.nodes()) out.insert(out.begin(), &node);
    return out;
}

/// Drops one call that nobody reads: the last.
Result<bool> dropOne(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    for (Node* node : lastFirst(graph))
        if (node->isCall() && node->users().empty()) {
            if (rewriter.begin("drop", *node) != Go::Yes) return false;
            graph.erase(*node);
            return true;
        }
    return false;
}
Result<bool> nothing(Module&, Rewriter&) { return false; }

/// The calls with "back" in their names go to the second graph.
Result<std::vector<std::shared_ptr<Module>>> halves(const Module& module, Rewriter&) {
    std::vector<std::shared_ptr<Module>> out;
    for (const bool back : {false, true}) {
        auto& half = out.emplace_back(std::make_shared<Module>(module));
        for (Node* node : lastFirst(half->graph()))
            if (node->isCall() && (node->name().find("back") != std::string::npos) != back) half->graph().erase(*node);
    }
    return out;
}
Result<std::vector<std::shared_ptr<Module>>> oneHalf(const Module& module, Rewriter& rewriter) {
    CT_TRY(auto both, halves(module, rewriter));
    both.pop_back();
    return both;
}
Result<std::vector<std::shared_ptr<Module>>> failing(const Module&, Rewriter&) {
    throw std::runtime_error("no halves");
}

bool isTraining(const CompileRequest& request) { return request.mode == Mode::Training; }

constexpr Pass kDrops[] = {{.name = "drop_first", .summary = "", .run = dropOne, .onRequest = true},
                           {.name = "drop_second", .summary = "", .run = dropOne, .onRequest = true}};
constexpr Pass kTwice[] = {{.name = "again", .summary = "", .run = nothing}};
constexpr Row kFirstRows[] = {Pass{.name = "look", .summary = "", .run = nothing}, AnyOrder{kDrops}, Repeat{2, kTwice}};
constexpr Row kCutRows[] = {Pass{.name = "cut", .summary = "Cuts", .split = halves, .required = true}};
constexpr Row kShortRows[] = {Pass{.name = "cut", .summary = "Cuts", .split = oneHalf}};
constexpr Row kFailingRows[] = {Pass{.name = "cut", .summary = "Cuts", .split = failing}};
constexpr Row kLastRows[] = {Pass{.name = "drop", .summary = "", .run = dropOne},
                             Pass{.name = "drop", .summary = "", .run = dropOne}};
const Stage kFirst{.name = "first", .rows = kFirstRows}, kCut{.name = "partition", .rows = kCutRows},
    kShort{.name = "partition", .rows = kShortRows}, kFailing{.name = "partition", .rows = kFailingRows},
    kLast{.name = "last", .rows = kLastRows};

std::vector<Part> compilerWith(const Stage& cut) {
    return {stage(kFirst), when(isTraining, {split(cut, {"forward", "backward"})}), onEach({stage(kLast)})};
}

Snapshot graph() {
    auto parsed = parseText(
        "def forward(x: \"f32[2]\"):\n    a: \"f32[2]\" = aten.sin.default(x)\n    b: \"f32[2]\" = aten.cos.default(x)\n"
        "    back: \"f32[2]\" = aten.tan.default(x)\n    return (x,)\n");
    if (!parsed) qFatal("%s", parsed.error().text().c_str());
    return std::move(*parsed);
}
QString keys(const CompileTrace& trace) {
    QStringList out;
    for (const Step& step : trace.steps) out << QString::fromStdString(step.info.key());
    return out.join(' ');
}
QString callNames(const Module& module) {
    QStringList out;
    for (const Node& node : module.graph().nodes())
        if (node.isCall()) out << QString::fromStdString(node.name());
    return out.join(' ');
}

}  // namespace

class PlanTest : public QObject {
    Q_OBJECT

  private slots:
    void inference() {
        CompileRequest request;
        const auto trace = runCompiler(compilerWith(kCut), graph(), request);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        QCOMPARE(keys(*trace),
                 "main/first/look#1 main/first/again#1 main/first/again#2 main/last/drop#1 main/last/drop#2");
        QCOMPARE(callNames(*trace->result()), "a");
    }

    /// The step of a split has one graph before, and one after for each graph, each of which goes through all that
    /// follows; a step's graph before is the last of its graph.
    void graphs() {
        CompileRequest request;
        request.mode = Mode::Training;
        const auto trace = runCompiler(compilerWith(kCut), graph(), request);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        QCOMPARE(keys(*trace),
                 "joint/first/look#1 joint/first/again#1 joint/first/again#2 joint/partition/cut#1 "
                 "forward/last/drop#1 forward/last/drop#2 backward/last/drop#1 backward/last/drop#2");
        const Step& cut = trace->steps[3];
        QCOMPARE(callNames(*cut.before), "a b back");
        QCOMPARE(callNames(*cut.after), "a b back");
        QCOMPARE(cut.made.size(), size_t(2));
        QCOMPARE(cut.made[0].first, std::string("forward"));
        QCOMPARE(callNames(*cut.made[0].second), "a b");
        QCOMPARE(callNames(*cut.made[1].second), "back");
        QCOMPARE(callNames(*trace->steps[4].before), "a b");
        QCOMPARE(callNames(*trace->steps[5].after), "");
        QCOMPARE(callNames(*trace->steps[6].before), "back");
        QCOMPARE(callNames(*trace->steps[7].after), "");
        QStringList stages;
        for (const StageInfo& stage : trace->stages)
            stages << QString::fromStdString(stage.graphName + "/" + stage.stage);
        QCOMPARE(stages.join(' '),
                 "joint/first joint/partition forward/partition backward/partition forward/last backward/last");
        QCOMPARE(trace->stages[5].before.at("aten.tan.default"), 1);
        QVERIFY(!trace->stages[5].after.contains("aten.tan.default"));
    }

    void anyOrder() {
        CompileRequest request;
        request.enabledPasses = {{"drop_second", {{"counter", "2"}}}, {"drop_first", {}}};
        const auto own = UserPasses::make(request);
        const auto plan = makePlan(compilerWith(kCut), request, **own, {});
        QVERIFY(plan.has_value());
        QStringList names;
        for (const PlannedPass& one : *plan)
            names << QString("%1#%2").arg(QString::fromUtf8(one.pass->name.data())).arg(one.occurrence);
        QCOMPARE(names.join(' '), "look#1 drop_second#1 drop_second#2 drop_first#1 again#1 again#2 drop#1 drop#2");
    }

    /// What follows cannot do without a required pass: it runs whatever the fuel.
    void fuel() {
        CompileRequest request;
        request.mode = Mode::Training;
        for (int fuel = 0; fuel <= 3; ++fuel) {
            request.fuel = fuel;
            const auto trace = runCompiler(compilerWith(kCut), graph(), request);
            QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
            QCOMPARE(trace->steps.size(), size_t(8));
            QCOMPARE(trace->steps[3].info.state, StepState::Changed);
            int used = 0;
            for (const Step& step : trace->steps) used += step.info.rewrites;
            QCOMPARE(used, fuel);
        }
    }

    void splitsThatFail_data() {
        QTest::addColumn<const Stage*>("cut");
        QTest::addColumn<QString>("problem");
        QTest::newRow("too few graphs") << &kShort << "makes 1 graphs for 2 tracks";
        QTest::newRow("an exception") << &kFailing << "no halves";
    }
    void splitsThatFail() {
        QFETCH(const Stage*, cut);
        QFETCH(QString, problem);
        CompileRequest request;
        request.mode = Mode::Training;
        const auto trace = runCompiler(compilerWith(*cut), graph(), request);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        QVERIFY(trace->failed());
        QCOMPARE(trace->steps.size(), size_t(4));
        QVERIFY2(QString::fromStdString(trace->steps.back().info.error).contains(problem),
                 trace->steps.back().info.error.c_str());
    }

    /// The compiler itself, as its README page shows it.
    void theCompiler() {
        QStringList stages;
        for (const Stage* stage : stagesOf(compiler())) stages << QString::fromUtf8(stage->name.data());
        QCOMPARE(stages.join(' '), "pre_grad capture joint layout freeze partition post_grad lowering schedule");
        QCOMPARE(testing::findPass("decompose")->name, std::string_view("decompose"));
    }
};

CUTAWAY_SUITE(PlanTest)
#include "plan_test.moc"
