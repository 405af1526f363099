#pragma once
// Sizes that a graph finds in data (u0) stand in arguments as expressions, not as nodes, so inputs and users do not
// show that a reader needs the node that finds the number. The pairs given here do.
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

struct FoundSize {
    const Node* finder;  // returns the number (item) or, where no node does, a tensor that has it as a size (nonzero)
    const Node* reader;  // has the number in an argument, but does not read the finder
};
/// In the order of the readers. Sizes of inputs are left out: they are there from the beginning.
std::vector<FoundSize> foundSizes(const Graph& graph);

}  // namespace cutaway
