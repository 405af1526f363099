// Transforms of every kind of length (products of small primes, primes, both) against the sum that defines them, both
// ways, complex and real, in one part and in several, with numbers of lines that do not fill the lanes.
#include "engine/support/fourier.h"

#include <QtTest>
#include <numbers>
#include <random>

#include "tests/support/suites.h"

using namespace cutaway;
using fourier::Complex;

namespace {

/// sum over i of x[i] e^(-2 pi i k / n), or with the other sign.
std::vector<Complex> bySum(const std::vector<Complex>& x, bool forward) {
    const size_t n = x.size();
    std::vector<Complex> sums(n), turns(n);
    for (size_t k = 0; k < n; ++k)
        turns[k] =
            std::polar(1.0, (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
    for (size_t k = 0; k < n; ++k)
        for (size_t i = 0; i < n; ++i) sums[k] += x[i] * turns[i * k % n];
    return sums;
}

/// [blocks, length, step], row by row, and its lines along the dim in the middle.
template <class T>
struct Array {
    int64_t length, step;
    std::vector<T> elements;

    T& at(int64_t line, int64_t k) {
        return elements[static_cast<size_t>((line / step * length + k) * step + line % step)];
    }
    fourier::Load<T> load() {
        return [this](int64_t, int64_t line, T* to) {
            for (int64_t k = 0; k < length; ++k) to[k] = at(line, k);
        };
    }
    fourier::Store<T> store() {
        return [this](int64_t, int64_t line, const T* from) {
            for (int64_t k = 0; k < length; ++k) at(line, k) = from[k];
        };
    }
};
constexpr int64_t kBlocks = 3, kStep = 7, kLines = kBlocks * kStep;  // two batches and a part of one
template <class T>
Array<T> arrayOf(int64_t length) {
    return {length, kStep, std::vector<T>(static_cast<size_t>(kLines * length))};
}

double number() {
    static std::mt19937 random(1);
    return std::uniform_real_distribution<double>(-1, 1)(random);
}

}  // namespace

class FourierTest : public QObject {
    Q_OBJECT

    static bool near(const Complex& a, const Complex& b, int64_t length) {
        return std::abs(a - b) < 1e-12 * static_cast<double>(length + 10);
    }
    static std::vector<fourier::Parts> ways() {
        return {{}, [](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
                    for (int64_t at = 0; at < count; ++at) body(at, at + 1);
                }};
    }

  private slots:
    void lengths_data() {
        QTest::addColumn<int>("length");
        for (int length = 1; length <= 40; ++length) QTest::addRow("%d", length) << length;
        for (const int length : {49, 60, 64, 77, 97, 100, 121, 143, 169, 210, 289, 360, 400, 512, 768, 1030})
            QTest::addRow("%d", length) << length;
    }
    void lengths() {
        QFETCH(int, length);
        auto given = arrayOf<Complex>(length);
        for (Complex& x : given.elements) x = {number(), number()};
        for (const bool forward : {true, false})
            for (const fourier::Parts& way : ways()) {
                auto made = arrayOf<Complex>(length);
                fourier::complexToComplex({{kBlocks, length, kStep}, {1}, 0, way}, forward, given.load(), made.store());
                for (int64_t line = 0; line < kLines; ++line) {
                    std::vector<Complex> x;
                    for (int64_t k = 0; k < length; ++k) x.push_back(given.at(line, k));
                    const std::vector<Complex> sums = bySum(x, forward);
                    for (int64_t k = 0; k < length; ++k)
                        QVERIFY(near(made.at(line, k), sums[static_cast<size_t>(k)], length));
                }
            }
    }

    void realLengths_data() { lengths_data(); }
    void realLengths() {
        QFETCH(int, length);
        auto given = arrayOf<double>(length);
        for (double& x : given.elements) x = number();
        const int64_t half = length / 2 + 1;
        for (const fourier::Parts& way : ways())
            for (const int64_t kept : {half, int64_t{length}}) {
                auto made = arrayOf<Complex>(kept);
                fourier::realToComplex({{kBlocks, length, kStep}, {1}, 0, way}, kept, given.load(), made.store());
                auto back = arrayOf<double>(length);
                for (int64_t line = 0; line < kLines; ++line) {
                    std::vector<Complex> x;
                    for (int64_t k = 0; k < length; ++k) x.emplace_back(given.at(line, k));
                    const std::vector<Complex> sums = bySum(x, true);
                    for (int64_t k = 0; k < kept; ++k)
                        QVERIFY(near(made.at(line, k), sums[static_cast<size_t>(k)], length));
                    // What the first number has that is not real, and the last one's, does not count.
                    made.at(line, 0) += Complex(0, 5);
                    if (length % 2 == 0) made.at(line, half - 1) += Complex(0, 5);
                }
                fourier::complexToReal({{kBlocks, kept, kStep}, {1}, 2, way}, length, made.load(), back.store());
                for (int64_t line = 0; line < kLines; ++line)
                    for (int64_t k = 0; k < length; ++k) QVERIFY(near(back.at(line, k), given.at(line, k), length));
            }
    }

    /// Several dims of many arrays are taken a few arrays at a time; no bit depends on that.
    void severalDims_data() {
        QTest::addColumn<QList<int>>("dims");
        QTest::newRow("last two") << QList<int>{1, 2};
        QTest::newRow("the other way round") << QList<int>{2, 1};
        QTest::newRow("with the first") << QList<int>{0, 2};
        QTest::newRow("all") << QList<int>{0, 1, 2};
    }
    void severalDims() {
        QFETCH(QList<int>, dims);
        // A block is one array of 130 x 600, or what is left of it.
        const std::vector<int64_t> sizes = {17, 130, 600};
        const auto count = [](const std::vector<int64_t>& all) {
            return static_cast<size_t>(all[0] * all[1] * all[2]);
        };
        const fourier::Call whole{sizes, {dims.begin(), dims.end()}, 1, {}};
        fourier::Call parts = whole;
        parts.inParts = ways()[1];
        const auto last = static_cast<size_t>(dims.back());
        std::vector<int64_t> halved = sizes;
        halved[last] = sizes[last] / 2 + 1;
        fourier::Rows<double> given{sizes, std::vector<double>(count(sizes))};
        std::vector<double>& real = given.elements;
        for (double& x : real) x = number();
        std::vector<std::vector<Complex>> spectra;
        std::vector<std::vector<double>> backs;
        for (const fourier::Call& call : {whole, parts}) {
            fourier::Rows<Complex> spectrum{halved, std::vector<Complex>(count(halved))};
            fourier::realToComplex(call, halved[last], given.load(), spectrum.store());
            fourier::Call back = call;
            back.sizes = halved;
            fourier::Rows<double> made{sizes, std::vector<double>(count(sizes))};
            fourier::complexToReal(back, sizes[last], spectrum.load(), made.store());
            spectra.push_back(spectrum.elements);
            backs.push_back(made.elements);
        }
        QVERIFY(spectra[0] == spectra[1] && backs[0] == backs[1]);
        for (size_t i = 0; i < real.size(); ++i) QVERIFY(std::abs(backs[0][i] - real[i]) < 1e-12);
        // One number of the spectrum by the sum that defines it.
        const std::vector<int64_t> at = {3, 5, 7};
        Complex sum = 0;
        std::vector<int64_t> i(3);
        const auto isAlong = [&](int64_t dim) { return dims.contains(static_cast<int>(dim)); };
        double numbers = 1;
        for (int64_t dim = 0; dim < 3; ++dim)
            numbers *= isAlong(dim) ? static_cast<double>(sizes[static_cast<size_t>(dim)]) : 1;
        for (i[0] = 0; i[0] < sizes[0]; ++i[0])
            for (i[1] = 0; i[1] < sizes[1]; ++i[1])
                for (i[2] = 0; i[2] < sizes[2]; ++i[2]) {
                    double angle = 0;
                    bool reads = true;
                    for (size_t d = 0; d < 3; ++d) {
                        if (isAlong(static_cast<int64_t>(d)))
                            angle -= 2 * std::numbers::pi * static_cast<double>(at[d] * i[d] % sizes[d]) /
                                     static_cast<double>(sizes[d]);
                        else reads = reads && i[d] == at[d];
                    }
                    if (reads)
                        sum += std::polar(real[static_cast<size_t>((i[0] * sizes[1] + i[1]) * sizes[2] + i[2])], angle);
                }
        const Complex found = spectra[0][static_cast<size_t>((at[0] * halved[1] + at[1]) * halved[2] + at[2])];
        QVERIFY(std::abs(found - sum / std::sqrt(numbers)) < 1e-9);
    }

    /// Zeros stand for what a transform is too short for.
    void shortTransformsAreFilled() {
        auto given = arrayOf<Complex>(2);
        for (Complex& x : given.elements) x = {number(), number()};
        auto made = arrayOf<double>(8);
        fourier::complexToReal({{kBlocks, 2, kStep}, {1}, 0, {}}, 8, given.load(), made.store());
        for (int64_t line = 0; line < kLines; ++line) {
            std::vector<Complex> x(8);
            x[0] = given.at(line, 0).real();
            x[1] = given.at(line, 1);
            x[7] = std::conj(x[1]);
            const std::vector<Complex> sums = bySum(x, false);
            for (int64_t k = 0; k < 8; ++k) QVERIFY(near(made.at(line, k), sums[static_cast<size_t>(k)], 8));
        }
    }

    /// Lines that are transformed at once do not see each other.
    void linesAreApart_data() {
        QTest::addColumn<int>("length");
        for (const int length : {8, 9, 12, 17}) QTest::addRow("%d", length) << length;
    }
    void linesAreApart() {
        QFETCH(int, length);
        auto given = arrayOf<double>(length);
        for (double& x : given.elements) x = number();
        auto clean = arrayOf<Complex>(length / 2 + 1), made = clean;
        const fourier::Call call{{kBlocks, length, kStep}, {1}, 0, {}};
        fourier::realToComplex(call, length / 2 + 1, given.load(), clean.store());
        given.at(2, 3) = std::numeric_limits<double>::quiet_NaN();
        given.at(4, 0) = std::numeric_limits<double>::infinity();
        fourier::realToComplex(call, length / 2 + 1, given.load(), made.store());
        for (int64_t line = 0; line < kLines; ++line)
            for (int64_t k = 0; k <= length / 2; ++k) {
                const bool spoiled = line == 2 || line == 4;
                QCOMPARE(made.at(line, k) == clean.at(line, k), !spoiled);
            }
    }
};

CUTAWAY_SUITE(FourierTest)
#include "fourier_test.moc"
