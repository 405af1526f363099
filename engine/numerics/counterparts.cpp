#include "engine/numerics/counterparts.h"

#include <algorithm>
#include <map>

namespace cutaway {
namespace {

bool sameSizes(const ValueType& a, const ValueType& b) {
    if (const TensorType* x = a.tensor(), *y = b.tensor(); x && y) return x->sizes == y->sizes;
    if (const TupleType* x = a.tuple(), *y = b.tuple(); x && y)
        return x->size() == y->size() && std::equal(x->begin(), x->end(), y->begin(), sameSizes);
    return a.sym() && b.sym();
}

/// Calls visit(earlier, later) for nodes at the same places of two arguments. False where the two are built
/// differently, or a literal differs.
template <class Visit>
bool alongside(const Argument& earlier, const Argument& later, Visit&& visit) {
    if (earlier.node() && later.node()) {
        visit(*earlier.node(), *later.node());
        return true;
    }
    const auto *left = earlier.list(), *right = later.list();
    if (!left || !right) return !earlier.node() && !later.node() && (earlier.holdsNode() || equal(earlier, later));
    bool alike = left->size() == right->size();
    for (size_t i = 0; i < std::min(left->size(), right->size()); ++i)
        alike = alongside((*left)[i], (*right)[i], visit) && alike;
    return alike;
}
template <class Visit>
bool alongside(const Node& earlier, const Node& later, Visit&& visit) {
    bool alike = earlier.args().size() == later.args().size() && earlier.kwargs().size() == later.kwargs().size();
    for (size_t i = 0; i < std::min(earlier.args().size(), later.args().size()); ++i)
        alike = alongside(earlier.arg(i), later.arg(i), visit) && alike;
    for (size_t i = 0; i < std::min(earlier.kwargs().size(), later.kwargs().size()); ++i)
        alike = alongside(earlier.kwargs()[i].second, later.kwargs()[i].second, visit) && alike;
    return alike;
}

bool sameCall(const Node& a, const Node& b) {
    if (a.kind() != b.kind()) return false;
    return a.isCall() ? &a.op() == &b.op() : a.target() == b.target();
}

class Finder {
  public:
    Finder(const Graph& earlier, const Graph& later) : m_earlier(earlier), m_later(later) {}

    std::unordered_map<NodeId, NodeId> find() {
        countVotes();
        findWaysOut();
        for (const Node& node : m_later.nodes())
            if (const Node* found = counterpartOf(node)) m_found[node.id()] = found->id();
        return std::move(m_found);
    }

  private:
    /// A reader that both graphs have, with another node in its argument's place, says that the two are one value.
    void countVotes() {
        for (const Node& reader : m_later.nodes()) {
            const Node* was = reader.isOutput() ? m_earlier.outputNode() : m_earlier.find(reader.id());
            if (was == nullptr || was->kind() != reader.kind()) continue;
            if (reader.isCall() && (!sameCall(*was, reader) || !sameSizes(was->type(), reader.type()))) continue;
            alongside(*was, reader, [&](const Node& before, const Node& now) {
                if (sameSizes(before.type(), now.type())) ++m_votes[now.id()][before.id()];
            });
        }
    }
    /// What a node was expanded into has one way out: the value that nodes made from something else read.
    void findWaysOut() {
        const auto madeFrom = [&](const Node& node, NodeId origin) {
            const auto& origins = node.provenance().origin;
            return !m_earlier.find(node.id()) && std::find(origins.begin(), origins.end(), origin) != origins.end();
        };
        for (const Node& node : m_later.nodes())
            for (const NodeId origin : node.provenance().origin) {
                const Node* was = m_earlier.find(origin);
                if (!was || m_later.find(origin) || !madeFrom(node, origin)) continue;
                const auto& users = node.users();
                const bool out =
                    std::any_of(users.begin(), users.end(), [&](const Node* user) { return !madeFrom(*user, origin); });
                auto& ways = m_waysOut[origin];
                if (out && sameSizes(was->type(), node.type())) ways.push_back(node.id());
            }
    }
    bool unchanged(const Node& before, const Node& now) const {
        if (!sameCall(before, now) || !sameSizes(before.type(), now.type())) return false;
        bool same = true;
        const bool alike = alongside(before, now, [&](const Node& read, const Node& reads) {
            const auto found = m_found.find(reads.id());
            same &= found != m_found.end() && found->second == read.id();
        });
        return same && alike;
    }
    const Node* counterpartOf(const Node& node) const {
        if (node.isOutput()) return nullptr;
        const Node* self = m_earlier.find(node.id());
        if (self && unchanged(*self, node)) return self;
        if (const auto votes = m_votes.find(node.id()); votes != m_votes.end()) {
            const auto most = std::max_element(votes->second.begin(), votes->second.end(),
                                               [](const auto& a, const auto& b) { return a.second < b.second; });
            const auto found = votes->second.find(node.id());
            return m_earlier.find(found != votes->second.end() && found->second == most->second ? node.id()
                                                                                                : most->first);
        }
        if (self) return nullptr;
        // Of several that it was made from, the last is what they led to.
        const Node* last = nullptr;
        for (const NodeId origin : node.provenance().origin)
            if (const Node* from = m_earlier.find(origin); from && (!last || m_earlier.isBefore(*last, *from)))
                last = from;
        const auto ways = last ? m_waysOut.find(last->id()) : m_waysOut.end();
        const bool only = ways != m_waysOut.end() && ways->second.size() == 1 && ways->second[0] == node.id();
        return only && readersAreKnown(*last) ? last : nullptr;
    }
    /// A reader that is gone without a trace may have become part of what it read.
    bool readersAreKnown(const Node& node) const {
        return std::all_of(node.users().begin(), node.users().end(), [&](const Node* user) {
            return user->isOutput() || m_later.find(user->id()) || m_waysOut.contains(user->id());
        });
    }

    const Graph &m_earlier, &m_later;
    std::unordered_map<NodeId, std::map<NodeId, int>> m_votes;  // of a later node for earlier ones
    std::unordered_map<NodeId, std::vector<NodeId>> m_waysOut;  // by what was expanded; of all that was
    std::unordered_map<NodeId, NodeId> m_found;
};

}  // namespace

std::unordered_map<NodeId, NodeId> counterparts(const Module& earlier, const Module& later) {
    return Finder(earlier.graph(), later.graph()).find();
}

std::unordered_map<NodeId, NodeId> chained(const std::unordered_map<NodeId, NodeId>& first,
                                           const std::unordered_map<NodeId, NodeId>& then) {
    std::unordered_map<NodeId, NodeId> out;
    for (const auto& [node, between] : then)
        if (const auto found = first.find(between); found != first.end()) out.emplace(node, found->second);
    return out;
}

}  // namespace cutaway
