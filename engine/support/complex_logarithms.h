#pragma once
// Logarithms that the standard library lacks, most of them of complex numbers, as PyTorch's kernels compute them.
#include <cmath>
#include <complex>
#include <limits>

namespace cutaway {

/// log(1 + z) without cancellation near 0.
template <class T>
std::complex<T> complexLog1p(std::complex<T> z) {
    const T x = z.real(), y = z.imag(), angle = std::atan2(y, x + 1);
    if (std::abs(z) >= T(0.5)) return {std::log(std::hypot(x + 1, y)), angle};
    const T r = x * (2 + x) + y * y;
    return {r == 0 ? x : std::log1p(r) / 2, angle};
}
/// log(exp(a) + exp(b)) without overflow, computed from the operand with the larger real part. Where both real parts
/// are -inf the result is one of the operands: the angle of log(0) has no meaning.
template <class T>
std::complex<T> logAddExpOf(std::complex<T> a, std::complex<T> b) {
    const T none = std::numeric_limits<T>::quiet_NaN();
    const auto missing = [](std::complex<T> x) { return std::isnan(x.real()) || std::isnan(x.imag()); };
    if (missing(a) || missing(b)) return {none, none};
    const auto low = b.real() < a.real() ? b : a, high = b.real() < a.real() ? a : b;
    if (std::isinf(low.real()) && low.real() == high.real())
        return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
    return high + complexLog1p(std::exp(low - high));
}
inline double logAddExpOf(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    const double high = std::fmax(a, b), low = std::fmin(a, b);
    const bool alone = std::isinf(high) || low == -std::numeric_limits<double>::infinity();
    return alone ? high : high + std::log1p(std::exp(low - high));
}

}  // namespace cutaway
