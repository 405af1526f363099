#pragma once
// The units that overlap scheduling moves: single nodes, and runs of calls that become one kernel. A unit knows what it
// reads, what it costs and which memory it makes and uses.
#include <vector>

#include "engine/passes/post_grad/overlap_costs.h"

namespace cutaway {

struct OverlapUnit {
    /// In the order in which they are put into the graph. Empty for one result of a run of several results: PyTorch
    /// schedules the getitem that takes it as a unit of its own.
    std::vector<Node*> nodes;
    std::vector<size_t> inputs, users;  // units, each once
    std::optional<double> ms;           // none: inputs and outputs of the graph
    bool product = false;
    std::vector<size_t> made, read;  // storages, each once

    /// The only node, if it is a call; else null.
    const Node* call() const { return nodes.size() == 1 && nodes[0]->isCall() ? nodes[0] : nullptr; }
};
struct OverlapStorage {
    int64_t bytes = 0;   // 0 on the CPU, whose memory is not counted
    bool freed = true;   // freed after its last reader; parameters are not
    bool given = false;  // in memory from the beginning: an input or attribute
    std::vector<size_t> readers;
};

class OverlapUnits {
  public:
    /// `fuse`: whether calls that PyTorch would put into one kernel move together.
    OverlapUnits(const Graph& graph, const OverlapCosts& costs, bool fuse);

    const std::vector<OverlapUnit>& all() const { return m_units; }
    const std::vector<OverlapStorage>& storages() const { return m_storages; }
    /// Whether `earlier` is needed, directly or not, to compute `later`.
    bool needs(size_t later, size_t earlier) const {
        return m_needs[later * m_words + earlier / 64] >> (earlier % 64) & 1;
    }
    /// All that is needed, in the order of the graph.
    template <class Visit>
    void forEachNeeded(size_t unit, Visit&& visit) const {
        for (size_t earlier = 0; earlier < unit; ++earlier)
            if (needs(unit, earlier)) visit(earlier);
    }
    /// The unit of which this is the only node; none for nodes of a run of calls.
    std::optional<size_t> unitOf(const Node& node) const;

  private:
    struct Value {
        size_t unit = 0;
        std::vector<size_t> storages;  // one per tensor of a tuple
    };
    void addNode(Node& node);
    void addRun(const std::vector<Node*>& run);
    size_t addUnit(OverlapUnit unit, const std::vector<Node*>& reads);
    void setStorages(const Node& node);
    void make(size_t unit, const std::vector<const Node*>& results);
    void close();

    const OverlapCosts* m_costs;
    std::vector<OverlapUnit> m_units;
    std::vector<OverlapStorage> m_storages;
    std::vector<bool> m_seen;     // storages that a unit has made
    std::vector<Value> m_values;  // by node
    std::vector<uint64_t> m_needs;
    size_t m_words = 0;
};

/// Calls that PyTorch lowers into kernels of its own making, not into calls of a library.
bool isFusedByLowering(const Node& node);

}  // namespace cutaway
