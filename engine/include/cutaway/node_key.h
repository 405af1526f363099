#pragma once
// How a node is named outside of the engine.
#include "cutaway/types.h"

namespace cutaway {

/// A node of one of a module's graphs: the graph's number and the node's id in it. Graph 0 is the module's own; the
/// number of a subgraph (a branch of cond, the body of a loop) is the hash of its path, so it is the same in every run,
/// step and process. The same key at two steps is the same node.
enum class NodeKey : unsigned long long { None = ~0ull };

constexpr unsigned long long packed(NodeKey key) { return static_cast<unsigned long long>(key); }
constexpr NodeKey nodeKey(uint32_t graph, NodeId node) {
    return node == NodeId::None ? NodeKey::None
                                : static_cast<NodeKey>(static_cast<unsigned long long>(graph) << 32 | index(node));
}
constexpr uint32_t graphOf(NodeKey key) { return static_cast<uint32_t>(packed(key) >> 32); }
constexpr NodeId nodeOf(NodeKey key) { return static_cast<NodeId>(static_cast<uint32_t>(packed(key))); }

}  // namespace cutaway
