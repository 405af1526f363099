// What a match has found, and the regions between mutations within which it must lie.
#include <algorithm>

#include "engine/rewrite/matcher.h"
#include "engine/support/check.h"

namespace cutaway {

const Argument& Match::operator[](std::string_view name) const {
    const int slot = m_pattern->slotOf(name);
    CT_CHECK(slot >= 0 && m_bound[static_cast<size_t>(slot)] != nullptr,
             "a rule asks only for names that its 'find' binds");
    return *m_bound[static_cast<size_t>(slot)];
}
bool Match::isTensor(std::string_view name) const {
    const Node* found = (*this)[name].node();
    return found != nullptr && found->type().tensor() != nullptr;
}
Node& Match::node(std::string_view name) const {
    Node* found = (*this)[name].node();
    CT_CHECK(found != nullptr, "a rule asks for nodes only where it has made sure of one");
    return *found;
}
const TensorType& Match::tensor(std::string_view name) const { return node(name).tensor(); }
Node& Match::root() const { return *m_root; }
std::vector<Node*> Match::results() const {
    std::vector<Node*> out;
    for (const int slot : m_pattern->results) {
        const Argument& found = *m_bound[static_cast<size_t>(slot)];
        found.forEachNode([&](Node* node) { out.push_back(node); });
    }
    return out;
}
std::vector<Node*> Match::nodes() const {
    std::vector<Node*> found;
    const auto add = [&](Node* node) {
        if (std::find(found.begin(), found.end(), node) == found.end()) found.push_back(node);
    };
    for (const PatternCall& call : m_pattern->calls) {
        if (!call.perItem) add(m_bound[static_cast<size_t>(call.slot)]->node());
        for (const auto& [slot, node] : m_items)
            if (slot == call.slot) add(node);
    }
    return found;
}

/// Python functions also write to what they are given as `out`.
static bool mutates(const Node& node) {
    if (!node.isCall()) return false;
    const auto isOut = [](const auto& keyword) { return keyword.first == "out" && !keyword.second.isNone(); };
    return node.op().mutates() || std::any_of(node.kwargs().begin(), node.kwargs().end(), isOut);
}

MutationRegions::MutationRegions(const Graph& graph) {
    for (const Node& node : graph.nodes()) m_mutates |= mutates(node);
    if (!m_mutates) return;
    m_region.assign(graph.idLimit(), 0);
    uint32_t region = 0;
    for (const Node& node : graph.nodes()) {
        if (mutates(node)) ++region;
        m_region[index(node.id())] = region;
    }
}
uint32_t MutationRegions::regionOf(const Node& node) const {
    if (!m_mutates) return 0;
    for (const Node* at = &node; at != nullptr; at = at->previous())
        if (index(at->id()) < m_region.size()) return m_region[index(at->id())];
    return 0;
}

}  // namespace cutaway
