#pragma once
// Which values take part in differentiation, known before the first derivative is built.
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// A placeholder whose gradient is wanted: its type says so, and is of floating dtype.
bool isDifferentiable(const Node& placeholder);

/// By node id: true for values through which a gradient may reach a differentiable placeholder. Integers and bools
/// never carry one; gradients stop at ops tagged NoGradient.
std::vector<bool> gradientFlow(const Module& module);

}  // namespace cutaway
