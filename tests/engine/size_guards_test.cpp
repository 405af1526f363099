// Guards: what a graph with symbols asks of its sizes, and that the interpreter and compiled programs refuse others.
#include "engine/ir/size_guards.h"

#include <QtTest>

#include "engine/codegen/host_printer.h"
#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/tensor/fill.h"
#include "tests/engine/host_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class SizeGuardsTest : public QObject {
    Q_OBJECT

  private slots:
    void guards_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QStringList>("guards");
        QTest::addColumn<QList<int>>("good");  // values of s0; s1 is twice that
        QTest::addColumn<QList<int>>("bad");
        const auto row = [](const char* name, const char* graph, QStringList guards, QList<int> good, QList<int> bad) {
            // moc takes the two slashes within a raw string for a comment.
            QTest::newRow(name) << QString(graph).replace("HALF", "s0//2").replace("WINDOWS", "((s0 - 3)//2) + 1")
                                << std::move(guards) << std::move(good) << std::move(bad);
        };
        row("none", R"py(
def forward(self, x: "f32[s0, 4]", y: "f32[s1, 4]"):
    view: "f32[4*s0]" = torch.ops.aten.view.default(x, [-1])
    sum_1: "f32[4]" = torch.ops.aten.sum.dim_IntList(y, [0])
    return (view, sum_1)
)py",
            {}, {1, 2, 7}, {});
        row("an element that must be there", R"py(
def forward(self, x: "f32[s0, 4]"):
    select: "f32[4]" = torch.ops.aten.select.int(x, 0, 3)
    select_1: "f32[4]" = torch.ops.aten.select.int(x, 0, -6)
    add: "f32[4]" = torch.ops.aten.add.Tensor(select, select_1)
    return (add,)
)py",
            {"s0 >= 6 (select_1: aten.select.int)"}, {6, 9}, {0, 3, 5});
        row("a size that must be even", R"py(
def forward(self, x: "f32[s0, 3]"):
    view: "f32[HALF, 6]" = torch.ops.aten.view.default(x, [-1, 6])
    relu: "f32[HALF, 6]" = torch.ops.aten.relu.default(view)
    return (relu,)
)py",
            {"(s0%2) == 0 (view: aten.view.default)"}, {2, 8}, {3});
        row("sizes that must be equal", R"py(
def forward(self, x: "f32[s0, 4]", y: "f32[s1, 4]"):
    cat: "f32[2*s0, 4]" = torch.ops.aten.cat.default([x, x])
    add: "f32[2*s0, 4]" = torch.ops.aten.add.Tensor(cat, y)
    return (add,)
)py",
            {"2*s0 == s1 (add: aten.add.Tensor)"}, {1, 4}, {});
        row("a number that a size must be", R"py(
def forward(self, x: "f32[s0, 4]", w: "f32[5, 2]"):
    permute: "f32[4, s0]" = torch.ops.aten.permute.default(x, [1, 0])
    mm: "f32[4, 2]" = torch.ops.aten.mm.default(permute, w)
    return (mm,)
)py",
            {"s0 == 5 (mm: aten.mm.default)"}, {5}, {4, 6});
        row("windows that fit", R"py(
def forward(self, x: "f32[1, 2, s0]", w: "f32[3, 2, 5]"):
    convolution: "f32[1, 3, s0 - 4]" = torch.ops.aten.convolution.default(x, w, None, [1], [0], [1], False, [0], 1)
    return (convolution,)
)py",
            {"s0 >= 5 (convolution: aten.convolution.default)"}, {5, 8}, {4, 2});
        row("strided windows that fit", R"py(
def forward(self, x: "f32[1, 2, s0]", w: "f32[3, 2, 5]"):
    convolution: "f32[1, 3, WINDOWS]" = torch.ops.aten.convolution.default(x, w, None, [2], [1], [1], False, [0], 1)
    return (convolution,)
)py",
            {"s0 >= 3 (convolution: aten.convolution.default)"}, {3, 8}, {2, 1});
        row("as many as are chosen", R"py(
def forward(self, x: "f32[s0]"):
    topk = torch.ops.aten.topk.default(x, 3)
    getitem: "f32[3]" = topk[0]
    slice_1: "f32[Min(2, s0)]" = torch.ops.aten.slice.Tensor(x, 0, 0, 2)
    return (getitem, slice_1)
)py",
            {"s0 >= 3 (topk: aten.topk.default)"}, {3, 10}, {2});
    }
    void guards() {
        QFETCH(QString, graph);
        QFETCH(QStringList, guards);
        QFETCH(QList<int>, good);
        QFETCH(QList<int>, bad);
        const Snapshot module = moduleOf(graph.toStdString());
        QStringList found;
        for (const SizeGuard& guard : sizeGuards(*module)) found << QString::fromStdString(guard.text());
        QCOMPARE(found, guards);

        const auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const auto source = printHost((*made)->host);
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        for (const QString& guard : guards) {
            const QString condition = guard.section(" (", 0, 0);
            QVERIFY2(source->find("the graph wants " + condition.toStdString()) != std::string::npos, source->c_str());
        }
        HostContext context((*made)->loaded, 0);
        for (const int size : good) {
            const std::vector<Tensor> inputs = inputsOf(*module, size, 2 * size);
            const QString problem = runProblem(context, *module, inputs, Agree::Closely, nullptr);
            QVERIFY2(problem.isEmpty(), qPrintable(problem + QString(" for s0 = %1").arg(size)));
        }
        for (const int size : bad) refuses(context, *module, inputsOf(*module, size, 2 * size), guards.first());
        if (guards.size() == 1 && guards.first().contains("s1"))
            refuses(context, *module, inputsOf(*module, 3, 5), guards.first());
    }

  private:
    static std::vector<Tensor> inputsOf(const Module& module, int64_t s0, int64_t s1) {
        std::vector<Tensor> inputs;
        for (const Node* node : module.graph().placeholders()) {
            const TensorType& type = *node->type().tensor();
            Dims sizes;
            for (const SymInt& size : type.sizes)
                sizes.push_back(size.isInt() ? size.value() : size.text() == "s0" ? s0 : s1);
            inputs.push_back(filledTensor(node->name(), 7, type.dtype, sizes));
        }
        return inputs;
    }
    static void refuses(HostContext& context, const Module& module, const std::vector<Tensor>& inputs,
                        const QString& guard) {
        const std::string wanted = "the graph wants " + guard.section(" (", 0, 0).toStdString();
        const auto interpreted = interpret(module, inputs);
        QVERIFY(!interpreted);
        QVERIFY2(interpreted.error().message.find(wanted) != std::string::npos, interpreted.error().text().c_str());
        StatusPage board;
        const auto run = context.run(inputs, 1, board);
        QVERIFY(!run);
        QVERIFY2(run.error().message.find(wanted) != std::string::npos, run.error().text().c_str());
    }
};

CUTAWAY_SUITE(SizeGuardsTest)
#include "size_guards_test.moc"
