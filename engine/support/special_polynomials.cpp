// Orthogonal polynomials of degree n at x, and the incomplete gamma functions, in double.
#include <cmath>
#include <limits>

#include "engine/support/special.h"

namespace cutaway {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// Beyond so many steps a recurrence has lost all its digits, and takes too long.
constexpr int64_t kMostSteps = 1 << 20;

/// The polynomial number n of p_0 = 1, p_1 = `first`, and p_k+1 = next(k, p_k, p_k-1). NaN for n above kMostSteps.
template <class Next>
double byRecurrence(int64_t n, double first, Next next) {
    if (n == 0) return 1;
    if (n > kMostSteps) return kNoValue;
    double before = 1, value = first;
    for (int64_t k = 1; k < n; ++k) {
        const double after = next(static_cast<double>(k), value, before);
        before = value;
        value = after;
        if (std::isnan(value)) break;
    }
    return value;
}
bool isEven(int64_t n) { return n % 2 == 0; }

}  // namespace

double chebyshev(Chebyshev kind, double x, int64_t n) {
    if (n < 0) return 0;
    const double degree = static_cast<double>(n), odd = 2 * degree + 1;
    const bool plus = x > 0, even = isEven(n);
    if (std::fabs(x) == 1) {
        switch (kind) {
            case Chebyshev::T: return plus || even ? 1 : -1;
            case Chebyshev::U: return plus || even ? degree + 1 : -(degree + 1);
            case Chebyshev::V: return plus ? 1 : even ? odd : -odd;
            case Chebyshev::W: return plus ? odd : even ? 1 : -1;
        }
    }
    if (n > 8 && std::fabs(x) < 1) {  // many steps of a recurrence would cost more digits, and time
        const double angle = std::acos(x);
        switch (kind) {
            case Chebyshev::T: return std::cos(degree * angle);
            case Chebyshev::U: return std::sin((degree + 1) * angle) / std::sin(angle);
            case Chebyshev::V: return std::cos((degree + 0.5) * angle) / std::cos(angle / 2);
            case Chebyshev::W: return std::sin((degree + 0.5) * angle) / std::sin(angle / 2);
        }
    }
    const double first = kind == Chebyshev::T   ? x
                         : kind == Chebyshev::U ? 2 * x
                         : kind == Chebyshev::V ? 2 * x - 1
                                                : 2 * x + 1;
    return byRecurrence(n, first, [x](double, double p, double before) { return 2 * x * p - before; });
}

double hermite(double x, int64_t n, bool probabilists, int64_t most) {
    if (n < 0) return 0;
    if (n > most) return kNoValue;
    if (probabilists) return byRecurrence(n, x, [x](double k, double p, double before) { return x * p - k * before; });
    return byRecurrence(n, 2 * x, [x](double k, double p, double before) { return 2 * x * p - 2 * k * before; });
}

double laguerre(double x, int64_t n) {
    if (n < 0) return 0;
    if (x == 0) return 1;
    return byRecurrence(
        n, 1 - x, [x](double k, double p, double before) { return ((2 * k + 1 - x) * p - k * before) / (k + 1); });
}

double legendre(double x, int64_t n) {
    if (n < 0) return 0;
    if (std::fabs(x) == 1) return x > 0 || isEven(n) ? 1 : -1;
    return byRecurrence(
        n, x, [x](double k, double p, double before) { return ((2 * k + 1) * x * p - k * before) / (k + 1); });
}

namespace {

/// x^a exp(-x) / gamma(a + 1)
double gammaTerm(double a, double x) {
    if (a < 20) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
    // By Stirling's series, so that large numbers do not cancel.
    const double away = (x - a) / a, z = 1 / (a * a);
    const double series = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
    const double exponent = std::fabs(away) < 0.5 ? std::log1p(away) - away : std::log(x / a) - away;
    return std::exp(a * exponent - series) / std::sqrt(6.28318530717958647692 * a);
}
/// The lower part as a sum of positive terms; for x below a + 1.
double lowerBySeries(double a, double x) {
    double term = 1, total = 1;
    for (double k = a + 1; term > total * 1e-17; ++k) total += term *= x / k;
    return total * gammaTerm(a, x);
}
/// The upper part as a continued fraction (Lentz); for x above a + 1.
double upperByFraction(double a, double x) {
    constexpr double kTiny = 1e-300;
    double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, value = d;
    for (int k = 1; k < 1000000; ++k) {
        const double numerator = -k * (k - a);
        b += 2;
        d = numerator * d + b;
        c = b + numerator / c;
        if (std::fabs(d) < kTiny) d = kTiny;
        if (std::fabs(c) < kTiny) c = kTiny;
        d = 1 / d;
        value *= d * c;
        if (std::fabs(d * c - 1) < 1e-16) break;
    }
    return value * gammaTerm(a, x) * a;
}

}  // namespace

double incompleteGamma(double a, double x, bool upper) {
    if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0) return kNoValue;
    const double none = upper ? 1 : 0;
    if (a == 0) return x > 0 ? 1 - none : kNoValue;
    if (x == 0) return none;
    if (std::isinf(a)) return std::isinf(x) ? kNoValue : none;
    if (std::isinf(x)) return 1 - none;
    const bool series = x < a + 1;
    const double part = series ? lowerBySeries(a, x) : upperByFraction(a, x);
    return series == upper ? 1 - part : part;
}

}  // namespace cutaway
