#pragma once
#include <unordered_set>
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

/// Which nodes share memory: a view shares its operand's, everything else has its own. A picture of the graph at one
/// moment; nodes made later count as having memory of their own.
class StorageRoots {
  public:
    explicit StorageRoots(const Graph& graph);
    NodeId rootOf(const Node& node) const {
        return index(node.id()) < m_root.size() ? m_root[index(node.id())] : node.id();
    }
    /// Whether readers of `node` may read `source` instead: no output may come to share memory with an input or another
    /// output that it did not share before (spec: passes G-2, PST-5).
    bool mayReplace(const Node& node, const Node& source) const;
    /// Call after that replacement.
    void merge(const Node& node, const Node& source);
    bool isOutput(const Node& node) const { return m_outputs.contains(index(rootOf(node))); }
    bool isInput(const Node& node) const { return m_inputs.contains(index(rootOf(node))); }

  private:
    std::vector<NodeId> m_root;
    std::unordered_set<uint32_t> m_inputs, m_outputs;  // membership only, never iterated
};

/// The node whose memory this one shares, in the graph as it stands; itself if it has its own.
const Node& storageRoot(const Node& node);
/// The root and everything that shares its memory, operands first.
std::vector<const Node*> sharersOf(const Node& root);
/// StorageRoots::mayReplace of the graph as it stands, for one replacement: looks only at what shares memory with the
/// two.
bool mayReplace(const Node& node, const Node& source);

/// Whether as_strided reads the value or a view of it: it counts from the beginning of the storage, whatever its
/// operand shows of it.
bool storageIsRead(const Node& node);

}  // namespace cutaway
