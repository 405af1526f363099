// The interpreter beyond single operators: graphs as operands, symbolic sizes, tensors without data.
#include "engine/interpret/interpret.h"

#include <QtTest>

#include "engine/formats/open.h"
#include "engine/formats/safetensors.h"
#include "engine/interpret/specialize.h"
#include "engine/runtime/reference.h"
#include "engine/support/hash.h"
#include "engine/tensor/fill.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class InterpretTest : public QObject {
    Q_OBJECT

  private slots:
    void runsGraphs_data();
    void runsGraphs();
    void refusesGraphs_data();
    void refusesGraphs();
    void solves_data();
    void solves();
    void specializes();
    void runsSymbolicGraphs();
    void onlyWhatNeedsItIsMadeReady();
    void placesOfInputs();
    void fillsMissingTensors();
    void convertsNumbers_data();
    void convertsNumbers();
    void largeNumbersStayPositive();
    void complexNumbersAreTrue();
    void complexProductsOfInfinities();
    void readsEightBits();
    void writesEightBits();
    void runsReferenceFiles_data();
    void runsReferenceFiles();
};

namespace {

Tensor tensorWith(std::initializer_list<double> numbers, Dims sizes, DType dtype = DType::F32) {
    Tensor tensor = Tensor::empty(dtype, std::move(sizes));
    storeElements(dtype, tensor.data(), 1, tensor.numel(), std::data(numbers));
    return tensor;
}
/// "f32[2]: 1 2" per output.
QString shownTyped(const std::vector<Tensor>& tensors) {
    QStringList out;
    for (const Tensor& tensor : tensors) {
        QString line =
            QString::fromStdString(TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text()) + ":";
        for (int64_t i = 0; i < tensor.numel(); ++i) line += " " + QString::number(toDouble(tensor.item(i)));
        out << line;
    }
    return out.join("; ");
}
QString ran(const std::string& text, const std::vector<Tensor>& inputs) {
    const auto module = parseText(text);
    if (!module) return QString::fromStdString(module.error().text());
    const auto results = interpret(**module, inputs);
    const QString here = results ? shownTyped(*results) : failureOf(results);
    // The same in a process of its own.
    const auto there = runReference(**module, inputs);
    const QString sent = there ? shownTyped(there->outputs) : failureOf(there);
    return sent == here ? here : here + "; but in the worker " + sent;
}

const std::string kBranches =
    "\ndef yes(a: \"f32[2]\"):\n    b: \"f32[2]\" = aten.add.Tensor(a, 1)\n    return (b,)\n\n"
    "def no(a: \"f32[2]\"):\n    b: \"f32[2]\" = aten.neg.default(a)\n    return (b,)\n";

}  // namespace

void InterpretTest::runsGraphs_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("result");
    auto row = [](const char* name, const std::string& text, const char* result) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << result;
    };
    const std::string head = "def forward(x: \"f32[2]\", p: \"b8[]\", m: \"f32[3, 2]\"):\n";
    row("cond, true",
        head + "    c = higher_order.cond(p, yes, no, (x,))\n    r: \"f32[2]\" = c[0]\n    return (r,)\n" + kBranches,
        "f32[2]: 2 3");
    row("cond, false",
        head +
            "    q: \"b8[]\" = aten.logical_not.default(p)\n    c = higher_order.cond(q, yes, no, (x,))\n    r: \"f32[2]\" = c[0]\n    return (r,)\n" +
            kBranches,
        "f32[2]: -1 -2");
    row("cond, literal",
        head + "    c = higher_order.cond(False, yes, no, [x])\n    r: \"f32[2]\" = c[0]\n    return (r,)\n" +
            kBranches,
        "f32[2]: -1 -2");
    row("an input in another layout than the graph has it",
        "def forward(x: \"f32[2]\", p: \"b8[]\", m: \"f32[3, 2][1, 3]\"):\n"
        "    v: \"f32[3, 2, 1][1, 3, 3]\" = aten.view.default(m, [3, 2, 1])\n    return (v,)\n",
        "f32[3, 2, 1]: 1 2 3 4 5 6");
    // As PyTorch, which writes outside of the gradient then: the position is behind the plane.
    row("a pool whose windows have padding and what lies behind the input",
        "def forward(x: \"f32[2]\", p: \"b8[]\", m: \"f32[3, 2]\"):\n"
        "    v: \"f32[1, 3, 2]\" = aten.unsqueeze.default(m, 0)\n"
        "    q = aten.max_pool2d_with_indices.default(v, [2, 1], [1, 1], [1, 0], [4, 1])\n"
        "    y: \"f32[1, 1, 2]\" = q[0]\n    i: \"i64[1, 1, 2]\" = q[1]\n"
        "    d: \"f32[1, 1, 2]\" = aten.view.default(x, [1, 1, 2])\n"
        "    g: \"f32[1, 3, 2]\" = aten.max_pool2d_with_indices_backward.default(d, v, [2, 1], [1, 1], [1, 0], [4, 1], False, i)\n"
        "    return (y, i, g)\n",
        "f32[1, 1, 2]: -inf -inf; i64[1, 1, 2]: 6 7; f32[1, 3, 2]: 0 0 0 0 0 0");
    row("while_loop",
        head +
            "    w = higher_order.while_loop(less, step, (x,), (m,))\n    r: \"f32[2]\" = w[0]\n    return (r,)\n\n"
            "def less(a: \"f32[2]\", k: \"f32[3, 2]\"):\n    s: \"f32[]\" = aten.sum.default(a)\n    l: \"b8[]\" = aten.lt.Scalar(s, 20)\n    return l\n\n"
            "def step(a: \"f32[2]\", k: \"f32[3, 2]\"):\n    b: \"f32[2]\" = aten.mul.Tensor(a, 2)\n    return (b,)\n",
        "f32[2]: 8 16");
    row("map_impl",
        head +
            "    c = higher_order.map_impl(body, [m], [x])\n    r: \"f32[3, 2]\" = c[0]\n    return (r,)\n\n"
            "def body(a: \"f32[2]\", y: \"f32[2]\"):\n    b: \"f32[2]\" = aten.mul.Tensor(a, y)\n    return (b,)\n",
        "f32[3, 2]: 1 4 3 8 5 12");
    row("scan",
        head +
            "    c = higher_order.scan(body, [x], [m], ())\n    l: \"f32[2]\" = c[0]\n    r: \"f32[3, 2]\" = c[1]\n    return (l, r)\n\n"
            "def body(c: \"f32[2]\", a: \"f32[2]\"):\n    s: \"f32[2]\" = aten.add.Tensor(c, a)\n    n: \"f32[2]\" = aten.neg.default(s)\n    return (s, n)\n",
        "f32[2]: 10 14; f32[3, 2]: -2 -4 -5 -8 -10 -14");
    row("associative_scan",
        head +
            "    c = higher_order.associative_scan(body, [m], ())\n    r: \"f32[3, 2]\" = c[0]\n    return (r,)\n\n"
            "def body(a: \"f32[2]\", b: \"f32[2]\"):\n    s: \"f32[2]\" = aten.add.Tensor(a, b)\n    return (s,)\n",
        "f32[3, 2]: 1 2 4 6 9 12");
    row("associative_scan of a transposed tensor",
        head +
            "    t: \"f32[2, 3][1, 2]\" = aten.permute.default(m, [1, 0])\n    c = higher_order.associative_scan(body, [t], ())\n"
            "    g: \"f32[2, 3][1, 2]\" = c[0]\n    r: \"f32[3, 2]\" = aten.permute.default(g, [1, 0])\n    return (r,)\n\n"
            "def body(a: \"f32[3]\", b: \"f32[3]\"):\n    s: \"f32[3]\" = aten.add.Tensor(a, b)\n    return (s,)\n",
        "f32[3, 2]: 1 3 3 7 5 11");
    row("invoke_subgraph",
        head + "    c = higher_order.invoke_subgraph(yes, 'yes', x)\n    r: \"f32[2]\" = c[0]\n    return (r,)\n" +
            kBranches,
        "f32[2]: 2 3");
    row("mode around a graph",
        head +
            "    c = higher_order.wrap_with_set_grad_enabled(False, yes, x)\n    r: \"f32[2]\" = c[0]\n    return (r,)\n" +
            kBranches,
        "f32[2]: 2 3");
    row("one of many graphs",
        head +
            "    i: \"i64[]\" = aten.full.default([], 1, dtype=torch.int64)\n"
            "    c = higher_order.switch(i, [no, yes, no], (x,))\n    r: \"f32[2]\" = c[0]\n    return (r,)\n" +
            kBranches,
        "f32[2]: 2 3");
    row("graph in a graph",
        head +
            "    c = higher_order.cond(p, outer, outer, (x,))\n    r: \"f32[2]\" = c[0]\n    return (r,)\n\n"
            "def outer(a: \"f32[2]\"):\n    d = higher_order.wrap(inner, a)\n    e: \"f32[2]\" = d[0]\n    return (e,)\n\n"
            "    def inner(z: \"f32[2]\"):\n        y: \"f32[2]\" = aten.neg.default(z)\n        return (y,)\n",
        "f32[2]: -1 -2");
    row("a number that each graph finds itself, by the same name",
        head +
            "    i: \"i64[]\" = aten.full.default([], 0, dtype=torch.int64)\n"
            "    n: \"Sym(u0)\" = aten._local_scalar_dense.default(i)\n"
            "    c = higher_order.map_impl(body, [m], [])\n    r: \"f32[3]\" = c[0]\n"
            "    s: \"f32[2]\" = aten.select.int(m, 0, n)\n    return (r, s)\n\n"
            "def body(a: \"f32[2]\"):\n    k: \"i64[]\" = aten.argmax.default(a)\n"
            "    n: \"Sym(u0)\" = aten._local_scalar_dense.default(k)\n"
            "    s: \"f32[]\" = aten.select.int(a, 0, n)\n    return (s,)\n",
        "f32[3]: 2 4 6; f32[2]: 1 2");
    // A number next to bytes is a byte before the op, not after it: -3 is 253.
    row("negative numbers next to bytes",
        head +
            "    b: \"u8[2]\" = prims.convert_element_type.default(x, torch.uint8)\n"
            "    r: \"u8[2]\" = aten.remainder.Scalar(b, -3)\n    f: \"u8[2]\" = aten.fmod.Scalar(b, -3)\n"
            "    d: \"u8[2]\" = aten.div.Scalar_mode(b, -3, rounding_mode = 'floor')\n    t: \"u8[2]\" = aten.div.Scalar_mode(b, -3, rounding_mode = 'trunc')\n"
            "    l: \"b8[2]\" = aten.lt.Scalar(b, -3)\n    c: \"u8[2]\" = aten.clamp_min.default(b, -3)\n    return (r, f, d, t, l, c)\n",
        "u8[2]: 1 2; u8[2]: 1 2; u8[2]: 0 0; u8[2]: 0 0; b8[2]: 1 1; u8[2]: 253 253");
    // Class 3 alone is right; each of the others comes within 1 of it by 1, over four classes.
    row("labels behind the -1 are not labels",
        head +
            "    a: \"f32[4]\" = aten.full.default([4], 0.0)\n"
            "    first: \"i64[1]\" = aten.full.default([1], 3, dtype=torch.int64)\n    short: \"i64[2]\" = aten.full.default([2], 0, dtype=torch.int64)\n"
            "    end: \"i64[1]\" = aten.full.default([1], -1, dtype=torch.int64)\n    labels: \"i64[4]\" = aten.cat.default([first, end, short])\n"
            "    loss: \"f32[]\" = aten.multilabel_margin_loss.default(a, labels)\n    return (loss,)\n",
        "f32[]: 0.75");
}
void InterpretTest::runsGraphs() {
    QFETCH(QByteArray, text);
    QFETCH(QString, result);
    QCOMPARE(ran(text.toStdString(),
                 {tensorWith({1, 2}, {2}), tensorWith({1}, {}, DType::Bool), tensorWith({1, 2, 3, 4, 5, 6}, {3, 2})}),
             result);
}

void InterpretTest::refusesGraphs_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("failure");
    auto row = [](const char* name, const std::string& text, const char* failure) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << QString(failure);
    };
    const std::string head = "def forward(x: \"f32[2]\", m: \"f32[3, 2]\"):\n";
    row("not a graph", head + "    c = higher_order.cond(x, m, m, (x,))\n    return (c,)\n",
        "c: higher_order.cond: the predicate is not a single value");
    row("operand", head + "    c = higher_order.map_impl(x, [m], [])\n    return (c,)\n",
        "c: higher_order.map_impl: operand 0 is not a graph");
    row("a graph too many", head + "    c = higher_order.switch(2, [yes, no], (x,))\n    return (c,)\n" + kBranches,
        "c: higher_order.switch: there are 2 graphs, and not one of number 2");
    row("first sizes", head + "    c = higher_order.map_impl(yes, [m, x], [])\n    return (c,)\n" + kBranches,
        "c: higher_order.map_impl: the tensors to go through differ in their first size");
    row("count", head + "    c = higher_order.invoke_subgraph(yes, 'yes', x, x)\n    return (c,)\n" + kBranches,
        "c: the graph takes 1 inputs, 2 were given");
    // Kernels for real numbers would take the real part alone. The types stand in the text, so no shape rule ran
    // before.
    for (const char* op : {"erf", "lgamma", "digamma", "i0"})
        row(op,
            head + "    z: \"c64[2]\" = aten.complex.default(x, x)\n    y: \"c64[2]\" = aten." + op +
                ".default(z)\n    return (y,)\n",
            (std::string("y: aten.") + op +
             ".default: no complex kernel compute real and imaginary parts separately (view_as_real)")
                .c_str());
    // PyTorch lets some calls write to an expanded tensor; what they write may still be more than it holds.
    const std::string expanded =
        "def forward(x: \"f32[2]\", m: \"f32[3, 2]\"):\n"
        "    e: \"f32[3, 2][0, 1]\" = aten.expand.default(x, [3, 2])\n"
        "    k: \"b8[3, 2]\" = aten.gt.Scalar(m, 3)\n"
        "    y: \"f32[3, 2][0, 1]\" = aten.masked_fill_.Scalar(e, ";
    row("values that differ in one place", expanded + "k, 7)\n    return (y,)\n",
        "y: aten.masked_fill_.Scalar: several elements of the tensor it is written to are one place in memory, and are "
        "given values that differ; clone it first");
    row("tuple returned", head + "    c = aten.split.Tensor(x, 1)\n    return (c,)\n",
        "output: returns 'c', which is not one tensor return its items");
}
void InterpretTest::refusesGraphs() {
    QFETCH(QByteArray, text);
    QFETCH(QString, failure);
    QCOMPARE(ran(text.toStdString(), {tensorWith({1, 2}, {2}), tensorWith({1, 2, 3, 4, 5, 6}, {3, 2})}), failure);
}

void InterpretTest::solves_data() {
    QTest::addColumn<QString>("types");  // of the placeholders, one per line
    QTest::addColumn<QString>("result");
    auto row = [](const char* name, const char* types, const char* result) { QTest::newRow(name) << types << result; };
    // Inputs are f32[6, 4] and f32[12].
    row("plain", "f32[s0, 4]|f32[s1]", "s0=6 s1=12");
    row("affine", "f32[2*s0, s0 + 1]|f32[12]",
        "input 'x0', dim 1 is 4, the graph wants s0 + 1; s0 = 3 by input 'x0', dim 0|s0=3");
    row("one after the other", "f32[s0, 4]|f32[s0*s1]", "s0=6 s1=2");
    row("disagreement", "f32[s0, 4]|f32[s0]",
        "input 'x1', dim 0 is 12, the graph wants s0; s0 = 6 by input 'x0', dim 0");
    row("no integer solves it", "f32[4*s0, 4]|f32[12]", "input 'x0', dim 0 is 6, the graph wants 4*s0");
    row("two unknowns", "f32[s0 + s1, 4]|f32[12]", "input 'x0', dim 0 is 6, the graph wants s0 + s1");
}
void InterpretTest::solves() {
    QFETCH(QString, types);
    QFETCH(QString, result);
    const QStringList each = types.split('|');
    const auto module = parseText(
        ("def forward(x0: \"" + each[0] + "\", x1: \"" + each[1] + "\"):\n    return (x0, x1)\n").toStdString());
    QCOMPARE(failureOf(module), QString());
    const auto solved = solveSymbols(**module, {Tensor::zeros(DType::F32, {6, 4}), Tensor::zeros(DType::F32, {12})});
    QString shownResult = failureOf(solved);
    if (solved)
        for (const auto& [symbol, value] : *solved)
            shownResult +=
                (shownResult.isEmpty() ? "" : " ") + QString::fromStdString(symbol) + "=" + QString::number(value);
    QVERIFY2(result.split('|').contains(shownResult), qPrintable(shownResult));
}

void InterpretTest::specializes() {
    auto module = parseText(
        "# symbol s0: lower=2, upper=64, hint=8\ndef forward(x: \"f32[s0, 4]\", n: \"Sym(s0)\"):\n"
        "    a: \"Sym(s0 + 1)\" = n + 1\n    v: \"f32[4*s0]\" = aten.view.default(x, [4*s0])\n    s: \"Sym(s0)\" = aten.sym_size.int(x, 0)\n"
        "    e: \"f32[s0, 4]\" = aten.expand.default(x, [s, 4])\n    return (v, a, e)\n");
    QCOMPARE(failureOf(module), QString());
    QCOMPARE(freeSymbols(**module), std::vector<std::string>{"s0"});
    QCOMPARE(failureOf(specialize(**module, {{"s0", 65}})),
             QString("s0 = 65 is outside [0, 64], the range that the program was made for"));
    Module one(**module);
    QCOMPARE(failureOf(specialize(one, {{"s0", 1}})), QString());  // as PyTorch runs it
    QCOMPARE(failureOf(specialize(**module, {{"s0", 3}})), QString());
    QCOMPARE(
        QString::fromStdString(printText(**module).text),
        QString(
            "def forward(x: \"f32[3, 4]\", n: \"Sym(3)\"):\n    a: \"Sym(4)\" = operator.add(3, 1)\n    v: \"f32[12]\" = aten.view.default(x, [12])\n"
            "    s: \"Sym(3)\" = aten.sym_size.int(x, 0)\n    e: \"f32[3, 4]\" = aten.expand.default(x, [3, 4])\n    return (v, 4, e)\n"));
    QVERIFY(freeSymbols(**module).empty());
    const auto sliced = parseText(
        "def forward(x: \"f32[s0, 4]\", n: \"Sym(s0)\", m: \"Sym(s1)\"):\n"
        "    y = operator.getitem(x, (slice(n, m, 2),))\n    return (y,)\n");
    QCOMPARE(failureOf(sliced), QString());
    QCOMPARE(failureOf(specialize(**sliced, {{"s0", 3}, {"s1", 7}})), QString());
    QVERIFY2(printText(**sliced).text.find("slice(3, 7, 2)") != std::string::npos ||
                 printText(**sliced).text.find("x[3:7:2]") != std::string::npos,
             printText(**sliced).text.c_str());
}

void InterpretTest::runsSymbolicGraphs() {
    const std::string text =
        "def forward(n: \"Sym(s0)\", x: \"f32[s0, 2]\"):\n    t: \"f32[2*s0]\" = aten.view.default(x, [2*s0])\n    k: \"Sym(2*s0)\" = n * 2\n"
        "    f: \"f32[2*s0]\" = aten.full.default([k], 1.5)\n    y: \"f32[2*s0]\" = aten.add.Tensor(t, f)\n    return (y, k)\n";
    QCOMPARE(ran(text, {Tensor::scalar(DType::I64, int64_t{1}), tensorWith({1, 2}, {1, 2})}),
             QString("f32[2]: 2.5 3.5; i64[]: 2"));
    QCOMPARE(ran(text, {Tensor::scalar(DType::I64, int64_t{2}), tensorWith({1, 2, 3, 4}, {2, 2})}),
             QString("f32[4]: 2.5 3.5 4.5 5.5; i64[]: 4"));
    const auto module = parseText(text);
    QCOMPARE(failureOf(randomInputs(**module, 0)),
             QString("n: input 'n' has the symbolic size s0, and no example value is known set it: --size s0=8"));
    const auto hinted = parseText("# symbol s0: hint=3\n" + text);
    const auto inputs = randomInputs(**hinted, 0);
    QCOMPARE(failureOf(inputs), QString());
    QCOMPARE(shownTyped({inputs->at(0)}), QString("i64[]: 3"));
    QCOMPARE(inputs->at(1).sizes(), (Dims{3, 2}));
}

/// Sizes become numbers and Python's calls operators, once for many runs; other graphs run as they are.
void InterpretTest::onlyWhatNeedsItIsMadeReady() {
    const auto ready = [](const char* text) {
        const auto module = parseText(text);
        if (!module) return QString::fromStdString(module.error().text());
        const auto made = readyToRun(**module, {Tensor::zeros(DType::F32, {3})});
        if (!made) return QString::fromStdString(made.error().text());
        return *made ? QString::fromStdString(printText(**made, {}).text) : QString("as it is");
    };
    QCOMPARE(ready("def forward(x: \"f32[3]\"):\n    y = aten.neg.default(x)\n    return (y,)"), "as it is");
    QVERIFY(ready("def forward(x: \"f32[s0]\"):\n    y = aten.neg.default(x)\n    return (y,)").contains("\"f32[3]\""));
    QVERIFY(ready("def forward(x: \"f32[3]\"):\n    y = torch.neg(x)\n    return (y,)").contains("aten.neg.default"));
}

/// A graph that was traced with a part of a tensor has a symbol for where it begins.
void InterpretTest::placesOfInputs() {
    const auto module = parseText(
        "def forward(x: \"f32[s0]\"):\n    y: \"f32[2, 2][1, 2]\" = aten.as_strided.default(x, [2, 2], [1, 2])\n"
        "    return (y,)\n");
    QCOMPARE(failureOf(module), QString());
    for (Node& node : (*module)->graph().nodes()) {
        ValueType type = node.type();
        if (!type.tensor()) continue;
        type.tensor()->offset = SymInt(Expr::symbol("s1"));
        (*module)->graph().setType(node, type);
    }
    const auto results = interpret(**module, {tensorWith({1, 2, 3, 4}, {4})});
    QCOMPARE(results ? shownTyped(*results) : failureOf(results), QString("f32[2, 2]: 1 3 2 4"));
}

void InterpretTest::fillsMissingTensors() {
    const auto module = parseText(
        "def forward(x: \"f32[2]\"):\n    w: \"f32[2]\" = self.w\n    c: \"i64[1]\" = self.c\n    y: \"f32[2]\" = aten.mul.Tensor(x, w)\n    return (y, w, c)\n");
    QCOMPARE(failureOf(module), QString());
    QCOMPARE(tensorsWithoutData(**module), (std::vector<std::string>{"c", "w"}));
    const auto first = interpret(**module, {tensorWith({1, 1}, {2})}),
               second = interpret(**module, {tensorWith({1, 1}, {2})});
    QCOMPARE(failureOf(first), QString());
    QCOMPARE(shownTyped(*first), shownTyped(*second));
    QCOMPARE(shownTyped({first->at(2)}), QString("i64[1]: 0"));
    const Tensor w = filledTensor("w", 0, DType::F32, {2});
    QCOMPARE(shownTyped({first->at(1)}), shownTyped({w}));
    QVERIFY(shownTyped({w}) != shownTyped({filledTensor("v", 0, DType::F32, {2})}) &&
            shownTyped({w}) != shownTyped({filledTensor("w", 1, DType::F32, {2})}));

    // However many threads share the work, a tensor is filled as if by one.
    for (const Dims& sizes : {Dims{300000}, Dims{500, 600}}) {
        const Tensor filled = filledTensor("long", 3, DType::F64, sizes);
        Random random(Hasher().add(std::string_view("long")).add(uint64_t{3}).finish().low);
        for (int64_t i = 0; i < filled.numel(); ++i) {
            const double next = sizes.size() > 1 ? random.normal() / std::sqrt(600.0) : 0.5 + random.uniform();
            if (filled.as<double>()[i] != next) QCOMPARE(filled.as<double>()[i], next);
        }
    }

    // A graph that writes works on copies; what was made up has no owner but the run.
    auto writes = parseText(
        "def forward(x: \"f32[2]\"):\n    a: \"f32[4096]\" = self.a\n    s: \"f32[]\" = aten.sum.default(a)\n"
        "    b: \"f32[64, 64][1, 64]\" = self.b\n    t: \"f32[]\" = aten.sum.default(b)\n    c: \"f32[3]\" = self.c\n"
        "    u: \"f32[]\" = aten.sum.default(c)\n    e: \"f32[2]\" = aten.exp.default(x)\n"
        "    f: \"f32[2]\" = aten.add_.Tensor(e, s)\n    g: \"f32[2]\" = aten.add_.Tensor(f, t)\n"
        "    h: \"f32[2]\" = aten.add_.Tensor(g, u)\n    return (h, s, t, u)\n");
    QVERIFY2(writes.has_value(), writes ? "" : writes.error().text().c_str());
    const auto own = interpret(**writes, {tensorWith({0, 0}, {2})});
    QVERIFY2(own.has_value(), own ? "" : own.error().text().c_str());
    double sum = 1;
    for (size_t i = 1; i < 4; ++i) sum += toDouble((*own)[i].item());
    QVERIFY(std::abs(toDouble((*own)[0].item(0)) - sum) < 1e-4 * std::abs(sum));
}

/// Floats that an integer cannot hold, as PyTorch 2.11 converts them on x86.
void InterpretTest::convertsNumbers_data() {
    QTest::addColumn<int>("dtype");
    QTest::addColumn<QList<double>>("expected");
    const auto row = [](DType dtype, const QList<double>& expected) {
        QTest::newRow(info(dtype).torchName.data()) << static_cast<int>(dtype) << expected;
    };
    constexpr double k31 = 0x1p31, k63 = 0x1p63;
    row(DType::I64, {-k63, -k63, -k63, -k63, 3e9, -77, 0x1p31 + 77});
    row(DType::I32, {-k31, -k31, -k31, -k31, -k31, -77, -k31});
    row(DType::I16, {0, 0, 0, 0, 0, -77, 0});
    row(DType::I8, {0, 0, 0, 0, 0, -77, 0});
    row(DType::U8, {0, 0, 0, 0, 0, 179, 77});
    row(DType::U16, {0, 0, 0, 0, 0, 65459, 0});
    row(DType::U32, {k31, 0, k31, 0, 3e9, 4294967219, 0x1p31 + 77});
}
void InterpretTest::convertsNumbers() {
    QFETCH(int, dtype);
    QFETCH(QList<double>, expected);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Tensor given =
        tensorWith({std::nan(""), kInfinity, -kInfinity, 1e30, 3e9, -77.5, 0x1p31 + 77}, {7}, DType::F64);
    const Tensor converted = given.to(static_cast<DType>(dtype));
    for (int64_t i = 0; i < converted.numel(); ++i) QCOMPARE(toDouble(converted.item(i)), expected[i]);
}
/// A u64 above 2^63, which no int64 holds.
void InterpretTest::largeNumbersStayPositive() {
    const Tensor large = Tensor::full(DType::I64, {1}, Scalar(int64_t{-1024})).to(DType::U64);
    const double expected = 0x1p64 - 1024;
    QCOMPARE(toDouble(large.to(DType::F64).item(0)), expected);
    QCOMPARE(toDouble(large.to(DType::F32).item(0)), 0x1p64);
    QCOMPARE(toDouble(large.to(DType::C64).to(DType::F32).item(0)), 0x1p64);
    QCOMPARE(toDouble(large.to(DType::C128).to(DType::F64).item(0)), expected);
    QCOMPARE(toDouble(large.to(DType::BF16).item(0)), 0x1p64);
    QCOMPARE(toDouble(large.to(DType::I64).item(0)), -1024.0);
    QCOMPARE(toDouble(large.to(DType::Bool).item(0)), 1.0);
}
/// A complex number is true unless both of its parts are 0.
void InterpretTest::complexNumbersAreTrue() {
    for (const DType dtype : {DType::C32, DType::C64, DType::C128}) {
        const std::complex<double> numbers[] = {{0, 0.5}, {0, 0}, {1, 0}};
        Tensor tensor = Tensor::empty(dtype, {3});
        storeElements(dtype, tensor.data(), 1, 3, numbers);
        QCOMPARE(shownTyped({tensor.to(DType::Bool)}), "b8[3]: 1 0 1");
    }
}

/// By the formula, as PyTorch computes them: inf * (inf + i) has a part that C's rules would make infinite.
void InterpretTest::complexProductsOfInfinities() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const std::vector<Tensor> inputs = {
        tensorWith({kInfinity, 0, kInfinity, kInfinity, 1, 2, 0, kInfinity}, {4, 2}, DType::F64),
        tensorWith({0, 1, 0, 1, kInfinity, 1, kInfinity, 1}, {4, 2}, DType::F64)};
    QString results =
        ran("def forward(x: \"f64[4, 2]\", y: \"f64[4, 2]\"):\n    a = aten.view_as_complex.default(x)\n"
            "    b = aten.view_as_complex.default(y)\n    c = aten.mul.Tensor(a, b)\n"
            "    d = aten.view_as_real.default(c)\n    p = aten.prod.dim_int(a, 0)\n"
            "    q = aten.view_as_real.default(p)\n    return (d, q)",
            inputs);
    QCOMPARE(results.remove('-'), "f64[4, 2]: nan inf nan nan inf inf nan inf; f64[2]: nan nan");
}

/// The ends of both formats: e5m2 has infinities and e4m3fn has none.
void InterpretTest::readsEightBits() {
    const uint8_t bits[] = {0x01, 0x08, 0x7B, 0x7C, 0x7E, 0x7F, 0xFB, 0xFC};
    const auto read = [&](DType dtype) {
        Tensor tensor = Tensor::empty(dtype, {8});
        std::copy(std::begin(bits), std::end(bits), static_cast<uint8_t*>(tensor.data()));
        return shownTyped({tensor.to(DType::F32)});
    };
    QCOMPARE(read(DType::F8E5M2), "f32[8]: 1.52588e-05 0.00012207 57344 inf nan nan -57344 -inf");
    QCOMPARE(read(DType::F8E4M3FN), "f32[8]: 0.00195313 0.015625 352 384 448 nan -352 -384");
}

/// What is too large: since PyTorch 2.13, e4m3fn takes its largest number, infinities included.
void InterpretTest::writesEightBits() {
    const float inf = std::numeric_limits<float>::infinity();
    const float values[] = {448, 464, 465, -500, 1e30f, inf, -inf, std::nanf("")};
    Tensor wide = Tensor::empty(DType::F32, {8});
    std::copy(std::begin(values), std::end(values), static_cast<float*>(wide.data()));
    QCOMPARE(shownTyped({wide.to(DType::F8E4M3FN).to(DType::F32)}), "f32[8]: 448 448 448 -448 448 448 -448 nan");
    QCOMPARE(shownTyped({wide.to(DType::F8E5M2).to(DType::F32)}), "f32[8]: 448 448 448 -512 inf inf -inf nan");
}

void InterpretTest::runsReferenceFiles_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"cond.pt2", "while_loop.pt2"}) QTest::newRow(name) << name;
}
/// Control flow as PyTorch exported it, on the inputs it was exported with, against the same computed by hand.
void InterpretTest::runsReferenceFiles() {
    QFETCH(QString, name);
    const QString root = referenceFolder("formats");
    if (root.isEmpty()) QSKIP(kNoReference);
    const auto file = openFile((root + "/" + name).toStdString());
    QCOMPARE(failureOf(file), QString());
    const OpenedGraph& graph = file->graphs.at(0);
    std::vector<Tensor> inputs;
    for (const SavedValue& value : graph.sampleInputs) inputs.push_back(*value.tensor());
    const auto results = interpret(*graph.module, inputs);
    QCOMPARE(failureOf(results), QString());
    if (name == "cond.pt2") {
        const bool yes = toDouble(inputs[0].item()) != 0;
        for (int64_t i = 0; i < 4; ++i) {
            const double x = toDouble(inputs[1].item(i));
            QVERIFY(std::fabs(toDouble(results->at(0).item(i)) - (yes ? std::sin(x) : -x)) < 1e-6);
        }
        return;
    }
    QCOMPARE(toInt(results->at(0).item()), int64_t{3});
    for (int64_t i = 0; i < 4; ++i) QCOMPARE(toDouble(results->at(1).item(i)), 8 * toDouble(inputs[0].item(i)));
}

CUTAWAY_SUITE(InterpretTest)
#include "interpret_test.moc"
