#pragma once
#include "engine/ir/module.h"

namespace cutaway {

/// A module that computes `value`, which depends on constants alone: the nodes that lead to it, from the program's own
/// constants on. Constants with recipes are written out, so that it holds no folded value.
std::shared_ptr<const Module> recipeGraph(const Module& module, const Node& value);

/// The call that computes the constant which a node reads; null for the program's own constants, and for calls.
const Node* recipeResult(const Module& module, const Node& constant);

}  // namespace cutaway
