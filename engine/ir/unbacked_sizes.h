#pragma once
// Sizes that a graph finds in data (u0) stand in arguments as expressions, not as nodes, so inputs and users do not
// show that a reader needs the node that finds the number. The pairs given here do.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

struct UnbackedSize {
    const Node* finder;  // returns the number (item) or, where no node does, a tensor that has it as a size (nonzero)
    const Node* reader;  // has the number in an argument, but does not read the finder
};
/// The symbol whose value a call returns as a number: the number itself (u0), or what a bool that is read from data
/// compares with 1 (u0 == 1). Empty: none.
std::string unbackedNumber(const Node& call);

/// Whether a recorded size says what a rule gives: equal, or a symbol of its own for a size that follows from data.
bool namesSize(const SymInt& recorded, const SymInt& inferred);

/// Sizes and numbers that PyTorch names anew though they follow from others: the u1 rows of x[:u0], with what they are.
/// In an order in which each follows from those of inputs, from found ones and from earlier ones.
std::vector<std::pair<std::string, Expr>> followingSizes(const Graph& graph);

/// The symbols whose values calls of this graph find in data, each time it runs. A graph around it may use the same
/// names.
std::set<std::string> ownSizes(const Graph& graph);

/// In the order of the readers. Sizes of inputs are left out: they are there from the beginning.
std::vector<UnbackedSize> foundSizes(const Graph& graph);

}  // namespace cutaway
