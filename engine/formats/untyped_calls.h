#pragma once
#include "engine/ir/module.h"

namespace cutaway {

/// Finds types that a script leaves out and the text alone does not give: those of the inputs of graphs that
/// higher-order calls name, of what these graphs compute, of what the calls return, and of all behind them. Calls of
/// other forms stay as they are.
void typeUntypedCalls(Module& module);

}  // namespace cutaway
