#pragma once
// Functions that the standard library has for real numbers only, for complex ones as PyTorch's kernels compute them.
#include <cmath>
#include <complex>

#include "engine/ops/arithmetic.h"

namespace cutaway {

template <class T>
T exp2Of(T x) {
    if constexpr (kIsComplex<T>) return std::exp(x * static_cast<typename T::value_type>(0.6931471805599453));
    else return std::exp2(x);
}
template <class T>
T log2Of(T x) {
    if constexpr (kIsComplex<T>) return std::log(x) / static_cast<typename T::value_type>(0.6931471805599453);
    else return std::log2(x);
}
/// exp(x) - 1 without cancellation near 0.
template <class T>
T expm1Of(T x) {
    if constexpr (kIsComplex<T>) {
        const auto half = std::sin(x.imag() / 2);
        return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * half * half, std::exp(x.real()) * std::sin(x.imag())};
    } else {
        return std::expm1(x);
    }
}
/// log(1 + x) without cancellation near 0.
template <class T>
T log1pOf(T z) {
    if constexpr (kIsComplex<T>) {
        using Part = typename T::value_type;
        const Part x = z.real(), y = z.imag(), angle = std::atan2(y, x + 1);
        if (std::abs(z) >= Part(0.5)) return {std::log(std::hypot(x + 1, y)), angle};
        const Part r = x * (2 + x) + y * y;
        return {r == 0 ? x : std::log1p(r) / 2, angle};
    } else {
        return std::log1p(z);
    }
}
template <class T>
T sigmoidOf(T x) {
    return T(1) / (T(1) + std::exp(-x));
}

/// log(exp(a) + exp(b)) without overflow, from the one with the larger real part. Where both are infinitely small, the
/// angle of what is almost 0 is nobody's.
template <class T>
std::complex<T> logAddExpOf(std::complex<T> a, std::complex<T> b) {
    const T none = std::numeric_limits<T>::quiet_NaN();
    const auto missing = [](std::complex<T> x) { return std::isnan(x.real()) || std::isnan(x.imag()); };
    if (missing(a) || missing(b)) return {none, none};
    const auto low = b.real() < a.real() ? b : a, high = b.real() < a.real() ? a : b;
    if (std::isinf(low.real()) && low.real() == high.real())
        return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
    return high + log1pOf(std::exp(low - high));
}

}  // namespace cutaway
