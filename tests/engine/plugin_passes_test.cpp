// Passes that plugins lend: graphs that they make get the stage's passes, too, and those that fail end the run.
#include <QtTest>

#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "tests/support/compiles.h"
#include "tests/support/rule_texts.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

const PluginPass kOutline{"joint_custom_post_pass", "outline", "1", ""};

/// Makes sin a call of a new graph: the sin of a copy, or of one that is called so again.
PassFunction outlining(bool endless) {
    return [endless](Module& module, Rewriter& rewriter) -> Result<bool> {
        const auto isSin = [](const Node& node) { return node.isCall("aten.sin.default"); };
        Graph& graph = module.graph();
        const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(), isSin);
        if (found == graph.nodes().end() || rewriter.begin("outline", *found) != Go::Yes) return false;
        Node& sin = *found;
        auto body =
            parseText(std::string("def forward(a: \"f32[4, 4]\"):\n    copy = aten.clone.default(a)\n    r = aten.") +
                      (endless ? "sin" : "cos") + ".default(copy)\n    return (r,)\n");
        CT_TRY(const Snapshot made, std::move(body));
        module.subgraphs.emplace_back("made", std::make_unique<Module>(*made));
        GraphBuilder builder = rewriter.builder(graph, &sin, sin);
        const Value call = builder.callBound(findOrMakeOpaque("higher_order.invoke_subgraph"),
                                             {SubgraphRef{"made"}, Argument("made"), sin.arg(0)});
        graph.setType(*call.node(), TupleType{sin.type()});
        rewriter.replace(sin, *call[0].node());
        return true;
    };
}

}  // namespace

class PluginPassesTest : public QObject {
    Q_OBJECT

  private slots:
    /// JNT-1: what the joint stage makes gets the joint passes, too, after the graph that calls it, and once.
    void madeGraphsGetTheStage() {
        CompileRequest options;
        options.onlyStage = "joint";
        options.disabledPasses = {"early_patterns"};
        const CompileHooks lent = lend(options, kOutline, outlining(false));
        const Snapshot input = parsed(
            "p = aten.sin.default(x); q = higher_order.invoke_subgraph(old, 'old', p); r: \"f32[4, 4]\" = q[0]; return (r,)\n\n"
            "def old(a: \"f32[4, 4]\"):; s = aten.neg.default(a); return (s,)");
        const CompileTrace trace = compiled(input, options, lent);
        QVERIFY2(!trace.failed(), trace.steps.back().info.error.c_str());
        const QStringList names = stepNames(trace);
        const qsizetype once = names.size() / 2;
        QCOMPARE(names.mid(once).join(", "), names.mid(0, once).join(", "));
        QCOMPARE(names.count("remove_noop_ops"), 2);
        const Step& made = trace.steps[static_cast<size_t>(once - 1)];
        QCOMPARE(made.info.name, std::string("joint_custom_post_pass.outline"));
        QCOMPARE(calls(*made.after->subgraph("made")), QString("aten.clone.default, aten.cos.default"));
        const Step& again = trace.steps[static_cast<size_t>(names.lastIndexOf("remove_noop_ops"))];
        QCOMPARE(again.info.summary,
                 std::string(
                     "Drops operators that return their operand unchanged, in graphs that the stage has made: made"));
        QCOMPARE(calls(*again.after->subgraph("made")), QString("aten.cos.default"));
        QCOMPARE(calls(*(*replayRewrites(again, trace, 0))->subgraph("made")),
                 QString("aten.clone.default, aten.cos.default"));
        QCOMPARE(trace.steps[static_cast<size_t>(names.lastIndexOf("early_patterns"))].info.state, StepState::Disabled);
        QCOMPARE(static_cast<int>(trace.stages.size()), 1);

        options.plugins.clear();
        QCOMPARE(stepNames(compiled(input, options)).count("remove_noop_ops"), 1);
    }
    void graphsThatMakeGraphsEnd() {
        CompileRequest options;
        options.onlyStage = "joint";
        const CompileHooks lent = lend(options, kOutline, outlining(true));
        const auto trace = runPipeline(parsed("p = aten.sin.default(x); return (p,)"), options, lent);
        QVERIFY(!trace.has_value());
        QVERIFY2(trace.error().text().find("again and again") != std::string::npos, trace.error().text().c_str());
        QVERIFY2(trace.error().text().find("made.made") != std::string::npos, trace.error().text().c_str());
    }

    void failingFunctionEndsTheRun() {
        CompileRequest options;
        CompileHooks lent = lend(options, {"joint_custom_post_pass", "broken", "1", ""},
                                 [](Module&, Rewriter&) -> Result<bool> { return invalidInput("out of luck"); });
        const CompileTrace trace = compiled(parsed("p = aten.sin.default(x); return (p,)"), options, lent);
        QVERIFY(trace.failed());
        QCOMPARE(trace.steps.back().info.name, std::string("joint_custom_post_pass.broken"));
        QVERIFY(trace.steps.back().info.error.find("out of luck") != std::string::npos);
        lent.passes[0].run = nullptr;
        QVERIFY(!runPipeline(parsed("return (x,)"), options, lent).has_value());
        // A function that nobody lends, or another version of it, is refused by name.
        for (const CompileHooks& other : {CompileHooks{}, [&] {
                                              CompileHooks newer = lent;
                                              newer.passes[0].id.version = "2";
                                              return newer;
                                          }()}) {
            const auto refused = runPipeline(parsed("return (x,)"), options, other);
            QVERIFY(!refused.has_value());
            QVERIFY2(refused.error().text().find("'broken' 1 is not loaded") != std::string::npos,
                     refused.error().text().c_str());
        }
    }
};

CUTAWAY_SUITE(PluginPassesTest)
#include "plugin_passes_test.moc"
