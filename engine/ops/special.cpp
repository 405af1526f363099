#include "engine/ops/special.h"

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
    const double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
    return result + std::log(x) - 0.5 / x - series;
}

namespace {

/// Sum of 1/(q + k)^s over k >= 0, by Euler and Maclaurin; s > 1. Infinite at the poles q = 0, -1, ...; elsewhere below 0
/// only for whole s.
double hurwitzZeta(double s, double q) {
    if (q <= 0) {
        if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
        if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
    }
    double sum = 0;
    for (; q < 12; ++q) sum += std::pow(q, -s);
    sum += std::pow(q, 1 - s) / (s - 1) + 0.5 * std::pow(q, -s);
    // B_2j / (2j)!
    constexpr double kTerms[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0, 1.0 / 74724249600.0};
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

}  // namespace cutaway
