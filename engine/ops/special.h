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

}  // namespace cutaway
