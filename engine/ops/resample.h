#pragma once
#include "engine/expr/expr.h"

namespace cutaway {

/// How many elements a scale makes of `in`. What is neither a whole multiple nor a whole part is computed in floats, as
/// PyTorch does.
SymInt scaledSize(const SymInt& in, double scale);

}  // namespace cutaway
