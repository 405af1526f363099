#include "engine/plugins/rewrite_groups.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace cutaway {
namespace {

/// Sets that grow together.
class Unions {
  public:
    size_t of(const void* item) {
        const auto [at, fresh] = m_numbers.emplace(item, m_parents.size());
        if (fresh) m_parents.push_back(at->second);
        return root(at->second);
    }
    void join(const void* a, const void* b) {
        const size_t left = of(a), right = of(b);
        m_parents[std::max(left, right)] = std::min(left, right);
    }
    bool knows(const void* item) const { return m_numbers.contains(item); }

  private:
    size_t root(size_t at) {
        while (m_parents[at] != at) at = m_parents[at] = m_parents[m_parents[at]];
        return at;
    }
    std::unordered_map<const void*, size_t> m_numbers;
    std::vector<size_t> m_parents;
};

}  // namespace

std::vector<RewriteGroup> groupsOf(const TextDifference& difference) {
    if (difference.empty()) return {};
    if (!difference.order.empty()) {
        // What stands elsewhere may have moved for any of the others.
        RewriteGroup all{difference.removed, difference.made, difference.edited, difference.rewired, true};
        return {all};
    }
    Unions unions;
    for (Node* node : difference.removed) unions.of(node);
    for (Node* node : difference.made) unions.of(node);
    for (const auto& [old, parsed] : difference.edited) unions.of(old);
    const auto joinKnown = [&](const void* a, const Node* b) {
        if (b != nullptr && unions.knows(b)) unions.join(a, b);
    };
    for (Node* node : difference.removed)
        for (Node* user : node->users()) joinKnown(node, user);
    const auto joinOperands = [&](const void* item, const Node& parsed) {
        for (Node* input : parsed.inputs()) joinKnown(item, difference.valueOf(input).any());
    };
    for (Node* node : difference.made) joinOperands(node, *node);
    for (const auto& [old, parsed] : difference.edited) {
        joinOperands(old, *parsed);
        for (Node* input : old->inputs()) joinKnown(old, input);
    }
    // A write that is left out and one in its place are one rewrite: inputs are written to after any amount of fuel.
    const void* written = nullptr;
    const auto joinWrites = [&](const void* item, const Node& node) {
        if (!node.isCall() || !node.op().mutates()) return;
        if (written != nullptr) unions.join(written, item);
        written = item;
    };
    for (Node* node : difference.removed) joinWrites(node, *node);
    for (Node* node : difference.made) joinWrites(node, *node);
    for (const auto& [old, parsed] : difference.edited) joinWrites(old, *old), joinWrites(old, *parsed);
    for (const TextRewire& rewire : difference.rewired) {
        const bool before = unions.knows(rewire.before), after = unions.knows(rewire.after.any());
        if (before && after) unions.join(rewire.before, rewire.after.any());
        if (!before && !after) unions.of(rewire.user);
    }
    // In the order of their first numbers, which follows the graph's.
    std::map<size_t, RewriteGroup> groups;
    for (Node* node : difference.removed) groups[unions.of(node)].removed.push_back(node);
    for (Node* node : difference.made) groups[unions.of(node)].made.push_back(node);
    for (const auto& pair : difference.edited) groups[unions.of(pair.first)].edited.push_back(pair);
    for (const TextRewire& rewire : difference.rewired) {
        const void* item = rewire.user;
        if (unions.knows(rewire.after.any())) item = rewire.after.any();
        if (unions.knows(rewire.before)) item = rewire.before;
        groups[unions.of(item)].rewired.push_back(rewire);
    }
    std::vector<RewriteGroup> out;
    for (auto& [number, group] : groups) out.push_back(std::move(group));
    return out;
}

}  // namespace cutaway
