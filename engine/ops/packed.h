#pragma once
// Whole tensors as plain row-major arrays of a compute type, for kernels whose access pattern is not elementwise
// (products, windows, scatters). Layout and dtype are dealt with once at the border.
#include <vector>

#include "engine/ops/kernels.h"

namespace cutaway {

/// Every element in row-major order, converted to T (see kernels.h for which T serves which dtype).
template <class T>
std::vector<T> packElements(const Tensor& tensor) {
    std::vector<T> out(static_cast<size_t>(tensor.numel()));
    const StridedWalk<1> walk(tensor.sizes(), {tensor.strides()});
    T* next = out.data();
    walk.forEachRow([&](const std::array<int64_t, 1>& at) {
        const void* data = static_cast<const std::byte*>(tensor.data()) + at[0] * byteSize(tensor.dtype());
        loadElements(tensor.dtype(), data, walk.rowStride(0), walk.rowLength(), next);
        next += walk.rowLength();
    });
    return out;
}

/// The inverse: `elements` in row-major order into a tensor of any strides, rounded or wrapped to its dtype.
template <class T>
void unpackElements(const std::vector<T>& elements, Tensor& tensor) {
    const StridedWalk<1> walk(tensor.sizes(), {tensor.strides()});
    const T* next = elements.data();
    walk.forEachRow([&](const std::array<int64_t, 1>& at) {
        void* data = static_cast<std::byte*>(tensor.data()) + at[0] * byteSize(tensor.dtype());
        storeElements(tensor.dtype(), data, walk.rowStride(0), walk.rowLength(), next);
        next += walk.rowLength();
    });
}

/// Calls body(T{}) with the type in which sums over elements of `dtype` are kept: double for f32 and narrower floats
/// too, so that a reference does not depend on the order of its sum.
template <class Body>
void withAccumulator(DType dtype, Body&& body) {
    if (isComplex(dtype)) body(std::complex<double>{});
    else if (isFloating(dtype)) body(double{});
    else body(int64_t{});
}

}  // namespace cutaway
