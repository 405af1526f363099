#pragma once
// Products of matrices of bytes, summed exactly in int32 (modulo 2^32): what quantized layers compute with.
#include <cstdint>
#include <functional>

namespace cutaway {

/// a [rows, inner], its rows `stride` apart, times the transpose of b [columns, inner], row-major.
struct ByteProduct {
    int64_t rows = 0, columns = 0, inner = 0;
    const uint8_t* a = nullptr;
    int64_t stride = 0;
    const int8_t* b = nullptr;
};
/// sums: [rows, columns], row-major. Through the library where it sums exactly.
void multiplyBytes(const ByteProduct& product, int32_t* sums);
/// The same without the library.
void multiplyBytesPlainly(const ByteProduct& product, int32_t* sums);

/// Splits `rows` of work, each of so many multiplications and bytes at hand, into runs that fit into a cache, and calls
/// body(first, count) for each, on as many threads as are worth waking.
void forRunsOfRows(int64_t rows, int64_t multiplications, int64_t bytes,
                   const std::function<void(int64_t first, int64_t count)>& body);

}  // namespace cutaway
