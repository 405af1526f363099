#pragma once
// The nodes of a graph, for a pass that erases some while it walks.
#include <vector>

#include "engine/ir/graph.h"

namespace cutaway {

/// The nodes as they stood in order at the beginning, less those that were erased before their turn; new ones are not
/// visited. `for (Node* node : LiveNodes(graph))`.
class LiveNodes {
  public:
    explicit LiveNodes(const Graph& graph) : m_graph(graph) {
        m_ids.reserve(graph.size());
        for (const Node& node : graph.nodes()) m_ids.push_back(node.id());
    }

    class Iterator {
      public:
        Iterator(const LiveNodes& list, size_t at) : m_list(list), m_at(at) { skipErased(); }
        Node* operator*() const { return m_list.m_graph.find(m_list.m_ids[m_at]); }
        Iterator& operator++() {
            ++m_at;
            skipErased();
            return *this;
        }
        bool operator!=(const Iterator& other) const { return m_at != other.m_at; }

      private:
        void skipErased() {
            while (m_at < m_list.m_ids.size() && !m_list.m_graph.find(m_list.m_ids[m_at])) ++m_at;
        }
        const LiveNodes& m_list;
        size_t m_at;
    };
    Iterator begin() const { return {*this, 0}; }
    Iterator end() const { return {*this, m_ids.size()}; }

  private:
    const Graph& m_graph;
    std::vector<NodeId> m_ids;
};

}  // namespace cutaway
