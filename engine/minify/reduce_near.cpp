// The calls around the one that is to blame, however far apart they stand in the graph's order.
#include <algorithm>
#include <unordered_set>

#include "engine/minify/edits.h"
#include "engine/minify/reducer.h"

namespace cutaway {
namespace {

using CallSet = std::unordered_set<NodeId>;

/// The call whose result a node is: of an item of a tuple the call that returns it.
const Node& callOf(const Node& node) {
    const Node* call = &node;
    while (call->isCall("operator.getitem") && call->arg(0).node()) call = call->arg(0).node();
    return *call;
}

/// The graph of the `kept` calls alone: what they read of others becomes inputs, what others read of them is returned.
std::optional<Candidate> onlyThese(const Reducer& reducer, const std::vector<NodeId>& calls, const CallSet& kept) {
    const std::shared_ptr<Module> module = reducer.copy();
    Graph& graph = module->graph();
    const auto isKept = [&](const Node& node) { return kept.contains(callOf(node).id()); };
    const auto isItem = [](const Node& node) { return node.isCall("operator.getitem"); };
    std::vector<Argument> boundary;
    for (Node& node : graph.nodes())
        if (node.isCall() && isKept(node) && node.type().tensor() &&
            std::any_of(node.users().begin(), node.users().end(), [&](const Node* user) { return !isKept(*user); }))
            boundary.emplace_back(&node);
    if (boundary.empty()) return std::nullopt;
    for (const NodeId id : calls) {
        Node* node = kept.contains(id) ? nullptr : graph.find(id);
        if (node == nullptr) continue;
        const auto readsIt = [&](const Node* user) { return isKept(*user); };
        const bool read = std::any_of(node->users().begin(), node->users().end(), [&](const Node* user) {
            return isItem(*user) ? std::any_of(user->users().begin(), user->users().end(), readsIt) : readsIt(user);
        });
        if (read) makeInput(*module, *node);
    }
    returnOnly(*module, boundary);
    for (auto id = calls.rbegin(); id != calls.rend(); ++id)
        if (Node* node = kept.contains(*id) ? nullptr : graph.find(*id); node && !node->hasUsers()) graph.erase(*node);
    dropDead(*module);
    if (graph.size() >= reducer.graph().graph().size()) return std::nullopt;
    return reducer.with(module);
}

/// The calls `from`, those that read them, and those that they read.
CallSet grown(const Graph& graph, const CallSet& from, const CallSet& all) {
    CallSet out = from;
    const auto add = [&](const Node& node) {
        if (const NodeId id = callOf(node).id(); all.contains(id)) out.insert(id);
    };
    const auto addReaders = [&](const Node& node, auto&& self) -> void {
        for (const Node* user : node.users()) {
            if (user->isCall("operator.getitem")) self(*user, self);
            else add(*user);
        }
    };
    for (const NodeId id : from) {
        const Node& node = *graph.find(id);
        node.forEachInput([&](const Node* operand) { add(*operand); });
        addReaders(node, addReaders);
    }
    return out;
}

}  // namespace

Result<bool> keepNear(Reducer& reducer) {
    // Calls within a distance of 1, 2, 4 and 8 readers or operands, while those are at most half of the graph.
    constexpr int kSteps = 4;
    const Graph& graph = reducer.graph().graph();
    const std::vector<NodeId> calls = cuttableCalls(reducer.graph());
    const CallSet all(calls.begin(), calls.end());
    std::vector<CallSet> around;
    for (const auto& group : reducer.trials().near()) {
        CallSet kept;
        for (const std::string& name : group)
            if (const Node* node = graph.findByName(name); node && all.contains(callOf(*node).id()))
                kept.insert(callOf(*node).id());
        for (int step = 0, distance = 0; step < kSteps && !kept.empty(); ++step) {
            for (const int next = 1 << step; distance < next; ++distance) kept = grown(graph, kept, all);
            if (kept.size() * 2 > all.size()) break;
            if (around.empty() || around.back() != kept) around.push_back(kept);
        }
    }
    if (around.empty()) return false;
    CallSet wanted;
    for (const CallSet& kept : around) wanted.insert(kept.begin(), kept.end());
    std::vector<NodeId> computed;
    for (const NodeId id : calls)
        if (wanted.contains(id)) computed.push_back(id);
    std::vector<std::string> names = namesOf(reducer.graph(), computed);
    for (const NodeId id : computed)
        graph.find(id)->forEachInput([&](const Node* operand) { names.push_back(operand->name()); });
    CT_TRY_VOID(reducer.trials().computeValues(names));
    const auto make = [&](size_t i) { return onlyThese(reducer, calls, around[i]); };
    CT_TRY(std::optional<Trials::Hit> hit, reducer.trials().firstFailing(around.size(), make));
    if (!hit) return false;
    CT_TRY_VOID(
        reducer.accept(std::move(hit->candidate), "kept " + std::to_string(around[hit->number].size()) + " calls"));
    // Few calls are left, so the time of further trials goes into their tensors: these are made smaller at once.
    CT_TRY_VOID(shrinkSizes(reducer));
    return true;
}

}  // namespace cutaway
