// What a difference comes to: counts, and the parts that hang together.
#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "cutaway/comparison.h"

namespace cutaway {
namespace {

/// Sets of nodes that grow together; the smallest number stands for its set.
class UnionFind {
  public:
    explicit UnionFind(size_t count) : m_of(count) { std::iota(m_of.begin(), m_of.end(), size_t{0}); }
    size_t of(size_t node) {
        while (m_of[node] != node) node = m_of[node] = m_of[m_of[node]];
        return node;
    }
    void join(size_t a, size_t b) {
        const size_t one = of(a), other = of(b);
        m_of[std::max(one, other)] = std::min(one, other);
    }

  private:
    std::vector<size_t> m_of;
};

}  // namespace

DiffReport reportOf(const UnionGraph& graph) {
    DiffReport out;
    out.added = graph.added;
    out.removed = graph.removed;
    out.edited = graph.edited;
    std::unordered_map<NodeKey, size_t> number;
    for (const UnionGraph::Node& node : graph.nodes) {
        number.emplace(node.info.id, number.size());
        const bool both = node.change == Change::Unchanged || node.change == Change::Edited;
        out.nodesBefore += node.change != Change::Added;
        out.nodesAfter += node.change != Change::Removed;
        out.sure += both && node.certainty == Certainty::Sure;
        out.likely += both && node.certainty == Certainty::Likely;
        out.unsure += both && node.certainty == Certainty::Unsure;
    }
    // A value that came for another, gone one is told by these two; between nodes that stay, it is the reader's news.
    std::vector<bool> rewired(graph.nodes.size());
    for (const UnionGraph::Edge& edge : graph.edges) {
        const UnionGraph::Node &from = graph.nodes[number.at(edge.from)], &to = graph.nodes[number.at(edge.to)];
        const auto stays = [](const UnionGraph::Node& node) {
            return node.change == Change::Unchanged || node.change == Change::Edited;
        };
        if (edge.change != Change::Unchanged && stays(from) && to.change == Change::Unchanged)
            rewired[number.at(edge.to)] = true;
    }
    out.rewired = static_cast<int>(std::count(rewired.begin(), rewired.end(), true));
    out.distance = out.added + out.removed + out.edited + out.rewired;

    UnionFind together(graph.nodes.size());
    const auto differs = [&](size_t node) { return graph.nodes[node].change != Change::Unchanged || rewired[node]; };
    for (const UnionGraph::Edge& edge : graph.edges)
        if (differs(number.at(edge.from)) && differs(number.at(edge.to)))
            together.join(number.at(edge.from), number.at(edge.to));
    std::map<size_t, DiffPart> parts;
    std::map<size_t, std::map<std::string, int>> modules;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        if (!differs(i)) continue;
        const UnionGraph::Node& node = graph.nodes[i];
        DiffPart& part = parts[together.of(i)];
        part.nodes.push_back(node.info.id);
        part.added += node.change == Change::Added;
        part.removed += node.change == Change::Removed;
        part.edited += node.change == Change::Edited;
        part.rewired += rewired[i];
        ++modules[together.of(i)][node.info.module];
    }
    for (auto& [first, part] : parts) {
        const auto& in = modules[first];
        part.module = std::max_element(in.begin(), in.end(), [](const auto& a, const auto& b) {
                          return a.second < b.second;
                      })->first;
        out.parts.push_back(std::move(part));
    }
    std::stable_sort(out.parts.begin(), out.parts.end(),
                     [](const DiffPart& a, const DiffPart& b) { return a.nodes.size() > b.nodes.size(); });
    return out;
}

}  // namespace cutaway
