// Bessel functions of real argument, in double, by the C library where it has them.
#include <cmath>
#include <limits>

#include "engine/support/special.h"

namespace cutaway {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kMissing = std::numeric_limits<double>::quiet_NaN(), kPi = 3.14159265358979323846;

/// exp(x) K_order(x) for x >= 1: the integral of exp(-x (cosh t - 1)) cosh(order t) over t > 0 by equal steps. The
/// integrand is analytic around the axis and falls off twice exponentially, so the error falls off exponentially with
/// the number of steps; they are as long as the bell of the integrand, whose width is 1 / sqrt(x), allows.
double scaledByIntegral(double order, double x) {
    const double step = std::fmin(0.25, 0.7 / std::sqrt(x));
    double total = 0.5;
    for (int i = 1;; ++i) {
        const double t = i * step, half = std::sinh(t / 2);
        const double term = std::exp(-2 * x * half * half) * std::cosh(order * t);
        total += term;
        if (term < total * 1e-18) return total * step;
    }
}
/// K_0 for 0 < x <= 1: -(log(x / 2) + gamma) I_0(x) and the sum of (x^2 / 4)^k / k!^2 (1 + 1/2 + ... + 1/k).
double zeroOrderBySeries(double x) {
    const double quarter = x * x / 4;
    double term = 1, harmonic = 0, total = 0;
    for (int k = 1; term > 1e-20; ++k) {
        term *= quarter / (static_cast<double>(k) * k);
        total += term * (harmonic += 1.0 / k);
    }
    return total - (std::log(x / 2) + 0.57721566490153286061) * modifiedBessel(0, x, false);
}

}  // namespace

double besselJ0(double x) { return ::j0(x); }
double besselJ1(double x) { return ::j1(x); }
double besselY0(double x) { return x < 0 ? kMissing : x == 0 ? -kInfinity : ::y0(x); }
double besselY1(double x) { return x < 0 ? kMissing : x == 0 ? -kInfinity : ::y1(x); }

double modifiedBesselK(int64_t order, double x, bool scaled) {
    if (std::isnan(x) || x < 0) return kMissing;
    if (x == 0) return kInfinity;
    if (x > 1) {
        const double value = std::isinf(x) ? 0 : scaledByIntegral(static_cast<double>(order), x);
        return scaled ? value : value * std::exp(-x);
    }
    double value = zeroOrderBySeries(x);
    // By the Wronskian: I_0 K_1 + I_1 K_0 = 1 / x.
    if (order == 1) value = (1 / x - modifiedBessel(1, x, false) * value) / modifiedBessel(0, x, false);
    return scaled ? value * std::exp(x) : value;
}

double sphericalBesselJ0(double x) {
    if (std::isinf(x)) return 0;
    return x == 0 ? 1 : std::sin(x) / x;
}

double airy(double x) {
    if (std::isnan(x) || std::isinf(x)) return kMissing;
    const double size = std::fabs(x);
    if (size < 2) {
        // Ai(0) f(x) + Ai'(0) g(x), both power series in x^3.
        const double cube = x * x * x;
        double f = 1, g = x, ofF = 1, ofG = x;
        for (int k = 1; k < 30; ++k) {
            f += ofF *= cube / ((3.0 * k - 1) * (3.0 * k));
            g += ofG *= cube / ((3.0 * k) * (3.0 * k + 1));
        }
        return 0.35502805388781723926 * f - 0.25881940379280679841 * g;
    }
    const double zeta = 2 * size * std::sqrt(size) / 3;
    if (x > 110) return 0;             // below all numbers
    if (zeta > 1e15) return kMissing;  // the angle has no digits left
    if (x > 0) return std::sqrt(size / 3) / kPi * scaledByIntegral(1.0 / 3, zeta) * std::exp(-zeta);
    return std::sqrt(size) / 2 * (std::cyl_bessel_j(1.0 / 3, zeta) - std::cyl_neumann(1.0 / 3, zeta) / std::sqrt(3.0));
}

}  // namespace cutaway
