#pragma once
// What is said of a match that failed: what the rule asks for, what stands in the graph, and a refusal with both put
// in.
#include <span>
#include <string>
#include <string_view>

#include "engine/rewrite/pattern.h"

namespace cutaway {

/// "aten.relu.default or aten.tanh.default": the operators that a call of the pattern may be.
std::string namesOf(const PatternCall& call);
/// A value of the graph and the operator that it comes from.
std::string describe(const Argument& value);
/// The input that keeps a call from being matched because its type is not known, or null.
const Node* inputOfUnknownType(const Node& node);
/// "{x}" becomes what x stands for, "{x:type}" its type; `bound` by slot, null where nothing is found yet.
std::string filledIn(std::string_view sentence, const Pattern& pattern, std::span<const Argument* const> bound);

}  // namespace cutaway
