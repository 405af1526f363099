// Fewer calls: the end, the beginning, and what is between.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "engine/minify/edits.h"
#include "engine/minify/reducer.h"

namespace cutaway {
namespace {

size_t callsOf(const Module& module) { return cuttableCalls(module).size(); }

/// The first `count` of the calls, returning all that is read behind them.
std::optional<Candidate> beginningOf(const Reducer& reducer, const std::vector<NodeId>& calls, size_t count) {
    const std::shared_ptr<Module> module = reducer.copy();
    Graph& graph = module->graph();
    const std::unordered_set<NodeId> dropped(calls.begin() + static_cast<std::ptrdiff_t>(count), calls.end());
    std::vector<Node*> gone;  // in order
    std::unordered_set<const Node*> isGone;
    for (Node& node : graph.nodes()) {
        if (node.isPlaceholder() || node.isOutput()) continue;
        bool drop = dropped.contains(node.id());
        node.forEachInput([&](const Node* operand) { drop = drop || isGone.contains(operand); });
        if (!drop) continue;
        gone.push_back(&node);
        isGone.insert(&node);
    }
    std::vector<Argument> boundary;
    for (Node& node : graph.nodes()) {
        if (node.isPlaceholder() || node.isOutput() || isGone.contains(&node) || !node.type().tensor()) continue;
        if (std::any_of(node.users().begin(), node.users().end(),
                        [&](const Node* user) { return user->isOutput() || isGone.contains(user); }))
            boundary.emplace_back(&node);
    }
    if (boundary.empty()) return std::nullopt;
    returnOnly(*module, boundary);
    for (auto node = gone.rbegin(); node != gone.rend(); ++node) graph.erase(**node);
    dropDead(*module);
    return reducer.with(module);
}

/// Without the first `count` calls: their values that are read behind them are inputs. What they write is lost.
Candidate endOf(const Reducer& reducer, const std::vector<NodeId>& calls, size_t count) {
    const std::shared_ptr<Module> module = reducer.copy();
    Graph& graph = module->graph();
    const std::unordered_set<NodeId> dropped(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count));
    for (size_t i = 0; i < count; ++i) {
        Node* node = graph.find(calls[i]);
        const bool read = std::any_of(node->users().begin(), node->users().end(),
                                      [&](const Node* user) { return !dropped.contains(user->id()); });
        if (read) makeInput(*module, *node);
    }
    for (size_t i = count; i-- > 0;)
        if (Node* node = graph.find(calls[i]); node && !node->hasUsers()) graph.erase(*node);
    dropDead(*module);
    return reducer.with(module);
}

/// The last call alone is returned; of a tuple every part that is read.
std::optional<Candidate> returningLast(const Candidate& of, NodeId last) {
    const auto module = std::make_shared<Module>(*of.module);
    Node* node = module->graph().find(last);
    if (!node) return std::nullopt;
    std::vector<Argument> values;
    if (node->type().tensor()) values.emplace_back(node);
    else
        for (Node* user : node->users())
            if (user->type().tensor()) values.emplace_back(user);
    if (values.empty()) return std::nullopt;
    returnOnly(*module, values);
    dropDead(*module);
    return Candidate{module, of.request, of.values};
}

/// The smallest number in (good, bad] that fails; `make` gives the graph of each.
Result<size_t> searchCalls(Reducer& reducer, size_t good, size_t bad,
                           const std::function<std::optional<Candidate>(size_t)>& make,
                           std::optional<Candidate>& found) {
    while (bad - good > 1) {
        const size_t middle = good + (bad - good) / 2;
        std::optional<Candidate> candidate = make(middle);
        bool fails = false;
        if (candidate) {
            CT_TRY(fails, reducer.trials().fails(*candidate));
        }
        (fails ? bad : good) = middle;
        if (fails) found = std::move(candidate);
    }
    return bad;
}

/// How a group of calls is taken out.
enum class Way : uint8_t { Bypass, Input };

/// The graph without the calls [begin, end) of the list; nothing if it is not smaller.
std::optional<Candidate> without(const Reducer& reducer, const std::vector<NodeId>& calls, size_t begin, size_t end,
                                 Way way) {
    const std::shared_ptr<Module> module = reducer.copy();
    const size_t before = callsOf(*module), all = module->graph().size();
    for (size_t i = end; i-- > begin;) {
        Node* node = module->graph().find(calls[i]);
        if (!node) continue;
        if (!node->hasUsers()) {
            module->graph().erase(*node);
            continue;
        }
        if (way == Way::Bypass && (bypass(*module, *node) || bypassParts(*module, *node))) continue;
        makeInput(*module, *node);
    }
    dropDead(*module);
    const size_t after = callsOf(*module);
    if (after > before || (after == before && module->graph().size() >= all)) return std::nullopt;
    return reducer.with(module);
}

/// Takes out calls in chunks of falling size, the last ones first.
Result<bool> takeOut(Reducer& reducer, Way way, const std::string& how) {
    bool any = false;
    size_t chunk = std::max<size_t>(1, callsOf(reducer.graph()));
    CT_TRY_VOID(reducer.trials().computeValues(namesOf(reducer.graph(), cuttableCalls(reducer.graph()))));
    while (true) {
        const std::vector<NodeId> calls = cuttableCalls(reducer.graph());
        if (calls.empty()) return any;
        chunk = std::min(chunk, calls.size());
        const size_t chunks = (calls.size() + chunk - 1) / chunk;
        CT_TRY(const bool smaller, reducer.sweep(
                                       chunks,
                                       [&](size_t i) {
                                           const size_t end = calls.size() - i * chunk;
                                           return without(reducer, calls, end > chunk ? end - chunk : 0, end, way);
                                       },
                                       how));
        any = any || smaller;
        if (chunk == 1 && !smaller) return any;
        if (chunk > 1) chunk = (chunk + 1) / 2;
    }
}

}  // namespace

std::vector<std::string> namesOf(const Module& module, const std::vector<NodeId>& ids) {
    std::vector<std::string> names;
    for (const NodeId id : ids) {
        const Node& node = *module.graph().find(id);
        names.push_back(node.name());
        if (!node.type().tensor())
            for (const Node* user : node.users()) names.push_back(user->name());
    }
    return names;
}

Result<bool> cutEnd(Reducer& reducer) {
    const std::vector<NodeId> calls = cuttableCalls(reducer.graph());
    if (calls.size() < 2) return false;
    std::optional<Candidate> found;
    CT_TRY(const size_t last,
           searchCalls(
               reducer, 0, calls.size(), [&](size_t count) { return beginningOf(reducer, calls, count); }, found));
    if (found) CT_TRY_VOID(reducer.accept(std::move(*found), "ended at call " + std::to_string(last)));
    return found.has_value();
}

Result<bool> cutBegin(Reducer& reducer) {
    const std::vector<NodeId> calls = cuttableCalls(reducer.graph());
    if (calls.size() < 2) return false;
    // The values that any of the growing ends takes.
    std::set<std::string> boundary;
    for (size_t kept = 1; kept < calls.size(); kept *= 2)
        for (size_t i = calls.size() - kept; i < calls.size(); ++i)
            for (const Node* operand : reducer.graph().graph().find(calls[i])->inputs())
                boundary.insert(operand->name());
    CT_TRY_VOID(reducer.trials().computeValues({boundary.begin(), boundary.end()}));
    const auto lastOnly = returningLast(endOf(reducer, calls, calls.size() - 1), calls.back());
    if (lastOnly) {
        CT_TRY(const bool one, reducer.take(*lastOnly, "only the last call"));
        if (one) return true;
    }
    bool any = false;
    if (reducer.graph().graph().outputs().size() > 1) {
        if (const auto fewer = returningLast(reducer.best(), calls.back())) {
            CT_TRY(any, reducer.take(*fewer, "returns the last call only"));
        }
    }
    const std::vector<NodeId> left = cuttableCalls(reducer.graph());
    const auto ending = [&](size_t kept) { return endOf(reducer, left, left.size() - kept); };
    size_t good = any ? 1 : 0, bad = left.size();
    std::optional<Candidate> found;
    for (size_t kept = 2; kept < left.size() && !found; kept *= 2) {
        Candidate candidate = ending(kept);
        CT_TRY(const bool fails, reducer.trials().fails(candidate));
        (fails ? bad : good) = kept;
        if (fails) found = std::move(candidate);
    }
    CT_TRY(const size_t kept, searchCalls(reducer, good, bad, ending, found));
    if (found)
        CT_TRY_VOID(reducer.accept(std::move(*found), "began " + std::to_string(kept) + " calls before the end"));
    return any || found.has_value();
}

Result<bool> bypassCalls(Reducer& reducer) { return takeOut(reducer, Way::Bypass, "bypassed"); }
Result<bool> callsToInputs(Reducer& reducer) { return takeOut(reducer, Way::Input, "made inputs"); }

}  // namespace cutaway
