// Concatenation by copies: any layout, dim, dtype and number of threads gives what reading element by element gives.
#include <QtTest>
#include <numeric>

#include "tests/engine/library_call.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Sizes [4, n, 6] with the dims in memory in this order, outermost first, numbered from `first`.
Tensor part(DType dtype, int64_t n, size_t dim, const std::vector<size_t>& order, int64_t first) {
    Dims sizes = {4, 5, 6}, strides(3);
    sizes[dim] = n;
    int64_t step = 1;
    for (size_t i = 3; i-- > 0; step *= sizes[order[i]]) strides[order[i]] = step;
    Tensor tensor = Tensor::empty(dtype, sizes, strides);
    std::vector<int64_t> values(static_cast<size_t>(tensor.numel()));
    std::iota(values.begin(), values.end(), first);
    if (!values.empty()) storeElements(dtype, tensor.data(), 1, tensor.numel(), values.data());
    return tensor;
}

Result<void> concatenate(const std::vector<const Tensor*>& parts, int64_t dim, const Tensor& result, int threads) {
    Graph graph;
    testing::LibraryCallCase one{"aten.cat.default", "copies", {}, {}, {}};
    std::vector<Argument> items;
    for (const Tensor* part : parts) {
        Node& node = graph.placeholder("x" + std::to_string(items.size()),
                                       TensorType::contiguous(part->dtype(), toSymDims(part->sizes())));
        items.emplace_back(&node);
        one.operands.emplace_back(&node, *part);
    }
    one.args = {Argument(std::move(items)), dim};
    std::vector<Tensor> results = {result};
    CT_TRY(const auto planned, testing::planByLibrary(one, results, threads));
    return testing::runByLibrary(*planned, one, results, threads);
}

}  // namespace

class ConcatTest : public QObject {
    Q_OBJECT

  private slots:
    void agrees_data() {
        QTest::addColumn<int>("dtype");
        QTest::addColumn<int>("dim");
        QTest::addColumn<int>("layout");
        for (const DType dtype : {DType::I8, DType::F16, DType::F32, DType::I64, DType::C128})
            for (int dim = 0; dim < 3; ++dim)
                for (int layout = 0; layout < 3; ++layout)
                    QTest::addRow("%s, dim %d, layout %d", std::string(info(dtype).abbreviation).c_str(), dim, layout)
                        << static_cast<int>(dtype) << dim << layout;
    }
    void agrees() {
        QFETCH(int, dtype);
        QFETCH(int, dim);
        QFETCH(int, layout);
        const auto type = static_cast<DType>(dtype);
        const auto along = static_cast<size_t>(dim);
        const std::vector<size_t> orders[] = {{0, 1, 2}, {0, 2, 1}, {2, 1, 0}};
        std::vector<Tensor> parts;
        int64_t total = 0;
        for (const int64_t n : {3, 1, 0, 7, 2, 1}) {
            // Every other part lies in memory like the result, the others do not.
            parts.push_back(part(type, n, along, orders[parts.size() % 2 ? 0 : layout], 10 * total));
            total += n;
        }
        std::vector<const Tensor*> pointers;
        for (const Tensor& tensor : parts) pointers.push_back(&tensor);
        for (const int threads : {1, 2, 5}) {
            Tensor result = part(type, total, along, orders[layout], 0);
            QVERIFY(concatenate(pointers, dim, result, threads));
            int64_t start = 0;
            for (const Tensor& own : parts) {
                for (int64_t i = 0; i < own.numel(); ++i) {
                    Dims at(3);
                    int64_t rest = i;
                    for (size_t d = 3; d-- > 0; rest /= own.sizes()[d]) at[d] = rest % own.sizes()[d];
                    int64_t from = 0, to = start * result.strides()[along];
                    for (size_t d = 0; d < 3; ++d) {
                        from += at[d] * own.strides()[d];
                        to += at[d] * result.strides()[d];
                    }
                    const auto bytes = static_cast<size_t>(byteSize(type));
                    const auto* a = static_cast<const char*>(own.data()) + static_cast<size_t>(from) * bytes;
                    const auto* b = static_cast<const char*>(result.data()) + static_cast<size_t>(to) * bytes;
                    QVERIFY2(std::memcmp(a, b, bytes) == 0, qPrintable(QString("element %1").arg(i)));
                }
                start += own.sizes()[along];
            }
        }
    }
    /// Runs longer than what a thread copies at least are cut.
    void longRuns() {
        constexpr int64_t kLong = 100'003;
        std::vector<Tensor> parts;
        std::vector<const Tensor*> pointers;
        for (int i = 0; i < 5; ++i) {
            parts.push_back(Tensor::empty(DType::I64, {kLong}, {1}));
            std::vector<int64_t> values(static_cast<size_t>(kLong));
            std::iota(values.begin(), values.end(), i * kLong);
            std::memcpy(parts.back().data(), values.data(), values.size() * sizeof(int64_t));
        }
        for (const Tensor& tensor : parts) pointers.push_back(&tensor);
        Tensor result = Tensor::empty(DType::I64, {5 * kLong}, {1});
        QVERIFY(concatenate(pointers, 0, result, 3));
        for (int64_t i = 0; i < 5 * kLong; ++i) QCOMPARE(static_cast<const int64_t*>(result.data())[i], i);
    }
};

CUTAWAY_SUITE(ConcatTest)
#include "concat_test.moc"
