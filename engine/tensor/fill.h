#pragma once
// Stand-ins for tensors whose data a file does not hold: the same values for the same name and seed, on every machine.
#include <string_view>

#include "engine/tensor/tensor.h"

namespace cutaway {

/// Floats of two and more dims are normal, scaled by the square root of the elements per row, so that products keep
/// their size; others lie in [0.5, 1.5), which suits scales, variances and biases alike. Integers and bools are zero:
/// any other number might be a wrong index.
Tensor filledTensor(std::string_view name, uint64_t seed, DType dtype, Dims sizes);

}  // namespace cutaway
