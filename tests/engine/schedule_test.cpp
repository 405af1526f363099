// The parts of scheduling that need no compiler: index arithmetic, loop collapsing, memory planning, and which nodes
// end up together.
#include "engine/schedule/schedule.h"

#include <QtTest>

#include "engine/loops/collapse.h"
#include "engine/passes/pipeline.h"
#include "engine/schedule/fusion.h"
#include "tests/support/graph_eval.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {
Expr add(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Add, {a, b}); }
Expr mul(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mul, {a, b}); }
Expr div(const Expr& a, int64_t b) { return Expr::make(ExprKind::FloorDiv, {a, num(b)}); }
Expr mod(const Expr& a, int64_t b) { return Expr::make(ExprKind::Mod, {a, num(b)}); }
}  // namespace

class ScheduleTest : public QObject {
    Q_OBJECT

  private slots:
    /// i < 6, j < 4, k < 10.
    void simplification_data() {
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        QTest::addColumn<int>("which");
        int number = 0;
        auto row = [&](const char* name, const char* after) {
            QTest::newRow(name) << QString() << QString(after) << number++;
        };
        row("mod within bounds", "i");
        row("quotient within bounds", "0");
        row("row of a flat index", "i");
        row("column of a flat index", "j");
        row("taken apart and put together", "k");
        row("digit in the middle", "i");
        row("comparison that always holds", "True");
        row("unknown stays", "k % 4");
    }
    void simplification() {
        QFETCH(QString, after);
        QFETCH(int, which);
        const Expr i = Expr::axis(0), j = Expr::axis(1), k = Expr::axis(2);
        const Expr flat = add(mul(num(4), i), j);
        const Expr cases[] = {
            mod(i, 6),
            div(j, 4),
            div(flat, 4),
            mod(flat, 4),
            add(mul(num(5), div(k, 5)), mod(k, 5)),
            mod(div(add(mul(num(24), k), flat), 4), 6),
            Expr::make(ExprKind::Lt, {i, num(6)}, DType::Bool),
            mod(k, 4),
        };
        IndexSimplifier simplifier;
        simplifier.setSize(0, 6);
        simplifier.setSize(1, 4);
        simplifier.setSize(2, 10);
        const Expr result = simplifier.simplify(cases[which]);
        const Expr expected[] = {i, num(0), i, j, k, i, Expr::boolean(true), mod(k, 4)};
        QVERIFY2(result == expected[which], (text(result) + " is not " + after.toStdString()).c_str());
    }

    /// reindex() gives, for each element, the index that counting gives.
    void reindexing_data() {
        QTest::addColumn<QList<int>>("from");
        QTest::addColumn<QList<int>>("to");
        QTest::newRow("same") << QList<int>{2, 3} << QList<int>{2, 3};
        QTest::newRow("merge") << QList<int>{2, 3, 4} << QList<int>{6, 4};
        QTest::newRow("split") << QList<int>{6, 4} << QList<int>{2, 3, 4};
        QTest::newRow("mixed") << QList<int>{4, 6} << QList<int>{3, 8};
        QTest::newRow("ones") << QList<int>{1, 4, 1} << QList<int>{4};
        QTest::newRow("add ones") << QList<int>{4} << QList<int>{1, 4, 1};
        QTest::newRow("to nothing") << QList<int>{1, 1} << QList<int>{};
        QTest::newRow("keep the front") << QList<int>{5, 2, 6} << QList<int>{5, 3, 4};
    }
    void reindexing() {
        QFETCH(QList<int>, from);
        QFETCH(QList<int>, to);
        SymDims fromSizes, toSizes;
        for (int size : from) fromSizes.emplace_back(size);
        for (int size : to) toSizes.emplace_back(size);
        const int64_t count = numel(fromSizes).value();
        auto apart = [](int64_t position, const SymDims& sizes) {
            std::vector<int64_t> index(sizes.size());
            for (size_t d = sizes.size(); d-- > 0; position /= sizes[d].value()) index[d] = position % sizes[d].value();
            return index;
        };
        for (int64_t position = 0; position < count; ++position) {
            std::vector<Expr> at;
            for (int64_t value : apart(position, fromSizes)) at.push_back(num(value));
            const auto expected = apart(position, toSizes);
            const auto result = reindex(at, fromSizes, toSizes);
            QCOMPARE(result.size(), expected.size());
            for (size_t d = 0; d < expected.size(); ++d)
                QCOMPARE(result[d].asInt(), std::optional<int64_t>(expected[d]));
        }
    }

    void loopsCollapse() {
        // Contiguous on both sides: three loops become one. A broadcast operand keeps its loop apart.
        const Expr x = Expr::axis(0), y = Expr::axis(1), z = Expr::axis(2);
        const Expr flat = add(add(mul(num(20), x), mul(num(5), y)), z);
        Kernel kernel;
        kernel.name = "k";
        kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
        kernel.outer = {{0, 3}, {1, 4}, {2, 5}};
        kernel.stores = {{0, {}, flat, Expr::load("b1", flat, DType::F32)}};
        Kernel broadcast = kernel;
        broadcast.stores[0].value = Expr::load("b1", z, DType::F32);
        collapseLoops(kernel);
        QCOMPARE(kernel.outer.size(), size_t{1});
        QCOMPARE(kernel.outer[0].size.value(), int64_t{60});
        collapseLoops(broadcast);
        QCOMPARE(broadcast.outer.size(), size_t{2});
        QCOMPARE(broadcast.outer[0].size.value(), int64_t{12});
    }

    void memoryPlanNeverOverlaps() {
        uint64_t state = 12345;
        auto below = [&](uint64_t n) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            return static_cast<int>((state >> 20) % n);
        };
        for (int round = 0; round < 50; ++round) {
            std::vector<MemoryBlock> blocks;
            int64_t sum = 0;
            for (int i = 0; i < 40; ++i) {
                const int begin = below(60);
                blocks.push_back({below(3000), begin, begin + below(12), 0});
                sum += blocks.back().bytes + 64;
            }
            const int64_t total = planMemory(blocks, 64);
            QVERIFY(total <= sum + 64);
            for (size_t a = 0; a < blocks.size(); ++a) {
                QCOMPARE(blocks[a].offset % 64, int64_t{0});
                QVERIFY(blocks[a].offset + blocks[a].bytes <= total);
                for (size_t b = 0; b < a; ++b) {
                    const bool together = blocks[a].begin <= blocks[b].end && blocks[b].begin <= blocks[a].end;
                    const bool apart = blocks[a].offset + blocks[a].bytes <= blocks[b].offset ||
                                       blocks[b].offset + blocks[b].bytes <= blocks[a].offset;
                    QVERIFY(!together || apart || blocks[a].bytes == 0 || blocks[b].bytes == 0);
                }
            }
        }
    }

    void disjointLifetimesShareMemory() {
        std::vector<MemoryBlock> blocks = {{1000, 0, 1, 0}, {1000, 2, 3, 0}, {1000, 1, 2, 0}};
        QCOMPARE(planMemory(blocks, 64), int64_t{2048});
        QCOMPARE(blocks[0].offset, blocks[1].offset);
    }

    void deadCodeIsNotScheduled() {
        const auto program = scheduleModule(moduleOf(R"(def forward(x: "f32[8]"):
    a = aten.exp.default(x)
    b = aten.relu.default(x)
    return (b,))"),
                                            kCpuTarget);
        QVERIFY(program.has_value());
        QCOMPARE(program->calls.size(), size_t{1});
        QCOMPARE(program->calls[0].nodes.size(), size_t{1});
    }

    /// A write is ordered against readers and writers of the memory that it writes to, and against nothing else.
    void writesOrderTheirMemory_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("calls");
        const auto row = [](const char* name, const char* text, const char* calls) {
            QTest::newRow(name) << text << calls;
        };
        row("other memory", R"(def forward(x: "f32[8]", y: "f32[8]", t: "f32[8]"):
    a = aten.exp.default(x)
    w = aten.copy_.default(t, y)
    b = aten.sin.default(a)
    return (b,))",
            "w a+b");
        row("a reader before it stays before it", R"(def forward(x: "f32[8]", t: "f32[8]"):
    a = aten.exp.default(t)
    w = aten.copy_.default(t, x)
    b = aten.sin.default(a)
    return (b,))",
            "a+b w");
        row("a reader behind it stays behind it", R"(def forward(x: "f32[8]", t: "f32[8]"):
    a = aten.exp.default(x)
    w = aten.copy_.default(t, x)
    b = aten.add.Tensor(a, t)
    return (b,))",
            "w a+b");
        row("before and behind is apart", R"(def forward(x: "f32[8]", t: "f32[8]"):
    a = aten.exp.default(t)
    w = aten.copy_.default(t, x)
    b = aten.add.Tensor(a, t)
    return (b,))",
            "a w b");
        row("through a view", R"(def forward(x: "f32[4]", t: "f32[2, 2]"):
    v = aten.view.default(t, [4])
    a = aten.exp.default(v)
    u = aten.select.int(t, 0, 1)
    s = aten.slice.Tensor(x, 0, 0, 2)
    w = aten.copy_.default(u, s)
    b = aten.add.Tensor(a, v)
    return (b,))",
            "a w b");
        row("two writes keep their order", R"(def forward(x: "f32[8]", y: "f32[8]", t: "f32[8]"):
    w1 = aten.copy_.default(t, y)
    w2 = aten.copy_.default(t, x)
    b = aten.sin.default(t)
    return (b,))",
            "w1 w2 b");
    }
    void writesOrderTheirMemory() {
        QFETCH(QString, text);
        QFETCH(QString, calls);
        const auto module = moduleOf(text.toStdString());
        const auto program = scheduleModule(module, kCpuTarget);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        QStringList out;
        for (const ScheduledCall& call : program->calls) {
            QStringList names;
            for (const NodeId id : call.nodes) names << QString::fromStdString(module->graph().find(id)->name());
            out << names.join('+');
        }
        QCOMPARE(out.join(' '), calls);
    }

    void everyQuestionHasAnAnswer() {
        const auto program = scheduleModule(moduleOf(R"(def forward(x: "f32[8, 16]", y: "f32[16, 8]"):
    a = aten.exp.default(x)
    s = aten.sum.dim_IntList(a, [1], True)
    d = aten.div.Tensor(a, s)
    m = aten.mm.default(d, y)
    r = aten.relu.default(m)
    t = aten.sum.dim_IntList(r, [0])
    return (t, d))"),
                                            kCpuTarget);
        QVERIFY(program.has_value());
        QCOMPARE(program->calls.size(), size_t{3});
        const Schedule* decided = Schedule::of(*program->module);
        QVERIFY(decided);
        for (const FusionDecision& decision : decided->decisions) {
            const bool kept = decision.sentence.find(" is not computed in the kernel of ") != std::string::npos ||
                              decision.sentence.find(" do not share a kernel: ") != std::string::npos;
            QVERIFY2(decision.fused != kept && decision.sentence.find(": ") != std::string::npos,
                     decision.sentence.c_str());
            QVERIFY(decision.producer != NodeId::None && decision.consumer != NodeId::None);
        }
        QVERIFY(decided->decisions.size() >= 3);
    }

    /// What is stepped is what is built: with fuel for k decisions the calls are those of k decisions.
    void eachDecisionIsARewrite() {
        const auto module = moduleOf(R"(def forward(x: "f32[8, 16]", y: "f32[16, 8]"):
    a = aten.exp.default(x)
    b = aten.neg.default(a)
    m = aten.mm.default(b, y)
    r = aten.relu.default(m)
    t = aten.sigmoid.default(r)
    return (t,))");
        const QStringList expected = {"reference: aten.mm.default, 4 kernels", "library: mm (oneDNN), 4 kernels",
                                      "library: mm (oneDNN), 3 kernels", "library: mm (oneDNN), 2 kernels"};
        for (int64_t fuel = 0; fuel < 4; ++fuel) {
            CompileRequest request;
            request.onlyStage = "schedule";
            request.fuel = fuel;
            const auto trace = runPipeline(module, request, {}, {});
            QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
            const auto program = scheduleModule(trace->result(), kCpuTarget);
            QVERIFY(program.has_value());
            QString seen;
            for (const ScheduledCall& call : program->calls)
                if (call.kind != CallKind::Kernel) seen += QString::fromStdString(call.description);
            seen += QString(", %1 kernels").arg(program->kernels.size());
            QCOMPARE(seen, expected[static_cast<int>(fuel)]);
        }
    }

    /// A rule that is switched off leaves what it would have done undone.
    void fusionCanBeSwitchedOff() {
        const auto module = moduleOf(R"(def forward(x: "f32[8]"):
    a = aten.exp.default(x)
    b = aten.neg.default(a)
    return (b,))");
        for (const bool off : {false, true}) {
            CompileRequest request;
            request.onlyStage = "schedule";
            if (off) request.disabledPasses = {"fuse_nodes/fuse"};
            const auto trace = runPipeline(module, request, {}, {});
            QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
            QCOMPARE(scheduleModule(trace->result(), kCpuTarget)->kernels.size(), size_t(off ? 2 : 1));
        }
    }
};

CUTAWAY_SUITE(ScheduleTest)
#include "schedule_test.moc"
