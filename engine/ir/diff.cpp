#include "engine/ir/diff.h"

#include "engine/ir/fingerprint.h"

namespace cutaway {
namespace {

std::vector<NodeId> valuesRead(const Node& node) {
    std::vector<NodeId> ids;
    auto visit = [&](const Node* input) { ids.push_back(input->id()); };
    for (const Argument& arg : node.args()) arg.forEachNode(visit);
    for (const auto& [key, arg] : node.kwargs()) arg.forEachNode(visit);
    return ids;
}

void compareNodes(const Node& before, const Node& after, ModuleDiff& result) {
    if (before.name() != after.name()) result.renamed.push_back(after.id());
    if (contentFingerprint(before) == contentFingerprint(after)) return;
    result.edited.push_back(after.id());
    const std::vector<NodeId> old = valuesRead(before), now = valuesRead(after);
    for (size_t i = 0; old.size() == now.size() && i < old.size(); ++i)
        if (old[i] != now[i]) result.rewired.push_back({after.id(), old[i], now[i]});
}

void addAll(const Module& module, std::vector<NodeId>& ids) {
    for (const Node& node : module.graph().nodes()) ids.push_back(node.id());
    for (const auto& [name, body] : module.subgraphs) addAll(*body, ids);
}

void compareModules(const Module& before, const Module& after, ModuleDiff& result) {
    std::vector<NodeId> oldOrder, newOrder;
    for (const Node& node : before.graph().nodes()) {
        if (after.graph().find(node.id())) oldOrder.push_back(node.id());
        else result.removed.push_back(node.id());
    }
    for (const Node& node : after.graph().nodes()) {
        if (const Node* old = before.graph().find(node.id())) {
            newOrder.push_back(node.id());
            compareNodes(*old, node, result);
        } else result.added.push_back(node.id());
    }
    result.reordered |= oldOrder != newOrder;
    for (const auto& [name, body] : before.subgraphs) {
        if (const Module* now = after.subgraph(name)) compareModules(*body, *now, result);
        else addAll(*body, result.removed);
    }
    for (const auto& [name, body] : after.subgraphs)
        if (before.subgraph(name) == nullptr) addAll(*body, result.added);
}

}  // namespace

ModuleDiff diff(const Module& before, const Module& after) {
    ModuleDiff result;
    compareModules(before, after, result);
    return result;
}

bool sameButForInputs(const Node& a, const Node& b) {
    if (a.kind() != b.kind() || a.args().size() != b.args().size() || !sameType(a.type(), b.type())) return false;
    if (a.isCall() && &a.op() != &b.op()) return false;
    if (a.target() != b.target() || a.kwargs().size() != b.kwargs().size()) return false;
    // Every operand becomes the same node on both sides, so only literals and structure can differ.
    auto masked = [&a](const Argument& argument) {
        return argument.mapNodes([&a](Node*) { return const_cast<Node*>(&a); });
    };
    for (size_t i = 0; i < a.args().size(); ++i)
        if (!equal(masked(a.arg(i)), masked(b.arg(i)))) return false;
    for (size_t i = 0; i < a.kwargs().size(); ++i)
        if (a.kwargs()[i].first != b.kwargs()[i].first ||
            !equal(masked(a.kwargs()[i].second), masked(b.kwargs()[i].second)))
            return false;
    return true;
}

}  // namespace cutaway
