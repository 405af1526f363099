// Two graphs merged into one, for pictures and lists of differences.
#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "engine/ir/diff.h"
#include "engine/ir/match.h"
#include "engine/schedule/decisions.h"
#include "engine/session/describe.h"

namespace cutaway {
namespace {

/// Orders the union topologically for both sides, close to the order of `after`, removed nodes where they stood.
std::vector<size_t> unionOrder(const std::vector<double>& wish, const std::vector<std::pair<size_t, size_t>>& edges) {
    std::vector<size_t> byWish(wish.size()), rank(wish.size()), first(wish.size() + 1), next(edges.size());
    std::iota(byWish.begin(), byWish.end(), size_t{0});
    std::stable_sort(byWish.begin(), byWish.end(), [&](size_t a, size_t b) { return wish[a] < wish[b]; });
    for (size_t i = 0; i < byWish.size(); ++i) rank[byWish[i]] = i;
    std::vector<int> waiting(wish.size(), 0);
    for (const auto& [from, to] : edges) {
        ++first[from + 1];
        ++waiting[to];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<size_t> end(first.begin(), first.end() - 1);
    for (const auto& [from, to] : edges) next[end[from]++] = to;
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;  // ranks
    for (size_t i = 0; i < wish.size(); ++i)
        if (waiting[i] == 0) ready.push(rank[i]);
    std::vector<size_t> order;
    order.reserve(wish.size());
    for (size_t blocked = 0; order.size() < wish.size();) {
        // Both sides are acyclic, but their union need not be; on a cycle the node with the smallest wanted position
        // comes first.
        while (blocked < byWish.size() && waiting[byWish[blocked]] < 0) ++blocked;
        const size_t node = byWish[ready.empty() ? blocked : ready.top()];
        if (!ready.empty()) ready.pop();
        order.push_back(node);
        waiting[node] = -1;
        for (size_t at = first[node]; at < first[node + 1]; ++at)
            if (const size_t user = next[at]; waiting[user] > 0 && --waiting[user] == 0) ready.push(rank[user]);
    }
    return order;
}

/// What a node of the graph before is called in the union, and which of them a node of the graph after is.
struct BodyPairs {
    std::unordered_map<NodeId, NodeId> shown;
    std::unordered_map<NodeId, NodePair> partners;  // by node of the graph after
};
/// Of graphs that ids do not compare. Nodes that have no partner get ids that the graph after has not.
BodyPairs pairedBodies(const Module& before, const Module& after, uint32_t sameBelow) {
    BodyPairs out;
    const GraphMatch match = matchGraphs(before.graph(), after.graph(), sameBelow);
    for (const NodePair& pair : match.pairs) {
        out.shown.emplace(pair.before, pair.after);
        out.partners.emplace(pair.after, pair);
    }
    uint32_t next = std::max(before.graph().idLimit(), after.graph().idLimit());
    for (const NodeId id : match.onlyBefore)
        out.shown.emplace(id, after.graph().find(id) ? static_cast<NodeId>(next++) : id);
    return out;
}

/// The fewest places that have to change so that the rest of the numbers rises: all but a longest rising subsequence.
std::vector<size_t> outOfOrder(const std::vector<size_t>& numbers) {
    std::vector<size_t> ends, before(numbers.size(), numbers.size());  // ends: by length, where the lowest end stands
    for (size_t i = 0; i < numbers.size(); ++i) {
        const auto at = std::lower_bound(ends.begin(), ends.end(), numbers[i],
                                         [&](size_t end, size_t number) { return numbers[end] < number; });
        if (at != ends.begin()) before[i] = *std::prev(at);
        if (at == ends.end()) ends.push_back(i);
        else *at = i;
    }
    std::vector<bool> rises(numbers.size(), false);
    for (size_t i = ends.empty() ? numbers.size() : ends.back(); i < numbers.size(); i = before[i]) rises[i] = true;
    std::vector<size_t> out;
    for (size_t i = 0; i < numbers.size(); ++i)
        if (!rises[i]) out.push_back(i);
    return out;
}

/// The work of describeUnion: every pair of graphs adds its nodes and edges.
class UnionMaker {
  public:
    UnionMaker() = default;
    /// Of graphs whose ids say nothing of each other, but those that `common` has, in whose graphs both began.
    explicit UnionMaker(const Module* common) : m_matched(true), m_common(common) {}
    /// Either side may be missing.
    void add(const std::string& path, const Module* before, const Module* after) {
        m_pairs = {};
        if (m_matched && before && after) {
            const Module* const shared = m_common ? m_common->body(path) : nullptr;
            m_pairs = pairedBodies(*before, *after, shared ? shared->graph().idLimit() : 0);
        }
        if (after) addAfter(path, before, *after);
        if (before && before != after) addRemoved(path, *before);
        if (after) addEdges(path, *after, Change::Added);
        if (before) addEdges(path, *before, Change::Removed);
        if (after)
            for (const auto& [name, body] : after->subgraphs)
                add(bodyPath(path, name), before ? before->subgraph(name) : nullptr, body.get());
        if (before)
            for (const auto& [name, body] : before->subgraphs)
                if (!after || !after->subgraph(name)) add(bodyPath(path, name), body.get(), nullptr);
    }
    /// A graph as it is.
    void add(const std::string& path, const Module& module) {
        addAfter(path, &module, module);
        addEdges(path, module, Change::Unchanged);
        for (const auto& [name, body] : module.subgraphs) add(bodyPath(path, name), *body);
    }
    UnionGraph take() {
        takeEdges();
        if (m_out.removed == 0 && isOrdered()) {  // the order of the graph
            m_out.nodes = std::move(m_nodes);
            return std::move(m_out);
        }
        std::vector<std::pair<size_t, size_t>> links;
        for (const UnionGraph::Edge& edge : m_out.edges) links.emplace_back(m_place.at(edge.from), m_place.at(edge.to));
        for (size_t i : unionOrder(m_wish, links)) m_out.nodes.push_back(std::move(m_nodes[i]));
        return std::move(m_out);
    }

  private:
    NodeId shownId(NodeId id) const {
        const auto found = m_pairs.shown.find(id);
        return found == m_pairs.shown.end() ? id : found->second;
    }
    const Node* partnerOf(const Module* before, const Node& now, Certainty& certainty) const {
        if (before == nullptr) return nullptr;
        if (!m_matched) return before->graph().find(now.id());
        const auto found = m_pairs.partners.find(now.id());
        if (found == m_pairs.partners.end()) return nullptr;
        certainty = found->second.certainty;
        return before->graph().find(found->second.before);
    }
    bool isEdited(const Node& was, const Node& now) const {
        return &was != &now && !(m_matched ? sameForMatching(was, now) : sameButForInputs(was, now));
    }
    void show(const std::string& path, NodeInfo& info) {
        if (path.empty()) return;
        putInto(graphNumber(path), info);
        info.module = path + (info.module.empty() ? "" : "." + info.module);
    }
    /// Nodes that share a kernel, by the number of it in the union.
    std::unordered_map<NodeId, int> kernelsOf(const Module& module) {
        std::unordered_map<NodeId, int> out;
        const Schedule* const schedule = Schedule::of(module);
        if (schedule == nullptr) return out;
        for (const Schedule::Group& group : schedule->groups) {
            if (group.members.size() < 2) continue;
            for (const NodeId id : group.members) out.emplace(id, m_kernels);
            ++m_kernels;
        }
        return out;
    }
    void addAfter(const std::string& path, const Module* before, const Module& after) {
        size_t position = 0;
        const std::unordered_map<NodeId, int> kernels = kernelsOf(after);
        std::unordered_map<NodeId, size_t> oldPlaces;
        if (before && before != &after)
            for (const Node& old : before->graph().nodes()) oldPlaces.emplace(old.id(), oldPlaces.size());
        std::vector<size_t> kept, places;  // of the nodes that both have: indices in m_nodes, and where they stood
        for (const Node& now : after.graph().nodes()) {
            UnionGraph::Node node;
            const Node* const was = partnerOf(before, now, node.certainty);
            node.info = describeAt(after, now, position);
            position += now.isPlaceholder();
            show(path, node.info);
            if (const auto shared = kernels.find(now.id()); shared != kernels.end()) node.kernel = shared->second;
            if (was == nullptr) {
                node.change = Change::Added;
                ++m_out.added;
            } else if (isEdited(*was, now)) {
                node.change = Change::Edited;
                node.beforeOp = was->isCall() ? was->op().name() : std::string();
                node.beforeType = typeText(was->type());
                ++m_out.edited;
            }
            if (was && was->id() != now.id()) node.before = keyIn(path, was->id());
            if (was && !oldPlaces.empty()) {
                kept.push_back(m_nodes.size());
                places.push_back(oldPlaces.at(was->id()));
            }
            m_place[node.info.id] = m_nodes.size();
            m_wish.push_back(static_cast<double>(m_nodes.size()));
            m_nodes.push_back(std::move(node));
        }
        for (const size_t at : outOfOrder(places)) {
            m_nodes[kept[at]].moved = true;
            ++m_out.moved;
        }
    }
    /// The wanted position of a removed node is just before the first surviving node after it.
    void addRemoved(const std::string& path, const Module& before) {
        const uint32_t number = graphNumber(path);
        std::vector<const Node*> olds;
        for (const Node& node : before.graph().nodes()) olds.push_back(&node);
        std::vector<double> wish(olds.size());
        double next = static_cast<double>(m_nodes.size());
        for (size_t i = olds.size(); i-- > 0;) {
            if (auto found = m_place.find(nodeKey(number, shownId(olds[i]->id()))); found != m_place.end())
                next = std::min(next, m_wish[found->second]);
            wish[i] = next - 0.5;
        }
        size_t position = 0;
        for (size_t i = 0; i < olds.size(); ++i) {
            const Node& old = *olds[i];
            const size_t at = position;
            position += old.isPlaceholder();
            if (!m_place.try_emplace(nodeKey(number, shownId(old.id())), m_nodes.size()).second) continue;
            m_wish.push_back(wish[i]);
            UnionGraph::Node node;
            node.change = Change::Removed;
            node.info = describeAt(before, old, at);
            if (shownId(old.id()) != old.id()) node.before = nodeKey(number, old.id());
            rename(node.info);
            show(path, node.info);
            m_nodes.push_back(std::move(node));
            ++m_out.removed;
        }
    }
    /// The keys of the graph before, in a graph without a path, become those of the union.
    void rename(NodeInfo& info) const {
        info.id = nodeKey(0, shownId(nodeOf(info.id)));
        for (std::vector<NodeKey>* keys : {&info.inputs, &info.users})
            for (NodeKey& key : *keys) key = nodeKey(0, shownId(nodeOf(key)));
    }
    void addEdges(const std::string& path, const Module& module, Change side) {
        const uint32_t number = graphNumber(path);
        const auto keyOf = [&](const Node& node) {
            return nodeKey(number, side == Change::Removed ? shownId(node.id()) : node.id());
        };
        for (const Node& node : module.graph().nodes()) {
            const NodeKey to = keyOf(node);
            if (!m_place.contains(to)) continue;
            for (const Node* input : node.inputs())
                if (const NodeKey from = keyOf(*input); m_place.contains(from)) m_edges.push_back({from, to, side});
        }
    }
    /// Sorted; those of both sides are kept.
    void takeEdges() {
        const auto ends = [](const UnionGraph::Edge& edge) { return std::pair(edge.from, edge.to); };
        std::stable_sort(m_edges.begin(), m_edges.end(),
                         [&](const auto& a, const auto& b) { return ends(a) < ends(b); });
        for (const UnionGraph::Edge& edge : m_edges) {
            if (m_out.edges.empty() || ends(m_out.edges.back()) != ends(edge)) m_out.edges.push_back(edge);
            else if (m_out.edges.back().change != edge.change) m_out.edges.back().change = Change::Unchanged;
        }
    }
    /// Whether each node stands behind what it reads, as in a graph that verifies.
    bool isOrdered() const {
        return std::all_of(m_out.edges.begin(), m_out.edges.end(),
                           [&](const UnionGraph::Edge& edge) { return m_place.at(edge.from) < m_place.at(edge.to); });
    }

    bool m_matched = false;
    int m_kernels = 0;
    const Module* m_common = nullptr;
    BodyPairs m_pairs;  // of the graphs that are being added
    UnionGraph m_out;
    std::vector<UnionGraph::Node> m_nodes;
    std::vector<double> m_wish;
    std::unordered_map<NodeKey, size_t> m_place;  // lookups only, never iterated
    std::vector<UnionGraph::Edge> m_edges;
};

}  // namespace

UnionGraph describeUnion(const Module& before, const Module& after) {
    if (&before == &after) return describeGraph(after);
    UnionMaker maker;
    maker.add("", &before, &after);
    return maker.take();
}

UnionGraph describeMatched(const Module& before, const Module& after, const Module* common) {
    if (&before == &after) return describeGraph(after);
    UnionMaker maker(common);
    maker.add("", &before, &after);
    return maker.take();
}

std::optional<NodeDetails::Kernel> describeKernel(const Module& module, const Node& node) {
    const Schedule* const schedule = Schedule::of(module);
    if (schedule == nullptr || !node.isCall()) return std::nullopt;
    NodeDetails::Kernel out;
    out.nodes = {nodeKey(0, node.id())};
    if (const auto row = schedule->libraries.find(node.id()); row != schedule->libraries.end() && row->second)
        out.library = std::string(row->second->library.name);
    for (const Schedule::Group& group : schedule->groups) {
        if (std::find(group.members.begin(), group.members.end(), node.id()) == group.members.end()) continue;
        out.nodes.clear();
        for (const NodeId id : group.members) out.nodes.push_back(nodeKey(0, id));
    }
    for (const FusionDecision& decision : schedule->decisions)
        if (decision.producer == node.id() || decision.consumer == node.id()) out.reasons.push_back(decision.sentence);
    return out;
}

UnionGraph describeGraph(const Module& module) {
    UnionMaker maker;
    maker.add("", module);
    return maker.take();
}

}  // namespace cutaway
