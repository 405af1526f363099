// Small graphs give what eager PyTorch gives, by the reference and compiled, also where values are NaN, infinite or -0:
// tests/data/eager/*.txt, written by tests/scripts/record_eager.py.
#include <QDir>
#include <QRegularExpression>
#include <QtTest>
#include <cmath>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/tensor/dtype.h"
#include "engine/text/parse.h"
#include "tests/support/bytes.h"
#include "tests/support/graph_eval.h"
#include "tests/support/paths.h"
#include "tests/support/sections.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// A tensor as "f32[2, 3] 1 2 nan ...".
Tensor tensorOf(const QString& text) {
    static const QRegularExpression kForm(R"(^(\w+)\[([^\]]*)\]\s*(.*)$)");
    const auto match = kForm.match(text);
    std::vector<double> numbers;
    for (const QString& number : match.captured(3).split(' ', Qt::SkipEmptyParts)) numbers.push_back(number.toDouble());
    Dims sizes;
    for (const QString& size : match.captured(2).split(',', Qt::SkipEmptyParts)) sizes.push_back(size.toLongLong());
    const Tensor row = rowOf(*dtypeFromAbbreviation(match.captured(1).toStdString()), numbers);
    return row.view(sizes, contiguousStrides(sizes), 0);
}

/// The first element that is not the same: NaN is NaN, -0 is not 0, others are as near as two orders of adding make
/// them.
QString firstWrong(const Tensor& actual, const Tensor& expected) {
    if (actual.dtype() != expected.dtype() || actual.sizes() != expected.sizes())
        return QString("another type, %1 elements instead of %2").arg(actual.numel()).arg(expected.numel());
    for (int64_t i = 0; i < expected.numel(); ++i) {
        const double a = itemOf(actual, i), e = itemOf(expected, i);
        if (std::isnan(a) && std::isnan(e)) continue;
        const bool near = std::isfinite(e) && std::isfinite(a) && std::abs(a - e) <= 1e-6 * std::abs(e);
        if (a == e ? std::signbit(a) == std::signbit(e) : near) continue;
        return QString("element %1 is %2 instead of %3").arg(i).arg(a, 0, 'g', 17).arg(e, 0, 'g', 17);
    }
    return {};
}

}  // namespace

class EagerValuesTest : public QObject {
    Q_OBJECT

  private slots:
    void sameNumbers_data() {
        QTest::addColumn<QString>("text");
        for (const QString& file : QDir(testFile("data/eager")).entryList({"*.txt"}))
            for (const Section& one : readSections(testFile("data/eager/" + file)).all)
                QTest::newRow(qPrintable(one.name)) << one.text;
    }
    void sameNumbers() {
        QFETCH(QString, text);
        static const QRegularExpression kTensor(R"(^(\w+): (\w+\[.*)$)");
        std::vector<Tensor> inputs, expected;
        QString code;
        for (const QString& line : text.split('\n')) {
            const auto match = kTensor.match(line);
            if (!match.hasMatch()) code += line + '\n';
            else (match.captured(1) == "returns" ? expected : inputs).push_back(tensorOf(match.captured(2)));
        }
        QVERIFY2(!expected.empty(), "nothing is recorded");
        const auto module = moduleOf(code.toStdString());
        const auto functional = parseText(code.toStdString());
        QVERIFY2(functional.has_value(), qPrintable(failureOf(functional)));
        const CompileRequest request;
        Rewriter rewriter("functionalize", request);
        for (const auto pass : {&expandComposites, &functionalize}) {  // as a run does
            const auto changed = pass(**functional, rewriter);
            QVERIFY2(changed.has_value(), qPrintable(failureOf(changed)));
        }
        const auto reference = interpret(**functional, inputs);
        QVERIFY2(reference.has_value(), qPrintable(failureOf(reference)));
        compare(*reference, expected, "reference");
        const auto trace = runPipeline(module, request, {.cacheFile = "off"}, {});
        QVERIFY2(trace && !trace->failed(), trace ? trace->steps.back().info.error.c_str() : "");
        const auto program = buildCpu(trace->result());
        QVERIFY2(program.has_value(), qPrintable(failureOf(program)));
        const auto run = runCpu(*program, inputs, {.repeat = 0, .threads = 1});
        QVERIFY2(run.has_value(), qPrintable(failureOf(run)));
        compare(run->outputs, expected, "compiled");
    }

  private:
    static void compare(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, const char* how) {
        QCOMPARE(actual.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
            const QString wrong = firstWrong(actual[i], expected[i]);
            QVERIFY2(wrong.isEmpty(), qPrintable(QString("%1, result %2: %3").arg(how).arg(i).arg(wrong)));
        }
    }
};

CUTAWAY_SUITE(EagerValuesTest)
#include "eager_values_test.moc"
