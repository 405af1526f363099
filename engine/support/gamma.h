#pragma once
// Numbers of the gamma distribution of shape a and scale 1, and how they move with the shape. Exported programs carry
// this file.
#include <algorithm>
#include <cmath>
#include <random>
#include <span>

namespace cutaway {

/// A number drawn with these bits; at least the smallest normal one, since logarithms of draws are taken.
template <class Bits>
double standardGamma(double shape, double least, Bits& bits) {
    if (shape == 0) return 0;
    return std::max(least, std::gamma_distribution<double>(shape)(bits));
}

/// The derivative of the logarithm of the gamma function, x > 0: the recurrence up to 10, then the asymptotic series.
inline double digammaOf(double x) {
    double sum = 0;
    for (; x < 10; x += 1) sum -= 1 / x;
    const double q = 1 / (x * x);
    return sum + std::log(x) - 0.5 / x -
           q * (1.0 / 12 - q * (1.0 / 120 - q * (1.0 / 252 - q * (1.0 / 240 - q * (1.0 / 132)))));
}

/// dx/da of a number x of shape a whose place in the distribution stays, -(dP/da)/(dP/dx) of the regularized incomplete
/// gamma function P(a, x). Its series is summed term by term, x^(a+n) exp(-x) / gamma(a+n+1), of which each is
/// differentiated by a; where that has too many terms, Wilson and Hilferty's cube stands for the distribution.
inline double gammaByShape(double shape, double x) {
    constexpr double kMostSummed = 1e5;
    if (!(shape > 0) || !(x >= 0) || std::isinf(x) || std::isinf(shape)) return std::nan("");
    if (x == 0) return 0;
    if (shape > kMostSummed) {
        const double root = std::cbrt(x / shape), z = (root - 1) * 3 * std::sqrt(shape) + 1 / (3 * std::sqrt(shape));
        const double by = 1 / (9 * shape * shape) - z / (6 * shape * std::sqrt(shape));
        return x / shape + 3 * shape * root * root * by;
    }
    const double logarithm = std::log(x);
    // The first term by its logarithm: exp(-x) alone may be nothing.
    double term = std::exp(shape * logarithm - x - std::lgamma(shape + 1)), psi = digammaOf(shape + 1), sum = 0;
    if (term == 0 && x > shape) return x / shape;  // so far out that nobody draws it
    const double density = term * shape / x;
    if (density == 0) return x / shape;
    for (double n = 1;; n += 1) {
        const double part = term * (logarithm - psi);
        sum += part;
        if (shape + n > x && std::abs(part) <= 1e-17 * std::abs(sum)) break;
        if (n > 40 * kMostSummed) break;
        term *= x / (shape + n);
        psi += 1 / (shape + n);
        if (term == 0) break;
    }
    return -sum / density;
}

/// A row of gammas as shares of their sum.
inline void shareRow(std::span<double> row) {
    double sum = 0;
    for (const double one : row) sum += one;
    for (double& one : row) one /= sum;
}

}  // namespace cutaway
