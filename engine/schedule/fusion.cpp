#include "engine/schedule/fusion.h"

#include <deque>

#include "engine/ir/data_dependent.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

constexpr size_t kMaxMembers = 120;
constexpr int kFreeCost = 24;  // a value made of constants and indices alone is recomputed up to this cost
constexpr size_t kSiblingsTried = 3;

using Role = NodeFacts::Role;

class Grouper {
  public:
    explicit Grouper(const Graph& graph) : m_graph(&graph) {
        m_grouping.facts.resize(graph.idLimit());
        m_grouping.memory = std::make_shared<const MemoryOrder>(graph);
    }

    Grouping run(const Progress& progress) {
        classify();
        constexpr size_t kSaidEach = 256;
        size_t done = 0;
        for (const Node& node : m_graph->nodes()) {
            // Each merge builds the kernel of the whole group again: some 0.3 ms a node, which adds up in large graphs.
            if (done++ % kSaidEach == 0) {
                if (progress.cancelled()) break;
                progress.say(static_cast<double>(done) / static_cast<double>(m_graph->size()),
                             "fusing, node " + std::to_string(done) + " of " + std::to_string(m_graph->size()));
            }
            if (facts(node).role == Role::Lowered) place(node);
        }
        return std::move(m_grouping);
    }

  private:
    NodeFacts& facts(const Node& node) { return m_grouping.facts[index(node.id())]; }

    void classify() {
        int position = 0;
        markDead();
        for (const Node& node : m_graph->nodes()) {
            NodeFacts& own = facts(node);
            own.position = position++;
            if (own.role == Role::Dead) continue;
            own.role = roleOf(node, own);
        }
    }
    /// Nobody reads them and nothing else would notice.
    void markDead() {
        std::vector<const Node*> order;
        for (const Node& node : m_graph->nodes()) order.push_back(&node);
        for (auto at = order.rbegin(); at != order.rend(); ++at) {
            const Node& node = **at;
            if (!node.isCall() || node.is(Tag::Impure) || node.op().mutates()) continue;
            const bool read = std::any_of(node.users().begin(), node.users().end(),
                                          [&](const Node* user) { return facts(*user).role != Role::Dead; });
            if (!read) facts(node).role = Role::Dead;
        }
    }
    Role roleOf(const Node& node, NodeFacts& own) {
        if (node.isOutput()) return Role::Output;
        if (!node.isCall()) return node.type().sym() ? Role::Symbol : Role::Input;
        if (node.type().sym()) return node.type().sym()->expr ? Role::Symbol : Role::External;
        if (node.isCall("operator.getitem")) return Role::Alias;
        if (node.is(Tag::View) && !node.op().mutates()) return Role::Alias;
        if (node.op().mutates() || drawsFromRun(node) || sizeDependsOnData(node.op(), node.args()) ||
            node.is(Tag::Impure)) {
            own.rule.whyNot = node.op().mutates() ? "it writes to memory that others see"
                                                  : "its result does not follow from its operands' elements";
            return Role::External;
        }
        own.rule = probe(node);
        if (!own.rule.lowers) return Role::External;
        return isFree(node, own.rule) ? Role::Free : Role::Lowered;
    }
    /// Constants and functions of the index alone: cheaper to compute again than to read, unless a reader needs them in
    /// memory.
    bool isFree(const Node& node, const RuleFacts& rule) {
        if (rule.reduces || node.type().tuple() || rule.cost > kFreeCost) return false;
        for (const Node* input : node.inputs()) {
            const Role role = facts(*rootOf(*input).node).role;
            if (role != Role::Free && role != Role::Symbol) return false;
        }
        return !needsMemory(node);
    }
    /// Random numbers that a seed among the operands gives have a rule; others follow from the state of the run.
    static bool drawsFromRun(const Node& node) {
        return node.is(Tag::Random) && (node.op().def() == nullptr || !node.op().def()->lower);
    }
    /// True if a reader will want the value (or a view of it) at an address.
    bool needsMemory(const Node& node) {
        for (const Node* user : node.users()) {
            if (user->isOutput()) return true;
            if (facts(*user).role == Role::Dead) continue;
            if (user->is(Tag::View) || user->isCall("operator.getitem")) {
                if (!user->isCall("operator.getitem") && !probe(*user).lowers) return true;
                if (needsMemory(*user)) return true;
            } else if (user->op().mutates() || drawsFromRun(*user) || user->is(Tag::Impure) || !probe(*user).lowers) {
                return true;
            }
        }
        return false;
    }

    void place(const Node& node) {
        NodeFacts& own = facts(node);
        own.group = static_cast<int>(m_grouping.groups.size());
        FusionGroup group;
        group.members = {&node};
        group.cost = own.rule.cost;
        group.space = {own.rule.spaceSizes, own.rule.reduced};
        m_grouping.groups.push_back(std::move(group));
        std::vector<const Node*> producers;
        collectProducers(node, producers);
        for (const Node* producer : producers) tryMerge(*producer, node, false);
        std::vector<const Node*> siblings;
        collectSiblings(node, siblings);
        for (const Node* sibling : siblings) tryMerge(*sibling, node, true);
    }

    /// Nodes with lowering rules whose values this one reads, through views and free nodes; nearest in the graph first.
    void collectProducers(const Node& node, std::vector<const Node*>& found) {
        const std::vector<Node*> inputs = node.inputs();
        for (const Node* input : inputs) {
            const Node* root = rootOf(*input).node;
            const Role role = facts(*root).role;
            if (role == Role::Lowered && std::find(found.begin(), found.end(), root) == found.end())
                found.push_back(root);
            else if (role == Role::Free) collectProducers(*root, found);
        }
        std::stable_sort(found.begin(), found.end(),
                         [&](const Node* a, const Node* b) { return facts(*a).position > facts(*b).position; });
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

    void tryMerge(const Node& a, const Node& b, bool siblings) {
        const int from = facts(a).group, to = facts(b).group;
        if (from == to) return;
        const std::string apart = siblings ? a.name() + " and " + b.name() + " do not share a kernel: "
                                           : a.name() + " is not computed in the kernel of " + b.name() + ": ";
        FusionGroup &x = m_grouping.groups[static_cast<size_t>(from)], &y = m_grouping.groups[static_cast<size_t>(to)];
        if (x.members.size() + y.members.size() > kMaxMembers)
            return record(a, b, false, apart + "it would have more than " + std::to_string(kMaxMembers) + " nodes");
        if (const Node* between = pathThroughOthers(from, to))
            return record(a, b, false, apart + between->name() + " must run between them");
        std::string problem;
        for (const Space& space : candidateSpaces(x.space, y.space)) {
            FusionGroup merged = mergedGroup(x, y, space);
            for (const Node* member : merged.members) facts(*member).group = to;
            BuiltKernel built = buildKernel(m_grouping, merged);
            if (built.problem.empty()) built.problem = recomputation(merged, a, b);
            if (built.problem.empty()) {
                record(a, b, true,
                       siblings ? a.name() + " and " + b.name() + " share a kernel: one loop over " + space.text() +
                                      " reads " + sharedName(a, b) + " once"
                                : a.name() + " is computed in the kernel of " + b.name() + ": one loop over " +
                                      space.text() + " makes both");
                x.members.clear();
                y = std::move(merged);
                return;
            }
            for (const Node* member : x.members) facts(*member).group = from;
            if (problem.empty()) problem = built.problem;
        }
        record(a, b, false,
               apart + (problem.empty() ? "one loops over " + x.space.text() + ", the other over " + y.space.text()
                                        : problem));
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
        return fullX == fullY ? std::vector<Space>{x.sizes.size() >= y.sizes.size() ? x : y} : std::vector<Space>{y};
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
        if (cost <= 4) return {};
        // Dims of size 1 at the end, aligned with the consumer's: the value is constant along the innermost loop.
        const SymDims& consumer = tensorOf({&b, 0})->sizes;
        const SymDims& producer = tensorOf({&a, 0})->sizes;
        const bool innermostOne =
            !producer.empty() && producer.back().asInt() == 1 && !consumer.empty() && consumer.back().asInt() != 1;
        if (*count == 1 || innermostOne || constantAlongLastDim(a, b)) return {};
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
        // Positions cannot bound the search: a group on the way may have earlier members.
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
                const NodeFacts& own = facts(*user);
                if (own.role == Role::Dead || own.role == Role::Output) return;
                if (own.role == Role::Lowered && own.group == from) return;
                if (own.role == Role::Lowered && own.group == to) {
                    if (way != nullptr) reached = way;
                    return;
                }
                const bool real = own.role == Role::External || (own.role == Role::Lowered && own.group >= 0);
                const Node* mark = way ? way : real ? user : nullptr;
                // A group is entered as a whole: all its members run in one kernel.
                if (own.role == Role::Lowered && own.group >= 0)
                    for (const Node* member : m_grouping.groups[static_cast<size_t>(own.group)].members)
                        push(*member, mark);
                else if (own.role != Role::Lowered) push(*user, mark);
            };
            for (const Node* user : at->users()) visit(user);
            for (const Node* later : m_grouping.memory->after(*at)) visit(later);
            if (reached) return reached;
        }
        return nullptr;
    }

    const Graph* m_graph;
    Grouping m_grouping;
    std::map<NodeId, std::vector<const Node*>> m_readers;
    std::vector<int> m_seen;  // number of the search that last met a node
    int m_search = 0;
};

}  // namespace

Grouping groupNodes(const Graph& graph, const Progress& progress) { return Grouper(graph).run(progress); }

}  // namespace cutaway
