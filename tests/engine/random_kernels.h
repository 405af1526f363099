#pragma once
// Random graphs of everything that kernels are made of: all elementwise operators, reductions over any dims, views,
// pads, concatenations, gathers, over mixed dtypes.
#include "tests/engine/lowering_harness.h"

namespace cutaway::testing {

/// The same graph for the same seed, judged. Some of its values are results. One that is computed by exact steps only
/// must have the judge's bits; what is computed from rounded functions, sums and halves stays small and smooth, so that
/// other roundings do not carry far.
///
/// `Undefined::LeftOut` makes none of what processors answer differently: integers of numbers that they do not hold,
/// and the sign of NaN (spec: cuda-numbers).
enum class Undefined : uint8_t { Included, LeftOut };
LoweringCase randomKernels(uint64_t seed, Undefined undefined = Undefined::Included);

}  // namespace cutaway::testing
