#pragma once
// Values of calls for which tests ask for wrong numbers (support/fault_points.h).
#include "engine/ops/eval.h"
#include "engine/support/fault_points.h"

namespace cutaway {

/// With FaultEffect::Wrong each number x becomes 1 + 2 |x|, a bool its contrary, an integer 1 if it was 0, else 0, so
/// that indices stay inside of whatever has two rows. With Nan every floating number is NaN.
void spoilMemory(FaultEffect effect, Tensor& tensor);
/// The same in memory of its own where the op does not write to what it gives back.
void spoilValue(const Op& op, FaultEffect effect, TensorList& values);

}  // namespace cutaway
