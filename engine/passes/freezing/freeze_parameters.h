#pragma once
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Which inputs are parameters, buffers or constants of the program, by position. A graph that does not say so (FX text
/// as PyTorch's logs have it) has its parameters first and what is given for each run last; how many those are is
/// `given` if that is not negative, else guessed from how they are used.
std::vector<bool> parametersAmongInputs(const Module& module, int64_t given);

/// Makes parameters constants, other than those that the graph writes to or returns (spec: freezing §2.3).
Result<bool> replaceParametersWithConstants(Module& module, Rewriter& rewriter);

}  // namespace cutaway
