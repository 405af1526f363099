#include "engine/passes/post_grad/overlap_scheduling.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/ops/alias.h"
#include "engine/passes/post_grad/bucket_collectives.h"
#include "engine/passes/post_grad/overlap_buckets.h"
#include "engine/passes/post_grad/wait_tensor.h"
#include "engine/rewrite/refusing.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

constexpr std::string_view kCollectiveRule = "reorder_collective", kWaitRule = "reorder_wait",
                           kCallRule = "reorder_call", kCopyRule = "wait_for_copies", kJoinRule = "join_collectives";

bool isCollective(const Node& node) {
    return node.isCall() && node.op().name().starts_with("_c10d_functional.") &&
           std::any_of(node.users().begin(), node.users().end(), [](const Node* user) { return user->isCall(kWait); });
}
std::string_view ruleOf(const Node& node) {
    return node.isCall(kWait) ? kWaitRule : isCollective(node) ? kCollectiveRule : kCallRule;
}
std::string_view reasonOf(const Node& node, bool earlier) {
    if (node.isCall(kWait))
        return earlier ? "what it waits for is there by now" : "other work is done before the result is waited for";
    if (isCollective(node)) return earlier ? "it runs beside the work that follows" : "what runs beside it comes later";
    return earlier ? "a collective needs it, or other work is put off" : "collectives start and products run before it";
}

// ---------------------------------------------------------------- the new order

/// What the call writes to.
std::vector<const Node*> writtenBy(const Node& call) {
    std::vector<const Node*> written;
    const auto add = [&](const Node* node) { written.push_back(node); };
    const Schema* schema = call.op().schema();
    for (size_t i = 0; i < call.args().size(); ++i)
        if (schema == nullptr || schema->params[i].mutated) call.arg(i).forEachNode(add);
    return written;
}
/// PyTorch's order may read memory after it is written to; ours may not.
bool keepsWrites(const std::vector<Node*>& order) {
    std::vector<size_t> place(order.empty() ? 0 : order[0]->graph().idLimit(), 0);
    for (size_t i = 0; i < order.size(); ++i) place[index(order[i]->id())] = i;
    for (const Node* node : order) {
        if (!node->isCall() || !node->op().mutates()) continue;
        for (const Node* target : writtenBy(*node))
            for (const Node* sharer : sharersOf(storageRoot(*target)))
                for (const Node* user : sharer->users())
                    if (user != node &&
                        node->graph().isBefore(*user, *node) != (place[index(user->id())] < place[index(node->id())]))
                        return false;
    }
    return true;
}

/// Moves nodes one by one to where they stand in `order`; the graph is in order after each. As few as possible move,
/// and rather collectives and waits than others.
class Reordering {
  public:
    Reordering(Graph& graph, Rewriter& rewriter, std::vector<Node*> order)
        : m_graph(graph), m_rewriter(rewriter), m_order(std::move(order)), m_placed(m_order.size(), false) {}

    bool run() {
        stay();
        bool changed = false;
        // Nodes that move later first, from the end, each right behind what stays; then nodes that move earlier, from
        // the beginning.
        for (size_t i = m_order.size(); i-- > 0;)
            if (!m_placed[i] && isPutOff(i) && !place(i, changed)) return changed;
        for (size_t i = 0; i < m_order.size(); ++i)
            if (!m_placed[i] && !place(i, changed)) return changed;
        return changed;
    }

  private:
    /// Marks nodes that stay: the heaviest common subsequence of both orders (collectives and waits weigh 2, others 3).
    void stay() {
        const size_t count = m_order.size();
        std::vector<size_t> oldPlace(m_graph.idLimit(), 0);
        size_t at = 0;
        for (const Node& node : m_graph.nodes()) oldPlace[index(node.id())] = at++;
        // best[i]: weight of the heaviest sequence that ends with node i. The tree holds the best one by old place.
        std::vector<int64_t> best(count, 0);
        std::vector<size_t> before(count, count), tree(at + 1, count);
        const auto better = [&](size_t a, size_t b) { return b == count || (a != count && best[a] > best[b]); };
        size_t last = count;
        for (size_t i = 0; i < count; ++i) {
            const size_t old = oldPlace[index(m_order[i]->id())];
            size_t previous = count;
            for (size_t t = old; t > 0; t -= t & (~t + 1))
                if (better(tree[t], previous)) previous = tree[t];
            before[i] = previous;
            best[i] = (previous == count ? 0 : best[previous]) + (ruleOf(*m_order[i]) == kCallRule ? 3 : 2);
            for (size_t t = old + 1; t <= at; t += t & (~t + 1))
                if (better(i, tree[t])) tree[t] = i;
            if (better(i, last)) last = i;
        }
        for (size_t i = last; i != count; i = before[i]) m_placed[i] = true;
    }
    /// Whether the node stands before the place where it shall stand.
    bool isPutOff(size_t i) const {
        const Node* after = target(i);
        return after != nullptr && m_graph.isBefore(*m_order[i], *after);
    }
    /// The nearest node before it, in the new order, that stands where it shall.
    Node* target(size_t i) const {
        while (i-- > 0)
            if (m_placed[i]) return m_order[i];
        return nullptr;
    }
    /// False: no more rewrites.
    bool place(size_t i, bool& changed) {
        Node& node = *m_order[i];
        Node* after = target(i);
        Node* next = after ? after->next() : m_graph.first();
        if (next == &node) m_placed[i] = true;
        if (next == &node || next == nullptr) return true;
        const bool earlier = m_graph.isBefore(*next, node);
        const std::string_view rule = ruleOf(node);
        if (!mayStandBefore(node, *next)) return true;
        const Go go = m_rewriter.begin(rule, node, reasonOf(node, earlier));
        // Where a rule is switched off, what depends on its nodes stays too.
        if (go != Go::Yes) return go == Go::Skip;
        m_graph.moveBefore(node, *next);
        m_placed[i] = changed = true;
        return true;
    }
    bool mayStandBefore(const Node& node, const Node& next) const {
        bool may = true;
        node.forEachInput([&](const Node* input) { may &= m_graph.isBefore(*input, next); });
        for (const Node* user : node.users()) may &= user == &next || m_graph.isBefore(next, *user);
        return may;
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    std::vector<Node*> m_order;
    std::vector<bool> m_placed;  // whether the node stands where it shall
};

std::vector<Node*> nodesOf(const Graph& graph, const OverlapUnits& units, const std::vector<size_t>& order) {
    std::vector<Node*> nodes = graph.placeholders();
    for (const size_t unit : order)
        for (Node* node : units.all()[unit].nodes)
            if (!node->isPlaceholder()) nodes.push_back(node);
    return nodes;
}

// ---------------------------------------------------------------- collectives that become one

/// Joins collectives, and puts the graph into the order that PyTorch's sorting gives it then.
class OverlapJoining {
  public:
    OverlapJoining(Graph& graph, Rewriter& rewriter, const OverlapUnits& units, const OverlapPlan& plan,
                   const std::vector<Node*>& nodes)
        : m_graph(graph), m_rewriter(rewriter), m_units(units), m_plan(plan) {
        for (const Node* node : nodes) m_order.push_back(node->id());
    }
    Result<bool> run(OverlapBuckets buckets) {
        const auto found = buckets.find();
        for (size_t unit = 0; unit < m_units.all().size(); ++unit)
            for (const size_t earlier : buckets.before()[unit])
                if (const Node* later = lastOf(unit), *before = lastOf(earlier); later && before)
                    m_before[later->id()].push_back(before->id());
        explain(found);
        bool changed = false;
        for (const std::vector<size_t>& bucket : found) {
            std::vector<Node*> starts;
            for (const size_t number : bucket) starts.push_back(&startOf(number));
            if (!mayJoin(starts)) continue;
            if (m_rewriter.begin(kJoinRule, *starts[0],
                                 "one large message takes less time than several small ones, and hides as well") !=
                Go::Yes)
                return changed;
            CT_TRY_VOID(join(starts));
            changed = true;
        }
        if (const auto order = sorted()) changed |= Reordering(m_graph, m_rewriter, *order).run();
        return changed;
    }

  private:
    static bool mayJoin(const std::vector<Node*>& starts) {
        if (!std::all_of(starts.begin(), starts.end(), [](const Node* start) { return isJoinable(*start); }))
            return false;
        // A gather within a group of one member is only a copy, whose bytes may not be aligned for another dtype.
        const bool one = starts[0]->op().schema()->find("group_size") >= 0 && starts[0]->arg("group_size").asInt() == 1;
        return !one || std::all_of(starts.begin(), starts.end(), [&](const Node* start) {
            return start->tensor().dtype == starts[0]->tensor().dtype;
        });
    }
    Node& startOf(size_t number) const { return *m_units.all()[m_plan.collectives()[number].start].nodes[0]; }
    void explain(const std::vector<std::vector<size_t>>& buckets) const {
        for (const std::vector<size_t>& bucket : buckets)
            for (const size_t number : bucket) {
                const Refusing refuse(m_rewriter, kJoinRule, startOf(number));
                if (number != bucket[0]) refuse("it goes into the message that ", startOf(bucket[0]), " begins");
                else
                    refuse(
                        "it, or one that would go with it, is read by more than its wait, or sends no tensor of known sizes");
            }
        for (const Node& node : m_graph.nodes())
            m_rewriter.refuse(kJoinRule, node,
                              node.isCall(kWait) ? "it waits for a collective and starts none"
                                                 : "with no other like it would all that is hidden stay so");
    }
    /// What stands for the unit: its node, or the last result of a run of calls.
    const Node* lastOf(size_t unit) const {
        const auto& nodes = m_units.all()[unit].nodes;
        const auto last = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node* node) {
            return nodes.size() == 1 || std::any_of(node->users().begin(), node->users().end(), [&](const Node* user) {
                       return std::find(nodes.begin(), nodes.end(), user) == nodes.end();
                   });
        });
        return last == nodes.rend() ? nullptr : *last;
    }
    size_t placeOf(NodeId id) const {
        return static_cast<size_t>(std::find(m_order.begin(), m_order.end(), id) - m_order.begin());
    }

    Result<void> join(const std::vector<Node*>& starts) {
        std::set<NodeId> oldStarts, oldWaits;
        for (const Node* start : starts) {
            oldStarts.insert(start->id());
            oldWaits.insert(start->users()[0]->id());
        }
        size_t place =
            placeOf(starts[starts[0]->isCall("_c10d_functional.all_gather_into_tensor.default") ? starts.size() - 1 : 0]
                        ->id()) +
            1;
        while (place < m_order.size() && oldStarts.contains(m_order[place])) ++place;
        CT_TRY(const JoinedCollectives joined, joinCollectives(m_graph, m_rewriter, starts));
        std::vector<NodeId> made;
        for (const Node* node : joined.made) made.push_back(node->id());
        m_order.insert(m_order.begin() + static_cast<std::ptrdiff_t>(place), made.begin(), made.end());
        const auto now = [&](NodeId id) {
            return oldStarts.contains(id) ? joined.start->id() : oldWaits.contains(id) ? joined.wait->id() : id;
        };
        std::erase_if(m_order, [&](NodeId id) { return oldStarts.contains(id) || oldWaits.contains(id); });
        std::map<NodeId, std::vector<NodeId>> before;
        for (const auto& [later, list] : m_before)
            for (const NodeId earlier : list) {
                auto& kept = before[now(later)];
                if (now(earlier) != now(later) && std::find(kept.begin(), kept.end(), now(earlier)) == kept.end())
                    kept.push_back(now(earlier));
            }
        m_before = std::move(before);
        return {};
    }
    /// An order with every node behind its operands and behind what the buckets want before it; none if there is no
    /// such order, or if layouts required calls that the order does not know.
    std::optional<std::vector<Node*>> sorted() const {
        std::vector<NodeId> pending(m_order.rbegin(), m_order.rend());
        std::set<NodeId> ready;
        std::map<NodeId, std::vector<NodeId>> parked;
        std::vector<Node*> order;
        while (!pending.empty()) {
            Node* node = m_graph.find(pending.back());
            pending.pop_back();
            std::optional<NodeId> missing;
            for (const Node* input : node->inputs())
                if (!ready.contains(input->id())) missing = input->id();
            if (const auto more = m_before.find(node->id()); more != m_before.end())
                for (const NodeId earlier : more->second)
                    if (!ready.contains(earlier)) missing = earlier;
            if (missing) {
                parked[*missing].push_back(node->id());
                continue;
            }
            ready.insert(node->id());
            order.push_back(node);
            if (const auto waiting = parked.find(node->id()); waiting != parked.end())
                pending.insert(pending.end(), waiting->second.rbegin(), waiting->second.rend());
        }
        return order.size() == m_graph.size() && keepsWrites(order) ? std::optional(std::move(order)) : std::nullopt;
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    const OverlapUnits& m_units;
    const OverlapPlan& m_plan;
    std::vector<NodeId> m_order;                     // as PyTorch's graph stands before it is sorted
    std::map<NodeId, std::vector<NodeId>> m_before;  // besides operands
};

// ---------------------------------------------------------------- what else PyTorch does

/// A copy to another device that nobody waits for may be read before it has arrived once nodes move.
bool waitForCopies(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node& node : graph.nodes()) {
        if (!node.isCall("prims.device_put.default")) continue;
        if (node.arg("non_blocking").asInt().value_or(0) == 0) {
            rewriter.refuse(kCopyRule, node, "it is waited for");
            continue;
        }
        if (rewriter.begin(kCopyRule, node, "its readers may come to stand right behind it") != Go::Yes) return changed;
        std::vector<Argument> args = node.args();
        args.back() = Argument(false);
        graph.setArgs(node, std::move(args));
        changed = true;
    }
    return changed;
}

/// Refuses the watched node with the reason why it stays where it is.
class Explaining {
  public:
    Explaining(Rewriter& rewriter, const OverlapUnits& units, const OverlapPlan& plan)
        : m_rewriter(rewriter), m_units(units), m_plan(plan) {}

    void explain(const Node& node) const {
        const Refusing collective(m_rewriter, kCollectiveRule, node), wait(m_rewriter, kWaitRule, node),
            call(m_rewriter, kCallRule, node);
        if (node.isCall(kWait)) {
            collective(node, " waits for a collective; it starts none");
            explainWait(node, wait);
        } else if (isCollective(node)) {
            explainCollective(node, collective);
        } else {
            collective("no call waits for it");
        }
        call("no collective needs it any earlier, and its result is not needed any later than it is");
    }

  private:
    const Node* nodeOf(std::optional<size_t> unit) const {
        return unit && !m_units.all()[*unit].nodes.empty() ? m_units.all()[*unit].nodes[0] : nullptr;
    }
    const OverlapCollective* find(const Node& start) const {
        const auto unit = m_units.unitOf(start);
        for (const OverlapCollective& collective : m_plan.collectives())
            if (unit == collective.start) return &collective;
        return nullptr;
    }
    void explainWait(const Node& node, const Refusing& refuse) const {
        const Node* start = node.arg(0).node();
        const OverlapCollective* collective = start ? find(*start) : nullptr;
        if (collective == nullptr) refuse("no time is known of what it waits for");
        else if (collective->hiding.empty()) refuse("no other work runs beside ", start);
        else refuse("its result is needed, or nothing is left that could run beside ", start);
    }
    void explainCollective(const Node& node, const Refusing& refuse) const {
        const OverlapCollective* collective = find(node);
        if (collective == nullptr) refuse("no time is known of such a call");
        else if (const Node* beside = collective->hiding.empty() ? nullptr : nodeOf(collective->hiding[0]))
            refuse(NodeWithKind{beside}, " runs beside it, and it starts early enough for that");
        else if (collective->problem.what.empty()) refuse("no other work is left when it could start");
        else {
            const Node *tried = nodeOf(collective->problem.beside), *because = nodeOf(collective->problem.because);
            const std::string_view where = tried ? "beside " : "beside other work";
            if (tried && because)
                refuse.about(because, "it cannot start ", where, tried, ": ", collective->problem.what, ", ", because);
            else if (tried) refuse("it cannot start ", where, tried, ": ", collective->problem.what);
            else refuse("it cannot start ", where, ": ", collective->problem.what);
        }
    }

    Rewriter& m_rewriter;
    const OverlapUnits& m_units;
    const OverlapPlan& m_plan;
};

Result<bool> scheduleGraph(Graph& graph, Rewriter& rewriter) {
    static const OptionalPass kDefaults;
    const OptionalPass* given = rewriter.request().enabled("overlap_scheduling");
    const OptionalPass& settings = given ? *given : kDefaults;
    if (std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return node.isCall(kWait); })) {
        for (const Node& node : graph.nodes())
            for (const std::string_view rule : {kCollectiveRule, kWaitRule, kCallRule, kCopyRule, kJoinRule})
                rewriter.refuse(rule, node, "no collective of this graph is waited for");
        return false;
    }
    const bool copies = waitForCopies(graph, rewriter);
    const OverlapCosts costs(graph, settings, rewriter.context());
    const OverlapUnits units(graph, costs, settings.flag("enable_fusion_regions", true));
    OverlapPlan plan(units, costs, OverlapLimits(settings));
    CT_TRY(const std::vector<size_t> order, plan.order());
    std::vector<Node*> nodes = nodesOf(graph, units, order);
    CT_CHECK(nodes.size() == graph.size(), "an order has every node once");
    if (!keepsWrites(nodes)) {
        for (const Node* node : nodes)
            for (const std::string_view rule : {kCollectiveRule, kWaitRule, kCallRule, kJoinRule})
                rewriter.refuse(rule, *node, "in the new order memory would be read after it is written to");
        return copies;
    }
    for (const Node* node : nodes)
        if (rewriter.watches(*node)) Explaining(rewriter, units, plan).explain(*node);
    const bool moved = Reordering(graph, rewriter, nodes).run();
    if (!settings.flag("collective_bucketing", false)) {
        for (const Node& node : graph.nodes())
            rewriter.refuse(kJoinRule, node, "collectives are joined only where collective_bucketing is set");
        return moved || copies;
    }
    if (rewriter.disabled(kJoinRule) || rewriter.outOfFuel() || rewriter.cancelled()) return moved || copies;
    CT_TRY(const bool joined,
           OverlapJoining(graph, rewriter, units, plan, nodes).run(OverlapBuckets(units, plan, order, settings)));
    return joined || moved || copies;
}

}  // namespace

Result<bool> scheduleOverlap(Module& module, Rewriter& rewriter) { return scheduleGraph(module.graph(), rewriter); }

}  // namespace cutaway
