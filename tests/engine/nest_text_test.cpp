// The text of loop nests: what every step of lowering makes of hand-written kernels, of compiled graphs and of every
// op's samples comes back from its text; hand-written nests run as they read; wrong texts are refused in words.
#include "engine/loops/nest_text.h"

#include <QtTest>

#include "engine/loops/interpret.h"
#include "tests/support/graph_eval.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Why a nest does not come back from its text; nothing if it does.
QString lostNest(const std::string& written) {
    const auto read = parseNest(written);
    if (!read) return QString::fromStdString(read.error().text() + "\n" + written);
    const std::string again = text(*read);
    return again == written ? QString() : QString::fromStdString("its text changes:\n" + written + "\n" + again);
}
/// The same after each step.
QString lostNest(const Kernel& kernel, const LoopPlan& plan) {
    std::vector<LoopStep> steps;
    lowerLoops(kernel, plan, kCpuTarget, &steps);
    for (const LoopStep& step : steps)
        for (const QString& nest : QString::fromStdString(step.text).split("\n\n"))
            if (QString why = lostNest(nest.endsWith('\n') ? nest.toStdString() : nest.toStdString() + "\n");
                !why.isEmpty())
                return QString::fromStdString(step.name) + ": " + why;
    return {};
}
/// Whether nests that were read from text leave the same bytes as those that were written.
QString runsOtherwise(const Kernel& kernel, const LoopPlan& plan, size_t elements) {
    const LoweredKernel lowered = lowerLoops(kernel, plan, kCpuTarget);
    LoweredKernel reread = lowered;
    for (LoopNest& nest : reread.nests) {
        auto read = parseNest(text(nest));
        if (!read) return QString::fromStdString(read.error().text());
        nest = std::move(*read);
    }
    Memory one(kernel, elements, 5), other(kernel, elements, 5);
    interpretNests(lowered, one.pointers, {});
    interpretNests(reread, other.pointers, {});
    return one.bytes == other.bytes ? QString() : QStringLiteral("other bytes");
}

}  // namespace

class NestTextTest : public QObject {
    Q_OBJECT

  private slots:
    void texts_data() {
        QTest::addColumn<QString>("nest");
        const auto row = [](const char* name, const char* nest) { QTest::newRow(name) << QString(nest); };
        row("rows",
            "rows(b0: f32!, b1: f32, s0)\n  range s0\n"
            "  parallel for x0 in 0 .. s0:\n    b0[x0] = exp(b1[2*x0])\n");
        row("vectors",
            "vectors(b0: f32!, b1: f32)\n  lanes 16\n  range 40\n"
            "  parallel vector 16 for x0 in 0 .. 40:\n"
            "    let t0: f32x16 = b1[x0 : 1] + b1[3*x0 : 3]\n"
            "    b0[x0 : 1] = Where(active(x0), t0, 0.0)\n");
        row("states",
            "sums(b0: f32!, b1: f32)\n  lanes 16\n  range 9\n  parallel for x0 in 0 .. 9:\n"
            "    alloc argmax t0: f32x16, t1: i64x16 of f32\n"
            "    vector 16 for x1 in 0 .. 40:\n"
            "      accumulate argmax t0, t1 with b1[x1 + 40*x0 : 1] at ramp(x1) where active(x1)\n"
            "    let t4: f32x16 = lanes_from(t0, 8)\n    let t5: i64x16 = lanes_from(t1, 8)\n"
            "    combine argmax t0, t1 with t4, t5\n"
            "    var t2: f32 = lane(t0, 0)\n    var t3: i64 = lane(t1, 0)\n"
            "    b0[x0] = f32(t3)\n");
        row("additions",
            "adds(b0: f32!, b1: f32, b2: i64)\n  lanes 16\n  range 9\n  parallel for x0 in 0 .. 9:\n"
            "    atomic b0[b2[x0]] += b1[x0]\n    vector 16 for x1 in 0 .. 40:\n      b0[x1 : 1] += b1[x1 : 1]\n");
        row("scratch",
            "turn(b0: f32!, b1: f32)\n  scratch c0: f32[64]\n  barrier\n"
            "  for x0 in 0 .. 64:\n    c0[x0] = b1[x0]\n  barrier\n"
            "  for x0 in 0 .. 64:\n    x1 = remainder(x0, 8)\n    if x1 < 3:\n      b0[x0] = c0[8*x1 + quotient(x0, 8)]\n");
        row("transposed",
            "transposed(b0: f32!, b1: f32)\n  range 5\n  scratch c0: f32[64]\n  parallel for x0 in 0 .. 5:\n"
            "    transpose c0[0] by 8 with b1[8*x0] by 40 of 8 by Min(x0 + 4, 8)\n"
            "    transpose b0[320*x0] by 8 with c0[0] by 8 of 8 by 8\n");
    }
    void texts() {
        QFETCH(QString, nest);
        QCOMPARE(lostNest(nest.toStdString()), QString());
    }
    void handWrittenNestsRun() {
        const auto nest = parseNest(
            "cube(b0: f32!, b1: f32)\n"
            "  # freely indented\n"
            "  for x0 in 0 .. 5:\n"
            "      var t0: f32 = 1.0\n"
            "      for x1 in 0 .. 3:\n"
            "        t0 = t0 * b1[x0]\n"
            "      b0[x0] = t0\n");
        QVERIFY2(bool(nest), nest ? "" : nest.error().text().c_str());
        float out[5] = {}, in[5] = {0, 1, 2, 3, 4};
        void* const buffers[] = {out, in};
        QCOMPARE(interpretNests({{*nest}, {}}, buffers, {}), KernelFault::None);
        for (int i = 0; i < 5; ++i) QCOMPARE(out[i], in[i] * in[i] * in[i]);
    }

    void wrong_data() {
        QTest::addColumn<QString>("nest");
        QTest::addColumn<QString>("error");
        const auto row = [](const char* name, const QString& nest, const char* error) {
            QTest::newRow(name) << nest << QString(error);
        };
        const QString head = "k(b0: f32!, b1: f32, s0)\n  for x0 in 0 .. 9:\n";
        row("nothing", "", "line 1: a nest begins with its name and buffers: sums(b0: f32!, b1: f32)");
        row("statement", head + "    foo = 3",
            "line 3: a statement: for x0 in 0 .. 9:, let t0: f32 = ..., b0[x0] = ..., if, var, alloc, accumulate, combine, "
            "barrier, prefetch, transpose, expected before '= 3'");
        row("atomic", head + "    atomic b0[x0] = 1.0", "line 3: what is atomic adds: atomic b0[x0] += ...");
        row("additions to halves", "k(b0: f16!)\n  b0[0] += 1.0", "line 2: what adds is of f32, f64 or integers");
        row("lanes too late", head + "    lanes 16",
            "line 3: lanes, range and scratch arrays stand before all statements");
        row("lanes", "k(b0: f32!)\n  lanes 0", "line 2: a number from 1 to 1024 is expected");
        row("lanes of a loop",
            "k(b0: f32!)\n  lanes 16\n  vector 8 for x0 in 0 .. 9:", "line 3: a vector loop has the lanes of its nest");
        row("lanes of a variable", "k(b0: f32!)\n  lanes 16\n  let t0: f32x8 = 1.0",
            "line 3: a vector has the lanes of its nest");
        row("loop", "k(b0: f32!)\n  for x0 < 9:", "line 2: a loop, for x0 in 0 .. 9:, expected before '< 9:'");
        row("undeclared", head + "    b0[x0] = t0",
            "line 3: t0 is read before a line declares it: let t0: f32 = ..., var t0: f32 = ...");
        row("reads itself", head + "    let t0: f32 = t0",
            "line 3: t0 is read before a line declares it: let t0: f32 = ..., var t0: f32 = ...");
        row("declared twice", head + "    let t0: f32 = 1.0\n    let t0: f32 = 1.0",
            "line 4: t0 has been declared before");
        row("out of reach", head + "    let t0: f32 = 1.0\n  b0[0] = t0",
            "line 4: t0 is read before a line declares it: let t0: f32 = ..., var t0: f32 = ...");
        row("another type", head + "    let t0: f32 = 1.0\n  let t0: f64 = 1.0_f64",
            "line 4: t0 has been declared before with another type");
        row("does not change", head + "    let t0: f32 = 1.0\n    t0 = 2.0",
            "line 4: t0 does not change: var t0: f32 = ... declares what does");
        row("dtype", head + "    let t0: f64 = b1[x0]", "line 3: t0 is given a value of another dtype");
        row("stored dtype", head + "    b0[x0] = 1", "line 3: what is stored has the dtype of its buffer");
        row("condition", head + "    if x0:", "line 3: the condition of an if is a bool");
        row("scratch", head + "    b0[x0] = c0[x0]", "line 3: c0 is not a scratch array: scratch c0: f32[64]");
        const QString transposed = "k(b0: f32!, b1: f32, b2: i32)\n  scratch c0: f32[64]\n  transpose ";
        row("transposed", transposed + "x0", "line 3: memory, b0 or c0, expected at its end");
        row("rows apart", transposed + "b0[0] with", "line 3: by and how far rows are apart expected before 'with'");
        row("transposed from", transposed + "b0[0] by 8 of 8",
            "line 3: with and a matrix, transpose c1[0] by 64 with c0[0] by 16 of 64 by 16 expected before 'of 8'");
        row("how many rows", transposed + "b0[0] by 8 with b1[0] by 8",
            "line 3: of and the number of rows expected at its end");
        row("how many columns", transposed + "b0[0] by 8 with b1[0] by 8 of 8",
            "line 3: by and the number of columns expected at its end");
        row("transposed over itself", transposed + "b0[0] by 8 with b0[64] by 8 of 8 by 8",
            "line 3: a matrix is transposed into other memory of its dtype");
        row("transposed into another dtype", transposed + "b0[0] by 8 with b2[0] by 8 of 8 by 8",
            "line 3: a matrix is transposed into other memory of its dtype");
        row("transposed into what is read", transposed + "b1[0] by 8 with b0[0] by 8 of 8 by 8",
            "line 3: b1 is not written: mark it in the first line, b1: f32!");
        row("transposed out of scratch memory", transposed + "c0[0] by 8 with b1[0] by 8 of 8 by 9",
            "line 3: scratch memory does not hold so many elements");
        row("too long rows", transposed + "b0[0] by 8 with c0[8] by 8 of 8 by 8",
            "line 3: scratch memory does not hold so many elements");
        row("prefetch", head + "    prefetch b9[x0]", "line 3: a buffer, b0, expected before '[x0]'");
        row("prefetch for what", head + "    prefetch b0[x0] to read", "line 3: write expected before 'read'");
        row("states", head + "    alloc argmax t0: f32 of f32", "line 3: argmax has another number of states");
        row("axis", head + "    b0[x0] = 1.0\n  b0[x0] = 1.0", "k: x0 is read where no loop over it is open");
    }
    void wrong() {
        QFETCH(QString, nest);
        QFETCH(QString, error);
        const auto read = parseNest(nest.toStdString());
        QVERIFY(!read);
        QCOMPARE(QString::fromStdString(read.error().text()), error);
    }

    void ofKernels() {
        for (const int64_t n : {1, 17, 40}) {
            const Kernel kernels[] = {softmax(9, n), transpose(9, n), largest(2, n),    beside(5, n, 3),    bags(7, n),
                                      gelu(n),       gather(n),       columnSums(n, 5), largest(2, 1 << 20)};
            for (const Kernel& kernel : kernels) QCOMPARE(lostNest(kernel, choosePlan(kernel, kCpuTarget)), QString());
            for (int i = 0; i < 8; ++i)
                QCOMPARE(runsOtherwise(kernels[i], choosePlan(kernels[i], kCpuTarget), size_t{20} << 10), QString());
        }
    }
    /// What is not shared yet does not make the text grow with every reader.
    void deepValues() {
        Kernel kernel = gelu(8);
        Expr value = Expr::load("b1", Expr::axis(0), DType::F32);
        for (int i = 0; i < 200; ++i)
            value = Expr::make(ExprKind::Add, {call1("exp", value), call1("sin", value)}, DType::F32);
        kernel.stores[0].value = value;
        std::vector<LoopStep> steps;
        lowerLoops(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget, &steps);
        for (const LoopStep& step : steps) QVERIFY(step.text.size() < 40000);
        QCOMPARE(lostNest(kernel, choosePlan(kernel, kCpuTarget)), QString());
    }
    void ofEverySample() {
        int kernels = 0;
        const QString wrong =
            firstWrong([](const PlannedKernel& kernel) { return lostNest(kernel.kernel, kernel.plan); }, kernels);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
        QVERIFY2(kernels > 500, std::to_string(kernels).c_str());
    }
};

CUTAWAY_SUITE(NestTextTest)
#include "nest_text_test.moc"
