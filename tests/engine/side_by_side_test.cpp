// Graphs side by side: what they hold meanwhile, and how values are measured.
#include "engine/numerics/side_by_side.h"

#include <QtTest>
#include <cmath>

#include "engine/numerics/measure.h"
#include "engine/numerics/tally.h"
#include "engine/text/parse.h"
#include "tests/support/bytes.h"
#include "tests/support/suites.h"

using namespace cutaway;

class SideBySideTest : public QObject {
    Q_OBJECT
  private slots:
    /// The reference runs in the order in which its values are asked for: what it would compute before would wait.
    void otherOrdersTakeNoMoreMemory() {
        const auto chain = [](const char* name, const char* op, int length) {
            std::string text, before = "x";
            for (int i = 0; i < length; ++i) {
                const std::string now = name + std::to_string(i);
                text += "    " + now + ": \"f32[64, 512]\" = torch.ops.aten." + op + ".default(" + before + ")\n";
                before = now;
            }
            return text;
        };
        const std::string a = chain("a", "sin", 8), b = chain("b", "cos", 8),
                          head = "def forward(x: \"f32[64, 512]\"):\n";
        const auto graph = [](const std::string& text) {
            auto module = parseText(text);
            if (!module) qFatal("%s", module.error().text().c_str());
            return ReadyGraph{std::make_shared<Module>(**module), {Tensor::full(DType::F32, {64, 512}, Scalar(0.5))}};
        };
        const ReadyGraph reference = graph(head + a + b + "    return (a7, b7)\n");
        const ReadyGraph checked = graph(head + b + a + "    return (a7, b7)\n");
        std::vector<int> same{0};
        for (int i = 0; i < 16; ++i) same.push_back(1 + (i + 8) % 16);
        SideBySideOptions options;
        options.valueBytes = 9.0 * 64 * 512 * 4;  // two values of each run, in f32 and in f64
        int rows = 0;
        const auto end = runSideBySide(checked, reference, same, options, [&](size_t, const NodeNumbers& row) {
            QCOMPARE(row.verdict, NodeVerdict::Equal);
            ++rows;
        });
        QVERIFY2(end, end ? "" : end.error().text().c_str());
        QCOMPARE(rows, 17);
        QCOMPARE(end->spilled, int64_t{0});
    }
    /// What is summed in parts, by several threads, and what lies in any way in memory.
    void largeValuesAreMeasuredWhole() {
        const int64_t rows = 700, columns = 1000;
        std::vector<double> x(static_cast<size_t>(rows * columns));
        for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
        std::vector<double> y = x;
        y[123456] += 0.5;
        y[654321] = INFINITY;
        x[5] = NAN;
        y[5] = NAN;
        x[699999] = -INFINITY;
        double squares = 0;  // of what is a number on both sides
        for (size_t i = 0; i < x.size(); ++i)
            if (std::isfinite(x[i]) && std::isfinite(y[i])) squares += y[i] * y[i];
        const Tensor value = testing::rowOf(DType::F64, x).view({rows, columns}, {columns, 1}, 0);
        const Tensor reference = testing::rowOf(DType::F64, y).view({rows, columns}, {columns, 1}, 0);
        const auto check = [&](const Tensor& a, const Tensor& b, int64_t worst) {
            const Tally tally = tallyOf(a, b, b);
            QCOMPARE(tally.nans, int64_t{1});
            QCOMPARE(tally.infinities, int64_t{1});
            QCOMPARE(tally.different, int64_t{3});
            QCOMPARE(tally.newNonFinite, int64_t{1});
            QCOMPARE(tally.maxAbsolute, 0.5);
            QCOMPARE(tally.worst, worst);
            QCOMPARE(tally.elements, rows * columns - 3);
            QCOMPARE(tally.value.squares, 0.25);
            QCOMPARE(tally.reference.squares, 0.0);
            QVERIFY(std::abs(tally.magnitudes - squares) < 1e-3);
        };
        check(value, reference, 123456);
        check(value.clone({1, rows}), reference, 123456);
        const Tensor turned = value.view({columns, rows}, {1, columns}, 0);
        check(turned, reference.view({columns, rows}, {1, columns}, 0), 456 * rows + 123);
    }
    void oneWrongNumberIsWrong() {
        for (const double value : {1.0, 1.5}) {
            NodeNumbers row;
            const Tensor reference = testing::rowOf(DType::F32, {1}), wide = testing::rowOf(DType::F64, {1});
            measure(testing::rowOf(DType::F32, {value}), reference, wide, {}, row);
            QCOMPARE(row.verdict, value == 1 ? NodeVerdict::Equal : NodeVerdict::Wrong);
        }
    }
};

CUTAWAY_SUITE(SideBySideTest)
#include "side_by_side_test.moc"
