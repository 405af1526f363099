#pragma once
#include <string>

#include "cutaway/request.h"
#include "engine/ir/module.h"

namespace cutaway {

/// Runs both graphs on the same random inputs (PRE-11) and says, in a sentence, whether the returned values agree and
/// whether the gradients of all inputs do. Settings as PyTorch's: precision 0.0001, absolute and relative;
/// num_iterations 1, each with inputs of its own, from seed 1337 on. Gradients that agree leave an optimizer with the
/// same parameters, so no step of one is taken. Never fails: what could not be compared is said too.
std::string numericCheck(const Module& before, const Module& after, const OptionalPass& settings);

}  // namespace cutaway
