// Graphs of executorch: the names of its dialects, and parts that a backend has taken.
#include "engine/ops/executorch.h"

#include <QtTest>
#include <set>

#include "engine/interpret/interpret.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

class ExecutorchTest : public QObject {
    Q_OBJECT

  private slots:
    void names_data() {
        QTest::addColumn<QString>("written");
        QTest::addColumn<QString>("meant");
        QTest::addColumn<bool>("known");
        const auto row = [](const char* name, const QString& written, const char* meant, bool known = true) {
            QTest::newRow(name) << written << QString(meant) << known;
        };
        const QString edge = "executorch.exir.dialects.edge._ops.", backend = "executorch.exir.dialects.backend._ops.";
        const QString text = "executorch_exir_dialects_edge__ops_", other = "executorch_exir_dialects_backend__ops_";
        row("file", edge + "aten.sum.dim_IntList", "aten.sum.dim_IntList");
        row("text", text + "aten_sum_dim_IntList", "aten.sum.dim_IntList");
        row("text, leading underscores", text + "aten__native_batch_norm_legit_no_training_default",
            "aten._native_batch_norm_legit_no_training.default");
        row("text, in place", text + "aten_add__Tensor", "aten.add_.Tensor");
        row("quantized", text + "quantized_decomposed_quantize_per_tensor_default",
            "quantized_decomposed.quantize_per_tensor.default");
        row("order of dims", edge + "dim_order_ops._clone_dim_order.default", "dim_order_ops._clone_dim_order.default");
        row("backend", backend + "aten.add.Tensor", "aten.add.Tensor");
        row("backend, text", other + "aten_add_Tensor", "aten.add.Tensor");
        row("of a package", edge + "mine.f.default", "mine.f.default", false);
        row("of a package, text", text + "mine_f_default", "executorch_exir_dialects_edge__ops_mine_f_default", false);
    }
    void names() {
        QFETCH(QString, written);
        QFETCH(QString, meant);
        QFETCH(bool, known);
        QCOMPARE(QString::fromStdString(findOrMakeOpaque(written.toStdString()).name()), meant);
        QCOMPARE(findOp(written.toStdString()) != nullptr, known);
    }
    /// Text has underscores for the dots of a name, so no two names may have the same text.
    void namesAreOne() {
        std::set<std::string> texts;
        for (const Op* op : allOps()) {
            std::string text = op->name();
            std::replace(text.begin(), text.end(), '.', '_');
            QVERIFY2(texts.insert(text).second, text.c_str());
        }
    }
    /// A delegate is not a tensor that might be made up.
    void delegates() {
        const auto module = parseText(R"(
def forward(self, x: "f32[4, 8]"):
    lowered_module_0 = self.lowered_module_0
    executorch_call_delegate = torch.ops.higher_order.executorch_call_delegate(lowered_module_0, x);  lowered_module_0 = x = None
    getitem: "f32[4, 8]" = executorch_call_delegate[0];  executorch_call_delegate = None
    aten_cumsum_default: "f32[4, 8]" = executorch_exir_dialects_edge__ops_aten_cumsum_default(getitem, 1);  getitem = None
    return (aten_cumsum_default,)
)");
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        QCOMPARE(tensorsWithoutData(**module), std::vector<std::string>());
        const auto inputs = randomInputs(**module, 1);
        QVERIFY(inputs);
        const auto results = interpret(**module, *inputs);
        QVERIFY(!results);
        const QString run = QString::fromStdString(results.error().text());
        QVERIFY2(run.contains("lowered_module_0: a module of a backend cannot be run") &&
                     run.contains("executorch gave this part of the graph to a backend"),
                 qPrintable(run));
        const auto trace = runPipeline(Snapshot(std::make_shared<const Module>(**module)), {});
        QVERIFY(trace && trace->failed());
        const QString compile = QString::fromStdString(trace->steps.back().info.error);
        QVERIFY2(compile.contains("executorch gave this part of the graph to a backend"), qPrintable(compile));
    }
};

CUTAWAY_SUITE(ExecutorchTest)
#include "executorch_test.moc"
