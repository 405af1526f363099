#pragma once
// Helpers for reports about comparisons; Comparison and compare() themselves are in tensor.h.
#include <algorithm>
#include <array>

#include "engine/tensor/tensor.h"

namespace cutaway {

/// The 90th percentile of the magnitudes of the finite elements; 0 without any. One huge value does not move it.
double usualMagnitude(const Tensor& tensor);

/// Calls each(begin, count, values) for at most so many elements of a contiguous tensor at once, in order.
constexpr int64_t kBlockElements = 512;
template <class Compute, class Each>
void forEachBlock(const Tensor& tensor, int64_t begin, int64_t end, Each&& each) {
    std::array<Compute, kBlockElements> values;
    for (int64_t i = begin; i < end; i += kBlockElements) {
        const int64_t n = std::min(kBlockElements, end - i);
        loadElements(tensor.dtype(), static_cast<const std::byte*>(tensor.data()) + i * byteSize(tensor.dtype()), 1, n,
                     values.data());
        each(i, n, values.data());
    }
}
/// Elements that are NaN or infinite; 0 of integers and of None.
int64_t nonFiniteCount(const Tensor& tensor);
/// The same dtype, sizes and bytes, or None on both sides.
bool sameBits(const Tensor& a, const Tensor& b);

}  // namespace cutaway
