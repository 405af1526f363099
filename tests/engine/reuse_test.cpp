// Which values are written over operands, why others are not, and that the numbers stay.
#include "engine/schedule/reuse.h"

#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/rewrite/dead_code.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/schedule/schedule.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct ReuseCase {
    const char* name;
    const char* body;
    const char* over;         // "b over m, ..."
    const char* whyNot = "";  // of all pairs of a result and an operand that are not written over each other
};
/// `x` and `w` are f32[48, 48]; m and n are products of theirs.
constexpr ReuseCase kReuses[] = {
    {"a chain", "t = aten.tanh.default(m); return (t,)", "t over m"},
    {"inputs are the caller's", "t = aten.tanh.default(x); return (t,)", "", "t over x: nothing against it"},
    {"what is read later", "t = aten.tanh.default(m); k = aten.mm.default(t, m); return (k,)", "",
     "t over m: nothing against it"},
    {"what is returned", "t = aten.tanh.default(m); return (t, m)", "", "t over m: nothing against it"},
    {"the first of two that end", "t = aten.add.Tensor(m, n); return (t,)", "t over m", "t over n: nothing against it"},
    {"the one that ends", "t = aten.add.Tensor(m, n); k = aten.mm.default(t, m); return (k,)", "t over n",
     "t over m: nothing against it"},
    {"one over another, over a third",
     "a = aten.relu.default(m); b = aten.mm.default(a, w); c = aten.sub.Tensor(a, b); return (c,)",
     "a over m, c over a", "c over b: nothing against it"},
    {"rows that are reduced first",
     "a = aten.amax.default(m, [1], True); d = aten.sub.Tensor(m, a); e = aten.exp.default(d); "
     "s = aten.sum.dim_IntList(e, [1], True); t = aten.div.Tensor(e, s); return (t,)",
     "t over m"},
    {"columns that are reduced first",
     "a = aten.amax.default(m, [0], True); d = aten.sub.Tensor(m, a); e = aten.exp.default(d); "
     "s = aten.sum.dim_IntList(e, [0], True); t = aten.div.Tensor(e, s); return (t,)",
     "t over m"},
    {"other places", "u = aten.transpose.int(m, 0, 1); t = aten.add.Tensor(m, u); return (t,)", "",
     "t over m: it is read at other places than it is written"},
    {"all of it is reduced", "s = aten.mean.default(m); t = aten.sub.Tensor(m, s); return (t,)", "t over m"},
    {"two results", "t = aten.tanh.default(m); a = aten.amax.default(m, [1]); return (t, a)", "",
     "t over m: another result is made of it, too; a over m: another result is made of it, too"},
    {"another dtype", "t = aten.gt.Scalar(m, 0); return (t,)", "", "t over m: nothing against it"},
    {"another shape of the same memory", "v = aten.view.default(m, [2304]); t = aten.tanh.default(v); return (t,)",
     "t over m"},
    {"a part of it", "v = aten.slice.Tensor(m, 0, 0, 24); t = aten.tanh.default(v); return (t,)", "",
     "t over m: nothing against it"},
    {"places that follow from data",
     "i = aten.argmax.default(m, 1); j = aten.index.Tensor(m, [i]); t = aten.tanh.default(j); return (t,)", "",
     "t over m: it is read at other places than it is written"},
    {"what is written to under another name",
     "c = aten.clone.default(m); r = aten.select.int(c, 0, 2); z = aten.neg.default(n); q = aten.select.int(z, 0, 1); "
     "k = aten.copy_.default(r, q); t = aten.tanh.default(c); return (t,)",
     "c over m, z over n, t over c", "*"},
};

std::shared_ptr<Module> graphOf(const char* body) {
    const std::string products = "m = aten.mm.default(x, w); n = aten.mm.default(w, x); ";
    const auto module = std::make_shared<Module>(*moduleOf(R"(x: "f32[48, 48]", w: "f32[48, 48]")", products + body));
    const CompileRequest options;
    for (const auto pass : {eliminateDeadCode, beginSchedule, chooseLibraries, fuseNodes}) {
        Rewriter rewriter("schedule", options);
        if (!pass(*module, rewriter)) throw std::runtime_error("the schedule fails");
    }
    return module;
}
QString nameOf(const ValueKey& key) { return QString::fromStdString(key.node->name()); }

QString overs(const ScheduledProgram& program) {
    QStringList all;
    for (const ScheduledValue& value : program.values)
        if (value.over >= 0)
            all << nameOf(value.key) + " over " + nameOf(program.values[static_cast<size_t>(value.over)].key);
    return all.join(", ");
}
/// Why results are not written over operands, for each pair, of kernels as they are without reuse.
QString reasons(const ScheduledProgram& program, const QString& except) {
    QStringList all;
    for (const ScheduledCall& call : program.calls) {
        if (call.kind != CallKind::Kernel) continue;
        const Kernel& kernel = program.kernels[call.kernel].kernel;
        for (int result = 0; result < int(kernel.buffers.size()); ++result)
            for (int operand = 0; operand < int(kernel.buffers.size()); ++operand) {
                if (!kernel.buffers[size_t(result)].written || kernel.buffers[size_t(operand)].written) continue;
                const QString pair =
                    nameOf(call.bindings[size_t(result)]) + " over " + nameOf(call.bindings[size_t(operand)]);
                if (except.split(", ").contains(pair)) continue;
                const std::string why = whyNotOver(kernel, result, operand);
                all << pair + ": " + (why.empty() ? "nothing against it" : QString::fromStdString(why));
            }
    }
    return all.join("; ");
}

}  // namespace

class ReuseTest : public QObject {
    Q_OBJECT

  private slots:
    void decisions_data() {
        QTest::addColumn<int>("number");
        for (size_t i = 0; i < std::size(kReuses); ++i) QTest::newRow(kReuses[i].name) << static_cast<int>(i);
    }
    void decisions() {
        QFETCH(int, number);
        const ReuseCase& test = kReuses[number];
        const auto module = graphOf(test.body);
        const auto before = scheduleModule(module, kCpuTarget);
        QVERIFY(before);
        QCOMPARE(overs(*before), QString());
        const CompileRequest options;
        Rewriter rewriter("reuse_memory", options);
        QVERIFY(reuseMemory(*module, rewriter));
        const auto after = scheduleModule(module, kCpuTarget);
        QVERIFY(after);
        QCOMPARE(overs(*after), QString(test.over));
        if (QString(test.whyNot) != "*") QCOMPARE(reasons(*before, test.over), QString(test.whyNot));

        const std::vector<Tensor> inputs = drawnInputs(*module, 11);
        const auto expected = interpret(*module, inputs, {.pure = true});
        QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        for (const int threads : {1, 4}) {
            CpuRunOptions run;
            run.threads = threads;
            run.repeat = 3;
            const auto ran = runCpu(*program, inputs, run);
            QVERIFY2(ran, ran ? "" : ran.error().text().c_str());
            for (size_t i = 0; i < expected->size(); ++i) {
                const Comparison found = compare(ran->outputs[i], (*expected)[i], {.relative = 1e-4, .absolute = 1e-4});
                QVERIFY2(found.within, qPrintable(QString("result %1, off by %2").arg(i).arg(found.maxAbsoluteError)));
            }
        }
    }
    /// Reductions in the body of a store of b0[4 i + j], which read b1.
    void reductions_data() {
        QTest::addColumn<int>("loopSize");
        QTest::addColumn<QString>("index");
        QTest::addColumn<QString>("why");
        QTest::newRow("of the row") << 4 << "ik"
                                    << "";
        QTest::newRow("of a part of it") << 3 << "ik"
                                         << "a reduction reads more of it than the row that is written";
        QTest::newRow("of a row of another loop") << 4 << "kk"
                                                  << "a reduction reads more of it than the row that is written";
        QTest::newRow("of the column of each element") << 4 << "kj"
                                                       << "a reduction reads it again for each element";
    }
    void reductions() {
        QFETCH(int, loopSize);
        QFETCH(QString, index);
        QFETCH(QString, why);
        const auto at = [](QString axes) {
            const auto axis = [&](int place) { return Expr::axis(axes[place].unicode() - 'i'); };
            return Expr::make(ExprKind::Add, {Expr::make(ExprKind::Mul, {Expr::integer(4), axis(0)}), axis(1)});
        };
        const Expr sum =
            makeReduce(static_cast<int>(ReduceKind::Sum), {{2, loopSize}}, Expr::load("b1", at(index), DType::F32));
        const Expr expr = Expr::load("b1", at("ij"), DType::F32);
        Kernel kernel;
        kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
        kernel.outer = {{0, 4}};
        kernel.stores = {{0, {{1, 4}}, at("ij"), Expr::make(ExprKind::Add, {expr, sum}, DType::F32)}};
        QCOMPARE(QString::fromStdString(whyNotOver(kernel, 0, 1)), why);
    }
    /// A convolution adds to an operand in place, unless that is read later, or by the call itself in another role.
    void additions_data() {
        QTest::addColumn<QString>("statements");
        QTest::addColumn<QString>("over");
        const QString add =
            "mkldnn._convolution_pointwise.binary(x, %1, w, None, [1, 1], [1, 1], [1, 1], 1, %2, 1.0, "
            "'relu', [], ''); ";
        const QString own =
            "c = mkldnn._convolution_pointwise.default(x, w, None, [1, 1], [1, 1], [1, 1], 1, 'none', "
            "[], ''); ";
        QTest::newRow("read for the last time")
            << own + "a = " + add.arg("c", "'add'") + "b = aten.neg.default(a); return (b,)"
            << "a over c, b over a";
        QTest::newRow("read later") << own + "a = " + add.arg("c", "'add'") + "b = aten.add.Tensor(a, c); return (b,)"
                                    << "b over a";
        QTest::newRow("the caller's") << "a = " + add.arg("x", "'add'") + "return (a,)"
                                      << "";
        QTest::newRow("multiplied") << own + "a = " + add.arg("c", "'mul'").replace("'relu'", "None") + "return (a,)"
                                    << "";
        QTest::newRow("the input, too") << own + "a = " + add.arg("c", "'add'").replace("(x, ", "(c, ") + "return (a,)"
                                        << "";
        QTest::newRow("a view of the input")
            << own + "v = aten.view.default(c, [2, 8, 7, 7]); a = " + add.arg("v", "'add'").replace("(x, ", "(c, ") +
                   "return (a,)"
            << "";
        QTest::newRow("one of several channels")
            << own +
                   "s = aten.slice.Tensor(c, 1, 0, 1); e = aten.expand.default(s, [2, 8, 7, 7]); "
                   "a = " +
                   add.arg("e", "'add'") + "return (a,)"
            << "";
    }
    void additions() {
        QFETCH(QString, statements);
        QFETCH(QString, over);
        const auto module = std::make_shared<Module>(
            *moduleOf(R"(x: "f32[2, 8, 7, 7][392, 1, 56, 8]", w: "f32[8, 8, 3, 3]")", statements.toStdString()));
        const CompileRequest options;
        for (const auto pass : {beginSchedule, chooseLibraries, fuseNodes, reuseMemory}) {
            Rewriter rewriter("schedule", options);
            QVERIFY(pass(*module, rewriter));
        }
        const auto scheduled = scheduleModule(module, kCpuTarget);
        QVERIFY(scheduled);
        QCOMPARE(overs(*scheduled), over);
        const std::vector<Tensor> inputs = drawnInputs(*module, 11);
        const auto expected = interpret(*module, inputs, {.pure = true});
        const auto program = buildCpu(module);
        QVERIFY(expected && program);
        CpuRunOptions run;
        run.repeat = 3;
        const auto ran = runCpu(*program, inputs, run);
        QVERIFY2(ran, ran ? "" : ran.error().text().c_str());
        for (size_t i = 0; i < expected->size(); ++i)
            QVERIFY(compare(ran->outputs[i], (*expected)[i], {.relative = 1e-4, .absolute = 1e-4}).within);
    }
    /// Each is a rewrite of its own: with less fuel the first ones happen.
    void fuel() {
        for (const int64_t fuel : {0, 1, 2}) {
            const auto module = graphOf(kReuses[6].body);
            const CompileRequest options;
            Rewriter rewriter("reuse_memory", options, fuel);
            QVERIFY(reuseMemory(*module, rewriter));
            const auto program = scheduleModule(module, kCpuTarget);
            QVERIFY(program);
            QCOMPARE(overs(*program), QStringList({"", "a over m", "a over m, c over a"})[static_cast<int>(fuel)]);
        }
    }
    /// Values in one place are counted once, and none lies where another lives.
    void memory() {
        const auto module = graphOf(kReuses[6].body);
        const auto before = scheduleModule(module, kCpuTarget);
        const CompileRequest options;
        Rewriter rewriter("reuse_memory", options);
        QVERIFY(before && reuseMemory(*module, rewriter));
        const auto after = scheduleModule(module, kCpuTarget);
        QVERIFY(after);
        const auto most = memoryOf(*before), least = memoryOf(*after);
        QVERIFY(most && least);
        constexpr int64_t kMatrix = 48 * 48 * 4;
        QCOMPARE(most->arena, 3 * kMatrix);   // a, b, c
        QCOMPARE(least->arena, 2 * kMatrix);  // m, then a, then c; and b
        QCOMPARE(least->largestLive, least->arena);
    }
};

CUTAWAY_SUITE(ReuseTest)
#include "reuse_test.moc"
