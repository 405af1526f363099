// The text of kernels: hand-written ones, every kernel of compiled graphs and of every op's samples come back equal
// from theirs; wrong texts are refused in words.
#include "engine/loops/kernel_text.h"

#include <QtTest>
#include <cmath>

#include "engine/loops/unique_exprs.h"
#include "engine/schedule/schedule.h"
#include "tests/support/graph_eval.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Compares each shared part once, as operator== of deeply shared expressions would not.
bool same(UniqueExprs& exprs, const Expr& a, const Expr& b) { return &*exprs.unique(a) == &*exprs.unique(b); }

QString difference(const Kernel& a, const Kernel& b) {
    if (a.name != b.name) return "the name differs";
    if (a.buffers != b.buffers) return "the buffers differ";
    if (a.sizes != b.sizes) return "the sizes differ";
    if (!(a.outer == b.outer)) return "the outer loops differ";
    if (a.stores.size() != b.stores.size()) return "the number of stores differs";
    UniqueExprs exprs;
    for (size_t i = 0; i < a.stores.size(); ++i) {
        const KernelStore &one = a.stores[i], &other = b.stores[i];
        if (one.buffer != other.buffer || !(one.inner == other.inner)) return QStringLiteral("store %1 differs").arg(i);
        if (!same(exprs, one.index, other.index)) return QStringLiteral("the index of store %1 differs").arg(i);
        if (!same(exprs, one.value, other.value)) return QStringLiteral("the value of store %1 differs").arg(i);
    }
    return {};
}

/// Why the kernel does not come back from its text; nothing if it does.
QString lostKernel(const Kernel& kernel) {
    const std::string written = text(kernel);
    const auto read = parseKernel(written);
    QString why = read ? difference(kernel, *read) : QString::fromStdString(read.error().text());
    if (why.isEmpty() && text(*read) != written) why = "its text changes";
    return why.isEmpty() ? why : why + "\n" + QString::fromStdString(written);
}

struct Graph {
    const char *name, *text;
};
constexpr Graph kGraphs[] = {
    {"softmax", R"(def forward(x: "f32[9, 40]"):
    a = aten.amax.default(x, [1], True)
    b = aten.sub.Tensor(x, a)
    c = aten.exp.default(b)
    d = aten.sum.dim_IntList(c, [1], True)
    e = aten.div.Tensor(c, d)
    return (e,))"},
    {"halves", R"(def forward(x: "bf16[9, 40]", y: "f16[40]"):
    z = aten.mul.Tensor(x, y)
    w = aten.gelu.default(x)
    return (z, w))"},
    {"variance", R"(def forward(x: "f32[4, 8, 16]"):
    y = aten.var_mean.correction(x, [1, 2], correction = 1, keepdim = True)
    v = y[0]
    m = y[1]
    d = aten.sub.Tensor(x, m)
    r = aten.rsqrt.default(v)
    o = aten.mul.Tensor(d, r)
    return (o, v))"},
    {"embedding", R"(def forward(w: "f32[10, 8]", i: "i64[2, 3]"):
    y = aten.embedding.default(w, i)
    z = aten.add.Tensor(y, 1.5)
    return (z,))"},
    {"concatenation", R"(def forward(x: "f32[2, 3]", y: "f32[2, 5]", z: "f32[2, 4]"):
    a = aten.cat.default([x, y, z], 1)
    b = aten.constant_pad_nd.default(a, [1, 2, 0, 1], 0.5)
    c = aten.roll.default(b, [3], [1])
    return (c,))"},
    {"integers", R"(def forward(x: "i32[7]", y: "u8[7]"):
    a = aten.bitwise_and.Tensor(x, y)
    b = aten.bitwise_left_shift.Tensor(a, y)
    c = aten.bitwise_not.default(b)
    d = aten.mul.Tensor(c, -3)
    return (d,))"},
    {"doubles", R"(def forward(x: "f64[5, 6]"):
    a = aten.amax.default(x, [1], True)
    b = aten.sub.Tensor(x, a)
    c = aten.div.Tensor(b, 3.0)
    d = aten.clamp.default(c, -1.0, 1e-05)
    e = aten.argmax.default(x, 0)
    return (d, e))"},
    {"predicates", R"(def forward(x: "f32[5, 6]"):
    a = aten.isnan.default(x)
    b = aten.any.dim(a, 1)
    c = aten.where.self(a, x, x)
    d = aten.logical_not.default(b)
    e = aten.gt.Scalar(x, 0.0)
    return (b, c, d, e))"},
    {"symbols", R"py(def forward(s77: "Sym(s77)", x: "f32[s77, 4]"):
    a = aten.sum.dim_IntList(x, [0])
    b = aten.view.default(x, [-1])
    c = aten.exp.default(b)
    return (a, c))py"},
};

/// The kernels of a graph, as the schedule makes them. None where it is refused.
std::vector<Kernel> kernelsOf(const std::shared_ptr<const Module>& module) {
    std::vector<Kernel> kernels;
    if (const auto program = scheduleModule(module, kCpuTarget))
        for (const PlannedKernel& planned : program->kernels) kernels.push_back(planned.kernel);
    return kernels;
}

}  // namespace

class KernelTextTest : public QObject {
    Q_OBJECT

  private slots:
    /// Canonical texts: each comes back as it was written.
    void texts_data() {
        QTest::addColumn<QString>("kernel");
        const auto row = [](const char* name, const char* kernel) { QTest::newRow(name) << QString(kernel); };
        row("no loops", "one(b0: f32!)\nb0[0] = 1.0\n");
        row("rows and an inner loop",
            "copy(b0: f32!, b1: f32, s0)\nfor x0 < 9:\n"
            "  b0[x1 + s0*x0] = b1[x1 + s0*x0] for x1 < s0\n");
        row("reductions",
            "softmax(b0: f32!, b1: f32)\nfor x0 < 9:\n  v0 = max(x2 < 40: b1[40*x0 + x2])\n"
            "  b0[40*x0 + x1] = exp(b1[40*x0 + x1] - v0)/sum(x3 < 40: exp(b1[40*x0 + x3] - v0)) "
            "for x1 < 40\n");
        row("additions", "add(b0: f32!, b1: f32, b2: i64)\nfor x0 < 9:\n  b0[b2[x0]] += b1[x0]\n");
        row("a length from data",
            "bags(b0: f32!, b1: f32, b2: i64)\nfor x0 < 7, x1 < 19:\n"
            "  b0[19*x0 + x1] = sum(x2 < -1*b2[x0] + b2[x0 + 1]: b1[x1 + 19*x2 + 19*b2[x0]])\n");
        row("literals",
            "all(b0: f64!, b1: i32!, b2: u8!, b3: b8!, b4: f32!)\nfor x0 < 4:\n"
            "  b0[x0] = b0[x0]*0.1 + -inf\n  b1[x0] = b1[x0] + -3\n  b2[x0] = 255_u8\n"
            "  b3[x0] = True\n  b4[x0] = Where(b3[x0], 1e-05, nan)\n  b0[x0] = 1.0_f64\n"
            "  b0[x0] = nan(18444492273895866368)_f64\n  b4[x0] = -0.0\n");
        row("casts and dtypes",
            "casts(b0: bf16!, b1: f16, b2: i32)\nfor x0 < 4:\n"
            "  b0[x0] = f32(b1[x0])*f32(b2[x0])\n  b0[x0] = f32((b2[x0] + 1)_i64)\n"
            "  b0[x0] = b1[x0]_f32 + isnan(b1[x0])_f32\n"
            "  b0[x0] = f32(b8(b2[x0]))\n");
        row("operators",
            "ops(b0: i32!, b1: i32, b2: f32, b3: b8!)\nfor x0 < 4:\n"
            "  b0[x0] = (b1[x0] & 7) << ((b1[x0] ^ b0[x0]) | 1)\n"
            "  b0[x0] = ~b1[x0] - (b1[x0]//3 - b1[x0]%5) - 2\n"
            "  b0[x0] = -(3_i32) >> b1[x0]**2\n"
            "  b3[x0] = And(b1[x0] <= 3, Not(Or(b2[x0] != 0.0, b1[x0] >= Max(b1[x0], 2))))\n");
        row("index arithmetic",
            "index(b0: f32!, b1: f32, s0)\nfor x0 < s0, x1 < 6*s0 - 3:\n"
            "  b0[x0 + s0*x1] = b1[((x0 + 2*x1)//3)%7 + Min(x0, x1)]\n");
        row("a symbol named like an axis", "named(b0: f32!, 'x0', 's 1')\nfor x0 < 'x0':\n  b0['s 1' + x0] = 0.0\n");
        row("calls",
            "calls(b0: f32!, b1: f32, b2: i64)\nfor x0 < 4:\n"
            "  b0[x0] = pow(b1[checked_index(b2[x0], 40)], 2.5) + copysign(1.0, b1[x0])\n"
            "  b0[x0] = f32(argmin(x1 < 3, x2 < 4: b1[4*x1 + x2]))\n");
    }
    void texts() {
        QFETCH(QString, kernel);
        const auto read = parseKernel(kernel.toStdString());
        QVERIFY2(bool(read), read ? "" : read.error().text().c_str());
        QCOMPARE(QString::fromStdString(text(*read)), kernel);
        QCOMPARE(lostKernel(*read), QString());
    }
    void whatIsWrittenFreelyIsTheSame() {
        const auto plain = parseKernel("k(b0: f32!, b1: f32)\nfor x0 < 9:\n  b0[40*x0] = b1[x0] - 1.0 - (2.0)\n");
        const auto free = parseKernel(
            "# a comment\n\nk( b0 :f32! , b1:f32 )\n\tfor x0<3*3:\nv5 = b1[x0]-1.0\n"
            "# another\nb0[x0*(20+20)] = v5-2.0");
        QVERIFY(plain && free);
        QCOMPARE(difference(*plain, *free), QString());
    }
    /// What is read twice is written once, so that a text does not grow with every reader.
    void sharedValuesHaveNames() {
        Kernel kernel;
        kernel.name = "deep";
        kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
        kernel.outer = {{0, 8}};
        Expr value = Expr::load("b1", Expr::axis(0), DType::F32);
        for (int i = 0; i < 200; ++i)
            value = Expr::make(ExprKind::Add, {call1("exp", value), call1("sin", value)}, DType::F32);
        kernel.stores = {{0, {}, Expr::axis(0), value}};
        const std::string written = text(kernel);
        QVERIFY2(written.size() < 20000, std::to_string(written.size()).c_str());
        QCOMPARE(lostKernel(kernel), QString());
    }
    void longValuesAreCut() {
        Kernel kernel;
        kernel.name = "long";
        kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
        Expr value = Expr::load("b1", Expr::integer(0), DType::F32);
        for (int i = 1; i < 2000; ++i)
            value = Expr::make(ExprKind::Max, {value, Expr::load("b1", Expr::integer(i), DType::F32)}, DType::F32);
        kernel.stores = {{0, {}, Expr::integer(0), value}};
        QCOMPARE(lostKernel(kernel), QString());
        const QString written = QString::fromStdString(text(kernel));
        for (const QString& line : written.split('\n')) QVERIFY2(line.size() < 600, qPrintable(line));
    }

    void wrong_data() {
        QTest::addColumn<QString>("kernel");
        QTest::addColumn<QString>("error");
        const auto row = [](const char* name, const QString& kernel, const char* error) {
            QTest::newRow(name) << kernel << QString(error);
        };
        const QString head = "k(b0: f32!, b1: f32, s0)\nfor x0 < 9:\n";
        row("nothing", "", "line 1: a kernel begins with its name and buffers: scale(b0: f32!, b1: f32)");
        row("header", "k b0",
            "line 1: the name of the kernel and its buffers, scale(b0: f32!, b1: f32), expected before 'b0'");
        row("dtype of a buffer", "k(b0: float)", "line 1: a dtype, f32, expected before ')'");
        row("numbers of buffers", "k(b1: f32)", "line 1: buffers stand first and are numbered from b0 on");
        row("loop", "k(b0: f32!)\nfor i < 9:", "line 2: a loop, x0 < 9, expected before '< 9:'");
        row("size of a loop", "k(b0: f32!)\nfor x0 < 9.5:", "line 2: the size of a loop is an i64");
        row("loops without a colon", "k(b0: f32!)\nfor x0 < 9\n", "line 2: ':' expected at its end");
        row("loops twice", head + "for x1 < 9:", "line 3: outer loops stand in one line, before all others");
        row("statement", head + "x0 = 3",
            "line 3: loops, for x0 < 9:, a name, v0 = ..., or a store, b0[x0] = ..., expected before '= 3'");
        row("operand", head + "b0[x0] = b1[x0] +", "line 3: an operand expected at its end");
        row("bracket", head + "b0[x0] = (b1[x0]", "line 3: ')' expected at its end");
        row("behind the value", head + "b0[x0] = b1[x0] 3", "line 3: the end of the line expected before '3'");
        row("function", head + "b0[x0] = expo(b1[x0])", "line 3: there is no function 'expo'");
        row("operands", head + "b0[x0] = Max(b1[x0])", "line 3: Max has 2 operands");
        row("reduction", head + "b0[x0] = sum(b1[x0])", "line 3: a loop, x2 < 40, expected before '[x0])'");
        row("condition", head + "b0[x0] = Where(1.0, 2.0, 3.0)", "line 3: the condition of a Where is a bool");
        row("name", head + "b0[x0] = v0", "line 3: v0 is read before a line says what it is");
        row("name twice", head + "v0 = 1.0\nv0 = 2.0", "line 4: v0 has been given a value before");
        row("buffer", head + "b0[x0] = b2[x0]",
            "line 3: b2 is none of the kernel's buffers; its first line lists them");
        row("not written", head + "b1[x0] = 0.0", "line 3: b1 is not written: mark it in the first line, b1: f32!");
        row("additions to bools", "k(b0: b8!)\nfor x0 < 9:\nb0[0] += True",
            "line 3: what adds is of f32, f64 or integers");
        row("size", head + "b0[x0 + s1] = 0.0",
            "line 3: 's1' is none of the kernel's sizes; its first line lists them");
        row("axis", head + "b0[x1] = 0.0", "line 3: there is no loop over x1 around this store");
        row("dtype behind", head + "b0[x0] = 1.0_f31", "line 3: a dtype, _f64, expected before '_f31'");
        row("number", head + "b0[99999999999999999999] = 0.0",
            "line 3: a number of 64 bits expected before '9999999999999999'");
        row("depth", head + "b0[x0] = " + QString(400, '('), "line 3: a line is nested at most 256 levels deep");
    }
    void wrong() {
        QFETCH(QString, kernel);
        QFETCH(QString, error);
        const auto read = parseKernel(kernel.toStdString());
        QVERIFY(!read);
        QCOMPARE(QString::fromStdString(read.error().text()), error);
    }

    void ofGraphs_data() {
        QTest::addColumn<int>("graph");
        for (size_t i = 0; i < std::size(kGraphs); ++i) QTest::newRow(kGraphs[i].name) << static_cast<int>(i);
    }
    void ofGraphs() {
        QFETCH(int, graph);
        const std::vector<Kernel> kernels = kernelsOf(moduleOf(kGraphs[graph].text));
        QVERIFY(!kernels.empty());
        for (const Kernel& kernel : kernels) QCOMPARE(lostKernel(kernel), QString());
    }
    void ofEverySample() {
        int kernels = 0;
        const QString wrong =
            firstWrong([](const PlannedKernel& kernel) { return lostKernel(kernel.kernel); }, kernels);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
        QVERIFY2(kernels > 500, std::to_string(kernels).c_str());
    }
};

CUTAWAY_SUITE(KernelTextTest)
#include "kernel_text_test.moc"
