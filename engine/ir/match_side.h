#pragma once
// One of two graphs that are matched: its nodes by number, with what of them has a meaning in the other graph.
#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

/// A number for what is the same in both graphs. Names and ids are not part of any.
using MatchKey = uint64_t;

/// What a node is by itself, from coarse to fine.
struct MatchKeys {
    MatchKey op, call, label;  // kind and operator; with its literals; with dtype and sizes, too
};
MatchKeys matchKeys(const Node& node);

struct MatchSide {
    struct Reader {
        int node;
        int slot;  // the place among its operands
    };
    explicit MatchSide(const Graph& graph);

    size_t size() const { return nodes.size(); }
    bool reads(int reader, int slot, int node) const {
        const std::vector<int>& read = operands[static_cast<size_t>(reader)];
        return slot < static_cast<int>(read.size()) && read[static_cast<size_t>(slot)] == node;
    }

    std::vector<const Node*> nodes;  // in order
    std::vector<std::vector<int>> operands;
    std::vector<std::vector<Reader>> readers;
    std::vector<MatchKey> op, call, label;  // as MatchKeys
    std::vector<MatchKey> from, to;         // with all that it is computed from; with all that it leads to
    std::vector<MatchKey> whole;            // both
    std::vector<MatchKey> near;             // with what is three steps away or less
    std::vector<bool> twin;                 // another of its nodes has the same past and the same future
    std::vector<bool> alikeNear;            // another of the same module has the same near it

  private:
    void addSurroundings();
};

}  // namespace cutaway
