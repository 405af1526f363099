#include "engine/passes/batch_fusion.h"

#include <deque>
#include <set>

#include "engine/passes/batch_rules.h"
#include "engine/rewrite/graph_order.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

using namespace batching;

/// Candidates by key, in the order in which they were found.
using Groups = std::vector<std::pair<std::string, std::vector<Node*>>>;

/// Breadth first over the operands of `root`; not past a candidate, and not into what is fused already.
Groups candidatesFrom(const Node& root, const BatchRule& rule, const Search& search, const std::set<NodeId>& fused) {
    Groups groups;
    if (root.isCall("operator.getitem")) return groups;
    std::set<NodeId> visited;
    std::deque<std::pair<int, Node*>> queue;
    for (Node* input : root.inputs()) {
        queue.emplace_back(1, input);
        visited.insert(input->id());
    }
    while (!queue.empty()) {
        const auto [depth, node] = queue.front();
        queue.pop_front();
        if (fused.contains(node->id())) continue;
        if (const auto key = node->isCall() ? rule.key(*node, rule, search) : std::nullopt) {
            const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == *key; });
            auto& members = known == groups.end() ? groups.emplace_back(*key, std::vector<Node*>()).second : known->second;
            members.push_back(node);
        } else if (depth < search.depth) {
            for (Node* input : node->inputs())
                if (visited.insert(input->id()).second) queue.emplace_back(depth + 1, input);
        }
    }
    return groups;
}

/// The members of the group that a node is computed from.
std::set<NodeId> dependencies(const Node& node, const std::set<NodeId>& group) {
    std::set<NodeId> found, visited;
    std::vector<const Node*> work = {&node};
    while (!work.empty()) {
        const Node* at = work.back();
        work.pop_back();
        for (const Node* input : at->inputs()) {
            if (group.contains(input->id())) found.insert(input->id());
            if (visited.insert(input->id()).second) work.push_back(input);
        }
    }
    return found;
}

/// The first independent subset of `nodes`, greedily and in order; what is left over stays in `nodes`.
std::vector<Node*> takeIndependent(std::vector<Node*>& nodes, const Search& search) {
    std::set<NodeId> group, taken, needed;
    for (const Node* node : nodes) group.insert(node->id());
    std::vector<Node*> subset, rest;
    for (Node* node : nodes) {
        if (static_cast<int>(subset.size()) >= search.most || needed.contains(node->id())) {
            rest.push_back(node);
            continue;
        }
        const std::set<NodeId> deps = dependencies(*node, group);
        const bool reaches = std::any_of(deps.begin(), deps.end(), [&](NodeId id) { return taken.contains(id); });
        if (reaches) {
            rest.push_back(node);
            continue;
        }
        subset.push_back(node);
        taken.insert(node->id());
        needed.insert(deps.begin(), deps.end());
    }
    nodes = std::move(rest);
    return subset;
}

Result<bool> fuseGraph(Graph& graph, const BatchRule& rule, Rewriter& rewriter) {
    const Search search(rewriter.options(), rule.name);
    std::set<NodeId> fused;
    std::vector<NodeId> roots;
    for (const Node& node : graph.nodes()) roots.push_back(node.id());
    bool changed = false, stopped = false;
    for (auto at = roots.rbegin(); at != roots.rend() && !stopped; ++at) {
        const Node* root = graph.find(*at);
        if (root == nullptr) continue;
        for (auto& [key, members] : candidatesFrom(*root, rule, search, fused)) {
            while (static_cast<int>(members.size()) >= search.least && !stopped) {
                const std::vector<Node*> subset = takeIndependent(members, search);
                if (static_cast<int>(subset.size()) < search.least) continue;
                stopped = !rewriter.begin(rule.name, *subset[0], "calls of one kind that do not depend on one another");
                if (stopped) break;
                for (const Node* node : subset) fused.insert(node->id());
                const auto made = rule.fuse(subset, rule, search, rewriter);
                if (!made) return made.error();
                changed = true;
            }
        }
    }
    if (changed) sortTopologically(graph);
    return changed;
}

Result<bool> fuseModule(Module& module, const BatchRule& rule, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, fuseModule(*body, rule, rewriter));
        changed |= inner;
    }
    CT_TRY(const bool own, fuseGraph(module.graph(), rule, rewriter));
    return changed || own;
}

}  // namespace

Result<bool> batchFusion(std::string_view name, Module& module, Rewriter& rewriter) {
    for (const BatchRule& rule : batchRules())
        if (rule.name == name) return fuseModule(module, rule, rewriter);
    CT_CHECK(false, "the pipeline names only rules that exist");
}

}  // namespace cutaway
