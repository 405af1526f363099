#pragma once
// A part of a graph that somebody wants to see alone. It is told by its nodes, so that it holds for other steps, too.
#include <QSet>
#include <optional>

#include "cutaway/snapshot.h"

namespace cutaway::ui {

struct GraphPart {
    enum class Kind : uint8_t {
        Inputs,  // what a node is made of
        Users,   // what is made of it
        Path,    // what lies between it and another
        Around,  // what is so few edges away
    };
    static constexpr int kMostHops = 9;

    Kind kind = Kind::Around;
    NodeKey node = NodeKey::None;
    NodeKey other = NodeKey::None;  // of a path, which may lead either way
    int hops = 1;

    bool operator==(const GraphPart&) const = default;
};

/// With the weights that its calls read. None if the graph does not have the nodes, or no path between them.
std::optional<UnionGraph> partOf(const UnionGraph& graph, const GraphPart& part);

/// Whether the model holds the value.
bool isStored(NodeRole role);
/// These nodes with the edges between them.
UnionGraph onlyNodes(const UnionGraph& graph, const QSet<quint64>& wanted);

}  // namespace cutaway::ui
