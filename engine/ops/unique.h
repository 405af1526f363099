#pragma once
// Kernels of ops whose result has as many elements as the values say: distinct elements, counts.
#include "engine/ops/eval.h"

namespace cutaway {

EvalResult evalUnique(const EvalContext& c);
EvalResult evalUniqueDim(const EvalContext& c);
EvalResult evalUniqueConsecutive(const EvalContext& c);
EvalResult evalBincount(const EvalContext& c);

}  // namespace cutaway
