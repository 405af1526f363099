#pragma once
// What of comparing (Comparison, compare: tensor.h) only reports need.
#include <algorithm>
#include <array>

#include "engine/tensor/tensor.h"

namespace cutaway {

/// The 90th percentile of the magnitudes of the finite elements; 0 without any. One huge value does not move it.
double usualMagnitude(const Tensor& tensor);

/// Calls each(begin, count, values) for some elements of a contiguous tensor after the other, in order.
template <class Compute, class Each>
void forEachBlock(const Tensor& tensor, int64_t begin, int64_t end, Each&& each) {
    constexpr int64_t kAtOnce = 512;
    std::array<Compute, kAtOnce> values;
    for (int64_t i = begin; i < end; i += kAtOnce) {
        const int64_t n = std::min(kAtOnce, end - i);
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
