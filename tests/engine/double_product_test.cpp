// Products and convolutions of doubles: every sum in the order of the plain loops, to the bit, whatever the shape.
#include "engine/ops/double_product.h"

#include <QtTest>
#include <cmath>

#include "engine/ops/conv_kernels.h"
#include "engine/ops/matrix.h"
#include "engine/tensor/tensor.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Numbers of many magnitudes, so that another order of a sum shows.
double numberAt(int64_t at, int salt) { return std::sin(static_cast<double>(at * 7 + salt)) * std::exp2(at % 23 - 11); }

Tensor manyMagnitudes(Dims sizes, int salt, Dims strides = {}) {
    Tensor packed = Tensor::zeros(DType::F64, sizes);
    for (int64_t i = 0; i < packed.numel(); ++i) packed.as<double>()[i] = numberAt(i, salt);
    if (strides.empty()) return packed;
    Tensor out = Tensor::empty(DType::F64, std::move(sizes), std::move(strides));
    copyInto(out, packed);
    return out;
}

QString firstDifference(const Tensor& found, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i)
        if (std::memcmp(&found.as<double>()[i], &expected[i], sizeof(double)) != 0 &&
            !(std::isnan(found.as<double>()[i]) && std::isnan(expected[i])))
            return QString("number %1 is %2 instead of %3").arg(i).arg(found.as<double>()[i]).arg(expected[i]);
    return {};
}

/// One spatial dim of a convolution, as the loops over it.
struct Spatial {
    int64_t in, kernel, stride, padding, dilation;
};

}  // namespace

class DoubleProductTest : public QObject {
    Q_OBJECT
  private slots:
    void products_data() {
        QTest::addColumn<QList<int>>("sizes");  // m, n, k
        QTest::addColumn<bool>("transposed");   // how b lies
        for (const bool transposed : {false, true})
            for (const QList<int>& sizes : {QList<int>{1, 1, 1},
                                            {3, 5, 7},
                                            {8, 16, 256},
                                            {9, 17, 257},
                                            {13, 31, 600},
                                            {1, 40, 9},
                                            {40, 1, 9},
                                            {70, 300, 130},
                                            {300, 70, 130},
                                            {4, 8, 0}})
                QTest::addRow("%dx%dx%d%s", sizes[0], sizes[1], sizes[2], transposed ? " of a transposed matrix" : "")
                    << sizes << transposed;
    }
    void products() {
        QFETCH(QList<int>, sizes);
        QFETCH(bool, transposed);
        const int64_t m = sizes[0], n = sizes[1], k = sizes[2];
        const Tensor a = manyMagnitudes({m, k}, 1), b = manyMagnitudes({k, n}, 2, transposed ? Dims{1, k} : Dims{});
        Tensor c = Tensor::empty(DType::F64, {m, n});
        multiplyMatrices(a, b, c);
        std::vector<double> expected(static_cast<size_t>(m * n), 0.0);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t p = 0; p < k; ++p)
                for (int64_t j = 0; j < n; ++j)
                    expected[static_cast<size_t>(i * n + j)] += numberAt(i * k + p, 1) * numberAt(p * n + j, 2);
        QCOMPARE(firstDifference(c, expected), QString());
    }

    /// Into columns of a wider matrix, by several threads that share columns, or rows.
    void productsIntoColumns() {
        const int64_t wider = 9, k = 64;
        for (const auto& [m, n] : {std::pair<int64_t, int64_t>{48, 1024}, {4096, 24}}) {
            const Tensor a = manyMagnitudes({m, k}, 1), b = manyMagnitudes({k, n}, 2);
            Tensor c = Tensor::zeros(DType::F64, {m, n}), all = Tensor::zeros(DType::F64, {m, n + wider}).clone();
            multiplyMatrices(a, b, c);
            addDoubleProduct(m, n, k, a.as<double>(), k, {b.as<double>(), n, 1}, all.as<double>() + wider, n + wider);
            for (int64_t i = 0; i < m; ++i)
                for (int64_t j = -wider; j < n; ++j)
                    QCOMPARE(all.as<double>()[i * (n + wider) + wider + j], j < 0 ? 0.0 : c.as<double>()[i * n + j]);
        }
    }

    void convolutions_data() {
        QTest::addColumn<QList<int>>("channels");  // batch, in, out, groups
        QTest::addColumn<QList<int>>("spatial");   // in, kernel, stride, padding, dilation of both dims
        QTest::addColumn<bool>("transposed");
        QTest::addColumn<double>("special");  // one element of the weights and of the gradient
        for (const bool transposed : {false, true}) {
            const auto row = [&](const char* name, const QList<int>& channels, const QList<int>& spatial,
                                 double special = 0.5) {
                QTest::addRow("%s%s", transposed ? "transposed, " : "", name)
                    << channels << spatial << transposed << special;
            };
            row("plain", {2, 3, 5, 1}, {7, 3, 1, 0, 1});
            row("padded", {2, 3, 5, 1}, {7, 3, 1, 1, 1});
            row("strided", {1, 4, 6, 1}, {9, 3, 2, 1, 1});
            row("dilated", {1, 4, 4, 1}, {11, 3, 2, 2, 2});
            row("groups", {2, 8, 8, 2}, {6, 3, 1, 1, 1});
            row("depthwise", {2, 4, 4, 4}, {6, 3, 1, 1, 1});
            row("many channels", {1, 70, 20, 1}, {40, 3, 1, 1, 1});
            row("an infinite weight beside the padding", {1, 2, 4, 1}, {5, 3, 1, 1, 1}, INFINITY);
        }
    }
    void convolutions() {
        QFETCH(QList<int>, channels);
        QFETCH(QList<int>, spatial);
        QFETCH(bool, transposed);
        QFETCH(double, special);
        ConvolutionGeometry g;
        g.batch = channels[0];
        g.inChannels = channels[1];
        g.outChannels = channels[2];
        g.groups = channels[3];
        g.transposed = transposed;
        const Spatial s{spatial[0], spatial[1], spatial[2], spatial[3], spatial[4]};
        const int64_t reach = (s.kernel - 1) * s.dilation + 1;
        const int64_t outSize =
            transposed ? (s.in - 1) * s.stride - 2 * s.padding + reach : (s.in + 2 * s.padding - reach) / s.stride + 1;
        for (int dim = 0; dim < 2; ++dim) {
            g.in.push_back(s.in);
            g.out.push_back(outSize);
            g.kernel.push_back(s.kernel);
            g.stride.push_back(s.stride);
            g.padding.push_back(s.padding);
            g.dilation.push_back(s.dilation);
        }
        const int64_t inner = transposed ? g.outChannels / g.groups : g.inChannels / g.groups;
        const Tensor x = manyMagnitudes({g.batch, g.inChannels, s.in, s.in}, 1);
        Tensor w = manyMagnitudes({transposed ? g.inChannels : g.outChannels, inner, s.kernel, s.kernel}, 2);
        Tensor dy = manyMagnitudes({g.batch, g.outChannels, outSize, outSize}, 3);
        w.as<double>()[1] = special;
        dy.as<double>()[1] = special;
        Tensor y = Tensor::empty(DType::F64, dy.sizes()), dx = Tensor::empty(DType::F64, x.sizes()),
               dw = Tensor::empty(DType::F64, w.sizes());
        convolve(g, x, w, Tensor(), y);
        convolveBackInput(g, dy, w, dx);
        convolveBackWeight(g, dy, x, dw);

        std::vector<double> ys(static_cast<size_t>(y.numel()), 0.0), dxs(static_cast<size_t>(x.numel()), 0.0),
            dws(static_cast<size_t>(w.numel()), 0.0);
        // The strided side's positions first, kernel elements inside: the order of the sums.
        const int64_t small = transposed ? s.in : outSize, large = transposed ? outSize : s.in;
        const int64_t inPer = g.inChannels / g.groups, outPer = g.outChannels / g.groups;
        const auto at = [&](int64_t position, int64_t k) { return position * s.stride - s.padding + k * s.dilation; };
        const auto each = [&](auto&& body) {
            for (int64_t n = 0; n < g.batch; ++n)
                for (int64_t o = 0; o < g.outChannels; ++o)
                    for (int64_t i = 0; i < inPer; ++i)
                        for (int64_t s0 = 0; s0 < small; ++s0)
                            for (int64_t k0 = 0; k0 < s.kernel; ++k0)
                                for (int64_t s1 = 0; s1 < small; ++s1)
                                    for (int64_t k1 = 0; k1 < s.kernel; ++k1) {
                                        const int64_t l0 = at(s0, k0), l1 = at(s1, k1);
                                        if (l0 < 0 || l0 >= large || l1 < 0 || l1 >= large) continue;
                                        const int64_t group = o / outPer, channel = group * inPer + i;
                                        const int64_t smallAt = s0 * small + s1, largeAt = l0 * large + l1;
                                        const int64_t kernel = k0 * s.kernel + k1, area = s.kernel * s.kernel;
                                        const int64_t from = (n * g.inChannels + channel) * s.in * s.in +
                                                             (transposed ? smallAt : largeAt);
                                        const int64_t to = (n * g.outChannels + o) * outSize * outSize +
                                                           (transposed ? largeAt : smallAt);
                                        const int64_t weight =
                                            (transposed ? channel * outPer + o % outPer : o * inPer + i) * area +
                                            kernel;
                                        body(static_cast<size_t>(from), static_cast<size_t>(weight),
                                             static_cast<size_t>(to));
                                    }
        };
        const double *xs = x.as<double>(), *wsAt = w.as<double>(), *dys = dy.as<double>();
        each([&](size_t i, size_t k, size_t o) { ys[o] += xs[i] * wsAt[k]; });
        each([&](size_t i, size_t k, size_t o) { dws[k] += xs[i] * dys[o]; });
        each([&](size_t i, size_t k, size_t o) { dxs[i] += dys[o] * wsAt[k]; });
        QCOMPARE(firstDifference(y, ys), QString());
        QCOMPARE(firstDifference(dw, dws), QString());
        QCOMPARE(firstDifference(dx, dxs), QString());
    }
};

CUTAWAY_SUITE(DoubleProductTest)
#include "double_product_test.moc"
