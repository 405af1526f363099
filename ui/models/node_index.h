#pragma once
// The nodes of the graph on show by their ids. Made once for a graph and shared by all who ask about its nodes: a click
// in a graph of ten thousand neither walks nor copies their names.
#include <QHash>
#include <QString>
#include <memory>

#include "cutaway/session.h"

namespace cutaway::ui {

class NodeIndex {
  public:
    explicit NodeIndex(std::shared_ptr<const UnionGraph> graph);
    /// Null if the graph has no such node.
    const UnionGraph::Node* find(NodeKey id) const;
    /// Turns keys of the graph before into those that the union shows.
    void showBefore(std::vector<NodeKey>& keys) const;
    const std::shared_ptr<const UnionGraph>& graph() const { return m_graph; }

  private:
    std::shared_ptr<const UnionGraph> m_graph;
    QHash<quint64, qsizetype> m_places;
};

/// The node's name, or "%7" if nobody knows one.
QString nameIn(const std::shared_ptr<const NodeIndex>& nodes, NodeKey id);

}  // namespace cutaway::ui
