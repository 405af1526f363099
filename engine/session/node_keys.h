#pragma once
// Keys of nodes (cutaway/node_key.h) and the graphs that they are in, by path: "" for the module's own graph, else the
// names of bodies joined by "/".
#include <string>
#include <vector>

#include "cutaway/node_key.h"
#include "engine/ir/module.h"
#include "engine/text/print.h"

namespace cutaway {

/// "a/b" of a body inside a body.
std::string bodyPath(const std::string& outer, const std::string& name);

/// The number of a graph in NodeKeys: 0 for the module's own graph, of a body a hash of its path, never 0.
uint32_t graphNumber(const std::string& path);
inline NodeKey keyIn(const std::string& path, NodeId id) { return nodeKey(graphNumber(path), id); }

/// The graph that holds a node, its path, and the node's own id in it; a null graph if the module has none of that
/// number.
template <class M>
struct NodeLocation {
    M* module = nullptr;
    std::string path;
    NodeId id = NodeId::None;
};
NodeLocation<const Module> findGraph(const Module& module, NodeKey key);
NodeLocation<Module> findGraph(Module& module, NodeKey key);

/// The nodes that the lines of a text in short form define.
std::vector<NodeKey> lineKeys(const Module& module, const PrintedText& text);

}  // namespace cutaway
