// Random ops: the same numbers under the same key, others under another key or a second draw, and the distribution that
// each op promises. Bounds are wide enough that a sound generator fails less than once in 10^9 keys, and the key is
// fixed.
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/support/gamma.h"
#include "engine/support/philox.h"
#include "engine/tensor/compare.h"
#include "tests/support/graph_eval.h"
#include "tests/support/op_samples.h"
#include "tests/support/suites.h"
#include "tests/support/symbolic_samples.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Results of `times` runs of the call one after the other under one key.
std::vector<TensorList> drawn(const char* op, const QString& text, uint64_t seed, int times = 1) {
    auto sample = buildSample(requireOp(op), text.toStdString());
    if (!sample) qFatal("%s", sample.error().message.c_str());
    NodeValues values;
    values.random().seed = seed;
    for (size_t i = 0; i < (*sample)->placeholders.size(); ++i)
        values.set(*(*sample)->placeholders[i], {(*sample)->inputs[i]});
    std::vector<TensorList> results;
    for (int i = 0; i < times; ++i) {
        auto result = evaluateNode(*(*sample)->call, values);
        if (!result) qFatal("%s", result.error().message.c_str());
        results.push_back(std::move(*result));
    }
    return results;
}
std::vector<double> elements(const Tensor& tensor) {
    std::vector<double> out;
    for (int64_t i = 0; i < tensor.numel(); ++i) out.push_back(toDouble(tensor.item(i)));
    return out;
}

}  // namespace

class RandomTest : public QObject {
    Q_OBJECT

  private slots:
    void philoxKnownAnswers();
    void distribution_data();
    void distribution();
    void dropout();
    void permutation();
    void chancesAreOfTheirElements();
    void gammas_data();
    void gammas();
    void gammasMoveWithTheirShape_data();
    void gammasMoveWithTheirShape();
    void sharesAddUpToOne();
    void seedsDrawTheSame_data();
    void seedsDrawTheSame();
};

/// Each element has its own probability, also where there are enough of them for several threads.
void RandomTest::chancesAreOfTheirElements() {
    auto sample = buildSample(requireOp("aten.bernoulli.Tensor"), "f32[300, 1000], f32[1000]");
    QVERIFY(bool(sample));
    Tensor chances = Tensor::zeros(DType::F32, {1000}).clone();
    for (int64_t i = 0; i < 1000; i += 3) chances.as<float>()[i] = 1;
    NodeValues values;
    values.set(*(*sample)->placeholders[0], {(*sample)->inputs[0]});
    values.set(*(*sample)->placeholders[1], {chances});
    const auto result = evaluateNode(*(*sample)->call, values);
    QVERIFY(bool(result));
    const std::vector<double> numbers = elements((*result)[0]);
    for (size_t i = 0; i < numbers.size(); ++i) QCOMPARE(numbers[i], i % 1000 % 3 == 0 ? 1.0 : 0.0);
}

/// Mean and variance are the shape.
void RandomTest::gammas_data() {
    QTest::addColumn<double>("shape");
    for (const double shape : {0.05, 0.5, 1.0, 3.0, 40.0, 1e6}) QTest::addRow("%g", shape) << shape;
}
void RandomTest::gammas() {
    QFETCH(double, shape);
    constexpr int64_t kDraws = 20000;
    auto sample = buildSample(requireOp("aten._standard_gamma.default"), "f64[20000]");
    QVERIFY(bool(sample));
    NodeValues values;
    values.set(*(*sample)->placeholders[0], {Tensor::full(DType::F64, {kDraws}, shape)});
    const auto result = evaluateNode(*(*sample)->call, values);
    QVERIFY(bool(result));
    double sum = 0, squares = 0;
    for (const double x : elements((*result)[0])) {
        QVERIFY(x > 0);
        sum += x;
        squares += (x - shape) * (x - shape);
    }
    // The mean of squares varies by the fourth moment, 3 a (a + 2).
    const double mean = sum / kDraws, variance = squares / kDraws;
    QVERIFY2(std::abs(mean - shape) < 6.2 * std::sqrt(shape / kDraws), qPrintable(QString::number(mean)));
    QVERIFY2(std::abs(variance - shape) < 6.2 * std::sqrt((3 * shape * (shape + 2) - shape * shape) / kDraws),
             qPrintable(QString::number(variance)));
}

/// The derivative of the quantile: by the exponential distribution's own, which is shape 1's, and by differences of
/// quantiles that were found by bisection of the series.
void RandomTest::gammasMoveWithTheirShape_data() {
    QTest::addColumn<double>("shape");
    QTest::addColumn<double>("x");
    QTest::addColumn<double>("by");
    QTest::newRow("tiny") << 0.1 << 0.000862984 << 0.057278649;
    QTest::newRow("small") << 0.5 << 2.54683 << 2.7489139;
    QTest::newRow("exponential") << 1.0 << 0.376715 << 0.68394981;
    QTest::newRow("middle") << 10.0 << 8.2051 << 0.91952325;
    QTest::newRow("large") << 500.0 << 545.715 << 1.0447298;
    QTest::newRow("past the series") << 2e5 << 200134.0 << 1.0003354;
}
void RandomTest::gammasMoveWithTheirShape() {
    QFETCH(double, shape);
    QFETCH(double, x);
    QFETCH(double, by);
    QVERIFY2(std::abs(gammaByShape(shape, x) - by) < 2e-5 * by,
             qPrintable(QString::number(gammaByShape(shape, x), 'g', 10)));
}

void RandomTest::sharesAddUpToOne() {
    const auto results = drawn("aten._sample_dirichlet.default", "f64[50, 4]>0", 3);
    const std::vector<double> numbers = elements(results[0][0]);
    for (size_t row = 0; row < numbers.size(); row += 4) {
        double sum = 0;
        for (size_t i = row; i < row + 4; ++i) {
            QVERIFY(numbers[i] > 0);
            sum += numbers[i];
        }
        QVERIFY(std::abs(sum - 1) < 1e-12);
    }
}

/// What passes make of random calls draws what they would have drawn, interpreted and compiled.
void RandomTest::seedsDrawTheSame_data() {
    QTest::addColumn<QString>("calls");
    QTest::addColumn<QString>("results");
    QTest::newRow("one") << "a = aten.rand.default([3, 5])"
                         << "a";
    QTest::newRow("several")
        << "a = aten.rand.default([40]); b = aten.randn.default([3, 5]); c = aten.rand.default([7])"
        << "c, a, b";
    QTest::newRow("integers") << "a = aten.randint.low(-3, 9, [4, 6]); b = aten.rand.default([6])"
                              << "a, b";
    QTest::newRow("like an operand") << "a = aten.rand_like.default(x); b = aten.randn_like.default(x)"
                                     << "a, b";
    QTest::newRow("dropout") << "a = aten.dropout.default(x, 0.5, True); b = aten.dropout.default(a, 0.25, True)"
                             << "a, b";
    QTest::newRow("beside others")
        << "a = aten.rand.default([4]); b = aten.rand.default([3]); c = aten.randperm.default(9)"
        << "a, b, c";
}
void RandomTest::seedsDrawTheSame() {
    QFETCH(QString, calls);
    QFETCH(QString, results);
    const auto module = moduleOf("x: \"f32[6, 4]\"", (calls + "; return (" + results + ",)").toStdString());
    const auto passed = afterPasses(module, Mode::Inference);
    QVERIFY2(passed.has_value(), passed ? "" : passed.error().text().c_str());
    const bool replaced = std::any_of((*passed)->graph().nodes().begin(), (*passed)->graph().nodes().end(),
                                      [](const Node& node) { return node.isCall("prims.inductor_seeds.default"); });
    QVERIFY(replaced);
    const std::vector<Tensor> inputs = drawnInputs(*module, 1);
    const auto before = interpret(*module, inputs), after = interpret(**passed, inputs);
    QVERIFY(before && after);
    const auto program = buildCpu(*passed);
    QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
    const auto run = runCpu(*program, inputs, {.repeat = 0});
    QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
    for (size_t i = 0; i < before->size(); ++i) {
        QVERIFY(sameBits((*after)[i], (*before)[i]));
        QVERIFY(compare(run->outputs[i], (*before)[i], {1e-6, 1e-6}).within);
    }
}

/// The vectors published with the generator (Salmon and others, 2011).
void RandomTest::philoxKnownAnswers() {
    const std::array<uint32_t, 4> zeros = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                  ones = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    QCOMPARE(philox(0, 0), zeros);
    QCOMPARE(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}), ones);
}

void RandomTest::distribution_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<double>("mean");
    QTest::addColumn<double>("deviation");
    QTest::addColumn<double>("least");
    QTest::addColumn<double>("most");
    const double inf = std::numeric_limits<double>::infinity(), uniform = std::sqrt(1.0 / 12);
    QTest::newRow("aten.rand.default") << "[100, 200]" << 0.5 << uniform << 0.0 << 1 - 0x1.0p-24;
    QTest::newRow("aten.rand_like.default") << "bf16[100, 200]" << 0.5 << uniform << 0.0 << 1 - 0x1.0p-8;
    QTest::newRow("aten.randn.default") << "[100, 200]" << 0.0 << 1.0 << -inf << inf;
    QTest::newRow("aten.randn_like.default") << "f64[100, 200][1, 100]" << 0.0 << 1.0 << -inf << inf;
    QTest::newRow("aten.randint.default") << "6, [20000]" << 2.5 << std::sqrt(35.0 / 12) << 0.0 << 5.0;
    QTest::newRow("aten.randint.low") << "-3, 3, [20000]" << -0.5 << std::sqrt(35.0 / 12) << -3.0 << 2.0;
    QTest::newRow("aten.randint_like.default") << "f32[20000], 6" << 2.5 << std::sqrt(35.0 / 12) << 0.0 << 5.0;
    QTest::newRow("aten.randint_like.low_dtype") << "i32[20000], 1, 7" << 3.5 << std::sqrt(35.0 / 12) << 1.0 << 6.0;
    QTest::newRow("aten.bernoulli.p") << "f32[20000], 0.25" << 0.25 << std::sqrt(0.1875) << 0.0 << 1.0;
    QTest::newRow("prims.inductor_random.default")
        << "[100, 200], i64[], 'rand'" << 0.5 << uniform << 0.0 << 1 - 0x1.0p-24;
    QTest::newRow("prims.inductor_randint.default")
        << "0, 6, [20000], i64[]" << 2.5 << std::sqrt(35.0 / 12) << 0.0 << 5.0;
}
void RandomTest::distribution() {
    QFETCH(QString, text);
    QFETCH(double, mean);
    QFETCH(double, deviation);
    const char* op = QTest::currentDataTag();
    const auto first = drawn(op, text, 1234, 2);
    const std::vector<double> numbers = elements(first[0][0]), second = elements(first[1][0]);
    QCOMPARE(numbers.size(), size_t{20000});
    QCOMPARE(elements(drawn(op, text, 1234)[0][0]), numbers);
    const bool keyed = QString(op).startsWith("prims.");  // by the seed that is handed in, not by the run's key
    QCOMPARE(second == numbers, keyed);
    QCOMPARE(elements(drawn(op, text, 1235)[0][0]) == numbers, keyed);
    double sum = 0, squares = 0;
    for (double x : numbers) sum += x;
    const double average = sum / 20000;
    for (double x : numbers) squares += (x - average) * (x - average);
    QVERIFY2(std::fabs(average - mean) < 6 * deviation / std::sqrt(20000.0), qPrintable(QString::number(average)));
    QVERIFY2(std::fabs(std::sqrt(squares / 20000) / deviation - 1) < 0.05,
             qPrintable(QString::number(std::sqrt(squares / 20000))));
    QFETCH(double, least);
    QFETCH(double, most);
    const auto [lowest, highest] = std::minmax_element(numbers.begin(), numbers.end());
    QVERIFY(*lowest >= least && *highest <= most);
}

void RandomTest::dropout() {
    const TensorList result = drawn("aten.native_dropout.default", "f32[100, 200]>0, 0.2, True", 7)[0];
    auto sample = buildSample(requireOp("aten.native_dropout.default"), "f32[100, 200]>0, 0.2, True");
    const std::vector<double> x = elements((*sample)->inputs[0]), y = elements(result[0]), kept = elements(result[1]);
    int count = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        QVERIFY(std::fabs(y[i] - (kept[i] != 0 ? x[i] * 1.25 : 0)) < 1e-5 * x[i]);
        count += kept[i] != 0;
    }
    QVERIFY2(std::abs(count - 16000) < 6 * std::sqrt(20000 * 0.16), qPrintable(QString::number(count)));
}

void RandomTest::permutation() {
    std::vector<double> order = elements(drawn("aten.randperm.default", "1000", 99)[0][0]);
    QVERIFY(order != elements(drawn("aten.randperm.default", "1000", 98)[0][0]));
    QCOMPARE(elements(drawn("aten.randperm.default", "1000", 99)[0][0]), order);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) QCOMPARE(order[i], static_cast<double>(i));
}

CUTAWAY_SUITE(RandomTest)
#include "random_test.moc"
