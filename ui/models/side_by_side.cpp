#include "ui/models/side_by_side.h"

#include <algorithm>
#include <map>
#include <set>

#include "ui/graph/graph_part.h"

namespace cutaway::ui {
namespace {

using Ends = std::pair<NodeKey, NodeKey>;

class Joiner {
  public:
    explicit Joiner(const UnionGraph& forward) {
        for (const UnionGraph::Node& node : forward.nodes) {
            m_at.emplace(node.info.id, m_out.graph.nodes.size());
            m_out.graph.nodes.push_back(node);
            m_out.graph.nodes.back().change = Change::Removed;
        }
        for (const UnionGraph::Edge& edge : forward.edges) m_edges[{edge.from, edge.to}] = Change::Removed;
    }
    SideBySide join(const UnionGraph& backward) {
        for (const UnionGraph::Node& node : backward.nodes) add(node);
        for (const UnionGraph::Edge& edge : backward.edges) {
            const Ends ends{m_out.shownKey(edge.from), m_out.shownKey(edge.to)};
            const auto [at, fresh] = m_edges.try_emplace(ends, Change::Added);
            if (!fresh) at->second = Change::Unchanged;
        }
        for (const auto& [ends, change] : m_edges) m_out.graph.edges.push_back({ends.first, ends.second, change});
        for (const UnionGraph::Node& node : m_out.graph.nodes) {
            m_out.graph.added += node.change == Change::Added;
            m_out.graph.removed += node.change == Change::Removed;
            m_out.graph.edited += node.change == Change::Edited;
        }
        return std::move(m_out);
    }

  private:
    /// The forward's node that is the same value; null if there is none. What it reads must be the same, too, and stand
    /// before it, so that the order stays topological.
    UnionGraph::Node* sameInForward(const UnionGraph::Node& node) {
        const auto found = m_at.find(node.info.id);
        if (found == m_at.end()) return nullptr;
        UnionGraph::Node& twin = m_out.graph.nodes[found->second];
        const bool precedes = std::all_of(node.info.inputs.begin(), node.info.inputs.end(), [&](NodeKey input) {
            const auto at = m_at.find(input);
            return m_shared.contains(input) && at != m_at.end() && at->second < found->second;
        });
        return twin.info.name == node.info.name && precedes ? &twin : nullptr;
    }
    void add(const UnionGraph::Node& node) {
        if (UnionGraph::Node* twin = sameInForward(node)) {
            m_shared.insert(node.info.id);
            twin->change = twin->info.op == node.info.op ? Change::Unchanged : Change::Edited;
            return;
        }
        UnionGraph::Node made = node;
        made.change = Change::Added;
        for (NodeKey& input : made.info.inputs) input = m_out.shownKey(input);
        if (m_at.contains(node.info.id)) {
            constexpr uint32_t kTwins = 0xb0000000;  // beside the numbers of the graphs
            uint32_t graph = kTwins;
            while (m_at.contains(nodeKey(graph, nodeOf(node.info.id)))) ++graph;
            made.info.id = nodeKey(graph, nodeOf(node.info.id));
            m_out.shown.insert(packed(node.info.id), made.info.id);
        }
        m_at.emplace(made.info.id, m_out.graph.nodes.size());
        m_out.graph.nodes.push_back(std::move(made));
    }

    SideBySide m_out;
    std::map<NodeKey, size_t> m_at;
    std::set<NodeKey> m_shared;
    std::map<Ends, Change> m_edges;
};

bool isIn(const std::string& module, const std::string& wanted) {
    return module == wanted || (module.starts_with(wanted) && module[wanted.size()] == '.');
}

}  // namespace

NodeKey SideBySide::backwardKey(NodeKey shownHere) const {
    for (auto at = shown.constBegin(); at != shown.constEnd(); ++at)
        if (at.value() == shownHere) return static_cast<NodeKey>(at.key());
    return shownHere;
}

SideBySide besideEachOther(const UnionGraph& forward, const UnionGraph& backward) {
    return Joiner(forward).join(backward);
}

std::vector<NodeSide> sidesOf(const UnionGraph& graph, const std::vector<NodeSide>& joint) {
    std::map<NodeKey, NodeSide> known;
    for (const NodeSide& one : joint) known.emplace(one.node, one);
    std::vector<NodeSide> out;
    for (const UnionGraph::Node& node : graph.nodes) {
        const auto found = known.find(node.info.id);
        if (node.change == Change::Removed) out.push_back({node.info.id, Side::Forward, false});
        else if (node.change == Change::Added) out.push_back({node.info.id, Side::Backward, false});
        else if (found != known.end()) out.push_back(found->second);
        else out.push_back({node.info.id, Side::Both, false});
    }
    return out;
}

std::vector<std::string> modulesOf(const UnionGraph& graph) {
    std::set<std::string> names;
    for (const UnionGraph::Node& node : graph.nodes)
        for (std::string name = node.info.module; !name.empty();) {
            if (!names.insert(name).second) break;
            const size_t dot = name.rfind('.');
            name.resize(dot == std::string::npos ? 0 : dot);
        }
    return {names.begin(), names.end()};
}

UnionGraph onlyModule(const UnionGraph& graph, const std::string& module) {
    std::set<NodeKey> inside;
    for (const UnionGraph::Node& node : graph.nodes)
        if (isIn(node.info.module, module)) inside.insert(node.info.id);
    QSet<quint64> wanted;
    for (const NodeKey id : inside) wanted.insert(packed(id));
    for (const UnionGraph::Edge& edge : graph.edges) {
        if (inside.contains(edge.to)) wanted.insert(packed(edge.from));
        if (inside.contains(edge.from)) wanted.insert(packed(edge.to));
    }
    for (const UnionGraph::Node& node : graph.nodes)
        if (node.info.role == NodeRole::Output) wanted.remove(packed(node.info.id));
    return onlyNodes(graph, wanted);
}

}  // namespace cutaway::ui
