// Which nodes share a kernel, with the figures of each yes and no; that every single fusion of whole models keeps the
// numbers; and that settings bound what is tried.
#include "engine/schedule/fusion.h"

#include <QtTest>

#include "cutaway/session.h"
#include "engine/interpret/interpret.h"
#include "engine/passes/pass_runner.h"
#include "engine/passes/pipeline.h"
#include "engine/schedule/schedule.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/session_state.h"
#include "tests/engine/lowering_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct FusionCase {
    const char* name;
    const char* body;
    const char* decisions;      // one a line
    const char* settings = "";  // of --enable fusion
};
/// `x` is f32[64, 128], `r` f32[64, 1], `w` f32[128, 64].
constexpr FusionCase kFusions[] = {
    {"a value that nobody else reads is neither written nor read",
     "a = aten.exp.default(x); b = aten.neg.default(a); return (b,)",
     "a is computed in the kernel of b: one loop over [64, 128] makes both and saves 64.0 KiB of memory traffic"},
    {"a value that is returned is written", "a = aten.exp.default(x); b = aten.neg.default(a); return (a, b)",
     "a is computed in the kernel of b: one loop over [64, 128] makes both and saves 32.0 KiB of memory traffic"},
    {"an operand of both is read once, too", "a = aten.exp.default(x); b = aten.mul.Tensor(a, x); return (b,)",
     "a is computed in the kernel of b: one loop over [64, 128] makes both and saves 96.0 KiB of memory traffic"},
    {"two readers of one operand", "a = aten.exp.default(x); b = aten.neg.default(x); return (a, b)",
     "a and b share a kernel: one loop over [64, 128] reads x once and saves 32.0 KiB of memory traffic"},
    {"prologue and epilogue of a reduction",
     "a = aten.exp.default(x); s = aten.sum.dim_IntList(a, [1], True); d = aten.div.Tensor(a, s); return (d,)",
     "a is computed in the kernel of s: one loop over [64] reducing [128] makes both and saves 32.0 KiB of memory traffic\n"
     "a is computed in the kernel of d: one loop over [64] reducing [128] makes both and saves 64.5 KiB of memory traffic"},
    {"what another call stands between",
     "a = aten.exp.default(x); m = aten.mm.default(a, w); n = aten.mm.default(m, x); b = aten.add.Tensor(a, n); return (b,)",
     "a is not computed in the kernel of b: m must run between them; it would save 32.0 KiB of memory traffic"},
    {"what would be computed again and again",
     "a = aten.exp.default(r); b = aten.sin.default(a); c = aten.tanh.default(b); e = aten.expand.default(c, [64, 128]); "
     "p = aten.permute.default(e, [1, 0]); d = aten.mul.Tensor(w, p); return (d,)",
     "a is computed in the kernel of b: one loop over [64, 1] makes both and saves 512 B of memory traffic\n"
     "b is computed in the kernel of c: one loop over [64, 1] makes both and saves 512 B of memory traffic\n"
     "c is not computed in the kernel of d: c would be computed 128 times for each of its elements; it would save 512 B of memory traffic"},
    {"a value that is read in another order",
     "v = aten.view.default(x, [8, 8, 128]); a = aten.exp.default(v); p = aten.permute.default(a, [2, 0, 1]); "
     "b = aten.neg.default(p); return (b,)",
     "a is computed in the kernel of b: one loop over [128, 8, 8] makes both and saves 64.0 KiB of memory traffic"},
    {"a value that is read in parts of its dims",
     "a = aten.exp.default(x); v = aten.view.default(a, [8, 8, 128]); b = aten.neg.default(v); return (b,)",
     "a is computed in the kernel of b: one loop over [8, 8, 128] makes both and saves 64.0 KiB of memory traffic"},
    {"a value that is read as if it had fewer dims",
     "v = aten.view.default(x, [8, 8, 128]); a = aten.exp.default(v); u = aten.view.default(a, [64, 128]); "
     "b = aten.neg.default(u); return (a, b)",
     "a is computed in the kernel of b: one loop over [8, 8, 128] makes both and saves 32.0 KiB of memory traffic"},
    {"a value that is written in one order and read in another",
     "v = aten.view.default(x, [8, 8, 128]); p = aten.permute.default(v, [2, 0, 1]); a = aten.exp.default(p); "
     "q = aten.permute.default(a, [1, 2, 0]); b = aten.neg.default(q); c = aten.exp.default(b); return (a, c)",
     "a is not computed in the kernel of b: a loop over [8, 8, 128] would make a in another order than its own; it would "
     "save 32.0 KiB of memory traffic\n"
     "b is computed in the kernel of c: one loop over [8, 8, 128] makes both and saves 64.0 KiB of memory traffic"},
    {"layers that are alike are told apart",
     "v = aten.view.default(x, [8, 8, 128]); p = aten.permute.default(v, [2, 0, 1]); a = aten.exp.default(p); "
     "q = aten.permute.default(a, [1, 2, 0]); b = aten.neg.default(q); m = aten.mm.default(x, w); "
     "n = aten.mm.default(m, x); c = aten.view.default(n, [8, 8, 128]); d = aten.permute.default(c, [2, 0, 1]); "
     "e = aten.exp.default(d); f = aten.permute.default(e, [1, 2, 0]); g = aten.neg.default(f); return (a, b, e, g)",
     "a is not computed in the kernel of b: a loop over [8, 8, 128] would make a in another order than its own; it would "
     "save 32.0 KiB of memory traffic\n"
     "e is not computed in the kernel of g: a loop over [8, 8, 128] would make e in another order than its own; it would "
     "save 32.0 KiB of memory traffic"},
    {"the most nodes of a kernel",
     "a = aten.exp.default(x); b = aten.neg.default(a); c = aten.sin.default(b); return (c,)",
     "a is computed in the kernel of b: one loop over [64, 128] makes both and saves 64.0 KiB of memory traffic\n"
     "b is not computed in the kernel of c: it would have more than 2 nodes (fusion=max_nodes); it would save 64.0 KiB of memory traffic",
     "max_nodes:2"},
};

std::shared_ptr<const Module> scheduled(const std::shared_ptr<const Module>& module, const CompileRequest& request) {
    const auto trace = runPipeline(module, request, {}, {});
    if (!trace) throw std::runtime_error(trace.error().text());
    return trace->result();
}
QString decisionsOf(const Module& module) {
    QStringList all;
    for (const FusionDecision& decision : Schedule::of(module)->decisions)
        all << QString::fromStdString(decision.sentence);
    return all.join('\n');
}
CompileRequest scheduleOnly(const char* settings) {
    CompileRequest request;
    request.onlyStage = "schedule";
    if (*settings) request.enabledPasses = {*parseOptionalPass(std::string("fusion=") + settings)};
    return request;
}

}  // namespace

class FusionTest : public QObject {
    Q_OBJECT

  private slots:
    void decisions_data() {
        QTest::addColumn<int>("number");
        for (size_t i = 0; i < std::size(kFusions); ++i) QTest::newRow(kFusions[i].name) << static_cast<int>(i);
    }
    void decisions() {
        QFETCH(int, number);
        const FusionCase& fusionCase = kFusions[number];
        const auto module = moduleOf(R"(x: "f32[64, 128]", r: "f32[64, 1]", w: "f32[128, 64]")", fusionCase.body);
        QCOMPARE(decisionsOf(*scheduled(module, scheduleOnly(fusionCase.settings))), QString(fusionCase.decisions));
    }
    void aBudgetThatIsSpent() {
        const auto module =
            moduleOf("x: \"f32[64, 128]\"", "a = aten.exp.default(x); b = aten.neg.default(a); return (b,)");
        QCOMPARE(scheduleModule(scheduled(module, scheduleOnly("tries_per_node:0")), kCpuTarget)->kernels.size(),
                 size_t{2});
        QCOMPARE(scheduleModule(scheduled(module, scheduleOnly("tries_per_node:1")), kCpuTarget)->kernels.size(),
                 size_t{1});
    }
    void figuresOfSymbols() {
        const char* inputs = "s0: \"Sym(s0)\", x: \"f32[s0, 128]\"";
        const auto module = moduleOf(inputs, "a = aten.exp.default(x); b = aten.neg.default(a); return (b,)");
        const QString said = decisionsOf(*scheduled(module, scheduleOnly("")));
        QVERIFY2(said.endsWith("makes both and saves 1024*s0 bytes of memory traffic"), qPrintable(said));
    }

    void everyFusionKeepsTheNumbers_data() {
        QTest::addColumn<QString>("path");
        for (const QFileInfo& file : QDir(CUTAWAY_SOURCE_DIR "/resources/models").entryInfoList({"*.pt2"}))
            QTest::newRow(qPrintable(file.baseName())) << file.filePath();
    }
    /// As many programs as there are fusions, each with one more than the one before; no compiler has a part in it.
    void everyFusionKeepsTheNumbers() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        QVERIFY(session.compile({}));
        const CompileTrace& trace = session.state().runs[0].trace;
        const auto step = std::find_if(trace.steps.begin(), trace.steps.end(),
                                       [](const Step& own) { return own.info.name == "fuse_nodes"; });
        QVERIFY(step != trace.steps.end() && step->info.rewrites > 1);
        std::vector<Tensor> inputs, expected;
        for (int fuel = 0; fuel <= step->info.rewrites; ++fuel) {
            const auto graph = replayRewrites(*step, trace, fuel);
            QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
            if (fuel == 0) {
                inputs = *bindInputs(**graph, *cutaway::randomInputs(*session.state().input, 3));
                expected = *interpret(**graph, inputs);
            }
            const auto runs = interpretedKernels(Interpreted::Nests, kCpuTarget).run(*graph, inputs);
            QVERIFY2(runs, runs ? "" : runs.error().text().c_str());
            const Verdict verdict = compareOutputs(runs->front().outputs, expected, 1e-5);
            QVERIFY2(!verdict.bad,
                     qPrintable(QStringLiteral("with %1 fusions: %2").arg(fuel).arg(verdict.detail.c_str())));
        }
    }
};

CUTAWAY_SUITE(FusionTest)
#include "fusion_test.moc"
