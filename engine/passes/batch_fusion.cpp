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
Groups candidatesFrom(const Node& root, const BatchRule& rule, const Search& search, const std::set<NodeId>& fused,
                      Rewriter& rewriter) {
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
        if (const auto key =
                node->isCall() ? rule.key(*node, rule, search, {rewriter, rule.name, *node}) : std::nullopt) {
            const auto found =
                std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == *key; });
            auto& members =
                found == groups.end() ? groups.emplace_back(*key, std::vector<Node*>()).second : found->second;
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

/// The refusal of a candidate, kept until all readers were tried, since it may still come into a batch.
class LeftOver {
  public:
    LeftOver(const BatchRule& rule, const Search& search, Rewriter& rewriter)
        : m_rule(rule), m_search(search), m_rewriter(rewriter) {}
    /// `alike`: the calls found above `root` that could be fused, or those still left.
    void tooFew(const std::vector<Node*>& alike, const Node& root, bool someTaken) {
        const auto watched =
            std::find_if(alike.begin(), alike.end(), [&](const Node* node) { return m_rewriter.watches(*node); });
        if (watched == alike.end() || alike.size() <= m_most) return;
        m_most = alike.size();
        std::string names;
        for (const Node* node : alike) names += (names.empty() ? "`" : ", `") + node->name() + "`";
        m_why = "a batch needs " + std::to_string(m_search.least) +
                " calls of one kind that do not depend on one another (min_fuse_set_size), and before `" + root.name() +
                "` there " +
                (someTaken           ? "are left only "
                 : alike.size() == 1 ? "is only "
                                     : "are only ") +
                names;
    }
    void taken(const std::vector<Node*>& batch) {
        for (const Node* node : batch)
            if (node != batch[0])
                Refusing(m_rewriter, m_rule.name, *node)("it is computed together with ", *batch[0],
                                                         ", where the rewrite starts");
    }
    void say(const Graph& graph) {
        const std::string kUnseen = "it is read only by subscripts, or by what this pass has made";
        for (const Node& node : graph.nodes())
            if (m_rewriter.watches(node))
                m_rewriter.refuse(m_rule.name, node,
                                  !m_why.empty()    ? m_why
                                  : node.hasUsers() ? kUnseen
                                                    : "nobody reads it");
    }

  private:
    const BatchRule& m_rule;
    const Search& m_search;
    Rewriter& m_rewriter;
    size_t m_most = 0;  // of the groups without a batch that it was in, the largest
    std::string m_why;
};

Result<bool> fuseGraph(Graph& graph, const BatchRule& rule, Rewriter& rewriter) {
    const Search search(rewriter.request(), rule.name);
    std::set<NodeId> fused;
    std::vector<NodeId> roots;
    for (const Node& node : graph.nodes()) roots.push_back(node.id());
    bool changed = false, stopped = false;
    LeftOver leftOver(rule, search, rewriter);
    for (auto at = roots.rbegin(); at != roots.rend() && !stopped; ++at) {
        const Node* root = graph.find(*at);
        if (root == nullptr) continue;
        for (auto& [key, members] : candidatesFrom(*root, rule, search, fused, rewriter)) {
            if (static_cast<int>(members.size()) < search.least) leftOver.tooFew(members, *root, false);
            while (static_cast<int>(members.size()) >= search.least && !stopped) {
                const std::vector<Node*> subset = takeIndependent(members, search);
                leftOver.tooFew(members, *root, true);
                if (static_cast<int>(subset.size()) < search.least) {
                    leftOver.tooFew(subset, *root, true);
                    continue;
                }
                stopped = rewriter.begin(rule.name, *subset[0],
                                         "calls of one kind that do not depend on one another") != Go::Yes;
                if (stopped) break;
                for (const Node* node : subset) fused.insert(node->id());
                leftOver.taken(subset);
                const auto made = rule.fuse(subset, rule, search, rewriter);
                if (!made) return made.error();
                changed = true;
            }
        }
    }
    leftOver.say(graph);
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

Result<bool> batchFusion(Module& module, Rewriter& rewriter) {
    for (const BatchRule& rule : batchRules())
        if (rule.name == rewriter.pass()) return fuseModule(module, rule, rewriter);
    CT_CHECK(false, "the pipeline names only rules that exist");
}

}  // namespace cutaway
