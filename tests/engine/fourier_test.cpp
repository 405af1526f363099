// Transforms of every kind of length (products of small primes, primes, both) against the sum that defines them, both
// ways, in one part and in several.
#include "engine/support/fourier.h"

#include <QtTest>
#include <random>

using namespace cutaway;
using fourier::Complex;

namespace {

/// sum over i of x[i] e^(-2 pi i k / n), or with the other sign.
std::vector<Complex> bySum(const std::vector<Complex>& x, bool forward) {
    const size_t n = x.size();
    std::vector<Complex> sums(n);
    for (size_t k = 0; k < n; ++k)
        for (size_t i = 0; i < n; ++i)
            sums[k] += x[i] * std::polar(1.0, (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(i * k % n) /
                                                  static_cast<double>(n));
    return sums;
}

}  // namespace

class FourierTest : public QObject {
    Q_OBJECT

  private slots:
    void lengths_data() {
        QTest::addColumn<int>("length");
        for (int length = 1; length <= 40; ++length) QTest::addRow("%d", length) << length;
        for (const int length : {49, 60, 64, 77, 97, 100, 121, 143, 169, 210, 289, 360, 400, 512, 768})
            QTest::addRow("%d", length) << length;
    }
    void lengths() {
        QFETCH(int, length);
        const auto n = static_cast<size_t>(length);
        std::mt19937 random(1);
        std::uniform_real_distribution<double> number(-1, 1);
        // [2, length, 3], whose lines lie apart.
        std::vector<Complex> all(2 * n * 3);
        for (Complex& x : all) x = {number(random), number(random)};
        const fourier::Parts inParts = [](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
            for (int64_t at = 0; at < count; ++at) body(at, at + 1);
        };
        for (const bool forward : {true, false})
            for (const bool parts : {true, false}) {
                std::vector<Complex> made = all;
                fourier::alongDim(made, {2, length, 3}, 1, forward, parts ? inParts : fourier::Parts());
                for (size_t line = 0; line < 6; ++line) {
                    const size_t first = line / 3 * n * 3 + line % 3;
                    std::vector<Complex> x(n);
                    for (size_t i = 0; i < n; ++i) x[i] = all[first + 3 * i];
                    const std::vector<Complex> sums = bySum(x, forward);
                    for (size_t k = 0; k < n; ++k) {
                        const double error = std::abs(made[first + 3 * k] - sums[k]);
                        QVERIFY2(error < 1e-12 * static_cast<double>(length + 10), qPrintable(QString::number(error)));
                    }
                }
            }
    }
};

QTEST_APPLESS_MAIN(FourierTest)
#include "fourier_test.moc"
