#include "engine/schedule/fusion.h"

#include <deque>

#include "engine/loops/index.h"
#include "engine/schedule/fusion_score.h"
#include "engine/support/check.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

constexpr size_t kSiblingsTried = 3;

using Role = NodeFacts::Role;

class Grouper {
  public:
    Grouper(const Graph& graph, const Schedule& schedule, Rewriter& rewriter)
        : m_graph(&graph), m_rewriter(&rewriter), m_options(fusionOptions(rewriter.request())) {
        m_grouping.facts = classify(graph, schedule);
        m_grouping.target = &schedule.target;
        m_grouping.memo = schedule.memo;
        m_grouping.roundsHalves = schedule.roundsHalves;
        m_grouping.memory = std::make_shared<const MemoryOrder>(graph);
    }

    Grouping run() {
        for (const Node& node : m_graph->nodes()) {
            m_budget += m_options.triesPerNode;
            if (m_stopped || m_rewriter->cancelled()) break;
            if (facts(node).role == Role::Lowered) place(node);
            else if (m_rewriter->watches(node)) refuseAll(node);
        }
        keepDrafts();
        return std::move(m_grouping);
    }

  private:
    /// Of the groups that have become of it: whoever asks for their kernels has them.
    void keepDrafts() {
        if (faultsAsked()) return;
        for (const FusionGroup& group : m_grouping.groups) {
            if (group.members.size() < 2) continue;
            const auto found = m_attempts.find(nameOf(m_grouping, group, storedValues(m_grouping, group)).finish());
            if (found == m_attempts.end() || !found->second.draft) continue;
            buildKernel(m_grouping, *found->second.name, *std::exchange(found->second.draft, std::nullopt));
        }
    }
    NodeFacts& facts(const Node& node) { return m_grouping.facts[index(node.id())]; }

    void place(const Node& node) {
        NodeFacts& nodeFacts = facts(node);
        nodeFacts.group = static_cast<int>(m_grouping.groups.size());
        FusionGroup group;
        group.members = {&node};
        group.cost = nodeFacts.rule.cost;
        group.space = {nodeFacts.rule.spaceSizes, nodeFacts.rule.reduced};
        m_grouping.groups.push_back(std::move(group));
        std::vector<const Node*> producers;
        collectProducers(node, producers);
        sortByWorth(producers);
        if (producers.empty())
            m_rewriter->refuse(ruleOf(false), node, "none of its operands is computed by a kernel before it");
        for (const Node* producer : producers) tryMerge(*producer, node, false);
        std::vector<const Node*> siblings;
        collectSiblings(node, siblings);
        if (siblings.empty()) m_rewriter->refuse(ruleOf(true), node, "no kernel before it goes over the same memory");
        for (const Node* sibling : siblings) tryMerge(*sibling, node, true);
    }

    /// Nodes with lowering rules whose values this one reads, through views and free nodes.
    void collectProducers(const Node& node, std::vector<const Node*>& found) {
        const std::vector<Node*> inputs = node.inputs();
        for (const Node* input : inputs) {
            const Node* root = rootOf(*input).node;
            const Role role = facts(*root).role;
            if (role == Role::Lowered && std::find(found.begin(), found.end(), root) == found.end())
                found.push_back(root);
            else if (role == Role::Free) collectProducers(*root, found);
        }
    }
    /// The largest values first, since joining one producer may rule out another; of equal ones the nearest.
    void sortByWorth(std::vector<const Node*>& producers) {
        const auto worth = [&](const Node* node) {
            return std::pair(bytesOf({node, 0}).asInt().value_or(0), facts(*node).position);
        };
        std::stable_sort(producers.begin(), producers.end(),
                         [&](const Node* a, const Node* b) { return worth(a) > worth(b); });
    }
    /// Earlier nodes that read the same big value in the same space: one pass over it may serve both.
    void collectSiblings(const Node& node, std::vector<const Node*>& found) {
        for (const Node* input : node.inputs()) {
            const Node* root = rootOf(*input).node;
            auto& readers = m_readers[root->id()];
            const size_t first = readers.size() > kSiblingsTried ? readers.size() - kSiblingsTried : 0;
            for (size_t i = first; i < readers.size(); ++i) {
                const FusionGroup &a = m_grouping.groups[static_cast<size_t>(facts(*readers[i]).group)],
                                  &b = m_grouping.groups[static_cast<size_t>(facts(node).group)];
                const TensorType* type = tensorOf(rootOf(*input));
                const bool samePass = type != nullptr && numel(a.space.sizes) == numel(type->sizes) &&
                                      numel(b.space.sizes) == numel(type->sizes);
                if (samePass && std::find(found.begin(), found.end(), readers[i]) == found.end())
                    found.push_back(readers[i]);
            }
            readers.push_back(&node);
        }
    }

    void record(const Node& a, const Node& b, bool fused, std::string sentence) {
        m_grouping.decisions.push_back({a.id(), b.id(), fused, std::move(sentence)});
    }
    void refuse(const Node& a, const Node& b, bool siblings, std::string sentence) {
        m_rewriter->refuse(ruleOf(siblings), b, sentence, &a);
        record(a, b, false, std::move(sentence));
    }
    /// Says for each fusion rule why it does not apply at a node that no kernel computes.
    void refuseAll(const Node& node) {
        const NodeFacts& nodeFacts = facts(node);
        const std::string why = nodeFacts.role == Role::Alias    ? "it is a view of memory, which nothing computes"
                                : nodeFacts.role == Role::Free   ? "it is recomputed at each use"
                                : nodeFacts.role == Role::Dead   ? "nobody reads it"
                                : !nodeFacts.rule.whyNot.empty() ? nodeFacts.rule.whyNot
                                                                 : "no kernel computes it";
        for (const bool siblings : {false, true}) m_rewriter->refuse(ruleOf(siblings), node, why);
    }
    static std::string_view ruleOf(bool siblings) { return siblings ? "share_loop" : "fuse"; }

    void tryMerge(const Node& a, const Node& b, bool siblings) {
        const int from = facts(a).group, to = facts(b).group;
        if (from == to) return;
        const std::string apart = siblings ? a.name() + " and " + b.name() + " do not share a kernel: "
                                           : a.name() + " is not computed in the kernel of " + b.name() + ": ";
        FusionGroup &x = m_grouping.groups[static_cast<size_t>(from)], &y = m_grouping.groups[static_cast<size_t>(to)];
        const std::string worth = trafficText(bytesSaved(m_grouping, x, y));
        if (const size_t most = m_options.maxNodes; x.members.size() + y.members.size() > most)
            return refuse(a, b, siblings,
                          apart + "it would have more than " + std::to_string(most) +
                              " nodes (fusion=max_nodes); it would save " + worth);
        if (m_tried >= m_budget)
            return refuse(a, b, siblings,
                          apart + "the budget for trying is spent (fusion=tries_per_node:" +
                              std::to_string(m_options.triesPerNode) + "); it would save " + worth);
        if (const Node* between = pathThroughOthers(from, to))
            return refuse(a, b, siblings, apart + between->name() + " must run between them; it would save " + worth);
        std::string problem;
        for (const Space& space : candidateSpaces(x.space, y.space)) {
            FusionGroup merged = mergedGroup(x, y, space);
            if (const std::string why = problemOf(merged, from, to, a, b); !why.empty()) {
                if (problem.empty()) problem = why;
                continue;
            }
            std::string sentence = siblings ? a.name() + " and " + b.name() + " share a kernel: one loop over " +
                                                  space.text() + " reads " + sharedName(a, b) + " once"
                                            : a.name() + " is computed in the kernel of " + b.name() +
                                                  ": one loop over " + space.text() + " makes both";
            sentence += " and saves " + worth;
            const Go go = m_rewriter->begin(ruleOf(siblings), b, sentence);
            m_stopped |= go == Go::Stop;
            if (go != Go::Yes) return use(m_drafted, 0);
            merged.name = m_drafted;
            use(merged.name, 1);
            for (const Hash128& before : {x.name, y.name}) use(before, -1);
            record(a, b, true, std::move(sentence));
            for (const Node* member : merged.members) facts(*member).group = to;
            x.members.clear();
            y = std::move(merged);
            return;
        }
        refuse(a, b, siblings,
               apart +
                   (problem.empty() ? "one loops over " + x.space.text() + ", the other over " + y.space.text()
                                    : problem) +
                   "; it would save " + worth);
    }
    /// Why the merged group is not a kernel, or a bad one; cheap tests first, since the kernel is drafted for the last.
    std::string problemOf(const FusionGroup& merged, int from, int to, const Node& a, const Node& b) {
        if (std::string problem = recomputation(merged, a, b); !problem.empty()) return problem;
        for (const Node* member : merged.members) facts(*member).group = to;
        m_tried += static_cast<int64_t>(merged.members.size());
        std::string problem = drafted(merged);
        for (const Node* member : m_grouping.groups[static_cast<size_t>(from)].members) facts(*member).group = from;
        return problem;
    }
    /// The same of the kernel that the group would have; groups that are alike have one answer.
    std::string drafted(const FusionGroup& merged) {
        const std::vector<ValueKey> stored = storedValues(m_grouping, merged);
        LoweringName name = nameOf(m_grouping, merged, stored);
        m_drafted = name.finish();
        const auto [slot, fresh] = m_attempts.try_emplace(m_drafted);
        MergeAttempt& attempt = slot->second;
        if (fresh) {
            KernelDraft draft = draftKernel(m_grouping, merged, stored);
            attempt.problem = draft.problem.empty() ? scatteredStore(draft, merged.space) : draft.problem;
            if (attempt.problem.node) {
                const auto about = std::find_if(name.values().begin(), name.values().end(),
                                                [&](const ValueKey& key) { return key.node == attempt.problem.node; });
                CT_CHECK(about != name.values().end(), "what fails has been met");
                attempt.about = static_cast<size_t>(about - name.values().begin());
            } else if (attempt.problem.empty()) {
                attempt.draft = std::move(draft);
                attempt.name = std::move(name);
                return {};
            }
        }
        NamedProblem problem = attempt.problem;
        if (problem.node) problem.node = name.values()[attempt.about].node;
        return problem.sentence();
    }
    /// Why a stored value does not suit the loops. Loops in another order than its dims compute addresses by division:
    /// elements are stored or loaded one by one, unless whole rows stay together. Loads once per short row do no harm.
    static NamedProblem scatteredStore(const KernelDraft& draft, const Space& space) {
        const auto full = knownNumel(space.sizes), rows = knownNumel(space.outer());
        const bool manyRows = full && rows && static_cast<double>(*rows) * static_cast<double>(*rows) >= *full;
        for (const KernelStore& store : draft.kernel.stores) {
            const std::vector<Loop>& loops = store.inner.empty() ? draft.kernel.outer : store.inner;
            std::vector<Expr> read = {store.index};
            if (store.inner.empty() && manyRows) read.push_back(store.value);
            bool divides = false;
            forEachExpr(read, [&](const Expr& e) {
                const bool index =
                    e->dtype == DType::I64 && (e->kind == ExprKind::FloorDiv || e->kind == ExprKind::Mod);
                if (index && !loops.empty()) divides |= !affineIn(e, loops.back().axis);
            });
            const ValueKey& key = draft.stored[static_cast<size_t>(store.buffer)];
            const SymDims& sizes = tensorOf(key)->sizes;
            if (divides && !refines(numel(sizes) == numel(space.sizes) ? space.sizes : space.outer(), sizes))
                return {"a loop over " + space.text() + " would make ", key.node, " in another order than its own"};
        }
        return {};
    }

    std::string sharedName(const Node& a, const Node& b) {
        for (const Node* input : a.inputs())
            for (const Node* other : b.inputs())
                if (rootOf(*input) == rootOf(*other)) return rootOf(*input).node->name();
        return "the operand";
    }

    FusionGroup mergedGroup(const FusionGroup& x, const FusionGroup& y, const Space& space) {
        FusionGroup merged;
        merged.members = x.members;
        merged.members.insert(merged.members.end(), y.members.begin(), y.members.end());
        std::sort(merged.members.begin(), merged.members.end(),
                  [&](const Node* p, const Node* q) { return facts(*p).position < facts(*q).position; });
        merged.space = space;
        merged.cost = x.cost + y.cost;
        return merged;
    }

    /// Spaces in which both might run; the one with reductions first, since the other has to fit into it.
    static std::vector<Space> candidateSpaces(const Space& x, const Space& y) {
        const SymInt fullX = numel(x.sizes), fullY = numel(y.sizes);
        if (x.reduces() && y.reduces()) {
            if (!(fullX == fullY) || !(numel(x.outer()) == numel(y.outer()))) return {};
            return {y};
        }
        if (x.reduces())
            return fullY == fullX || fullY == numel(x.outer()) ? std::vector<Space>{x} : std::vector<Space>{};
        if (y.reduces()) return {y};
        return {fullX == fullY && refines(x.sizes, y.sizes) ? x : y};
    }
    /// Whether each dim of `coarse` is a dim of `fine` or a run of adjacent ones, so that its indices need no division.
    /// A value of another order (permuted, say) is read at the indices of whoever reads it, which divide nothing.
    static bool refines(const SymDims& fine, const SymDims& coarse) {
        SymInt reached = 1, wanted = 1;
        size_t at = fine.size();
        for (size_t d = coarse.size(); d-- > 0;) {
            wanted = wanted * coarse[d];
            while (at > 0 && !(reached == wanted)) reached = reached * fine[--at];
            if (!(reached == wanted)) return false;
        }
        return true;
    }

    /// A producer that is smaller than the loop it moves into is computed repeatedly; acceptable if it is cheap, or if
    /// it does not depend on the innermost loop, out of which it is then hoisted.
    std::string recomputation(const FusionGroup& merged, const Node& a, const Node& b) {
        const SymInt own = numel(tensorOf({&a, 0})->sizes);
        const auto count = own.asInt(), full = knownNumel(merged.space.sizes), rows = knownNumel(merged.space.outer());
        if (!count || !full || !rows || *count >= *full || *count == *rows) return {};
        const FusionGroup& group = merged;
        int cost = 0;
        for (const Node* member : group.members) {
            const auto size = knownNumel(tensorOf({member, 0})->sizes);
            if (size && *size <= *count) cost += facts(*member).rule.cost;
        }
        if (cost <= m_grouping.target->fusion.cheapCost) return {};
        if (*count == 1 || constantAlongLastDim(a, b)) return {};
        return a.name() + " would be computed " + std::to_string(*full / std::max<int64_t>(*count, 1)) +
               " times for each of its elements";
    }
    /// The consumer reads the producer through views that end in size-1 dims.
    bool constantAlongLastDim(const Node& a, const Node& b) {
        for (const Node* input : b.inputs()) {
            if (rootOf(*input).node != &a || input->type().tensor() == nullptr) continue;
            const TensorType& type = *input->type().tensor();
            if (type.sizes.empty() || !(type.sizes.back().asInt() == 1 || type.strides.back().asInt() == 0))
                return false;
        }
        return true;
    }

    /// A node outside both groups on a path from one to the other.
    const Node* pathThroughOthers(int from, int to) {
        const Node* found = searchPath(from, to);
        return found ? found : searchPath(to, from);
    }
    const Node* searchPath(int from, int to) {
        // No node behind the last members of both leads to either; groups on the way may have members before both.
        const int last = std::max(facts(*m_grouping.groups[static_cast<size_t>(from)].members.back()).position,
                                  facts(*m_grouping.groups[static_cast<size_t>(to)].members.back()).position);
        m_seen.resize(m_grouping.facts.size(), 0);
        ++m_search;
        std::deque<std::pair<const Node*, const Node*>> queue;  // (node, the first outsider on the way)
        auto push = [&](const Node& node, const Node* outsider) {
            if (std::exchange(m_seen[index(node.id())], m_search) != m_search) queue.emplace_back(&node, outsider);
        };
        for (const Node* member : m_grouping.groups[static_cast<size_t>(from)].members) push(*member, nullptr);
        while (!queue.empty()) {
            const Node* const at = queue.front().first;
            const Node* const way = queue.front().second;
            queue.pop_front();
            const Node* reached = nullptr;
            const auto visit = [&](const Node* user) {
                const NodeFacts& nodeFacts = facts(*user);
                if (nodeFacts.role == Role::Dead || nodeFacts.role == Role::Output || nodeFacts.position > last) return;
                if (nodeFacts.role == Role::Lowered && nodeFacts.group == from) return;
                if (nodeFacts.role == Role::Lowered && nodeFacts.group == to) {
                    if (way != nullptr) reached = way;
                    return;
                }
                const bool real =
                    nodeFacts.role == Role::External || (nodeFacts.role == Role::Lowered && nodeFacts.group >= 0);
                const Node* mark = way ? way : real ? user : nullptr;
                // A group is entered as a whole: all its members run in one kernel.
                if (nodeFacts.role == Role::Lowered && nodeFacts.group >= 0)
                    for (const Node* member : m_grouping.groups[static_cast<size_t>(nodeFacts.group)].members)
                        push(*member, mark);
                else if (nodeFacts.role != Role::Lowered) push(*user, mark);
            };
            for (const Node* user : at->users()) visit(user);
            for (const Node* later : m_grouping.memory->after(*at)) visit(later);
            if (reached) return reached;
        }
        return nullptr;
    }

    /// Why a group cannot share a kernel; `about`: which value of its name the sentence is about. Else its kernel.
    struct MergeAttempt {
        NamedProblem problem;
        size_t about = 0;
        std::optional<KernelDraft> draft;
        std::optional<LoweringName> name;  // of the group that was drafted
        int groups = 0;                    // that have this kernel now
    };
    /// A draft is there as long as a group has it.
    void use(const Hash128& name, int by) {
        const auto found = m_attempts.find(name);
        if (found == m_attempts.end() || (found->second.groups += by) > 0) return;
        found->second.draft.reset();
        found->second.name.reset();
    }

    const Graph* m_graph;
    Rewriter* m_rewriter;
    std::unordered_map<Hash128, MergeAttempt, LoweringMemo::Key> m_attempts;  // lookups only, never iterated
    Hash128 m_drafted;                                                        // the last that was asked for
    FusionOptions m_options;
    bool m_stopped = false;
    int64_t m_tried = 0, m_budget = 0;  // nodes that were, and may be, lowered to try merges
    Grouping m_grouping;
    std::map<NodeId, std::vector<const Node*>> m_readers;
    std::vector<int> m_seen;  // number of the search that last met a node
    int m_search = 0;
};

}  // namespace

Grouping groupNodes(const Graph& graph, const Schedule& schedule, Rewriter& rewriter) {
    return Grouper(graph, schedule, rewriter).run();
}

Grouping groupsOf(const Graph& graph, const Schedule& schedule) {
    Grouping grouping;
    grouping.facts = classify(graph, schedule);
    grouping.target = &schedule.target;
    grouping.memo = schedule.memo;
    grouping.decisions = schedule.decisions;
    grouping.roundsHalves = schedule.roundsHalves;
    grouping.memory = std::make_shared<const MemoryOrder>(graph);
    const auto add = [&](FusionGroup group) {
        for (const Node* member : group.members)
            grouping.facts[index(member->id())].group = static_cast<int>(grouping.groups.size());
        grouping.groups.push_back(std::move(group));
    };
    for (const Schedule::Group& shared : schedule.groups) {
        FusionGroup group{{}, shared.space, 0};
        for (const NodeId id : shared.members)
            if (const Node* node = graph.find(id)) group.members.push_back(node);
        if (!group.members.empty()) add(std::move(group));
    }
    for (const Node& node : graph.nodes()) {
        const NodeFacts& facts = grouping.of(node);
        if (facts.role == Role::Lowered && facts.group < 0)
            add({{&node}, {facts.rule.spaceSizes, facts.rule.reduced}, facts.rule.cost});
    }
    return grouping;
}

}  // namespace cutaway
