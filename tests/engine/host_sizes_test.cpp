// Host programs at sizes that nobody named: one program for all of them, sizes from data, graphs that calls run.
#include <QtTest>

#include "engine/codegen/host_printer.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/engine/host_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class HostSizesTest : public QObject {
    Q_OBJECT

  private slots:
    /// One program for sizes that nobody named when it was built.
    void oneProgramForAllSizes_data() {
        QTest::addColumn<QString>("graph");
        QTest::newRow("product, reduction, broadcast") << R"py(
def forward(self, x: "f32[s0, 8]", w: "f32[8, 4]"):
    mm: "f32[s0, 4]" = torch.ops.aten.mm.default(x, w)
    relu: "f32[s0, 4]" = torch.ops.aten.relu.default(mm)
    sum_1: "f32[4]" = torch.ops.aten.sum.dim_IntList(relu, [0])
    add: "f32[s0, 4]" = torch.ops.aten.add.Tensor(relu, sum_1)
    return (add, sum_1)
)py";
        QTest::newRow("two sizes, softmax, transpose") << R"py(
def forward(self, x: "f32[s0, s1]", y: "f32[s1, s0]"):
    amax: "f32[s0, 1]" = torch.ops.aten.amax.default(x, [-1], True)
    sub: "f32[s0, s1]" = torch.ops.aten.sub.Tensor(x, amax)
    exp: "f32[s0, s1]" = torch.ops.aten.exp.default(sub)
    sum_1: "f32[s0, 1]" = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
    div: "f32[s0, s1]" = torch.ops.aten.div.Tensor(exp, sum_1)
    permute: "f32[s0, s1]" = torch.ops.aten.permute.default(y, [1, 0])
    mul: "f32[s0, s1]" = torch.ops.aten.mul.Tensor(div, permute)
    cumsum: "f32[s0, s1]" = torch.ops.aten.cumsum.default(mul, 0)
    return (mul, cumsum)
)py";
        QTest::newRow("sizes that are made of others") << R"py(
def forward(self, x: "f32[s0, 6]", y: "f32[s0, 6]"):
    cat: "f32[2*s0, 6]" = torch.ops.aten.cat.default([x, y])
    view: "f32[12*s0]" = torch.ops.aten.view.default(cat, [-1])
    mul: "f32[12*s0]" = torch.ops.aten.mul.Tensor(view, 2)
    return (mul,)
)py";
        QTest::newRow("an input of twice a size") << R"py(
def forward(self, x: "f32[2*s0, 3]"):
    view: "f32[s0, 6]" = torch.ops.aten.view.default(x, [-1, 6])
    sum_1: "f32[s0]" = torch.ops.aten.sum.dim_IntList(view, [1])
    return (sum_1,)
)py";
        QTest::newRow("a size as a number") << R"py(
def forward(self, s0: "Sym(s0)", x: "f32[s0, 3]"):
    mul: "f32[s0, 3]" = torch.ops.aten.mul.Tensor(x, s0)
    full: "i64[s0]" = torch.ops.aten.full.default([s0], s0, dtype = torch.int64)
    return (mul, full)
)py";
    }
    void oneProgramForAllSizes() {
        QFETCH(QString, graph);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const auto source = printHost((*made)->host);
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        HostContext context((*made)->loaded, 0);
        for (const int64_t size : {2, 3, 1, 17, 500, 2, 64}) {
            auto numbers = std::make_shared<Module>(*module);
            QVERIFY(specialize(*numbers, {{"s0", size}, {"s1", size / 2 + 1}}).has_value());
            const auto random = cutaway::randomInputs(*numbers, static_cast<uint64_t>(size));
            QVERIFY2(random.has_value(), random ? "" : random.error().text().c_str());
            std::vector<Tensor> given = *random;
            for (size_t i = 0; i < given.size(); ++i)
                if ((*made)->host.functions[0].parameters[i].type.sym()) given[i] = Tensor::scalar(DType::I64, size);
            std::vector<Tensor> outputs;
            const QString problem = runProblem(context, *numbers, given, Agree::Closely, &outputs);
            QVERIFY2(problem.isEmpty(), qPrintable(problem + QString(" for s0 = %1").arg(size)));
            QCOMPARE(printedProblem(**made, *source, given, outputs), QString());
        }
    }

    /// They follow from the sizes; no step makes them.
    void numbersThatAreReturned() {
        const Snapshot module = moduleOf(R"py(
def forward(x: "f32[s0, 4]"):
    n: "Sym(s0)" = aten.sym_size.int(x, 0)
    m: "Sym(2*s0 + 1)" = n * 2 + 1
    y: "f32[s0, 4]" = aten.neg.default(x)
    return (n, y, m, 7)
)py");
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        for (const int64_t size : {2, 9}) {
            const std::vector<Tensor> inputs = {Tensor::full(DType::F32, {size, 4}, Scalar(1.0))};
            const auto expected = interpret(*module, inputs);
            const auto run = runCpu(*program, inputs);
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            QVERIFY(expected && run->outputs.size() == 4);
            for (const size_t number : {0, 2, 3}) {
                QCOMPARE(static_cast<int>(run->outputs[number].dtype()), static_cast<int>(DType::I64));
                QCOMPARE(toInt(run->outputs[number].item()), toInt((*expected)[number].item()));
            }
            QCOMPARE(toInt(run->outputs[2].item()), 2 * size + 1);
            QCOMPARE(run->outputs[1].sizes(), (Dims{size, 4}));
        }
        const auto source = printHost(program->host());
        QVERIFY(!source);
        QVERIFY(QString::fromStdString(source.error().message).startsWith("the graph returns a number"));
    }

    /// They follow from sizes that a step finds.
    void foundNumbersThatAreReturned() {
        const Snapshot module = moduleOf(R"py(
def forward(x: "f32[6]"):
    gt: "b8[6]" = aten.gt.Scalar(x, 0)
    y: "f32[u0]" = aten.index.Tensor(x, [gt])
    n: "Sym(u0)" = aten.sym_size.int(y, 0)
    m: "Sym(u0 + 1)" = n + 1
    return (n, m)
)py");
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        for (const int64_t count : {0, 2, 6}) {
            Tensor x = Tensor::full(DType::F32, {6}, Scalar(-1.0));
            for (int64_t i = 0; i < count; ++i) x.as<float>()[i] = 1;
            const auto run = runCpu(*program, {x});
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            QCOMPARE(toInt(run->outputs.at(0).item()), count);
            QCOMPARE(toInt(run->outputs.at(1).item()), count + 1);
        }
    }

    /// Results with a row for each step of a loop: interpreted programs compute them, printed ones refuse them by name.
    void stackedSteps() {
        const Snapshot module = moduleOf(R"py(
def forward(x: "f32[3]"):
    c = higher_order.while_loop_stack_output(more, body, [x], [])
    a: "f32[u0, 3]" = c[0]
    s: "f32[3]" = aten.sum.dim_IntList(a, [0])
    return (s, a)

def more(x: "f32[3]"):
    u: "f32[]" = aten.sum.default(x)
    t: "b8[]" = aten.lt.Scalar(u, 30.0)
    return t

def body(x: "f32[3]"):
    o: "f32[3]" = aten.add.Tensor(x, 4.0)
    return (o,)
)py");
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        for (const double start : {1.0, 9.0, 50.0}) {
            const std::vector<Tensor> inputs = {Tensor::full(DType::F32, {3}, Scalar(start))};
            const auto expected = interpret(*module, inputs);
            const auto run = runCpu(*program, inputs);
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
            QCOMPARE(run->outputs.at(1).sizes(), (*expected)[1].sizes());
            QCOMPARE(run->outputs.at(1).size(0), int64_t{start == 1.0 ? 3 : 1});  // without a step the initial value
            QCOMPARE(toDouble(run->outputs.at(0).item(0)), toDouble((*expected)[0].item(0)));
        }
        const auto source = printHost(program->host());
        QVERIFY(!source);
        QVERIFY(QString::fromStdString(source.error().message).contains("which is not printed"));
    }

    /// Sizes that a step finds in its data: what comes after is laid out then.
    void sizesFromData_data() {
        QTest::addColumn<QString>("graph");
        QTest::newRow("nonzero") << R"py(
def forward(self, x: "f32[40]"):
    gt: "b8[40]" = torch.ops.aten.gt.Scalar(x, 0.5)
    nonzero: "i64[u0, 1]" = torch.ops.aten.nonzero.default(gt)
    view: "i64[u0]" = torch.ops.aten.view.default(nonzero, [-1])
    mul: "i64[u0]" = torch.ops.aten.mul.Tensor(view, 3)
    index: "f32[u0]" = torch.ops.aten.index.Tensor(x, [view])
    sum_1: "f32[]" = torch.ops.aten.sum.default(index)
    return (mul, index, sum_1)
)py";
        QTest::newRow("masks and assertions") << R"py(
def forward(self, x: "f32[5, 4, 3]", y: "f32[4]"):
    gt: "b8[5, 4, 3]" = torch.ops.aten.gt.Scalar(x, 0.5)
    index: "f32[u0]" = torch.ops.aten.index.Tensor(x, [gt])
    le: "b8[4]" = torch.ops.aten.le.Scalar(y, 0.25)
    index_1: "f32[5, u1, 3]" = torch.ops.aten.index.Tensor(x, [None, le])
    select: "f32[5, 4]" = torch.ops.aten.select.int(x, 2, 1)
    ge: "b8[5, 4]" = torch.ops.aten.ge.Scalar(select, 0)
    masked_select: "f32[u2]" = torch.ops.aten.masked_select.default(y, ge)
    select_1: "f32[5]" = torch.ops.aten.select.int(select, 1, 0)
    round_1: "i64[5]" = torch.ops.prims.convert_element_type.default(select_1, torch.int64)
    add: "i64[5]" = torch.ops.aten.add.Tensor(round_1, 5)
    full: "i64[5]" = torch.ops.aten.full.default([5], 2, dtype=torch.int64)
    repeat: "i64[10]" = torch.ops.aten.repeat_interleave.Tensor(full, output_size=10)
    where = torch.ops.aten.where.default(ge)
    where_1: "i64[u3]" = where[0]
    where_2: "i64[u3]" = where[1]
    any_1: "b8[]" = torch.ops.aten.any.default(add)
    _assert = torch.ops.aten._assert_async.msg(any_1, 'none')
    sum_1: "i64[]" = torch.ops.aten.sum.default(add)
    u4: "Sym(u4)" = torch.ops.aten._local_scalar_dense.default(sum_1)
    ge_1 = u4 >= 1
    _assert_2 = torch.ops.aten._assert_scalar.default(ge_1, 'too few')
    sub: "i64[5]" = torch.ops.aten.sub.Tensor(add, add)
    _check = torch.ops.aten._linalg_check_errors.default(sub, 'linalg.inv', is_matrix=False)
    _assert_1 = torch.ops.aten.sym_constrain_range_for_size.default(u4, min=1, max=40)
    cat: "f32[u0 + u2]" = torch.ops.aten.cat.default([index, masked_select])
    return (cat, index_1, repeat, where_1, where_2)
)py";
        QTest::newRow("repeats") << R"py(
def forward(self, x: "f32[4, 6]", y: "f32[6]"):
    abs_1: "f32[6]" = torch.ops.aten.abs.default(y)
    mul: "f32[6]" = torch.ops.aten.mul.Tensor(abs_1, 3)
    times: "i64[6]" = torch.ops.prims.convert_element_type.default(mul, torch.int64)
    repeat: "i64[u0]" = torch.ops.aten.repeat_interleave.Tensor(times)
    index: "f32[4, u0]" = torch.ops.aten.index.Tensor(x, [None, repeat])
    relu: "f32[4, u0]" = torch.ops.aten.relu.default(index)
    sum_1: "f32[4]" = torch.ops.aten.sum.dim_IntList(relu, [1])
    return (relu, sum_1, repeat)
)py";
        QTest::newRow("distinct elements and counts") << R"py(
def forward(self, x: "f32[40]"):
    i: "i64[40]" = torch.ops.prims.convert_element_type.default(x, torch.int64)
    unique = torch.ops.aten._unique2.default(i, True, True, True)
    unique_0: "i64[u0]" = unique[0]
    unique_1: "i64[40]" = unique[1]
    unique_2: "i64[u0]" = unique[2]
    view: "i64[20, 2]" = torch.ops.aten.view.default(i, [20, 2])
    consecutive = torch.ops.aten.unique_consecutive.default(view, True, True, 0)
    consecutive_0: "i64[u1, 2]" = consecutive[0]
    consecutive_1: "i64[20]" = consecutive[1]
    consecutive_2: "i64[u1]" = consecutive[2]
    permute: "i64[2, 20]" = torch.ops.aten.permute.default(view, [1, 0])
    slices = torch.ops.aten.unique_dim.default(permute, 1, True, True, False)
    slices_0: "i64[2, u2]" = slices[0]
    slices_1: "i64[20]" = slices[1]
    runs = torch.ops.aten.unique_dim_consecutive.default(permute, -1, True, True)
    runs_0: "i64[2, u7]" = runs[0]
    runs_1: "i64[20]" = runs[1]
    runs_2: "i64[u7]" = runs[2]
    halves: "f16[40]" = torch.ops.prims.convert_element_type.default(i, torch.float16)
    plain = torch.ops.aten._unique.default(halves)
    plain_0: "f16[u3]" = plain[0]
    neg: "f16[u3]" = torch.ops.aten.neg.default(plain_0)
    inverse = torch.ops.aten._unique2.default(halves, True, True)
    inverse_0: "f16[u6]" = inverse[0]
    inverse_1: "i64[40]" = inverse[1]
    abs_1: "i64[40]" = torch.ops.aten.abs.default(i)
    bincount: "i64[u4]" = torch.ops.aten.bincount.default(abs_1, None, 2)
    weighted: "f32[u5]" = torch.ops.aten.bincount.default(abs_1, x)
    relu: "f32[u5]" = torch.ops.aten.relu.default(weighted)
    return (unique_0, unique_1, unique_2, consecutive_0, consecutive_1, consecutive_2, slices_0, slices_1, runs_0, runs_1, runs_2, neg, inverse_1, bincount, relu)
)py";
        QTest::newRow("views of what the last step finds") << R"py(
def forward(self, x: "f32[40]"):
    gt: "b8[40]" = torch.ops.aten.gt.Scalar(x, 0.5)
    nonzero: "i64[u0, 1]" = torch.ops.aten.nonzero.default(gt)
    squeeze: "i64[u0]" = torch.ops.aten.squeeze.dim(nonzero, 1)
    select: "i64[]" = torch.ops.aten.select.int(squeeze, 0, -1)
    return (squeeze, select)
)py";
        QTest::newRow("two segments") << R"py(
def forward(self, x: "f32[40]"):
    gt: "b8[40]" = torch.ops.aten.gt.Scalar(x, 0.5)
    nonzero: "i64[u0, 1]" = torch.ops.aten.nonzero.default(gt)
    lt: "b8[40]" = torch.ops.aten.lt.Scalar(x, 0.25)
    nonzero_1: "i64[u1, 1]" = torch.ops.aten.nonzero.default(lt)
    add: "i64[u0, 1]" = torch.ops.aten.add.Tensor(nonzero, 1)
    cat: "i64[u0 + u1, 1]" = torch.ops.aten.cat.default([add, nonzero_1])
    return (cat, add)
)py";
    }
    void sizesFromData() {
        QFETCH(QString, graph);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        QVERIFY((*made)->host.functions[0].segments.size() > 1);
        HostContext context((*made)->loaded, 0);
        for (const uint64_t seed : {1, 2, 3}) {
            const std::vector<Tensor> inputs = drawnInputs(*module, seed);
            std::vector<Tensor> outputs;
            QCOMPARE(runProblem(context, *module, inputs, Agree::Closely, &outputs), QString());
            const auto source = printHost((*made)->host);
            QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
            QCOMPARE(printedProblem(**made, *source, inputs, outputs), QString());
        }
    }

    /// Sizes that data give and no tensor has: errors of the printed program, as of the one that is interpreted.
    void sizesThatCannotBe_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QList<qint64>>("numbers");
        QTest::addColumn<QString>("words");
        const char* const repeats = R"py(
def forward(r: "i64[4]"):
    repeat: "i64[u0]" = aten.repeat_interleave.Tensor(r)
    return (repeat,)
)py";
        const qint64 large = qint64{1} << 61;
        QTest::newRow("bytes beyond 64 bits") << repeats << QList<qint64>{large, 0, 0, 0} << "memory";
        QTest::newRow("bytes just below 64 bits") << repeats << QList<qint64>{large - 1, 0, 0, 0} << "memory";
        QTest::newRow("a sum beyond 64 bits") << repeats << QList<qint64>{2 * large, 2 * large, 0, 0} << "64 bits";
        const char* const square = R"py(
def forward(r: "i64[1]"):
    item: "Sym(u0)" = aten.item.default(r)
    full: "f32[u0, u0]" = aten.full.default([item, item], 1.0)
    cumsum: "f32[u0, u0]" = aten.cumsum.default(full, 0)
    return (cumsum,)
)py";
        for (const int bits : {31, 33, 62})
            QTest::addRow("a product of 2**%d", bits) << square << QList<qint64>{qint64{1} << bits} << "64 bits";
        QTest::newRow("a negative size") << square << QList<qint64>{-5} << "the graph wants u0 >= 0";
        QTest::newRow("a division by 0")
            << "def forward(r: \"i64[1]\"):\n    item: \"Sym(u0)\" = aten.item.default(r)\n"
               "    floordiv: \"Sym((12//u0))\" = 12 // item\n"
               "    full: \"f32[(12//u0)]\" = aten.full.default([floordiv], 1.0)\n    return (full,)\n"
            << QList<qint64>{0} << "64 bits";
    }
    void sizesThatCannotBe() {
        QFETCH(QString, graph);
        QFETCH(QList<qint64>, numbers);
        QFETCH(QString, words);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        Tensor given = Tensor::empty(DType::I64, {numbers.size()});
        std::copy(numbers.begin(), numbers.end(), static_cast<int64_t*>(given.data()));
        HostContext context((*made)->loaded, 0);
        QVERIFY(!runProblem(context, *module, {given}).isEmpty());
        const auto source = printHost((*made)->host);
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        const QString problem = printedProblem(**made, *source, {given}, {});
        QVERIFY2(problem.contains(words), qPrintable(problem));
    }

    /// Graphs that calls run are functions of the program.
    void graphsOfCalls_data() {
        QTest::addColumn<QString>("graph");
        const char* const branches = R"py(
def yes(x: "f32[6]", w: "f32[6]"):
    mul: "f32[6]" = aten.mul.Tensor(x, w)
    relu: "f32[6]" = aten.relu.default(mul)
    return (relu,)
def no(x: "f32[6]", w: "f32[6]"):
    sub: "f32[6]" = aten.sub.Tensor(x, w)
    return (sub,)
)py";
        QTest::newRow("cond") << QString(R"py(
def forward(p: "b8[]", x: "f32[6]", w: "f32[6]"):
    exp: "f32[6]" = aten.exp.default(x)
    cond = higher_order.cond(p, yes, no, [exp, w])
    getitem: "f32[6]" = cond[0]
    add: "f32[6]" = aten.add.Tensor(getitem, 1)
    return (add, getitem)
)py") + branches;
        QTest::newRow("cond twice") << QString(R"py(
def forward(p: "b8[]", x: "f32[6]", w: "f32[6]"):
    cond = higher_order.cond(p, yes, no, [x, w])
    getitem: "f32[6]" = cond[0]
    logical_not: "b8[]" = aten.logical_not.default(p)
    cond_1 = higher_order.cond(logical_not, yes, no, [getitem, x])
    getitem_1: "f32[6]" = cond_1[0]
    return (getitem_1, getitem)
)py") + branches;
        const char* const loop = R"py(
def again(n: "i64[]", x: "f32[2, 3]"):
    lt: "b8[]" = aten.lt.Scalar(n, 4)
    return (lt,)
def body(n: "i64[]", x: "f32[2, 3]"):
    add: "i64[]" = aten.add.Tensor(n, 1)
    sum_1: "f32[2, 1]" = aten.sum.dim_IntList(x, [1], True)
    sub: "f32[2, 3]" = aten.sub.Tensor(x, sum_1)
    return (add, sub)
)py";
        QTest::newRow("while_loop") << QString(R"py(
def forward(n: "i64[]", x: "f32[2, 3]"):
    while_loop = higher_order.while_loop(again, body, [n, x], [])
    getitem: "i64[]" = while_loop[0]
    getitem_1: "f32[2, 3]" = while_loop[1]
    mul: "f32[2, 3]" = aten.mul.Tensor(getitem_1, 2)
    return (getitem, mul)
)py") + loop;
        QTest::newRow("map and scan") << QString(R"py(
def forward(x: "f32[2]", m: "f32[5, 2]"):
    c = higher_order.map_impl(each, [m], [x])
    r: "f32[5, 2]" = c[0]
    d = higher_order.scan(running, [x], [r], [])
    l: "f32[2]" = d[0]
    s: "f32[5, 2]" = d[1]
    return (l, s)
def each(a: "f32[2]", y: "f32[2]"):
    b: "f32[2]" = aten.mul.Tensor(a, y)
    return (b,)
def running(c: "f32[2]", a: "f32[2]"):
    s: "f32[2]" = aten.add.Tensor(c, a)
    n: "f32[2]" = aten.neg.default(s)
    return (s, n)
)py");
        QTest::newRow("a map of a size that data gives") << QString(R"py(
def forward(x: "f32[8]"):
    gt: "b8[8]" = aten.gt.Scalar(x, 0)
    nonzero: "i64[u0, 1]" = aten.nonzero.default(gt)
    c = higher_order.map_impl(each, [nonzero], [x])
    r: "f32[u0, 8]" = c[0]
    sum_1: "f32[8]" = aten.sum.dim_IntList(r, [0])
    return (r, sum_1)
def each(a: "i64[1]", y: "f32[8]"):
    b: "f32[8]" = aten.mul.Tensor(y, a)
    return (b,)
)py");
        QTest::newRow("a number that data gives, as an index") << QString(R"py(
def forward(n: "i64[]", items: "f32[5, 2]"):
    u0: "Sym(u0)" = aten._local_scalar_dense.default(n)
    select: "f32[2]" = aten.select.int(items, 0, u0)
    mul: "f32[2]" = aten.mul.Tensor(select, 3)
    return (mul,)
)py");
        QTest::newRow("a view at an offset that data gives") << QString(R"py(
def forward(n: "i64[]", items: "f32[5, 2]"):
    add: "i64[]" = aten.add.Tensor(n, 1)
    u0: "Sym(u0)" = aten._local_scalar_dense.default(add)
    select: "f32[2]" = aten.select.int(items, 0, u0)
    view: "f32[1, 2]" = aten.view.default(select, [1, 2])
    permute: "f32[2, 5]" = aten.permute.default(items, [1, 0])
    mm: "f32[1, 5]" = aten.mm.default(view, permute)
    return (mm, select)
)py");
    }
    void graphsOfCalls() {
        QFETCH(QString, graph);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        HostContext context((*made)->loaded, 0);
        for (const uint64_t seed : {1, 2, 3, 4}) {
            const std::vector<Tensor> inputs = drawnInputs(*module, seed);
            std::vector<Tensor> outputs;
            QCOMPARE(runProblem(context, *module, inputs, Agree::Closely, &outputs), QString());
            const auto source = printHost((*made)->host);
            QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
            QCOMPARE(printedProblem(**made, *source, inputs, outputs), QString());
        }
    }

    /// Shapes with equally many elements do not share the plan of a library.
    void otherFormsOfTheSameSize() {
        const Snapshot module = moduleOf(R"py(
def forward(self, x: "f32[s0, s1]"):
    cumsum: "f32[s0, s1]" = torch.ops.aten.cumsum.default(x, 0)
    return (cumsum,)
)py");
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        HostContext context((*made)->loaded, 0);
        for (const auto& [rows, columns] : {std::pair{2, 6}, {6, 2}, {3, 4}, {12, 1}, {1, 12}}) {
            auto numbers = std::make_shared<Module>(*module);
            QVERIFY(specialize(*numbers, {{"s0", rows}, {"s1", columns}}).has_value());
            const std::vector<Tensor> inputs = drawnInputs(*numbers, 1);
            QCOMPARE(runProblem(context, *numbers, inputs, Agree::ToTheBit), QString());
        }
    }
};

CUTAWAY_SUITE(HostSizesTest)
#include "host_sizes_test.moc"
