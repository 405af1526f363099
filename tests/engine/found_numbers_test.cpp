// Numbers that a graph reads from its data (item), as indices and as factors: the interpreter and compiled programs
// agree, and refuse the same ones.
#include <QtTest>
#include <array>

#include "engine/codegen/host_printer.h"
#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/tensor/fill.h"
#include "tests/engine/host_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class FoundNumbersTest : public QObject {
    Q_OBJECT

  private slots:
    /// Their sign is known at run time only: below zero they count from the end.
    void indicesFromData_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QList<int>>("good");
        QTest::addColumn<QList<int>>("bad");
        const auto row = [](const char* name, const QString& call, QList<int> good, QList<int> bad) {
            QTest::newRow(name) << "def forward(x: \"f32[3, 4]\", i: \"i64[]\", y: \"f32[4]\"):\n"
                                   "    item: \"Sym(u0)\" = aten.item.default(i)\n" +
                                       call + "    return (r,)\n"
                                << std::move(good) << std::move(bad);
        };
        row("a row", "    r: \"f32[4]\" = aten.select.int(x, 0, item)\n", {0, 2, -1, -3}, {3, -4});
        row("a column", "    r: \"f32[3]\" = aten.select.int(x, 1, item)\n", {3, -4}, {4, -5});
        row("the row before", "    sub: \"Sym(u0 - 1)\" = item - 1\n    r: \"f32[4]\" = aten.select.int(x, 0, sub)\n",
            {3, 1, 0, -2}, {4, -3});
        row("computed with",
            "    select: \"f32[4]\" = aten.select.int(x, 0, item)\n    r: \"f32[4]\" = aten.mul.Tensor(select, y)\n",
            {1, -2}, {5});
        row("a row that is replaced", "    r: \"f32[3, 4]\" = aten.select_scatter.default(x, y, 0, item)\n", {1, -2},
            {3, -4});
        row("the rows before, whose number has a symbol of its own",
            "    slice_1: \"f32[u1, 4]\" = aten.slice.Tensor(x, 0, None, item)\n"
            "    r: \"f32[u1, 4]\" = aten.mul.Tensor(slice_1, y)\n",
            {0, 2, 3, 9, -1, -3, -9}, {});
        row("the sum of the rows from there on",
            "    slice_1: \"f32[u1, 4]\" = aten.slice.Tensor(x, 0, item)\n"
            "    r: \"f32[4]\" = aten.sum.dim_IntList(slice_1, [0])\n",
            {0, 2, 3, 9, -1, -3, -9}, {});
        row("a row and what it holds",
            "    select: \"f32[4]\" = aten.select.int(x, 0, item)\n    r: \"f32[]\" = aten.select.int(select, 0, item)\n",
            {1, -2}, {3, -4});
    }
    void indicesFromData() {
        QFETCH(QString, graph);
        QFETCH(QList<int>, good);
        QFETCH(QList<int>, bad);
        const Snapshot module = moduleOf(graph.toStdString());
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        const auto given = cutaway::randomInputs(*module, 1);
        QVERIFY2(given, given ? "" : given.error().text().c_str());
        for (const int index : good + bad) {
            const std::vector<Tensor> inputs = {(*given)[0], Tensor::scalar(DType::I64, int64_t{index}), (*given)[2]};
            const auto expected = interpret(*module, inputs);
            const auto run = runCpu(*program, inputs);
            if (bad.contains(index)) {
                for (const Error& error : {expected ? Error() : expected.error(), run ? Error() : run.error()})
                    QVERIFY2(QString::fromStdString(error.message).contains("the graph wants u0"),
                             error.text().c_str());
                continue;
            }
            QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            const Tensor &wanted = expected->at(0), &got = run->outputs.at(0);
            QCOMPARE(got.sizes(), wanted.sizes());
            for (int64_t i = 0; i < got.numel(); ++i) QCOMPARE(toDouble(got.item(i)), toDouble(wanted.item(i)));
        }
        const Tensor x = (*given)[0];
        if (QString(QTest::currentDataTag()) == "a row")
            QCOMPARE(
                toDouble((*interpret(*module, {x, Tensor::scalar(DType::I64, int64_t{-1}), (*given)[2]}))[0].item(0)),
                toDouble(x.item(8)));
    }

    /// A bool is a number whose symbol is 0 or 1.
    void boolsFromData() {
        const Snapshot module = moduleOf(R"py(
# symbol u0: lower=0, upper=1
def forward(x: "f32[3]"):
    gt: "b8[3]" = aten.gt.Scalar(x, 0)
    all_1: "b8[]" = aten.all.default(gt)
    item: "Sym(u0 == 1)" = aten.item.default(all_1)
    sym_ite: "Sym(Where(u0 == 1, 1, 0))" = torch.sym_ite(item, 1, 0)
    le: "Sym(Where(u0 == 1, 1, 0) <= 1)" = sym_ite <= 1
    _assert = aten._assert_scalar.default(le, "0 or 1")
    mul: "f32[3]" = aten.mul.Tensor(x, item)
    return (mul, item)
)py");
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        for (const double least : {1.5, -1.5}) {
            Tensor x = Tensor::empty(DType::F32, {3});
            for (const int64_t i : {0, 1, 2}) x.as<float>()[i] = static_cast<float>(least) + static_cast<float>(i);
            const auto expected = interpret(*module, {x});
            QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
            const auto run = runCpu(*program, {x});
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            for (const std::vector<Tensor>& results : {*expected, run->outputs}) {
                QCOMPARE(results.at(1).dtype(), DType::Bool);
                QCOMPARE(toInt(results.at(1).item()), int64_t{least > 0});
                for (const int64_t i : {0, 1, 2})
                    QCOMPARE(toDouble(results.at(0).item(i)), least > 0 ? toDouble(x.item(i)) : 0);
            }
        }
    }

    /// A float that is read from a tensor keeps its fraction and its sign, in kernels, arguments and results.
    void floatsFromData_data() {
        QTest::addColumn<QString>("calls");
        QTest::addColumn<QList<double>>("results");  // of x = -2.5, 1.25 and 4.75
        const auto row = [](const char* name, const char* calls, QList<double> results) {
            QTest::newRow(name) << calls << std::move(results);
        };
        row("a factor", "    r: \"f32[3]\" = aten.mul.Tensor(x, item)\n", {-11.875, 5.9375, 22.5625});
        row("arithmetic", "    m = 2.0 * item\n    a = m + 1.0\n    r: \"f32[3]\" = aten.add.Tensor(x, a)\n",
            {8, 11.75, 15.25});
        row("a quotient", "    d = item / 2.0\n    r: \"f32[3]\" = aten.clamp.default(x, None, d)\n",
            {-2.5, 1.25, 2.375});
        row("a sign",
            "    n: \"f32[]\" = aten.min.default(x)\n    less: \"Sym(zuf1)\" = aten.item.default(n)\n"
            "    r: \"f32[3]\" = aten.sub.Tensor(x, less)\n",
            {0, 3.75, 7.25});
        row("filled with", "    r: \"f32[3]\" = aten.full.default([3], item)\n", {4.75, 4.75, 4.75});
        row("a promise",
            "    more = item > 4.5\n    c = aten._assert_scalar.default(more, 'too small')\n"
            "    r: \"f32[3]\" = aten.mul.Tensor(x, item)\n",
            {-11.875, 5.9375, 22.5625});
        row("a broken promise",
            "    more = item > 4.8\n    c = aten._assert_scalar.default(more, 'too small')\n"
            "    r: \"f32[3]\" = aten.mul.Tensor(x, item)\n",
            {});
    }
    void floatsFromData() {
        QFETCH(QString, calls);
        QFETCH(QList<double>, results);
        const Snapshot module = moduleOf(("def forward(x: \"f32[3]\"):\n    m0: \"f32[]\" = aten.max.default(x)\n"
                                          "    item: \"Sym(zuf0)\" = aten.item.default(m0)\n" +
                                          calls + "    return (r, item)\n")
                                             .toStdString());
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        Tensor x = Tensor::empty(DType::F32, {3});
        for (int64_t i = 0; i < 3; ++i) x.as<float>()[i] = std::array{-2.5f, 1.25f, 4.75f}[static_cast<size_t>(i)];
        const auto expected = interpret(*module, {x});
        const auto run = runCpu(*program, {x});
        if (results.empty()) {
            for (const Error& error : {expected ? Error() : expected.error(), run ? Error() : run.error()})
                QVERIFY2(QString::fromStdString(error.message).contains("too small"), error.text().c_str());
            return;
        }
        QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        for (const std::vector<Tensor>& outputs : {*expected, run->outputs}) {
            for (int64_t i = 0; i < 3; ++i) QCOMPARE(toDouble(outputs.at(0).item(i)), results[i]);
            QCOMPARE(static_cast<int>(outputs.at(1).dtype()), static_cast<int>(DType::F64));
            QCOMPARE(toDouble(outputs.at(1).item()), 4.75);
        }
        const auto source = printHost(program->host());
        QVERIFY(!source);  // an exported program has no floats among its sizes
    }
};

CUTAWAY_SUITE(FoundNumbersTest)
#include "found_numbers_test.moc"
