#pragma once
// roi_align where the number of places that a region is sampled at is known only when its values are.
#include "engine/ir/op.h"
#include "engine/ops/build.h"
#include "engine/ops/eval.h"

namespace cutaway {

/// Errors: maps ("input") of other than 4 dims, regions ("rois") of other than 5 numbers, and dtypes without a kernel.
Result<void> checkRegions(const InferContext& c);
/// [regions, channels, pooled height, pooled width].
Result<ValueType> inferRoiAlign(const InferContext& c);
EvalResult evalRoiAlign(const EvalContext& c);
/// The gradient of the maps; none reaches the regions, as in torchvision.
void deriveRoiAlign(Derivation& d);

}  // namespace cutaway
