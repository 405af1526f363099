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
/// exp(x^2) erfc(x), which neither vanishes nor overflows for positive x.
double scaledErfc(double x);
/// The x below which the normal distribution has the share p; +-inf at 0 and 1, NaN outside.
double inverseNormal(double p);
/// The modified Bessel function of the first kind of order 0 or 1; scaled: times exp(-|x|).
double modifiedBessel(int64_t order, double x, bool scaled);

}  // namespace cutaway
