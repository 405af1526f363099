#pragma once
// An estimate of the memory that a run needs, made before it runs.
#include "engine/ir/module.h"

namespace cutaway {

/// Bytes of the values that interpret() holds at once, beside its inputs and the module's own tensors, as far as types
/// tell: sizes that depend on data count as nothing. A double, because the sizes of a file may multiply to any number.
double peakBytes(const Module& module);
/// Of what the graph takes, weights included, and of what it returns.
double inputBytes(const Module& module);
double outputBytes(const Module& module);

}  // namespace cutaway
