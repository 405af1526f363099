#pragma once
// Products of matrices of doubles: no library has them, and everything in f64 consists of them.
#include <cstdint>

namespace cutaway {

/// Doubles by strides, in elements.
struct DoubleMatrix {
    const double* data = nullptr;
    int64_t rowStride = 0, columnStride = 0;
};
/// c (m x n, rows cStride apart) += a (m x k, rows aStride apart) * b (k x n). Each sum grows term by term in the order
/// of k, each product rounded by itself: the bits depend neither on the processor nor on the count of threads.
void addDoubleProduct(int64_t m, int64_t n, int64_t k, const double* a, int64_t aStride, const DoubleMatrix& b,
                      double* c, int64_t cStride);

}  // namespace cutaway
