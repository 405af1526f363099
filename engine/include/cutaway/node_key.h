#pragma once
// Nodes as those outside see them.
#include "cutaway/types.h"

namespace cutaway {

/// A node of one of a module's graphs: the graph's number and the node's id in it. Graph 0 is the module's own; a body
/// of cond and its kin has the hash of its path, so the number says the same in every run, step and process, whoever
/// asks first. The same key at two steps is the same node.
enum class NodeKey : unsigned long long { None = ~0ull };

constexpr unsigned long long packed(NodeKey key) { return static_cast<unsigned long long>(key); }
constexpr NodeKey nodeKey(uint32_t graph, NodeId node) {
    return node == NodeId::None ? NodeKey::None
                                : static_cast<NodeKey>(static_cast<unsigned long long>(graph) << 32 | index(node));
}
constexpr uint32_t graphOf(NodeKey key) { return static_cast<uint32_t>(packed(key) >> 32); }
constexpr NodeId nodeOf(NodeKey key) { return static_cast<NodeId>(static_cast<uint32_t>(packed(key))); }

}  // namespace cutaway
