// What the passes keep of PyTorch's eager numbers, where PyTorch 2.11 folds them away: NaN, infinity, -0 and rounding.
#include <QtTest>
#include <cmath>

#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

class EagerNumbersTest : public QObject {
    Q_OBJECT

    static QString computed(const std::string& text, const Tensor& x, bool parity) {
        auto module = parseText(text);
        if (!module) return QString::fromStdString(module.error().text());
        CompileRequest request;
        request.parity = parity;
        if (parity) request.pytorch = kOldestRelease;  // which has all of these rules
        const auto trace = runPipeline(Snapshot(std::move(*module)), request);
        if (!trace) return QString::fromStdString(trace.error().text());
        if (trace->failed()) return QString::fromStdString(trace->steps.back().info.error);
        const auto results = interpret(*trace->result(), {x});
        if (!results) return QString::fromStdString(results.error().text());
        QStringList numbers;
        for (int64_t i = 0; i < results->at(0).numel(); ++i) {
            const double number = toDouble(results->at(0).item(i));
            numbers << (std::isnan(number) ? "nan" : QString::number(number, 'g', 7));
        }
        return numbers.join(' ');
    }

  private slots:
    void numbers_data() {
        QTest::addColumn<QString>("body");
        QTest::addColumn<QList<double>>("input");
        QTest::addColumn<QString>("eager");
        QTest::addColumn<QString>("parity");
        constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::nan("");
        const auto row = [](const char* name, const char* body, const QList<double>& input, const char* eager,
                            const char* parity) { QTest::newRow(name) << body << input << eager << parity; };
        row("0 times what is not finite", "y = aten.mul.Tensor(x, 0); return (y,)", {kNan, kInfinity, 1}, "nan nan 0",
            "0 0 0");
        row("0 divided by NaN and by 0", "r = aten.reciprocal.default(x); y = aten.mul.Tensor(r, 0); return (y,)",
            {kNan, 0, 1}, "nan nan 0", "0 0 0");
        row("softshrink of NaN", "y = aten.softshrink.default(x, 0.5); return (y,)", {kNan, -0.25, 2}, "nan 0 1.5",
            "0 0 1.5");
        row("zeros added to -0",
            "z = aten.full.default([3], 0); a = aten.add.Tensor(x, z); y = aten.reciprocal.default(a); return (y,)",
            {-0.0, 0, 2}, "inf inf 0.5", "-inf inf 0.5");
        row("-0 added to -0",
            "z = aten.full.default([3], -0.0); a = aten.add.Tensor(z, x); y = aten.reciprocal.default(a); return (y,)",
            {-0.0, 0, 2}, "-inf inf 0.5", "-inf inf 0.5");
        row("zeros subtracted from -0",
            "z = aten.full.default([3], 0); a = aten.sub.Tensor(x, z); y = aten.reciprocal.default(a); return (y,)",
            {-0.0, 0, 2}, "-inf inf 0.5", "-inf inf 0.5");
        row("rounding to f16 on the way to f64",
            "h = prims.convert_element_type.default(x, torch.float16); "
            "y = prims.convert_element_type.default(h, torch.float64); return (y,)",
            {2049, 70000, 0.1}, "2048 inf 0.09997559", "2049 70000 0.1");
        row("rounding to f16 on the way to bf16",
            "h = prims.convert_element_type.default(x, torch.float16); "
            "y = prims.convert_element_type.default(h, torch.bfloat16); return (y,)",
            {2049, 70000, 0.5}, "2048 inf 0.5", "2048 70144 0.5");
        row("what autocast rounds on the way to f32 (H-7)",
            "h = prims.convert_element_type.default(x, torch.float16); "
            "y = prims.convert_element_type.default(h, torch.float32); return (y,)",
            {2049, 70000, 0.5}, "2048 inf 0.5", "2049 70000 0.5");
        row("a softmax whose scale overflows",
            "s = aten.mul.Tensor(x, 1e+38); y = aten._softmax.default(s, 0, False); return (y,)", {4, 5, 6},
            "nan nan nan", "0 0 1");
        row("a softmax whose divisor overflows",
            "s = aten.div.Tensor(x, 1e-38); y = aten._softmax.default(s, 0, False); return (y,)", {4, -5, 1},
            "nan nan nan", "1 0 0");
        row("a softmax of numbers too far apart to be subtracted before they are scaled",
            "s = aten.mul.Tensor(x, 1e-38); y = aten._softmax.default(s, 0, False); return (y,)", {3e38, -3e38, 3e38},
            "0.4993811 0.001237842 0.4993811", "0.5 0 0.5");
    }
    void numbers() {
        QFETCH(QString, body);
        QFETCH(QList<double>, input);
        QFETCH(QString, eager);
        QFETCH(QString, parity);
        const std::string text =
            "def forward(x: \"f32[3]\"):\n    " + body.replace("; ", "\n    ").toStdString() + "\n";
        Tensor x = Tensor::empty(DType::F32, {3});
        storeElements(DType::F32, x.data(), 1, 3, input.constData());
        QCOMPARE(computed(text, x, false), eager);
        QCOMPARE(computed(text, x, true), parity);
    }
};

CUTAWAY_SUITE(EagerNumbersTest)
#include "eager_numbers_test.moc"
