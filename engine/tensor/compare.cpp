#include <cmath>

#include "engine/tensor/tensor.h"

namespace cutaway {

Tolerance defaultTolerance(DType dtype) {
    switch (dtype) {
        case DType::F16: return {1e-3, 1e-5};
        case DType::BF16: return {1.6e-2, 1e-5};
        case DType::F32: case DType::C64: return {1.3e-6, 1e-5};
        case DType::F64: case DType::C128: return {1e-7, 1e-7};
        default: return {0, 0};
    }
}

namespace {

void compareValue(double got, double want, int64_t position, Tolerance tolerance, Comparison& result) {
    if (std::isnan(got) && std::isnan(want)) return;
    if (std::isinf(got) || std::isinf(want) || std::isnan(got) || std::isnan(want)) {
        if (got == want) return;
        ++result.mismatches;
        result.within = false;
        if (result.worst < 0) result.worst = position;
        return;
    }
    const double error = std::abs(got - want);
    result.maxExpected = std::max(result.maxExpected, std::abs(want));
    if (error > result.maxAbsoluteError) {
        result.maxAbsoluteError = error;
        result.worst = position;
    }
    if (error > tolerance.absolute + tolerance.relative * std::abs(want)) {
        ++result.mismatches;
        result.within = false;
    }
}

}  // namespace

Comparison compare(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
    Comparison result;
    if (actual.dtype() != expected.dtype() || actual.sizes() != expected.sizes()) {
        result.sameType = result.within = false;
        if (actual.sizes() != expected.sizes()) return result;
    }
    const Tensor a = actual.contiguous(), b = expected.contiguous();
    const int64_t count = a.numel();
    if (isIntegral(a.dtype(), true) && isIntegral(b.dtype(), true)) {
        for (int64_t i = 0; i < count; ++i) {
            const int64_t got = toInt(a.item(i)), want = toInt(b.item(i));
            result.maxExpected = std::max(result.maxExpected, std::abs(static_cast<double>(want)));
            if (got == want) continue;
            ++result.mismatches;
            result.within = false;
            const double error = std::abs(static_cast<double>(got) - static_cast<double>(want));
            if (error >= result.maxAbsoluteError) {
                result.maxAbsoluteError = error;
                result.worst = i;
            }
        }
        return result;
    }
    std::array<std::complex<double>, 512> left, right;
    for (int64_t i = 0; i < count; i += 512) {
        const int64_t n = std::min<int64_t>(512, count - i);
        loadElements(a.dtype(), static_cast<const std::byte*>(a.data()) + i * byteSize(a.dtype()), 1, n, left.data());
        loadElements(b.dtype(), static_cast<const std::byte*>(b.data()) + i * byteSize(b.dtype()), 1, n, right.data());
        for (int64_t k = 0; k < n; ++k) {
            compareValue(left[k].real(), right[k].real(), i + k, tolerance, result);
            compareValue(left[k].imag(), right[k].imag(), i + k, tolerance, result);
        }
    }
    return result;
}

}  // namespace cutaway
