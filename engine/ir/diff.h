#pragma once
// What differs between two versions of a module, by node id; ids never change, so nothing is guessed. Subgraphs of the
// same name are compared with each other, and their nodes stand in the same lists.
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// At one place of `user`'s arguments another value is read.
struct RewiredEdge {
    NodeId user, before, after;
    bool operator==(const RewiredEdge&) const = default;
};

struct ModuleDiff {
    std::vector<NodeId> added;         // in the order of the newer graph
    std::vector<NodeId> removed;       // in the order of the older graph
    std::vector<NodeId> edited;        // same id; operator, arguments (by id) or type changed
    std::vector<NodeId> renamed;       // same id, another name
    std::vector<RewiredEdge> rewired;  // of edited nodes that still read as many values as before
    bool reordered = false;            // the nodes that both have stand in another order

    bool empty() const { return added.empty() && removed.empty() && edited.empty() && renamed.empty() && !reordered; }
};

/// Same kind, op, literals and type; which nodes are read does not count. What tells an edited node from one that was
/// merely rewired because a value it reads was replaced.
bool sameButForInputs(const Node& a, const Node& b);

/// Linear in the number of nodes and arguments.
ModuleDiff diff(const Module& before, const Module& after);

}  // namespace cutaway
