#include "engine/ops/double_product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/support/processor.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

constexpr int64_t kDepth = 256;  // rows of b that are packed at a time: a panel of them fits into the first cache

/// A panel is two vectors of kLanes doubles wide; kLanes is the most that the processor has.
template <int kLanes>
struct Lanes {
    using Vector [[gnu::vector_size(kLanes * sizeof(double))]] = double;
    static constexpr int64_t kColumns = 2 * kLanes;
};

/// kRows rows of c, as wide as a panel, stay in registers while all of the panel's depth is added to them.
template <int kLanes, int kRows>
[[gnu::always_inline]] inline void addTile(const double* a, int64_t aStride, const double* panel, int64_t depth,
                                           double* c, int64_t cStride) {
    using Vector = typename Lanes<kLanes>::Vector;
    Vector sums[kRows][2];
    for (int row = 0; row < kRows; ++row) std::memcpy(sums[row], c + row * cStride, sizeof sums[row]);
    for (int64_t p = 0; p < depth; ++p, panel += Lanes<kLanes>::kColumns) {
        Vector other[2];
        std::memcpy(other, panel, sizeof other);
        for (int row = 0; row < kRows; ++row) {
            const double factor = a[row * aStride + p];
            sums[row][0] += factor * other[0];
            sums[row][1] += factor * other[1];
        }
    }
    for (int row = 0; row < kRows; ++row) std::memcpy(c + row * cStride, sums[row], sizeof sums[row]);
}

/// Rows of a and of c from `first` to m in tiles of kRows; where the panel is wider than c, by way of a copy.
template <int kLanes, int kRows>
[[gnu::always_inline]] inline int64_t addTiles(int64_t first, int64_t m, const double* a, int64_t aStride,
                                               const double* panel, int64_t depth, double* c, int64_t cStride,
                                               int64_t columns) {
    constexpr int64_t kColumns = Lanes<kLanes>::kColumns;
    for (; first + kRows <= m; first += kRows) {
        double* to = c + first * cStride;
        if (columns == kColumns) {
            addTile<kLanes, kRows>(a + first * aStride, aStride, panel, depth, to, cStride);
            continue;
        }
        double whole[kRows * kColumns] = {};
        for (int row = 0; row < kRows; ++row) std::copy_n(to + row * cStride, columns, whole + row * kColumns);
        addTile<kLanes, kRows>(a + first * aStride, aStride, panel, depth, whole, kColumns);
        for (int row = 0; row < kRows; ++row) std::copy_n(whole + row * kColumns, columns, to + row * cStride);
    }
    return first;
}

struct Part {
    int64_t m, n, k;
    const double* a;
    int64_t aStride;
    DoubleMatrix b;
    double* c;
    int64_t cStride;
};

/// `depth` rows of b, `columns` of their columns, row by row; the columns that are missing to a panel are zeros.
template <int64_t kColumns>
[[gnu::always_inline]] inline void packPanel(const DoubleMatrix& b, int64_t row, int64_t column, int64_t depth,
                                             int64_t columns, double* panel) {
    const double* from = b.data + row * b.rowStride + column * b.columnStride;
    if (columns < kColumns) std::fill_n(panel, depth * kColumns, 0.0);
    if (b.columnStride == 1)
        for (int64_t p = 0; p < depth; ++p) std::copy_n(from + p * b.rowStride, columns, panel + p * kColumns);
    else
        for (int64_t j = 0; j < columns; ++j)
            for (int64_t p = 0; p < depth; ++p) panel[p * kColumns + j] = from[p * b.rowStride + j * b.columnStride];
}

template <int kLanes>
[[gnu::always_inline]] inline void multiplyPart(const Part& s) {
    constexpr int64_t kColumns = Lanes<kLanes>::kColumns;
    std::vector<double> panel(static_cast<size_t>(std::min(kDepth, s.k) * kColumns));
    for (int64_t p = 0; p < s.k; p += kDepth) {
        const int64_t depth = std::min(kDepth, s.k - p);
        for (int64_t j = 0; j < s.n; j += kColumns) {
            const int64_t columns = std::min(kColumns, s.n - j);
            packPanel<kColumns>(s.b, p, j, depth, columns, panel.data());
            int64_t row = 0;
            const double* a = s.a + p;
            if constexpr (kLanes == 8)  // AVX-512 has the registers for 8 rows
                row = addTiles<kLanes, 8>(row, s.m, a, s.aStride, panel.data(), depth, s.c + j, s.cStride, columns);
            row = addTiles<kLanes, 4>(row, s.m, a, s.aStride, panel.data(), depth, s.c + j, s.cStride, columns);
            addTiles<kLanes, 1>(row, s.m, a, s.aStride, panel.data(), depth, s.c + j, s.cStride, columns);
        }
    }
}

void multiplyNarrow(const Part& part) { multiplyPart<2>(part); }
#if CUTAWAY_HAS_VECTORS
CUTAWAY_FOR_AVX2 void multiplyWide(const Part& part) { multiplyPart<4>(part); }
CUTAWAY_FOR_AVX512 void multiplyWidest(const Part& part) { multiplyPart<8>(part); }
#endif

void multiply(const Part& part) {
#if CUTAWAY_HAS_VECTORS
    if (widestVectors() == Vectors::Avx512) return multiplyWidest(part);
    if (widestVectors() == Vectors::Avx2) return multiplyWide(part);
#endif
    multiplyNarrow(part);
}

}  // namespace

void addDoubleProduct(int64_t m, int64_t n, int64_t k, const double* a, int64_t aStride, const DoubleMatrix& b,
                      double* c, int64_t cStride) {
    constexpr double kOperationsPerNanosecond = 16;
    const double nanoseconds =
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / kOperationsPerNanosecond;
    const int threads = threadsWorth(static_cast<int64_t>(std::min(nanoseconds, 1e12)), threadCount());
    // Split by columns, each thread packs its own columns of b; split by rows, each thread packs all of b.
    constexpr int64_t kUnit = 16;
    if (n >= 4 * kUnit * threads)
        runRange(n, kUnit, threads, [&](int64_t begin, int64_t end) {
            multiply({m,
                      end - begin,
                      k,
                      a,
                      aStride,
                      {b.data + begin * b.columnStride, b.rowStride, b.columnStride},
                      c + begin,
                      cStride});
        });
    else
        runRange(m, 8, threads, [&](int64_t begin, int64_t end) {
            multiply({end - begin, n, k, a + begin * aStride, aStride, b, c + begin * cStride, cStride});
        });
}

}  // namespace cutaway
