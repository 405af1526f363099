#pragma once
// Sizes that a graph finds in data (u0) stand in arguments as expressions, not as nodes: what follows is which node has
// to come before whom all the same.
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

struct FoundSize {
    const Node* finder;  // gives the number, or, where no node does, has it as a size of what it finds
    const Node* reader;  // has the number in an argument, but does not read the finder
};
/// In the order of the readers. Sizes of inputs are left out: they are there from the beginning.
std::vector<FoundSize> foundSizes(const Graph& graph);

}  // namespace cutaway
