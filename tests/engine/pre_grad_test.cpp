// The pre-grad passes against PyTorch's: tests/cases/pre_grad/*.txt, recorded by tests/scripts/record_pre_grad.py, and
// cases of our own beside them. Each is held to: the graph after the passes is the recorded one (names and independent
// order aside); before and after compute equal numbers; a second run changes nothing.
#include <QtTest>
#include <set>

#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/recorded_case.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::RecordedCase;
using testing::shapeOf;

namespace {

/// "permute_fusion" stands for the three passes that it switches on.
std::vector<const Pass*> passesOf(const QString& name) {
    std::vector<const Pass*> found;
    const bool group = name == "permute_fusion";
    for (const StagePass& one : pipeline()) {
        const std::string_view own = one.pass->name;
        const bool member =
            own == "linear_permute_fusion" || own == "permute_linear_fusion" || own == "permute_matmul_fusion";
        if (group ? member : own == name.toStdString()) found.push_back(one.pass);
    }
    return found;
}

Result<Snapshot> appliedPreGrad(const RecordedCase& one, Snapshot graph, int& rewrites) {
    for (const QString& name : one.passes) {
        const auto passes = passesOf(name);
        if (passes.empty()) return invalidInput("no pass '" + name.toStdString() + "'");
        for (const Pass* pass : passes) {
            const Step step = runPass(*pass, graph, one.options);
            if (step.info.state == StepState::Failed) return invalidInput(step.info.error, step.info.name);
            rewrites += step.info.rewrites;
            graph = step.after;
        }
    }
    return graph;
}

}  // namespace

class PreGradTest : public QObject {
    Q_OBJECT

    std::set<std::string> m_fired;

  private slots:
    void cases_data() {
        QTest::addColumn<QString>("path");
        for (const QString& path : testing::recordedFiles("pre_grad"))
            QTest::newRow(qPrintable(QFileInfo(path).completeBaseName())) << path;
    }
    void cases() {
        QFETCH(QString, path);
        RecordedCase one = testing::readRecordedCase(path);
        one.options.target = Target::Cuda;  // permute fusions are for GPUs
        const auto before = testing::parsedGraph(one.before);
        QVERIFY2(before.has_value(), before ? "" : before.error().text().c_str());
        int rewrites = 0;
        const auto after = appliedPreGrad(one, *before, rewrites);
        QVERIFY2(after.has_value(), after ? "" : after.error().text().c_str());
        if (rewrites > 0) m_fired.insert(one.passes.back().toStdString());
        const auto expected = one.after.isEmpty() ? before : testing::parsedGraph(one.after);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        QCOMPARE(shapeOf(**after), shapeOf(**expected));
        // PyTorch writes some calls again as they were.
        if (shapeOf(**before) == shapeOf(**expected)) QCOMPARE(rewrites, 0);
        else QVERIFY(rewrites > 0);
        if (one.idle.isEmpty()) {
            int again = 0;
            RecordedCase second = one;
            for (const QString& pass : {QStringLiteral("normalization_pass")})
                if (one.passes.back() != pass) second.passes.removeAll(pass);
            const auto twice = appliedPreGrad(second, *after, again);
            QVERIFY2(twice.has_value(), twice ? "" : twice.error().text().c_str());
            QCOMPARE(again, 0);
        }
        if (one.numbers.isEmpty()) checkNumbers(**before, **after);
    }

    /// PRE-11: what the comparison behind the stage says, of a rewrite that is right and of one that is wrong.
    void numericCheck_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("passes");
        QTest::addColumn<bool>("parity");
        QTest::addColumn<QString>("finding");
        QTest::newRow("right")
            << "def forward(a: \"f32[2, 3]\", b: \"f32[2, 3]\"):\n    c: \"f32[4, 3]\" = torch.cat([a, b])\n    d: \"f32[4, 3]\" = torch.relu(c)\n    return d\n"
            << "" << false << "results agree within 0.0001; values and gradients agree within 0.0001";
        const QString far =
            "def forward(x: \"f32[2, 3, 4, 5]\"):\n    u = torch.unbind(x, 0)\n    a: \"f32[3, 4, 5]\" = u[0]\n    b: \"f32[3, 4, 5]\" = u[1]\n"
            "    c: \"f32[3, 4, 10]\" = torch.cat([a, b], 2)\n    return c\n";
        QTest::newRow("left alone") << far << "normalization_pass unbind_cat_to_view_pass=threshold_to_cat:2" << false
                                    << "results agree within 0.0001";
        QTest::newRow("wrong") << far << "normalization_pass unbind_cat_to_view_pass=threshold_to_cat:2" << true
                               << "results differ: number 0 by";
        QTest::newRow("nothing to compute with") << "def forward(x):\n    y = torch.relu(x)\n    return y\n"
                                                 << "" << false << "results could not be compared: ";
    }
    void numericCheck() {
        QFETCH(QString, text);
        QFETCH(QString, passes);
        QFETCH(bool, parity);
        QFETCH(QString, finding);
        const auto module = testing::parsedGraph(text);
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        CompileRequest options;
        options.onlyStage = "pre_grad";
        options.parity = parity;
        for (const QString& each : (passes + " fx_passes_numeric_check").split(' ', Qt::SkipEmptyParts))
            options.enabledPasses.push_back(*parseOptionalPass(each.toStdString()));
        const auto trace = runPipeline(*module, options);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        const StepInfo& last = trace->steps.back().info;
        QCOMPARE(last.name, std::string("fx_passes_numeric_check"));
        QVERIFY2(QString::fromStdString(last.summary).contains(finding), last.summary.c_str());
        QVERIFY(trace->steps.back().after == trace->steps[trace->steps.size() - 2].after);
    }

    /// No text can have a call before its operand, so this case is made by hand.
    void sortsCalls() {
        auto module = parseText(
            "def forward(x: \"f32[2]\"):\n    a: \"f32[2]\" = torch.sin(x)\n    b: \"f32[2]\" = torch.neg(a)\n    c: \"f32[2]\" = torch.relu(x)\n    return (b, c)\n");
        QVERIFY(module.has_value());
        Graph& graph = (*module)->graph();
        graph.moveBefore(*graph.findByName("a"), *graph.last());
        Snapshot before = std::move(*module);
        const Step step = runPass(*passesOf("stable_topological_sort").at(0), before, CompileRequest());
        QVERIFY2(step.info.state == StepState::Changed, step.info.error.c_str());
        for (const RewriteInfo& rewrite : step.rewrites) m_fired.insert(rewrite.rule);
        QStringList order;
        for (const Node& node : step.after->graph().nodes())
            if (node.isCall()) order << QString::fromStdString(node.name());
        QCOMPARE(order.join(" "), "c a b");
    }

    /// Every pass of the stage changes something in some case.
    void everyPassFires() {
        QStringList idle;
        for (const StagePass& one : pipeline()) {
            const Pass& pass = *one.pass;
            const bool ours = one.stage == &kPreGrad && pass.run;
            const bool fused = pass.name.find("permute_fusion") != std::string_view::npos ||
                               pass.name == "permute_linear_fusion" || pass.name == "permute_matmul_fusion";
            if (ours && !m_fired.contains(std::string(fused ? "permute_fusion" : pass.name)))
                idle << QString::fromUtf8(pass.name.data());
        }
        QVERIFY2(idle.isEmpty(), qPrintable("no case for: " + idle.join(", ")));
    }

    void unknownOptionalPass() {
        const auto module = testing::parsedGraph("def forward(x: \"f32[2]\"):\n    return x\n");
        CompileRequest options;
        options.enabledPasses.push_back({"no_such_pass", {}});
        const auto trace = runPipeline(*module, options);
        QVERIFY(!trace.has_value());
        QVERIFY(trace.error().text().find("no optional pass named 'no_such_pass'") != std::string::npos);
    }

    void settings() {
        const auto pass = parseOptionalPass("batch_tanh=min_fuse_set_size:2,fuse_nodes_with_same_parent:true");
        QVERIFY(pass.has_value());
        QCOMPARE(pass->name, std::string("batch_tanh"));
        QCOMPARE(pass->number("min_fuse_set_size", 5), 2.0);
        QCOMPARE(pass->number("max_fuse_set_size", 300), 300.0);
        QVERIFY(pass->flag("fuse_nodes_with_same_parent", false));
        for (const char* bad : {"", "=x:1", "name=x", "name=:1"}) QVERIFY2(!parseOptionalPass(bad), bad);
    }

  private:
    static void checkNumbers(const Module& before, const Module& after) {
        const auto inputs = randomInputs(before, 1);
        QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
        const auto expected = interpret(before, *inputs), actual = interpret(after, *inputs);
        QVERIFY2(expected.has_value(), expected ? "" : ("before: " + expected.error().text()).c_str());
        QVERIFY2(actual.has_value(), actual ? "" : ("after: " + actual.error().text()).c_str());
        QCOMPARE(actual->size(), expected->size());
        for (size_t i = 0; i < expected->size(); ++i) {
            const Comparison comparison = compare((*actual)[i], (*expected)[i], Tolerance{1e-5, 1e-5});
            QVERIFY2(comparison.sameType && comparison.within, qPrintable(QString("result %1 differs").arg(i)));
        }
    }
};

CUTAWAY_SUITE(PreGradTest)
#include "pre_grad_test.moc"
