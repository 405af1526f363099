#pragma once
// Ids for the nodes of subgraphs (bodies of cond and its kin). Every graph numbers its own nodes; whoever looks from
// outside sees those of a body shifted by a number that is the body's, by its path, for as long as the model is open.
// Threads may ask at once.
#include <mutex>
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "engine/text/print.h"

namespace cutaway {

class BodyIds {
  public:
    struct Inside {
        std::string path;  // "" for the main graph, else names joined by "/"
        NodeId id = NodeId::None;
    };
    /// None for bodies beyond the 254th and for None.
    NodeId shown(const std::string& path, NodeId id);
    Inside inside(NodeId shown) const;

    /// The graph that holds a node, and the node's own id in it; a null graph if this module has no such body.
    std::pair<const Module*, NodeId> find(const Module& module, NodeId shown) const;
    std::pair<Module*, NodeId> find(Module& module, NodeId shown) const;
    /// Turns the ids of a text in short form, which are those of its graphs, into shown ones.
    void show(const Module& module, PrintedText& text);

  private:
    mutable std::mutex m_mutex;
    std::vector<std::string> m_paths;
};

/// "a/b" of a body inside a body.
std::string bodyPath(const std::string& outer, const std::string& name);

}  // namespace cutaway
