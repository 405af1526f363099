#pragma once
// Which node of one graph stands for which of another when ids say nothing: graphs of two files, of two runs, or
// PyTorch's beside ours. Nodes are paired by what they are (operator, literals, type), by what they are computed from
// and lead to, by what is paired around them, then by names where those tell something, and by order at last.
#include <vector>

#include "cutaway/certainty.h"
#include "engine/ir/graph.h"

namespace cutaway {

struct NodePair {
    NodeId before, after;
    Certainty certainty = Certainty::Unsure;
};
struct GraphMatch {
    std::vector<NodePair> pairs;                // in the order of `after`
    std::vector<NodeId> onlyBefore, onlyAfter;  // in their graphs' orders
};

/// `sameBelow`: ids below it mean the same node on both sides, as in two runs that began with one graph. Some
/// microseconds a node.
GraphMatch matchGraphs(const Graph& before, const Graph& after, uint32_t sameBelow = 0);

/// Whether a pair differs in nothing but names and the nodes that are read: same kind, operator, literals, dtype and
/// sizes. Strides count where both sides say them.
bool sameForMatching(const Node& a, const Node& b);

}  // namespace cutaway
