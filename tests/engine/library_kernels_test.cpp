// Products and convolutions through the library against our own plain kernels, over shapes, layouts, groups and dtypes.
#include "engine/ops/library_kernels.h"

#include <QtTest>
#include <thread>

#include "engine/interpret/interpret.h"
#include "engine/ops/byte_product.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/matrix.h"
#include "engine/tensor/compare.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Small numbers that differ from element to element, exact in bf16.
Tensor filled(DType dtype, Dims sizes, int salt, Dims strides = {}) {
    Tensor packed = Tensor::zeros(DType::F64, sizes);
    for (int64_t i = 0; i < packed.numel(); ++i)
        packed.as<double>()[i] = static_cast<double>((i * 37 + salt * 11) % 65 - 32) / 16;
    Tensor out = Tensor::empty(dtype, std::move(sizes), std::move(strides));
    copyInto(out, packed);
    return out;
}

Tolerance toleranceFor(DType dtype) {
    return dtype == DType::F32    ? Tolerance{1e-5, 1e-4}
           : dtype == DType::BF16 ? Tolerance{1.6e-2, 1e-2}
                                  : Tolerance{2e-3, 2e-3};
}

void compareTensors(const Tensor& actual, const Tensor& expected) {
    const Comparison result = compare(actual, expected, toleranceFor(expected.dtype()));
    QVERIFY2(result.sameType && result.within,
             qPrintable(QString("largest error %1 at %2").arg(result.maxAbsoluteError).arg(result.worst)));
}

}  // namespace

class LibraryKernelsTest : public QObject {
    Q_OBJECT
  private slots:
    void products_data() {
        QTest::addColumn<int>("dtype");
        QTest::addColumn<QList<int>>("sizes");  // batch (0: none), m, n, k
        QTest::addColumn<int>("layout");  // bit 0: a transposed, bit 1: b transposed, bit 2: every second column of a
        for (DType dtype : {DType::F32, DType::BF16, DType::F16})
            for (const QList<int>& sizes :
                 {QList<int>{0, 1, 1, 1}, {0, 3, 5, 7}, {0, 33, 17, 40}, {0, 1, 9, 4}, {0, 9, 1, 4}, {3, 4, 2, 5}})
                for (int layout = 0; layout < 8; ++layout) {
                    const std::string name = std::string(info(dtype).abbreviation) + " " + std::to_string(sizes[0]) +
                                             "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]) + "x" +
                                             std::to_string(sizes[3]) + " layout " + std::to_string(layout);
                    QTest::newRow(name.c_str()) << static_cast<int>(dtype) << sizes << layout;
                }
    }
    void products() {
        QFETCH(int, dtype);
        QFETCH(QList<int>, sizes);
        QFETCH(int, layout);
        const auto type = static_cast<DType>(dtype);
        const int64_t m = sizes[1], n = sizes[2], k = sizes[3];
        const int64_t width = layout & 4 ? 2 * k : k;
        auto make = [&](int64_t rows, int64_t columns, bool transposed, int salt) {
            Dims dims{rows, columns};
            Dims strides = transposed ? Dims{1, rows} : Dims{columns, 1};
            if (sizes[0] > 0) {
                dims.insert(dims.begin(), sizes[0]);
                strides.insert(strides.begin(), rows * columns);
            }
            return filled(type, dims, salt, strides);
        };
        Tensor a = make(m, width, layout & 1, 1);
        if (layout & 4) {
            Dims dims = a.sizes(), strides = a.strides();
            dims.back() = k;
            strides.back() *= 2;
            a = a.view(dims, strides, a.offset());
        }
        const Tensor b = make(k, n, layout & 2, 2);
        Dims out{m, n};
        if (sizes[0] > 0) out.insert(out.begin(), sizes[0]);
        Tensor byLibrary = Tensor::zeros(type, out), plain = Tensor::zeros(type, out);
        const ProductScale scale{filled(type, {n}, 3), Scalar(0.5), Scalar(2.0)};
        multiplyMatrices(a, b, byLibrary, scale);
        multiplyMatricesPlainly(a, b, plain, scale);
        compareTensors(byLibrary, plain);
    }

    void convolutions_data() {
        QTest::addColumn<int>("dtype");
        QTest::addColumn<QList<int>>("numbers");  // spatial dims, groups, stride, padding, dilation, transposed, bias
        for (DType dtype : {DType::F32, DType::BF16})
            for (const QList<int>& numbers : {QList<int>{1, 1, 1, 0, 1, 0, 1},
                                              {2, 1, 1, 1, 1, 0, 1},
                                              {2, 1, 2, 1, 1, 0, 0},
                                              {2, 2, 1, 0, 2, 0, 1},
                                              {2, 4, 2, 1, 1, 0, 1},
                                              {3, 1, 1, 1, 1, 0, 0},
                                              {1, 1, 2, 0, 1, 1, 1},
                                              {2, 1, 2, 1, 1, 1, 1},
                                              {2, 2, 3, 0, 2, 1, 0},
                                              {3, 1, 1, 0, 1, 1, 1}}) {
                std::string name(info(dtype).abbreviation);
                for (int number : numbers) name += " " + std::to_string(number);
                QTest::newRow(name.c_str()) << static_cast<int>(dtype) << numbers;
            }
    }
    void convolutions() {
        QFETCH(int, dtype);
        QFETCH(QList<int>, numbers);
        const auto type = static_cast<DType>(dtype);
        const auto spatial = static_cast<size_t>(numbers[0]);
        ConvolutionGeometry g;
        g.batch = 2;
        g.inChannels = 4;
        g.outChannels = 8;
        g.groups = numbers[1];
        g.transposed = numbers[5] != 0;
        g.stride.assign(spatial, numbers[2]);
        g.padding.assign(spatial, numbers[3]);
        g.dilation.assign(spatial, numbers[4]);
        for (size_t d = 0; d < spatial; ++d) {
            g.in.push_back(7 + static_cast<int64_t>(d));
            g.kernel.push_back(d == 1 ? 2 : 3);
            const int64_t reach = g.dilation[d] * (g.kernel[d] - 1) + 1;
            g.out.push_back(g.transposed ? (g.in[d] - 1) * g.stride[d] - 2 * g.padding[d] + reach
                                         : (g.in[d] + 2 * g.padding[d] - reach) / g.stride[d] + 1);
        }
        auto sizes = [](Dims lead, const std::vector<int64_t>& tail) {
            lead.insert(lead.end(), tail.begin(), tail.end());
            return lead;
        };
        const Dims inSizes = sizes({g.batch, g.inChannels}, g.in), outSizes = sizes({g.batch, g.outChannels}, g.out);
        const Dims weightSizes = sizes(
            g.transposed ? Dims{g.inChannels, g.outChannels / g.groups} : Dims{g.outChannels, g.inChannels / g.groups},
            g.kernel);
        const Tensor input = filled(type, inSizes, 1), weight = filled(type, weightSizes, 2),
                     gradient = filled(type, outSizes, 4);
        const Tensor bias = numbers[6] ? filled(type, {g.outChannels}, 3) : Tensor();

        Tensor first = Tensor::zeros(type, outSizes), second = Tensor::zeros(type, outSizes);
        convolve(g, input, weight, bias, first);
        convolvePlainly(g, input, weight, bias, second);
        compareTensors(first, second);
        first = Tensor::zeros(type, inSizes);
        second = Tensor::zeros(type, inSizes);
        convolveBackInput(g, gradient, weight, first);
        convolveBackInputPlainly(g, gradient, weight, second);
        compareTensors(first, second);
        first = Tensor::zeros(type, weightSizes);
        second = Tensor::zeros(type, weightSizes);
        convolveBackWeight(g, gradient, input, first);
        convolveBackWeightPlainly(g, gradient, input, second);
        compareTensors(first, second);
    }

    /// The largest bytes there are, next to each other: kernels that sum pairs of products in 16 bits saturate.
    void productsOfBytes_data() {
        QTest::addColumn<QList<int>>("sizes");  // m, n, k, bytes from row to row
        for (const QList<int>& sizes :
             {QList<int>{1, 1, 1, 1}, {3, 5, 7, 9}, {33, 17, 40, 40}, {2, 3, 40000, 40001}, {1, 64, 300, 300}})
            QTest::newRow(qPrintable(QString("%1x%2x%3").arg(sizes[0]).arg(sizes[1]).arg(sizes[2]))) << sizes;
    }
    void productsOfBytes() {
        QFETCH(QList<int>, sizes);
        ByteProduct product{sizes[0], sizes[1], sizes[2], nullptr, sizes[3], nullptr};
        std::vector<uint8_t> a(static_cast<size_t>(product.rows * product.stride), 255);
        std::vector<int8_t> b(static_cast<size_t>(product.columns * product.inner));
        for (size_t i = 0; i < a.size(); i += 5) a[i] = static_cast<uint8_t>(i * 37 % 256);
        for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int8_t>(i / 7 % 3 == 0 ? -128 : 127 - i % 11);
        product.a = a.data();
        product.b = b.data();
        const auto count = static_cast<size_t>(product.rows * product.columns);
        std::vector<int32_t> sums(count, -1), plain(count, -1), expected(count, 0);
        for (int64_t m = 0; m < product.rows; ++m)
            for (int64_t n = 0; n < product.columns; ++n)
                for (int64_t k = 0; k < product.inner; ++k)
                    expected[static_cast<size_t>(m * product.columns + n)] +=
                        a[static_cast<size_t>(m * product.stride + k)] * b[static_cast<size_t>(n * product.inner + k)];
        multiplyBytes(product, sums.data());
        multiplyBytesPlainly(product, plain.data());
        QCOMPARE(sums, expected);
        QCOMPARE(plain, expected);
    }

    /// The library takes f32 convolutions of ordinary shape, so the comparison above is not one of a kernel with
    /// itself.
    void libraryAccepts() {
        ConvolutionGeometry g;
        g.batch = g.inChannels = g.outChannels = 1;
        g.in = {4};
        g.kernel = {2};
        g.out = {3};
        g.stride = g.dilation = {1};
        g.padding = {0};
        const float input[] = {1, 2, 3, 4}, weight[] = {10, 1};
        float output[3] = {};
        QVERIFY(libraryConvolution(g, input, weight, nullptr, output));
        QCOMPARE(output[0], 12.0f);
        QCOMPARE(output[2], 34.0f);
        QVERIFY(libraryGemm(1, 1, 4, {input, 4, 1}, {input, 1, 1}, output));
        QCOMPARE(output[0], 30.0f);
    }

    /// The library's scratch memory belongs to the thread that made a kernel.
    void threadsConvolveAtOnce() {
        const auto module = parseText(
            "def forward(x: \"f32[2, 512, 39]\", w: \"f32[512, 512, 3]\"):\n"
            "    y = aten.conv1d.default(x, w, None, [2])\n    return (y,)\n");
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        const auto inputs = randomInputs(**module, 0);
        QVERIFY(inputs);
        std::vector<Tensor> results(4);
        std::vector<std::thread> threads;
        for (Tensor& result : results)
            threads.emplace_back([&] {
                for (int i = 0; i < 10; ++i)
                    if (const auto run = interpret(**module, *inputs)) result = run->front();
            });
        for (std::thread& thread : threads) thread.join();
        for (const Tensor& result : results) QVERIFY(result.defined());
        for (const Tensor& result : results) QVERIFY(compare(result, results[0], {0, 0}).within);
    }
    /// What a pure run gives are the bits of our own kernel, in the graph's bodies too.
    void pureRunsUseNoLibrary() {
        const Tensor a = filled(DType::F32, {40, 300}, 1), b = filled(DType::F32, {300, 50}, 2);
        const auto module = parseText(
            "def forward(a: \"f32[40, 300]\", b: \"f32[300, 50]\"):\n"
            "    exp = aten.exp.default(b)\n    y = aten.mm.default(a, exp)\n    return (exp, y)\n");
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        InterpretOptions options;
        options.pure = true;
        const auto results = interpret(**module, {a, b}, options);
        QVERIFY2(results, results ? "" : results.error().text().c_str());
        Tensor expected = Tensor::empty(DType::F32, {40, 50});
        multiplyMatricesPlainly(a, (*results)[0], expected, {});
        QVERIFY(compare((*results)[1], expected, {0, 0}).within);
        Tensor product = Tensor::empty(DType::F32, {40, 50});
        const MatrixView left{a.as<float>(), 300, 1}, right{b.as<float>(), 50, 1};
        QVERIFY(libraryGemm(40, 50, 300, left, right, product.as<float>()));
        const WithoutLibraryKernels without;
        QVERIFY(!libraryGemm(40, 50, 300, left, right, product.as<float>()));
    }
};

CUTAWAY_SUITE(LibraryKernelsTest)
#include "library_kernels_test.moc"
