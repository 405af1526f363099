#pragma once
// What of comparing (Comparison, compare: tensor.h) only reports need.
#include "engine/tensor/tensor.h"

namespace cutaway {

/// The 90th percentile of the magnitudes of the finite elements; 0 without any. One huge value does not move it.
double usualMagnitude(const Tensor& tensor);

}  // namespace cutaway
