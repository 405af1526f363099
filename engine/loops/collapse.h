#pragma once
// Makes loop nests shallower: neighbouring loops that every address walks through as one become one.
#include "engine/loops/kernel.h"

namespace cutaway {

/// Merges outer loops, and the inner loops of stores and reductions. Leaves loops whose symbols are used as values.
void collapseLoops(Kernel& kernel);

}  // namespace cutaway
