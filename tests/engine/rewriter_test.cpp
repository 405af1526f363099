// Rewrites that change a value's layout: what reads it stays right, and its types say what it is.
#include <QtTest>

#include "engine/autograd/expand.h"
#include "engine/ir/verify.h"
#include "engine/tensor/tensor.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class RewriterTest : public QObject {
    Q_OBJECT

  private slots:
    void layoutsFollow_data() {
        QTest::addColumn<QString>("reader");
        // _log_softmax_backward_data is row-major, its expansion laid out like the operands.
        QTest::newRow("permuted back") << "aten.permute.default(y, [0, 3, 1, 2])";
        QTest::newRow("elementwise") << "aten.mul.Tensor(y, 2.0)";
        QTest::newRow("a view that still fits") << "aten.unsqueeze.default(y, 1)";
        QTest::newRow("a view that needs the old layout") << "aten.view.default(y, [8, 15])";
    }
    void layoutsFollow() {
        QFETCH(QString, reader);
        const std::string text =
            "def forward(x: \"f32[2, 3, 4, 5]\"):\n"
            "    p = aten.permute.default(x, [0, 2, 3, 1])\n"
            "    y = aten._log_softmax_backward_data.default(p, p, -1, torch.float32)\n"
            "    r = " +
            reader.toStdString() +
            "\n"
            "    s = aten.relu.default(r)\n"
            "    return (r, s)";
        const auto before = moduleOf(text);
        const auto inputs = drawnInputs(*before, 1);
        const auto expected = referenceOutputs(*before, inputs);
        QVERIFY(expected.has_value());
        Module after(*before);
        CompileRequest options;
        Rewriter rewriter("decompose", options);
        const auto changed = decompose(after, rewriter);
        QVERIFY2(changed && *changed, changed ? "nothing expanded" : changed.error().text().c_str());
        const auto verified = verify(after, {.types = true});
        QVERIFY2(verified.has_value(), verified ? "" : verified.error().text().c_str());
        const auto actual = referenceOutputs(after, inputs);
        QVERIFY2(actual.has_value(), actual ? "" : actual.error().text().c_str());
        for (size_t i = 0; i < expected->size(); ++i)
            QVERIFY(compare((*actual)[i], (*expected)[i], {1e-5, 1e-5}).within);
    }
};

CUTAWAY_SUITE(RewriterTest)
#include "rewriter_test.moc"
