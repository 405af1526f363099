#include "engine/tensor/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cutaway {

Tolerance defaultTolerance(DType dtype) {
    switch (dtype) {
        case DType::F16: return {1e-3, 1e-5};
        case DType::BF16: return {1.6e-2, 1e-5};
        case DType::F32:
        case DType::C64: return {1.3e-6, 1e-5};
        case DType::F64:
        case DType::C128: return {1e-7, 1e-7};
        default: return {0, 0};
    }
}

namespace {

/// Collects what differs, and remembers the element that is furthest out.
class Comparing {
  public:
    Comparing(Tolerance tolerance, Comparison& result) : m_tolerance(tolerance), m_result(result) {}

    void value(double got, double want, int64_t position) {
        if (std::isnan(got) && std::isnan(want)) return;
        if (!std::isfinite(got) || !std::isfinite(want)) {
            if (got != want) outside(std::numeric_limits<double>::infinity(), position);
            return;
        }
        const double error = std::abs(got - want),
                     allowed = m_tolerance.absolute + m_tolerance.relative * std::abs(want);
        m_result.maxExpected = std::max(m_result.maxExpected, std::abs(want));
        m_result.maxAbsoluteError = std::max(m_result.maxAbsoluteError, error);
        if (error > allowed) outside(allowed > 0 ? error / allowed : error, position);
        else if (allowed > 0) furthest(error / allowed, position);
    }
    void integer(int64_t got, int64_t want, int64_t position) {
        m_result.maxExpected = std::max(m_result.maxExpected, std::abs(static_cast<double>(want)));
        if (got == want) return;
        const double error = std::abs(static_cast<double>(got) - static_cast<double>(want));
        m_result.maxAbsoluteError = std::max(m_result.maxAbsoluteError, error);
        outside(error, position);
    }

  private:
    void outside(double by, int64_t position) {
        // Real and imaginary part are one element.
        if (m_lastOutside != position) ++m_result.mismatches;
        m_lastOutside = position;
        m_result.within = false;
        furthest(by, position);
    }
    void furthest(double by, int64_t position) {
        if (!(by > m_furthest)) return;
        m_furthest = by;
        m_result.worst = position;
    }

    Tolerance m_tolerance;
    Comparison& m_result;
    double m_furthest = 0;
    int64_t m_lastOutside = -1;
};

constexpr int64_t kAtOnce = 512;

/// The elements of a contiguous tensor, some at a time.
template <class Each>
void forEachBlock(const Tensor& tensor, Each&& each) {
    std::array<std::complex<double>, kAtOnce> values;
    const int64_t count = tensor.numel();
    for (int64_t i = 0; i < count; i += kAtOnce) {
        const int64_t n = std::min(kAtOnce, count - i);
        loadElements(tensor.dtype(), static_cast<const std::byte*>(tensor.data()) + i * byteSize(tensor.dtype()), 1, n,
                     values.data());
        each(i, n, values);
    }
}

}  // namespace

double usualMagnitude(const Tensor& tensor) {
    std::vector<float> magnitudes;
    forEachBlock(tensor.contiguous(), [&](int64_t, int64_t n, const auto& values) {
        for (int64_t k = 0; k < n; ++k)
            if (const double size = std::abs(values[static_cast<size_t>(k)]); std::isfinite(size))
                magnitudes.push_back(
                    static_cast<float>(std::min(size, static_cast<double>(std::numeric_limits<float>::max()))));
    });
    if (magnitudes.empty()) return 0;
    // Rounded down, so that of two values or more the largest alone never decides.
    const auto place = magnitudes.begin() + static_cast<std::ptrdiff_t>((magnitudes.size() - 1) * 9 / 10);
    std::nth_element(magnitudes.begin(), place, magnitudes.end());
    return static_cast<double>(*place);
}

Comparison compare(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
    Comparison result;
    if (actual.dtype() != expected.dtype() || actual.sizes() != expected.sizes()) {
        result.sameType = result.within = false;
        if (actual.sizes() != expected.sizes()) return result;
    }
    const Tensor a = actual.contiguous(), b = expected.contiguous();
    Comparing comparing(tolerance, result);
    if (isIntegral(a.dtype(), true) && isIntegral(b.dtype(), true)) {
        for (int64_t i = 0; i < a.numel(); ++i) comparing.integer(toInt(a.item(i)), toInt(b.item(i)), i);
        return result;
    }
    forEachBlock(a, [&](int64_t begin, int64_t n, const auto& left) {
        std::array<std::complex<double>, kAtOnce> right;
        loadElements(b.dtype(), static_cast<const std::byte*>(b.data()) + begin * byteSize(b.dtype()), 1, n,
                     right.data());
        for (int64_t k = 0; k < n; ++k) {
            const auto got = left[static_cast<size_t>(k)], want = right[static_cast<size_t>(k)];
            comparing.value(got.real(), want.real(), begin + k);
            comparing.value(got.imag(), want.imag(), begin + k);
        }
    });
    return result;
}

}  // namespace cutaway
