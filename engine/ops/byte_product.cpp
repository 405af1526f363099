#include "engine/ops/byte_product.h"

#include <algorithm>
#include <vector>

#include "engine/ops/library_kernels.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

/// So many products of bytes fit into an int32.
constexpr int64_t kExactRun = 32768;

std::vector<int16_t> widenedBytes(const int8_t* bytes, int64_t count) {
    return std::vector<int16_t>(bytes, bytes + count);
}
/// Sixteen bits a factor: processors have one instruction for that. Sums wrap around, so they are taken as unsigned.
uint32_t dot(const int16_t* a, const int16_t* b, int64_t count) {
    uint32_t total = 0;
    for (int64_t start = 0; start < count; start += kExactRun) {
        int32_t sum = 0;
        const int64_t end = std::min(count, start + kExactRun);
        for (int64_t k = start; k < end; ++k) sum += int32_t{a[k]} * int32_t{b[k]};
        total += static_cast<uint32_t>(sum);
    }
    return total;
}

}  // namespace

void multiplyBytesPlainly(const ByteProduct& product, int32_t* sums) {
    const std::vector<int16_t> b = widenedBytes(product.b, product.columns * product.inner);
    std::vector<int16_t> row(static_cast<size_t>(product.inner));
    for (int64_t m = 0; m < product.rows; ++m) {
        std::copy_n(product.a + m * product.stride, product.inner, row.begin());
        for (int64_t n = 0; n < product.columns; ++n)
            sums[m * product.columns + n] =
                static_cast<int32_t>(dot(row.data(), b.data() + n * product.inner, product.inner));
    }
}

void multiplyBytes(const ByteProduct& product, int32_t* sums) {
    if (!libraryGemmBytes(product.rows, product.columns, product.inner, product.a, product.stride, product.b, sums))
        multiplyBytesPlainly(product, sums);
}

void forRunsOfRows(int64_t rows, int64_t multiplications, int64_t bytes,
                   const std::function<void(int64_t first, int64_t count)>& body) {
    constexpr int64_t kCacheBytes = 1 << 19, kFewRows = 16, kMultiplicationsPerNanosecond = 20;
    const int64_t run = std::max(kFewRows, kCacheBytes / std::max<int64_t>(bytes, 1));
    const int64_t runs = (rows + run - 1) / run;
    const double nanoseconds =
        static_cast<double>(rows) * static_cast<double>(multiplications) / kMultiplicationsPerNanosecond;
    const int threads = threadsWorth(static_cast<int64_t>(std::min(nanoseconds, 1e12)), threadCount());
    // Several runs take a thread each, so the library gets one; a single run the library splits among all.
    lendThreads(runs > 1 ? 1 : threads);
    const int parts = static_cast<int>(std::min<int64_t>(threads, runs));
    const bool without = withoutLibraryKernels();
    runParts(parts, [&](int part) {
        const WithoutLibraryKernels asCaller(without);
        for (int64_t i = part; i < runs; i += parts) body(i * run, std::min(run, rows - i * run));
    });
}

}  // namespace cutaway
