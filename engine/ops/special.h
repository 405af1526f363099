#pragma once
// Special functions that <cmath> lacks, in double.

namespace cutaway {

/// The x with erf(x) = y; +-inf at +-1, NaN outside [-1, 1].
double inverseErf(double y);
/// Derivative of log(gamma(x)). -inf at +0, +inf at -0, NaN at the negative integers.
double digamma(double x);

}  // namespace cutaway
