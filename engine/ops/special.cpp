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

}  // namespace cutaway
