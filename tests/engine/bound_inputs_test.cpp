// Inputs against the types that a file gives them.
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class BoundInputsTest : public QObject {
    Q_OBJECT

  private slots:
    /// What does not fit the file's types is said before anything runs, by the same words whatever runs it.
    void bindsInputs_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<QString>("failure");  // of an input f32[6, 4]
        auto row = [](const char* type, const char* failure) { QTest::newRow(type) << type << failure; };
        row("f32[6, 4]", "");
        row("f32[s0, 4]", "");
        row("f32[s1, 4]", "");
        row("f32[s2, 4]", "x: input 'x' is f32[6, 4], the graph wants f32[s2, 4] with s2 in [0, 5]");
        row("f32[s3, 4]", "x: input 'x' is f32[6, 4], the graph wants f32[s3, 4] with s3 in [7, 9]");
        row("f32[s0, 5]", "x: input 'x' is f32[6, 4], the graph wants f32[s0, 5]");
        row("f32[s1, s0, 2]", "x: input 'x' is f32[6, 4], the graph wants f32[s1, s0, 2] with s1 in [0, 6]");
        row("f64[s0, 4]", "x: input 'x' is f32[6, 4], the graph wants f64[s0, 4]");
    }
    void bindsInputs() {
        QFETCH(QString, type);
        QFETCH(QString, failure);
        const auto module =
            parseText(("# symbol s0: hint=8\n# symbol s1: lower=2, upper=6\n# symbol s2: lower=2, upper=5\n"
                       "# symbol s3: lower=7, upper=9\ndef forward(x: \"" +
                       type + "\"):\n    return (x,)\n")
                          .toStdString());
        QCOMPARE(failureOf(module), QString());
        QCOMPARE(failureOf(bindInputs(**module, {Tensor::zeros(DType::F32, {6, 4})})), failure);
    }
};

CUTAWAY_SUITE(BoundInputsTest)
#include "bound_inputs_test.moc"
