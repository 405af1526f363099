#pragma once
// What shares memory with what: through views, getitem, calls that write in place and operands that they give back. One
// analysis for passes and schedule.
#include <unordered_map>
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

/// The order that writes ask for: a call that writes to memory stays behind what reads or writes it before, and before
/// what reads or writes it later, in the order of the graph. Of calls on other memory it says nothing. A picture of the
/// graph at one moment. Inputs are taken to have memory of their own each.
class MemoryOrder {
  public:
    explicit MemoryOrder(const Graph& graph);
    /// What has to run before the node because of memory; empty for most. Nothing that the node reads as an operand is
    /// left out, and nothing is listed twice.
    const std::vector<const Node*>& before(const Node& node) const { return find(m_before, node); }
    const std::vector<const Node*>& after(const Node& node) const { return find(m_after, node); }

  private:
    using Edges = std::unordered_map<uint32_t, std::vector<const Node*>>;  // lookups only, never iterated
    static const std::vector<const Node*>& find(const Edges& edges, const Node& node);
    void add(const Node& first, const Node& then);
    Edges m_before, m_after;
};

/// Whether as_strided reads the value or a view of it: it counts from the beginning of the storage, whatever its
/// operand shows of it.
bool storageIsRead(const Node& node);

}  // namespace cutaway
