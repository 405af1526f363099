#pragma once
// Which values share memory, through views, getitem, calls that write in place and operands that these return. One
// analysis for passes and schedule.
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

/// Which nodes share memory: a view shares its operand's, everything else has its own. Computed once: nodes made later
/// count as having memory of their own.
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

/// The operand whose memory the call's value shares: a view's, or the one that a call in place gives back; null for
/// values with memory of their own.
const Node* sharedOperand(const Node& node);
/// A conjugate or a negation that PyTorch computes when it is read: here fresh elements, but what is written to it
/// reaches its operand.
bool isLazyView(const Node& node);
/// A reshape whose operand's strides allow it without a copy.
bool isSharingReshape(const Node& node);
/// The node whose memory this one shares, in the graph as it stands; itself if it has its own.
const Node& storageRoot(const Node& node);
/// The root and everything that shares its memory, operands first.
std::vector<const Node*> sharersOf(const Node& root);
/// StorageRoots::mayReplace on the graph as it stands, for a single replacement: looks only at what shares memory with
/// the two nodes.
bool mayReplace(const Node& node, const Node& source);

/// Whether a call changes values that it is given, as its schema says, or as batch norms in training do unsaid.
bool writesOperands(const Node& node);
/// Values that the call writes to: lists item by item.
std::vector<const Node*> writtenOperands(const Node& node);
/// Several elements are one place in memory (a stride of 0): which of the values written there stays?
bool isExpanded(const TensorType& type);
/// By id, whether a node shares memory with one that some call of the graph writes to.
std::vector<bool> writtenNodes(const Graph& graph);

/// The order that writes require: a call that writes to memory stays after the calls that read or write this memory
/// before it, and before those that do so later, in the order of the graph. Calls on other memory are free. So is what
/// has a size in an argument, but for the call that finds it in data. Computed once; inputs have memory of their own.
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

/// Whether as_strided reads the value or a view of it, since as_strided counts from the beginning of the storage, not
/// of its operand.
bool storageIsRead(const Node& node);

}  // namespace cutaway
