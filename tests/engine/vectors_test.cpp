// Functions compiled for several widths of vectors give the same bits with each: this program computes a digest of what
// they make, here and in processes that keep to narrower vectors.
#include <QProcess>
#include <QtTest>
#include <cmath>
#include <functional>
#include <random>

#include "engine/ops/double_product.h"
#include "engine/runtime/libraries/attention_rows.h"
#include "engine/runtime/libraries/halves.h"
#include "engine/runtime/portable/quantized_rows.h"
#include "engine/support/fourier.h"
#include "engine/support/processor.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// FNV-1a.
class Digest {
  public:
    template <class T>
    void add(const std::vector<T>& values) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
        for (size_t i = 0; i < values.size() * sizeof(T); ++i) m_hash = (m_hash ^ bytes[i]) * 1099511628211u;
    }
    uint64_t hash() const { return m_hash; }

  private:
    uint64_t m_hash = 14695981039346656037u;
};

template <class T>
std::vector<T> numbers(size_t count, double low = -1, double high = 1) {
    std::mt19937 random(static_cast<uint32_t>(count));
    std::vector<T> made(count);
    for (T& value : made) value = static_cast<T>(low + (high - low) * static_cast<double>(random()) / 4294967296.0);
    return made;
}
int64_t lengthOf(const auto& values) { return static_cast<int64_t>(values.size()); }

void transforms(Digest& digest) {
    for (const int64_t length : {8, 30, 37, 97, 128, 1000}) {
        const fourier::Call call{{11, length}, {1}};
        fourier::Rows<double> signal{call.sizes, numbers<double>(static_cast<size_t>(11 * length))};
        fourier::Rows<fourier::Complex> half{{11, length / 2 + 1}, {}}, whole{call.sizes, {}};
        half.elements.resize(static_cast<size_t>(11 * (length / 2 + 1)));
        whole.elements.assign(signal.elements.begin(), signal.elements.end());
        fourier::realToComplex(call, length / 2 + 1, signal.load(), half.store());
        fourier::complexToComplex(call, true, whole.load(), whole.store());
        digest.add(half.elements);
        digest.add(whole.elements);
        fourier::complexToReal({half.sizes, {1}}, length, half.load(), signal.store());
        digest.add(signal.elements);
    }
}
void products(Digest& digest) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 3}, {13, 37, 300}, {64, 16, 5}}) {
        const auto a = numbers<double>(static_cast<size_t>(m * k)), b = numbers<double>(static_cast<size_t>(k * n));
        std::vector<double> c(static_cast<size_t>(m * n), 0.5);
        addDoubleProduct(m, n, k, a.data(), k, {b.data(), n, 1}, c.data(), n);
        digest.add(c);
    }
}
void attention(Digest& digest) {
    const RowFunctions& rows = rowFunctions();
    for (const size_t count : {1, 7, 16, 61, 333}) {
        auto scores = numbers<float>(count, -9, 9), gradients = numbers<float>(count + 1);
        const auto mask = numbers<float>(count, -3, 0);
        const int64_t n = lengthOf(scores);
        std::vector<float> found = {rows.largest(scores.data(), mask.data(), 0.3f, n),
                                    rows.dot(scores.data(), gradients.data(), n)};
        auto other = scores;
        rows.gradients(other.data(), gradients.data(), mask.data(), 0.3f, 2.5f, found[1], n);
        found.push_back(rows.exponentials(scores.data(), mask.data(), 0.3f, found[0], n));
        rows.multiply(scores.data(), 1 / found[2], n);
        for (const auto& made : {scores, other, gradients, found}) digest.add(made);
    }
}
void halves(Digest& digest) {
    std::vector<uint16_t> all(65536), back(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(all.size());
    widenHalves(all.data(), lengthOf(all), wide.data());
    for (float& value : wide) value = std::isnan(value) ? 0 : value * 1.0003f;
    narrowToHalves(wide.data(), lengthOf(wide), back.data());
    digest.add(wide);
    digest.add(back);
}
void quantized(Digest& digest) {
    for (const size_t count : {3, 16, 77}) {
        const auto sums = numbers<int32_t>(count, -90000, 90000);
        const auto scales = numbers<float>(count, 0.001, 0.02), bias = numbers<float>(count + 1);
        std::vector<float> y(count);
        std::vector<uint8_t> bytes(count);
        const int64_t n = lengthOf(y);
        for (const int64_t step : {0, 1}) {
            portable::scaleSums(sums.data(), n, 0.013f, scales.data(), step, bias.data(), y.data());
            digest.add(y);
            portable::roundToBytes(y.data(), n, 3.1f, 17, -128, bytes.data());
            digest.add(bytes);
            portable::clipNegative(y.data(), n);
            digest.add(y);
        }
    }
}

struct Part {
    const char* name;
    void (*work)(Digest&);
};
constexpr Part kParts[] = {{"Fourier transforms", transforms},
                           {"products of doubles", products},
                           {"attention", attention},
                           {"halves", halves},
                           {"quantized rows", quantized}};

QString digestOf(const Part& part) {
    Digest digest;
    part.work(digest);
    return QString::number(digest.hash(), 16);
}

constexpr const char* kDigests = "--digests";
int printDigests(int, char**) {
    constexpr const char* kNames[] = {"plain", "avx2", "avx512"};
    QTextStream out(stdout);
    out << kNames[static_cast<int>(widestVectors())] << '\n';
    for (const Part& part : kParts) out << digestOf(part) << '\n';
    return 0;
}

}  // namespace

class VectorsTest : public QObject {
    Q_OBJECT

  private slots:
    void sameBits_data() {
        QTest::addColumn<QString>("vectors");
        for (const char* vectors : {"avx2", "plain"}) QTest::newRow(vectors) << vectors;
    }
    void sameBits() {
        QFETCH(QString, vectors);
        if (widestVectors() == Vectors::Plain) QSKIP("this processor has no wider vectors than plain ones");
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("CUTAWAY_VECTORS", vectors);
        process.setProcessEnvironment(environment);
        process.start(QCoreApplication::applicationFilePath(), {kDigests});
        QVERIFY(process.waitForFinished());
        const QStringList lines = QString::fromUtf8(process.readAllStandardOutput()).split('\n', Qt::SkipEmptyParts);
        QCOMPARE(lines.size(), static_cast<qsizetype>(std::size(kParts)) + 1);
        QCOMPARE(lines[0], vectors);
        for (size_t i = 0; i < std::size(kParts); ++i)
            QVERIFY2(lines[static_cast<qsizetype>(i) + 1] == digestOf(kParts[i]), kParts[i].name);
    }
};

CUTAWAY_SUITE(VectorsTest)
CUTAWAY_ROLE(kDigests, printDigests)
#include "vectors_test.moc"
