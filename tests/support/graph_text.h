#pragma once
// Modules as short text for comparisons in tests: every node with its type and all arguments, nothing left out by
// taste. Not FX text: it shows what the graph holds, down to None and list brackets.
#include <string>

#include "engine/ir/module.h"

namespace cutaway::testing {

std::string argumentText(const Argument& argument);
/// One node per line: "%relu: f32[2] = aten.relu.default(%x)".
std::string graphText(const Module& module, const std::string& indent = {});

/// The graph as a listing whose nodes are named by position, for comparing graphs that name theirs differently: types,
/// and arguments with the defaults filled in. Renames the nodes.
std::string listing(Module& module);

/// Prints as FX text, parses and prints again. How the two texts differ, or the error; empty if they are equal.
std::string roundTripProblem(const Module& module);

}  // namespace cutaway::testing
