// auto_functionalized of the first version around an operator that no table has: files say the types of all results of
// a call, and those may say which operands are written.
#include "engine/passes/post_grad/wrappers.h"

#include <QtTest>

#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/suites.h"

using namespace cutaway;

class WrappersTest : public QObject {
    Q_OBJECT

  private slots:
    void writtenByTypes_data() {
        QTest::addColumn<QString>("operands");
        QTest::addColumn<QString>("results");  // types behind the operator's own result
        QTest::addColumn<bool>("nothing");     // the operator gives back nothing
        QTest::addColumn<QString>("call");     // empty: refused
        QTest::newRow("one type of its own") << "x: f32[4], y: f32[5]"
                                             << "f32[5]" << true << "mylib.foo.default(x = x, y = clone)";
        QTest::newRow("all of one type") << "x: f32[4], y: f32[4]"
                                         << "f32[4], f32[4]" << true << "mylib.foo.default(x = clone, y = clone_1)";
        QTest::newRow("in order") << "x: f32[4], y: f32[5], z: f32[4]"
                                  << "f32[5], f32[4]" << true << "mylib.foo.default(x = x, y = clone, z = clone_1)";
        QTest::newRow("one of two") << "x: f32[4], y: f32[4]"
                                    << "f32[4]" << true << "";
        QTest::newRow("none") << "x: f32[4], y: f32[4]"
                              << "i64[4]" << true << "";
        QTest::newRow("in the wrong order") << "x: f32[4], y: f32[5]"
                                            << "f32[5], f32[4]" << true << "";
        QTest::newRow("a result before") << "x: f32[4], y: f32[5]"
                                         << "f32[5]" << false << "";
    }
    void writtenByTypes() {
        QFETCH(QString, operands);
        QFETCH(QString, results);
        QFETCH(bool, nothing);
        QFETCH(QString, call);
        QStringList parameters, keywords, lines, values;
        for (const QString& operand : operands.split(", ")) {
            const QString name = operand.section(": ", 0, 0);
            parameters << QString("%1: \"%2\"").arg(name, operand.section(": ", 1));
            keywords << name + " = " + name;
        }
        const QStringList types = results.split(", ");
        for (int i = 0; i < types.size(); ++i) {
            lines << QString("    r%1: \"%2\" = f[%3]").arg(i).arg(types[i]).arg(i + 1);
            values << QString("r%1").arg(i);
        }
        const QString text =
            QString(
                "def forward(%1):\n    f = higher_order.auto_functionalized(mylib.foo.default, %2)\n%3\n    return (%4,)\n")
                .arg(parameters.join(", "), keywords.join(", "), lines.join("\n"), values.join(", "));
        auto module = parseText(text.toStdString());
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        Graph& graph = (*module)->graph();
        Node* wrapper = graph.findByName("f");
        TupleType tuple = {nothing ? ValueType() : ValueType(TensorType::contiguous(DType::F32, {}))};
        for (const QString& value : values) tuple.push_back(graph.findByName(value.toStdString())->type());
        graph.setType(*wrapper, ValueType(std::move(tuple)));
        const CompileRequest options;
        Rewriter rewriter("decompose_auto_functionalized", options);
        const auto changed = decomposeAutoFunctionalized(**module, rewriter);
        if (call.isEmpty()) {
            QVERIFY(!changed.has_value());
            QVERIFY2(changed.error().text().find("does not say which operands it writes to") != std::string::npos,
                     changed.error().text().c_str());
            QVERIFY2(changed.error().text().find("auto_functionalized_v2(mylib.foo.default") != std::string::npos,
                     changed.error().text().c_str());
            return;
        }
        QVERIFY2(changed.has_value() && *changed, changed ? "unchanged" : changed.error().text().c_str());
        const QString after = QString::fromStdString(printText(**module, {.comments = false}).text);
        QVERIFY2(after.contains(call), qPrintable(after));
    }
};

CUTAWAY_SUITE(WrappersTest)
#include "wrappers_test.moc"
