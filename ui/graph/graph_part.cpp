#include "ui/graph/graph_part.h"

#include <QHash>
#include <algorithm>

namespace cutaway::ui {
namespace {

/// Neighbours of the nodes of a graph, by their places in it.
class Neighbours {
  public:
    explicit Neighbours(const UnionGraph& graph) : m_inputs(graph.nodes.size()), m_users(graph.nodes.size()) {
        for (size_t i = 0; i < graph.nodes.size(); ++i) m_place.insert(packed(graph.nodes[i].info.id), i);
        for (const UnionGraph::Edge& edge : graph.edges) {
            const auto from = m_place.constFind(packed(edge.from)), to = m_place.constFind(packed(edge.to));
            if (from == m_place.constEnd() || to == m_place.constEnd()) continue;
            m_users[*from].push_back(*to);
            m_inputs[*to].push_back(*from);
        }
    }
    std::optional<size_t> find(NodeKey node) const {
        const auto found = m_place.constFind(packed(node));
        return found == m_place.constEnd() ? std::nullopt : std::optional(*found);
    }
    const std::vector<size_t>& inputs(size_t node) const { return m_inputs[node]; }
    /// What is reached from a node over at most so many edges, itself included.
    std::vector<bool> reached(size_t from, bool toInputs, bool toUsers, size_t hops) const {
        std::vector<bool> seen(m_inputs.size(), false);
        std::vector<size_t> front{from};
        seen[from] = true;
        for (size_t hop = 0; hop < hops && !front.empty(); ++hop) {
            std::vector<size_t> next;
            const auto take = [&](const std::vector<size_t>& nodes) {
                for (const size_t node : nodes) {
                    if (seen[node]) continue;
                    seen[node] = true;
                    next.push_back(node);
                }
            };
            for (const size_t node : front) {
                if (toInputs) take(m_inputs[node]);
                if (toUsers) take(m_users[node]);
            }
            front = std::move(next);
        }
        return seen;
    }
    /// What lies on paths from one to another; none where there are none.
    std::vector<bool> between(size_t from, size_t to) const {
        std::vector<bool> down = reached(from, false, true, m_inputs.size());
        if (!down[to]) return {};
        const std::vector<bool> up = reached(to, true, false, m_inputs.size());
        for (size_t i = 0; i < down.size(); ++i) down[i] = down[i] && up[i];
        return down;
    }

  private:
    QHash<quint64, size_t> m_place;
    std::vector<std::vector<size_t>> m_inputs, m_users;
};

}  // namespace

bool isStored(NodeRole role) {
    return role == NodeRole::Parameter || role == NodeRole::Buffer || role == NodeRole::Constant;
}

std::optional<UnionGraph> partOf(const UnionGraph& graph, const GraphPart& part) {
    const Neighbours neighbours(graph);
    const std::optional<size_t> node = neighbours.find(part.node), other = neighbours.find(part.other);
    const bool path = part.kind == GraphPart::Kind::Path;
    if (!node || (path && !other)) return std::nullopt;
    const size_t all = graph.nodes.size();
    std::vector<bool> in;
    switch (part.kind) {
        case GraphPart::Kind::Inputs: in = neighbours.reached(*node, true, false, all); break;
        case GraphPart::Kind::Users: in = neighbours.reached(*node, false, true, all); break;
        case GraphPart::Kind::Around: in = neighbours.reached(*node, true, true, static_cast<size_t>(part.hops)); break;
        case GraphPart::Kind::Path:
            in = neighbours.between(*node, *other);
            if (in.empty()) in = neighbours.between(*other, *node);
            break;
    }
    if (in.empty()) return std::nullopt;
    QSet<quint64> wanted;
    for (size_t i = 0; i < all; ++i) {
        if (!in[i]) continue;
        wanted.insert(packed(graph.nodes[i].info.id));
        for (const size_t input : neighbours.inputs(i))
            if (isStored(graph.nodes[input].info.role)) wanted.insert(packed(graph.nodes[input].info.id));
    }
    return onlyNodes(graph, wanted);
}

UnionGraph onlyNodes(const UnionGraph& graph, const QSet<quint64>& wanted) {
    const auto isIn = [&wanted](NodeKey id) { return wanted.contains(packed(id)); };
    UnionGraph out;
    for (const UnionGraph::Node& node : graph.nodes) {
        if (!isIn(node.info.id)) continue;
        out.nodes.push_back(node);
        out.added += node.change == Change::Added;
        out.removed += node.change == Change::Removed;
        out.edited += node.change == Change::Edited;
    }
    for (const UnionGraph::Edge& edge : graph.edges)
        if (isIn(edge.from) && isIn(edge.to)) out.edges.push_back(edge);
    return out;
}

}  // namespace cutaway::ui
