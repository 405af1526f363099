#include "engine/partition/flow_network.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace cutaway {

std::string_view sentence(EdgeReason reason) {
    switch (reason) {
        case EdgeReason::None: return "";
        case EdgeReason::Input: return "it is an input, so it cannot be computed again";
        case EdgeReason::UserSaves: return "it is marked to be saved";
        case EdgeReason::NotRecomputable: return "its operator is not among those that are cheap to compute again";
        case EdgeReason::DrawsAnew: return "computed again it would draw other random numbers";
        case EdgeReason::ComputeIntensive: return "products, convolutions and attention are too costly to repeat";
        case EdgeReason::Custom: return "its operator comes from a library, so nothing is known of its cost";
        case EdgeReason::MaterializedBackward:
            return "a reader outside of the forward cannot be fused with it, so it has to be in memory anyway";
        case EdgeReason::FarFromBackward: return "the backward reads it too far away";
        case EdgeReason::Reduces: return "it is less than a quarter as large as what it is computed from";
        case EdgeReason::UsedFarApart: return "its readers are far apart, so it would be kept for long";
        case EdgeReason::LongChain: return "it ends a long chain of cheap operators";
        case EdgeReason::NotATensor: return "it is not a tensor, so it cannot be saved";
        case EdgeReason::ViewsAreComputed: return "views are always computed again (recompute_views)";
        case EdgeReason::NeedsTangent: return "it depends on a tangent, so the backward computes it";
        case EdgeReason::ReturnedGradient: return "the backward returns it";
        case EdgeReason::UserRecomputes: return "it is marked to be computed again";
    }
    return "";
}

namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct EdgeData {
    int64_t capacity = 0, residual = 0;
    Traits::edge_descriptor reverse;
};
struct VertexData {
    int color = 0, distance = 0;
    Traits::edge_descriptor predecessor;
};
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexData, EdgeData>;

/// Vertices: 2i is node i's `in`, 2i+1 its `out`, then source and sink.
class Cut {
  public:
    explicit Cut(const FlowNetwork& network)
        : m_network(network),
          m_facts(network.facts()),
          m_source(static_cast<int>(2 * m_facts.nodes.size())),
          m_sink(m_source + 1),
          m_next(static_cast<size_t>(m_sink) + 1),
          m_previous(static_cast<size_t>(m_sink) + 1) {
        for (int i = 0; i < nodeCount(); ++i) addEdges(i);
    }

    Result<std::vector<int>> solve() {
        CT_TRY_VOID(refuseUncuttable());
        pushFlow();
        const std::vector<bool> reachesSink = walk(m_sink, m_previous, [&](const Edge& edge) { return edge.residual; });
        std::vector<int> saved;
        for (int i = 0; i < nodeCount(); ++i)
            if (!m_network[i].ends && !reachesSink[static_cast<size_t>(2 * i)] &&
                reachesSink[static_cast<size_t>(2 * i + 1)])
                saved.push_back(i);
        return saved;
    }

  private:
    struct Edge {
        int from = 0, to = 0;
        int64_t capacity = 0, residual = 0;
        EdgeReason reason = EdgeReason::None;
    };

    int nodeCount() const { return static_cast<int>(m_facts.nodes.size()) - 1; }  // the output has no edges

    void addEdge(int from, int to, int64_t capacity, EdgeReason reason) {
        const int forward = static_cast<int>(m_edges.size());  // behind each edge stands the one that takes flow back
        m_edges.push_back({from, to, capacity, capacity, reason});
        m_edges.push_back({to, from, 0, 0, reason});
        m_next[static_cast<size_t>(from)].push_back(forward);
        m_next[static_cast<size_t>(to)].push_back(forward + 1);
        m_previous[static_cast<size_t>(to)].push_back(forward);
        m_previous[static_cast<size_t>(from)].push_back(forward + 1);
    }
    void addEdges(int node) {
        const FlowNetwork::NodeEdges& edges = m_network[node];
        const int in = 2 * node, out = in + 1;
        if (edges.source != EdgeReason::None) addEdge(m_source, in, FlowNetwork::kInfinite, edges.source);
        if (edges.sinkIn != EdgeReason::None) addEdge(in, m_sink, FlowNetwork::kInfinite, edges.sinkIn);
        if (edges.sinkOut != EdgeReason::None) addEdge(out, m_sink, FlowNetwork::kInfinite, edges.sinkOut);
        if (edges.ends) return;
        addEdge(in, out, edges.weight, edges.unsaved);
        for (const int user : m_facts[node].users)
            if (user < nodeCount()) addEdge(out, 2 * user, FlowNetwork::kInfinite, EdgeReason::None);
    }

    /// The vertices that can be reached from `start` along edges for which `open` gives more than 0. `edges`: m_next
    /// to walk forward, m_previous to walk backwards.
    template <class Open>
    std::vector<bool> walk(int start, const std::vector<std::vector<int>>& edges, Open&& open) const {
        const bool backwards = &edges == &m_previous;
        std::vector<bool> seen(m_next.size());
        std::vector<int> stack = {start};
        seen[static_cast<size_t>(start)] = true;
        while (!stack.empty()) {
            const int at = stack.back();
            stack.pop_back();
            for (const int number : edges[static_cast<size_t>(at)]) {
                const Edge& edge = m_edges[static_cast<size_t>(number)];
                const int to = backwards ? edge.from : edge.to;
                if (seen[static_cast<size_t>(to)] || open(edge) <= 0) continue;
                seen[static_cast<size_t>(to)] = true;
                stack.push_back(to);
            }
        }
        return seen;
    }

    /// Maximum flow over the vertices that lie between source and sink; others carry none.
    void pushFlow() {
        const auto capacity = [](const Edge& edge) { return edge.capacity; };
        const std::vector<bool> fed = walk(m_source, m_next, capacity), drained = walk(m_sink, m_previous, capacity);
        std::vector<int> vertex(m_next.size(), -1);
        int count = 0;
        for (size_t i = 0; i < vertex.size(); ++i)
            if (fed[i] && drained[i]) vertex[i] = count++;
        if (vertex[static_cast<size_t>(m_source)] < 0 || vertex[static_cast<size_t>(m_sink)] < 0) return;
        FlowGraph graph(static_cast<size_t>(count));
        std::vector<std::pair<int, Traits::edge_descriptor>> made;
        for (size_t number = 0; number < m_edges.size(); number += 2) {
            const Edge& edge = m_edges[number];
            const int from = vertex[static_cast<size_t>(edge.from)], to = vertex[static_cast<size_t>(edge.to)];
            if (from < 0 || to < 0 || edge.capacity == 0) continue;
            const auto forward = add_edge(static_cast<size_t>(from), static_cast<size_t>(to), graph).first;
            const auto back = add_edge(static_cast<size_t>(to), static_cast<size_t>(from), graph).first;
            graph[forward].capacity = edge.capacity;
            graph[forward].reverse = back;
            graph[back].reverse = forward;
            made.emplace_back(static_cast<int>(number), forward);
        }
        boost::boykov_kolmogorov_max_flow(
            graph, get(&EdgeData::capacity, graph), get(&EdgeData::residual, graph), get(&EdgeData::reverse, graph),
            get(&VertexData::predecessor, graph), get(&VertexData::color, graph), get(&VertexData::distance, graph),
            get(boost::vertex_index, graph), static_cast<size_t>(vertex[static_cast<size_t>(m_source)]),
            static_cast<size_t>(vertex[static_cast<size_t>(m_sink)]));
        for (const auto& [number, edge] : made) {
            m_edges[static_cast<size_t>(number)].residual = graph[edge].residual;
            m_edges[static_cast<size_t>(number) + 1].residual = graph[graph[edge].reverse].residual;
        }
    }

    /// Refuses a network with a path that nothing can cut; checked first, so that flows stay finite.
    Result<void> refuseUncuttable() const {
        std::vector<int> from(m_next.size(), -1);
        std::vector<int> queue = {m_source};
        for (size_t at = 0; at < queue.size(); ++at)
            for (const int number : m_next[static_cast<size_t>(queue[at])]) {
                const Edge& edge = m_edges[static_cast<size_t>(number)];
                if (edge.capacity < FlowNetwork::kInfinite || edge.to == m_source ||
                    from[static_cast<size_t>(edge.to)] >= 0)
                    continue;
                from[static_cast<size_t>(edge.to)] = number;
                if (edge.to == m_sink) return uncuttable(from);
                queue.push_back(edge.to);
            }
        return {};
    }

    Error uncuttable(const std::vector<int>& from) const {
        std::vector<std::string> notes;
        std::string where;
        for (int at = m_sink; at != m_source;) {
            const Edge& edge = m_edges[static_cast<size_t>(from[static_cast<size_t>(at)])];
            const int named = at == m_sink ? edge.from : at;
            where = m_facts[named / 2].node->name();
            if (edge.reason != EdgeReason::None) notes.push_back(where + ": " + std::string(sentence(edge.reason)));
            else notes.push_back(where + ": it reads " + m_facts[edge.from / 2].node->name());
            at = edge.from;
        }
        std::reverse(notes.begin(), notes.end());
        return Error{ErrorCode::Unsupported, "the backward needs a value that can be neither saved nor computed again",
                     where, std::move(notes)};
    }

    const FlowNetwork& m_network;
    const JointFacts& m_facts;
    int m_source, m_sink;
    std::vector<Edge> m_edges;
    std::vector<std::vector<int>> m_next, m_previous;  // edges that leave a vertex, and that lead to it
};

}  // namespace

Result<std::vector<int>> FlowNetwork::minimumCut() const { return Cut(*this).solve(); }

}  // namespace cutaway
