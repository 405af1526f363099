#pragma once
// Whole tensors as plain row-major arrays of a compute type, for kernels whose access pattern is not elementwise
// (products, windows, scatters). Layout and dtype are dealt with once at the border.
#include <vector>

#include "engine/ops/kernels.h"

namespace cutaway {

// Defined in kernels.cpp for the compute types.

/// Every element in row-major order, converted to T (see kernels.h for which T serves which dtype).
template <class T>
std::vector<T> packElements(const Tensor& tensor);
/// The inverse: `elements` in row-major order into a tensor of any strides, rounded or wrapped to its dtype.
template <class T>
void unpackElements(const std::vector<T>& elements, Tensor& tensor);

/// Calls body(T{}) with the type in which sums over elements of `dtype` are kept: double for f32 and narrower floats
/// too, so that a reference does not depend on the order of its sum.
template <class Body>
void withAccumulator(DType dtype, Body&& body) {
    if (isComplex(dtype)) body(std::complex<double>{});
    else if (isFloating(dtype)) body(double{});
    else body(int64_t{});
}

}  // namespace cutaway
