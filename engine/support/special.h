#pragma once
// Special functions that <cmath> lacks, in double.
#include <cstdint>

namespace cutaway {

/// The x with erf(x) = y; +-inf at +-1, NaN outside [-1, 1].
double inverseErf(double y);
/// Derivative of log(gamma(x)). -inf at +0, +inf at -0, NaN at the negative integers.
double digamma(double x);
/// The n-th derivative of digamma, n >= 0.
double polygamma(int64_t n, double x);
/// Sum of 1/(q + k)^s over k >= 0: inf for s = 1 and at q = 0, -1, ...; NaN for s < 1, and for q < 0 unless s is whole.
double zeta(double s, double q);
/// exp(x^2) erfc(x), which neither vanishes nor overflows for positive x.
double scaledErfc(double x);
/// The x below which the normal distribution has the share p; +-inf at 0 and 1, NaN outside.
double inverseNormal(double p);
/// The modified Bessel function of the first kind of order 0 or 1; scaled: times exp(-|x|).
double modifiedBessel(int64_t order, double x, bool scaled);
/// Bessel functions of the first and second kind. Of the second: -inf at 0, NaN below.
double besselJ0(double x);
double besselJ1(double x);
double besselY0(double x);
double besselY1(double x);
/// The modified Bessel function of the second kind of order 0 or 1; scaled: times exp(x). inf at 0, NaN below.
double modifiedBesselK(int64_t order, double x, bool scaled);
/// sin(x) / x
double sphericalBesselJ0(double x);
/// The Airy function Ai; NaN at both infinities, as PyTorch has it.
double airy(double x);

/// Chebyshev's polynomials of the first to the fourth kind; 0 for a negative degree, as those that follow.
enum class Chebyshev : uint8_t { T, U, V, W };
double chebyshev(Chebyshev kind, double x, int64_t n);
/// Hermite polynomials of physicists (leading coefficient 2^n) or of probabilists (1); NaN for degrees above `most`.
double hermite(double x, int64_t n, bool probabilists, int64_t most);
double laguerre(double x, int64_t n);
double legendre(double x, int64_t n);
/// The regularized incomplete gamma function P(a, x), or Q(a, x) if `upper`. NaN where a or x is negative.
double incompleteGamma(double a, double x, bool upper);

}  // namespace cutaway
