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

}  // namespace cutaway
