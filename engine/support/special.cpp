#include "engine/support/special.h"

#include <cmath>
#include <limits>

namespace cutaway {

double inverseErf(double y) {
    if (std::isnan(y) || y < -1 || y > 1) return std::numeric_limits<double>::quiet_NaN();
    if (y == 1 || y == -1) return std::copysign(std::numeric_limits<double>::infinity(), y);
    // Winitzki's closed form is good to 2e-3; Newton on erf doubles the digits each round. In the tails erf(x) - y
    // cancels, so the residual is taken from erfc there.
    const double a = 0.147, log = std::log1p(-y * y), middle = 2 / (3.14159265358979323846 * a) + log / 2;
    double x = std::copysign(std::sqrt(std::sqrt(middle * middle - log / a) - middle), y);
    for (int i = 0; i < 4; ++i) {
        const double residual = std::fabs(y) < 0.5 ? std::erf(x) - y
                                : y > 0            ? (1 - y) - std::erfc(x)
                                                   : std::erfc(-x) - (1 + y);
        const double slope = 1.1283791670955126 * std::exp(-x * x);
        if (slope == 0) break;
        x -= residual / slope;
    }
    return x;
}

double digamma(double x) {
    if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
    if (x < 0) {
        if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
        // Reflection: psi(1 - x) - psi(x) = pi / tan(pi x).
        const double fraction = x - std::floor(x), pi = 3.14159265358979323846;
        return digamma(1 - x) - pi / std::tan(pi * fraction);
    }
    double result = 0;
    for (; x < 10; ++x) result -= 1 / x;  // psi(x) = psi(x + 1) - 1/x until the asymptotic series holds
    const double z = 1 / (x * x);
    const double series =
        z * (1.0 / 12 -
             z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
    return result + std::log(x) - 0.5 / x - series;
}

namespace {

/// Sum of 1/(q + k)^s over k >= 0, by Euler and Maclaurin; s > 1. Infinite at the poles q = 0, -1, ...; elsewhere below
/// 0 only for whole s.
double hurwitzZeta(double s, double q) {
    if (q <= 0) {
        if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
        if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
    }
    double sum = 0;
    for (; q < 12; ++q) sum += std::pow(q, -s);
    sum += std::pow(q, 1 - s) / (s - 1) + 0.5 * std::pow(q, -s);
    // B_2j / (2j)!
    constexpr double kTerms[] = {1.0 / 12,           -1.0 / 720,     1.0 / 30240,
                                 -1.0 / 1209600,     1.0 / 47900160, -691.0 / 1307674368000.0,
                                 1.0 / 74724249600.0};
    double rising = s, power = std::pow(q, -s - 1);
    for (int j = 0; j < 7; ++j) {
        sum += kTerms[j] * rising * power;
        rising *= (s + 2 * j + 1) * (s + 2 * j + 2);
        power /= q * q;
    }
    return sum;
}

}  // namespace

double polygamma(int64_t n, double x) {
    if (n == 0) return digamma(x);
    const double s = static_cast<double>(n) + 1;
    return (n % 2 == 0 ? -1 : 1) * std::tgamma(s) * hurwitzZeta(s, x);
}

double zeta(double s, double q) {
    if (s == 1) return std::numeric_limits<double>::infinity();
    return s > 1 ? hurwitzZeta(s, q) : std::numeric_limits<double>::quiet_NaN();
}

double scaledErfc(double x) {
    if (x < 20) return std::exp(x * x) * std::erfc(x);
    // The asymptotic series 1/(x sqrt(pi)) (1 - 1/(2x^2) + 3/(2x^2)^2 - ...); its terms shrink until number x^2.
    const double z = -0.5 / (x * x);
    double term = 1, total = 1;
    for (int k = 1; k < 12; ++k) total += term *= z * (2 * k - 1);
    return 0.5641895835477563 / x * total;
}

double inverseNormal(double p) {
    if (std::isnan(p) || p < 0 || p > 1) return std::numeric_limits<double>::quiet_NaN();
    if (p == 0 || p == 1) return std::copysign(std::numeric_limits<double>::infinity(), p - 0.5);
    if (p > 0.5) return p < 0.9 ? 1.4142135623730951 * inverseErf(2 * p - 1) : -inverseNormal(1 - p);
    if (p > 0.1) return 1.4142135623730951 * inverseErf(2 * p - 1);
    // In the tail by Newton's method on the logarithm of the distribution, which is concave: it does not overshoot.
    double x = -std::sqrt(-2 * std::log(p));
    for (int i = 0; i < 20; ++i) {
        const double scaled = scaledErfc(-x * 0.7071067811865476) / 2;  // the distribution is exp(-x^2 / 2) times that
        const double step = (std::log(scaled) - x * x / 2 - std::log(p)) * scaled * 2.5066282746310002;
        x -= step;
        if (std::fabs(step) <= 1e-15 * std::fabs(x)) break;
    }
    return x;
}

double modifiedBessel(int64_t order, double x, bool scaled) {
    const double size = std::fabs(x), sign = order % 2 != 0 && x < 0 ? -1 : 1;
    if (std::isinf(size)) return scaled ? sign * 0.0 : sign * size;
    if (size < 30) {  // all terms are positive
        const double quarter = size * size / 4;
        double term = order == 0 ? 1 : size / 2, total = term;
        for (int64_t k = 1; term > total * 1e-18; ++k) total += term *= quarter / static_cast<double>(k * (k + order));
        return sign * (scaled ? total * std::exp(-size) : total);
    }
    const double square = 4.0 * static_cast<double>(order * order);
    double term = 1, total = 1;
    for (int k = 1; k < 20; ++k) {
        const double odd = 2 * k - 1;
        total += term *= -(square - odd * odd) / (8 * k * size);
    }
    total /= std::sqrt(6.283185307179586 * size);
    if (scaled) return sign * total;
    const double half = std::exp(size / 2);  // in two steps: exp overflows before the function does
    return sign * (total * half * half);
}

}  // namespace cutaway
