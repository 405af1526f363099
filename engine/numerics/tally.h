#pragma once
// What one pass over a value, its reference and the f64 run counts and sums.
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Whether orderOf() knows the dtype: floats of 16 bits and more.
bool hasOrder(DType dtype);
/// The value's place among all numbers of the dtype, so that neighbours differ by 1 (ulp). -0.0 is in the place of 0.0.
int64_t orderOf(DType dtype, double value);

/// Distances to the f64 run.
struct Distances {
    double squares = 0, most = 0;
};
struct Tally {
    int64_t nans = 0, infinities = 0;
    // Against the reference; two NaNs are alike. Errors are of what is finite on both sides.
    int64_t newNonFinite = 0, different = 0;
    double product = 0, left = 0, right = 0;  // sums, for the cosine
    double maxAbsolute = 0, maxRelative = 0;
    int64_t maxUlp = 0;  // of dtypes that have an order
    int64_t worst = -1;  // number, row by row; -1: nothing differs
    double worstValue = 0, worstReference = 0;
    // Against the f64 run, over what is finite on all three sides.
    Distances value, reference;
    double magnitudes = 0, largest = 0;  // of the f64 run: squares summed, and the most
    int64_t elements = 0;
};
/// Of tensors of the same sizes, both complex or neither. `exact`: what distances are taken from. `reference`, `exact`:
/// undefined for none. The same bits with any number of threads.
Tally tallyOf(const Tensor& value, const Tensor& reference, const Tensor& exact);

/// The same bytes under the same strides.
bool sameMemory(const Tensor& a, const Tensor& b);

}  // namespace cutaway
