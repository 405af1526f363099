#include "ui/models/node_index.h"

namespace cutaway::ui {

NodeIndex::NodeIndex(std::shared_ptr<const UnionGraph> graph) : m_graph(std::move(graph)) {
    m_places.reserve(static_cast<qsizetype>(m_graph->nodes.size()));
    for (size_t i = 0; i < m_graph->nodes.size(); ++i)
        m_places.insert(packed(m_graph->nodes[i].info.id), static_cast<qsizetype>(i));
}

const UnionGraph::Node* NodeIndex::find(NodeKey id) const {
    const auto found = m_places.constFind(packed(id));
    return found == m_places.cend() ? nullptr : &m_graph->nodes[static_cast<size_t>(*found)];
}

void NodeIndex::showBefore(std::vector<NodeKey>& keys) const {
    QHash<quint64, NodeKey> shown;
    for (const UnionGraph::Node& node : m_graph->nodes)
        if (node.change != Change::Added && node.before != NodeKey::None)
            shown.insert(packed(node.before), node.info.id);
    for (NodeKey& key : keys) key = shown.value(packed(key), key);
}

QString nameIn(const std::shared_ptr<const NodeIndex>& nodes, NodeKey id) {
    const UnionGraph::Node* node = nodes ? nodes->find(id) : nullptr;
    return node ? QString::fromStdString(node->info.name) : QStringLiteral("%%1").arg(packed(id));
}

}  // namespace cutaway::ui
