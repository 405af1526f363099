// Finding the rewrite that broke the graph: passes made for the test, one rewrite of which is wrong.
#include "engine/minify/bisect.h"

#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <fstream>

#include "cutaway/bisect.h"
#include "cutaway/session.h"
#include "engine/interpret/interpret.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// A chain of `length` additions of 0 to the input.
Snapshot additions(int length) {
    std::string text = "class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n";
    std::string last = "x";
    for (int i = 0; i < length; ++i) {
        const std::string name = "add_" + std::to_string(i);
        text += "        " + name + ": \"f32[2]\" = torch.ops.aten.add.Tensor(" + last + ", 0)\n";
        last = name;
    }
    auto module = parseText(text + "        return (" + last + ",)\n");
    if (!module) qFatal("%s", module.error().text().c_str());
    return std::move(*module);
}

/// Turns each addition of 0 into one of 0.0, which changes no number; at `add_<wrong>` it adds 1.
template <int kWrong>
Result<bool> spellZero(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    std::vector<Node*> calls;
    for (Node& node : graph.nodes())
        if (node.kind() == NodeKind::Call && node.arg(1).get<int64_t>()) calls.push_back(&node);
    for (Node* node : calls) {
        if (rewriter.begin("spell_zero", *node) != Go::Yes) break;
        graph.setArg(*node, 1, Argument(node->name() == "add_" + std::to_string(kWrong) ? 1.0 : 0.0));
    }
    return rewriter.changed();
}
/// Leaves a graph that does not verify once it comes to `add_5`.
Result<bool> failsAtFive(Module& module, Rewriter& rewriter) {
    CT_TRY(const bool changed, spellZero<-1>(module, rewriter));
    const Node* five = module.graph().findByName("add_5");
    if (five != nullptr && !five->arg(1).get<int64_t>()) return invalidInput("does not like add_5");
    return changed;
}

constexpr Pass kGood{.name = "good", .summary = "", .run = spellZero<-1>};
constexpr Pass kWrong{.name = "wrong", .summary = "", .run = spellZero<1234>};
constexpr Pass kFails{.name = "fails", .summary = "", .run = failsAtFive};

CompileTrace runPasses(const Snapshot& input, const std::vector<const Pass*>& passes) {
    CompileTrace trace;
    trace.input = input;
    for (const Pass* pass : passes) trace.steps.push_back(runPass(*pass, trace.result(), trace.request));
    return trace;
}

Result<Verdict> addsNothing(const Module& module) {
    Tensor one = Tensor::full(DType::F32, {2}, Scalar(1.0));
    CT_TRY(const auto out, interpret(module, {one}));
    const double value = toDouble(out[0].item(0));
    return Verdict{value != 1, std::to_string(value)};
}

}  // namespace

class BisectTest : public QObject {
    Q_OBJECT

  private slots:
    void oneWrongRewriteAmongTwoThousand() {
        const CompileTrace trace = runPasses(additions(2000), {&kWrong});
        QCOMPARE(trace.steps[0].info.rewrites, 2000);
        const auto outcome = bisect(trace, 0, addsNothing);
        QVERIFY2(outcome, outcome ? "" : outcome.error().text().c_str());
        QVERIFY(outcome->found);
        QCOMPARE(outcome->total, 2000);
        QCOMPARE(outcome->step, 0);
        QCOMPARE(outcome->rewrite, 1234);
        QCOMPARE(QString::fromStdString(trace.steps[0].rewrites[1234].node), QStringLiteral("add_1234"));
        QVERIFY2(outcome->tries.size() <= 12, std::to_string(outcome->tries.size()).c_str());
    }

    void findsTheStep() {
        // Nothing to do in the second pass: its graphs are those of the first.
        const CompileTrace trace = runPasses(additions(1300), {&kWrong, &kGood});
        const auto outcome = bisect(trace, 0, addsNothing);
        QVERIFY(outcome && outcome->found);
        QCOMPARE(outcome->step, 0);
        QCOMPARE(outcome->rewrite, 1234);
    }

    void goodRunsHaveNoCulprit() {
        const auto outcome = bisect(runPasses(additions(20), {&kGood}), 0, addsNothing);
        QVERIFY(outcome && !outcome->found);
        QCOMPARE(outcome->tries.size(), size_t(1));
        const auto nothing = bisect(runPasses(additions(0), {&kGood}), 0, addsNothing);
        QVERIFY(nothing && !nothing->found && nothing->tries.empty());
    }

    /// On a session: the place right after the culprit has what is wrong, the place before it has not.
    void theCulpritOfASession() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("chain.py").toStdString();
        std::ofstream(path)
            << "def forward(x: \"f32[4]\"):\n    a = aten.relu.default(x)\n    b = aten.sin.default(a)\n    c = aten.relu.default(b)\n    d = aten.cos.default(c)\n"
               "    e = aten.tanh.default(d)\n    return (e,)\n";
        // Two rewrites of one step: the first keeps the numbers, the second does not.
        const std::string rules =
            "rule right\n  find\n    r = aten.relu.default(x)\n    s = aten.sin.default(r)\n    return s\n  replace\n    m = aten.clamp_min.default(x, 0)\n    s = aten.sin.default(m)\n    return s\n"
            "rule wrong\n  find\n    r = aten.relu.default(x)\n    s = aten.cos.default(r)\n    return s\n  replace\n    s = aten.cos.default(x)\n    t = aten.add.Tensor(s, 1)\n    return t\n";
        Session session;
        QVERIFY(session.open(path));
        CompileRequest options;
        options.userRules.push_back({"mine", rules});
        options.disabledPasses = {"remove_noop_ops"};
        const auto run = session.compile(options);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto report = bisect(session, *run, {});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(report->found);
        QCOMPARE(report->rewrite.rule, std::string("wrong"));
        QCOMPARE(report->culprit.run, *run);
        QCOMPARE(report->culprit.step, report->step.index);
        QCOMPARE(report->culprit.rewrites, report->rewrite.index + 1);
        Place before = report->culprit;
        --before.rewrites;
        const auto good = session.text(before), bad = session.text(report->culprit);
        QVERIFY(good && bad);
        QVERIFY2(good->text.find("aten.add.Tensor") == std::string::npos, good->text.c_str());
        QVERIFY2(bad->text.find("aten.add.Tensor") != std::string::npos, bad->text.c_str());
        const auto steps = *session.steps(*run);
        for (const BisectProbe& probe : report->probes) {
            int earlier = 0;
            for (const StepInfo& step : steps)
                if (step.index < probe.place.step) earlier += step.rewrites;
            QCOMPARE(earlier + probe.place.rewrites, probe.rewrites);
            QCOMPARE(probe.bad, probe.place.step > report->culprit.step ||
                                    (probe.place.step == report->culprit.step &&
                                     (probe.place.rewrites < 0 || probe.place.rewrites > report->rewrite.index)));
        }
    }

    void aFailingPassIsSearchedForItsRewrite() {
        const CompileTrace trace = runPasses(additions(40), {&kFails});
        QVERIFY(trace.failed());
        const auto outcome = bisect(trace, 0, {});
        QVERIFY2(outcome, outcome ? "" : outcome.error().text().c_str());
        QVERIFY(outcome->found);
        QCOMPARE(outcome->rewrite, 5);
    }

    void aTestThatCannotBeMadeIsAnError() {
        const auto outcome = bisect(runPasses(additions(9), {&kGood}), 0,
                                    [](const Module&) -> Result<Verdict> { return unsupported("no such test"); });
        QVERIFY(!outcome);
        QVERIFY(outcome.error().message.find("no such test") != std::string::npos);
    }

    void cancelled() {
        Progress progress;
        progress.cancel->cancel();
        const auto outcome = bisect(runPasses(additions(9), {&kGood}), 0, addsNothing, progress);
        QVERIFY(!outcome);
        QCOMPARE(outcome.error().code, ErrorCode::Cancelled);
    }
};

CUTAWAY_SUITE(BisectTest)
#include "bisect_test.moc"
