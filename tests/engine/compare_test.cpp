// When two results count as equal, and which tensor of a file belongs to which value.
#include <QRandomGenerator>
#include <QtTest>
#include <cmath>
#include <limits>

#include "engine/session/compare_outputs.h"
#include "engine/session/run_inputs.h"
#include "engine/support/random.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Tensor converted(DType dtype, const std::vector<double>& values, Dims sizes = {}) {
    if (sizes.empty()) sizes = {static_cast<int64_t>(values.size())};
    Tensor out = Tensor::zeros(DType::F64, sizes);
    std::copy(values.begin(), values.end(), out.as<double>());
    return out.to(dtype);
}

using Doubles = std::vector<double>;

}  // namespace

Q_DECLARE_METATYPE(Doubles)

class CompareTest : public QObject {
    Q_OBJECT

  private slots:
    void compares_data() {
        QTest::addColumn<int>("dtype");
        QTest::addColumn<Doubles>("expected");
        QTest::addColumn<Doubles>("actual");
        QTest::addColumn<int>("mismatches");
        QTest::addColumn<int>("worst");
        const auto row = [](const char* name, DType dtype, const Doubles& expected, const Doubles& actual,
                            int mismatches, int worst = -1) {
            QTest::newRow(name) << int(dtype) << expected << actual << mismatches << worst;
        };
        row("equal", DType::F32, {1, 2, 3}, {1, 2, 3}, 0);
        row("within the dtype's tolerance", DType::F32, {1, 2, 3}, {1, 2, 3.00002}, 0);
        row("beyond it", DType::F32, {1, 2, 3}, {1, 2.0001, 3.001}, 2, 2);
        row("f64 is stricter", DType::F64, {1, 2, 3}, {1, 2, 3.00002}, 1, 2);
        row("f16 is coarser", DType::F16, {1, 2, 3}, {1, 2, 3.005}, 0);
        row("small errors count against what is usual", DType::F32, {100, 100, 100, 1e-6}, {100, 100, 100, 5e-4}, 0);
        // One huge value, as a mask holds it, says nothing about the others.
        row("a huge value hides nothing", DType::F32, {1e38, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
            {1e38, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112}, 12, 1);
        row("not even beside one other", DType::F32, {1e38, 1}, {1e38, 2}, 1, 1);
        row("a huge value is compared with itself", DType::F32, {1e38, 1, 2}, {1.01e38, 1, 2}, 1, 0);
        row("infinities of one sign", DType::F32, {kInf, -kInf, 1}, {kInf, -kInf, 1}, 0);
        row("infinities of two signs", DType::F32, {kInf, 1}, {-kInf, 1}, 1, 0);
        row("an infinity for a number", DType::F32, {1, 2}, {1, kInf}, 1, 1);
        row("a number for an infinity", DType::F32, {kInf, 2}, {1e30, 2}, 1, 0);
        row("NaN with NaN", DType::F32, {kNan, 1}, {kNan, 1}, 0);
        row("NaN for a number", DType::F32, {1, 2}, {kNan, 2}, 1, 0);
        row("nothing finite", DType::F32, {kInf, kNan}, {kInf, kNan}, 0);
        row("integers are exact", DType::I64, {1000000, 2}, {1000001, 2}, 1, 0);
        row("bools are exact", DType::Bool, {0, 1, 1}, {0, 0, 1}, 1, 1);
        row("the furthest out is named, not the largest error", DType::F32, {1e6, 1, 1, 1}, {1e6 + 50, 1.5, 1, 1}, 2,
            1);
    }
    void compares() {
        QFETCH(int, dtype);
        QFETCH(Doubles, expected);
        QFETCH(Doubles, actual);
        QFETCH(int, mismatches);
        QFETCH(int, worst);
        const Tensor want = converted(DType(dtype), expected), got = converted(DType(dtype), actual);
        const Comparison found = compareOutput(got, want);
        QCOMPARE(found.mismatches, int64_t(mismatches));
        QCOMPARE(found.within, mismatches == 0);
        if (mismatches > 0) QCOMPARE(found.worst, int64_t(worst));
        QCOMPARE(compareOutputs({got}, {want}, 0).bad, mismatches > 0);
    }

    void dtypesHaveTheTolerancesOfPyTorch_data() {
        QTest::addColumn<int>("dtype");
        QTest::addColumn<double>("relative");
        QTest::addColumn<double>("absolute");
        const auto row = [](DType dtype, double relative, double absolute) {
            QTest::newRow(info(dtype).torchName.data()) << static_cast<int>(dtype) << relative << absolute;
        };
        for (const DType dtype : {DType::F64, DType::C128}) row(dtype, 1e-7, 1e-7);
        for (const DType dtype : {DType::F32, DType::C64}) row(dtype, 1.3e-6, 1e-5);
        row(DType::BF16, 1.6e-2, 1e-5);
        row(DType::F16, 1e-3, 1e-5);
        for (const DType dtype : {DType::I64, DType::I32, DType::I8, DType::U8, DType::Bool}) row(dtype, 0, 0);
    }
    void dtypesHaveTheTolerancesOfPyTorch() {
        QFETCH(int, dtype);
        QFETCH(double, relative);
        QFETCH(double, absolute);
        const Tolerance own = defaultTolerance(DType(dtype));
        QCOMPARE(own.relative, relative);
        QCOMPARE(own.absolute, absolute);
    }

    void aToleranceIsAtLeastTheDtypesOwn() {
        const Tensor want = converted(DType::F32, {1, 2, 3}), near = converted(DType::F32, {1, 2, 3.00002}),
                     far = converted(DType::F32, {1, 2, 3.1});
        QVERIFY(compareOutput(near, want, 1e-12).within);
        QVERIFY(!compareOutput(far, want, 1e-3).within);
        QVERIFY(compareOutput(far, want, 1e-1).within);
    }

    void theWorstElementIsNamed() {
        const Tensor want = converted(DType::F32, {0, 0.1, 2, 3, 4, 5}, {2, 3}),
                     got = converted(DType::F32, {0, 0.1, 2, 3, 4, 7.5}, {2, 3});
        const auto element = worstElement(compareOutput(got, want), got, want);
        QVERIFY(element.has_value());
        QVERIFY((element->index == std::vector<int64_t>{1, 2}));
        QCOMPARE(elementText(*element), std::string("element [1, 2] is 7.5 instead of 5"));
        const Tensor one = converted(DType::F32, {0.1}).view({}, {}, 0),
                     two = converted(DType::F32, {0.2}).view({}, {}, 0);
        QCOMPARE(elementText(*worstElement(compareOutput(two, one), two, one)),
                 std::string("its value is 0.2 instead of 0.1"));
        const Tensor whole = converted(DType::I64, {9007199254740992.0}),
                     more = converted(DType::I64, {9007199254740994.0});
        QCOMPARE(elementText(*worstElement(compareOutput(more, whole), more, whole)),
                 std::string("element [0] is 9007199254740994 instead of 9007199254740992"));
        QVERIFY(!worstElement(compareOutput(want, want), want, want).has_value());
    }

    /// Elements compared in parts, blocks and vector lanes give the result of comparing them one by one.
    void manyElements_data() {
        QTest::addColumn<DType>("dtype");
        QTest::addColumn<int>("count");
        for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::C64, DType::I64})
            for (const int count : {0, 1, 7, 8, 511, 512, 513, 70001, (1 << 18) + 5})
                QTest::addRow("%s %d", std::string(info(dtype).abbreviation).c_str(), count) << dtype << count;
    }
    void manyElements() {
        QFETCH(DType, dtype);
        QFETCH(int, count);
        const quint64 seed = QRandomGenerator::global()->generate64();
        Random random(seed);
        Doubles wants, gots;
        for (int i = 0; i < count; ++i) {
            const double want = random.normal() * std::pow(10, static_cast<double>(random.below(5)) - 2);
            const bool odd = random.below(997) == 0 && isFloating(dtype);
            const double values[] = {want, kNan, kInf, -kInf, want * 2, want * (1 + 1e-5)};
            wants.push_back(odd ? values[random.below(6)] : want);
            gots.push_back(odd ? values[random.below(6)] : want * (1 + 1e-6 * random.uniform()));
        }
        const Tensor want = converted(dtype, wants), got = converted(dtype, gots);
        Comparison due;
        double furthest = 0;
        const Tolerance tolerance = isIntegral(dtype, true) ? Tolerance{} : Tolerance{1e-5, 1e-6};
        std::vector<float> magnitudes;
        int64_t odd = 0;
        for (int64_t i = 0; i < count; ++i) {
            const double a = toDouble(got.item(i)), b = toDouble(want.item(i));
            if (std::isfinite(b)) magnitudes.push_back(static_cast<float>(std::fabs(b)));
            odd += !std::isfinite(a);
            if (std::isnan(a) && std::isnan(b)) continue;
            const double error = std::fabs(a - b), allowed = tolerance.absolute + tolerance.relative * std::fabs(b);
            const bool finite = std::isfinite(a) && std::isfinite(b);
            double part = a == b ? 0 : kInf;
            if (finite) {
                part = allowed > 0 ? error / allowed : error;
                due.maxExpected = std::max(due.maxExpected, std::fabs(b));
                due.maxAbsoluteError = std::max(due.maxAbsoluteError, error);
            }
            const bool outside = finite ? error > allowed : a != b;
            due.mismatches += outside;
            due.within = due.within && !outside;
            if (part > furthest) due.worst = i;
            furthest = std::max(furthest, part);
        }
        const Comparison found = compare(got, want, tolerance);
        const std::string where = "seed " + std::to_string(seed);
        QVERIFY2(found.within == due.within, where.c_str());
        QVERIFY2(found.worst == due.worst, where.c_str());
        QVERIFY2(found.mismatches == due.mismatches, where.c_str());
        QVERIFY2(found.maxExpected == due.maxExpected, where.c_str());
        QVERIFY2(found.maxAbsoluteError == due.maxAbsoluteError, where.c_str());
        QCOMPARE(nonFiniteCount(got), odd);
        QVERIFY(sameBits(got, got) && sameBits(want, want.contiguous()));
        QVERIFY2(sameBits(got, want) == (count == 0 || std::memcmp(got.data(), want.data(), got.bytes()) == 0),
                 where.c_str());
        if (magnitudes.empty()) {
            QCOMPARE(usualMagnitude(want), 0.0);
            return;
        }
        std::sort(magnitudes.begin(), magnitudes.end());
        QVERIFY2(usualMagnitude(want) == static_cast<double>(magnitudes[(magnitudes.size() - 1) * 9 / 10]),
                 where.c_str());
    }

    void picks_data() {
        QTest::addColumn<QString>("file");     // names in the file; the tensor of each holds its place there
        QTest::addColumn<QString>("schemes");  // names of the values, by scheme
        QTest::addColumn<QString>("picked");   // places in the file, or what the error says
        QTest::addColumn<bool>("byName");
        const auto row = [](const char* name, const char* file, const char* schemes, const char* picked, bool byName) {
            QTest::newRow(name) << file << schemes << picked << byName;
        };
        row("names of the nodes", "b a", "a b|output_0 output_1", "1 0", true);
        row("numbered names", "output_1 output_0", "a b|output_0 output_1", "1 0", true);
        row("numbers count as numbers",
            "output_0 output_1 output_10 output_11 output_2 output_3 output_4 output_5 output_6 output_7 output_8 output_9",
            "a b c d e f g h i j k l|output_0 output_1 output_2 output_3 output_4 output_5 output_6 output_7 output_8 output_9 output_10 output_11",
            "0 1 4 5 6 7 8 9 10 11 2 3", true);
        row("natural order of other names", "t10 t9 t1", "a b c", "2 1 0", false);
        row("zeros in front", "0010 0002 0001", "a b c", "2 1 0", false);
        row("words", "y x", "a b", "1 0", false);
        row("one value under two places", "s", "s s", "0 0", true);
        row("the first ones only", "a", "a b", "0", true);
        row("one in between is missing", "a c", "a b c", "no tensor for output 'b'", true);
        row("an unknown one beside known ones", "a z", "a b", "no output 'z'; its outputs are: a, b", true);
        row("a node that has a number's name", "output_1 z", "output_1 z|output_0 output_1", "0 1", true);
    }
    void picks() {
        QFETCH(QString, file);
        QFETCH(QString, schemes);
        QFETCH(QString, picked);
        QFETCH(bool, byName);
        std::vector<std::pair<std::string, Tensor>> tensors;
        for (const QString& name : file.split(' '))
            tensors.emplace_back(name.toStdString(), Tensor::scalar(DType::I64, Scalar(int64_t(tensors.size()))));
        NameSchemes names;
        for (const QString& scheme : schemes.split('|')) {
            names.emplace_back();
            for (const QString& name : scheme.split(' ')) names.back().push_back(name.toStdString());
        }
        const auto found = pickTensors(std::move(tensors), names, "output", "e.safetensors");
        if (!found) {
            const QString error = QString::fromStdString(found.error().text()).simplified();
            for (const QString& part : picked.split("; ")) QVERIFY2(error.contains(part), qPrintable(error));
            return;
        }
        QStringList places;
        for (const Tensor& tensor : found->tensors) places << QString::number(toInt(tensor.item()));
        QCOMPARE(places.join(' '), picked);
        QCOMPARE(found->byName, byName);
    }
};

CUTAWAY_SUITE(CompareTest)
#include "compare_test.moc"
