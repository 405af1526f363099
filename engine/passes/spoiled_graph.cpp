#include "engine/passes/spoiled_graph.h"

#include <algorithm>
#include <limits>

#include "engine/ir/verify.h"
#include "engine/rewrite/graph_order.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

/// Whether readers of the value can read another one of its type instead: a float that no call writes to.
bool isReplaceable(const Node& node) {
    const TensorType* type = node.type().tensor();
    if (!node.isCall() || type == nullptr || node.op().mutates() || !node.hasUsers()) return false;
    constexpr DType kKinds[] = {DType::F16, DType::BF16, DType::F32, DType::F64};
    if (std::find(std::begin(kKinds), std::end(kKinds), type->dtype) == std::end(kKinds)) return false;
    return std::none_of(node.users().begin(), node.users().end(),
                        [](const Node* user) { return user->isCall() && user->op().mutates(); });
}

/// Puts a value computed from `node` in its place. False if its layout cannot be kept.
Result<bool> replaceByOther(Graph& graph, Node& node, FaultEffect effect, const Rewriter& rewriter) {
    GraphBuilder builder = rewriter.builder(graph, node.next(), node);
    const Value other = effect == FaultEffect::Nan
                            ? builder.call("aten.mul.Tensor", {&node, std::numeric_limits<double>::quiet_NaN()})
                            : builder.call("aten.erfc.default", {&node});
    if (builder.error()) return *builder.error();
    Node& made = *other.node();
    if (!sameMemory(made.type(), node.type())) {
        graph.erase(made);
        return false;
    }
    graph.replaceUses(node, made, [&](const Node& user) { return &user == &made; });
    return true;
}

Result<bool> spoil(Graph& graph, Node& node, FaultEffect effect, const Rewriter& rewriter) {
    if (effect != FaultEffect::Invalid) return replaceByOther(graph, node, effect, rewriter);
    TensorType type = *node.type().tensor();
    type.strides.emplace_back(1);
    graph.setType(node, ValueType(std::move(type)));
    return true;
}

/// Values that the rewrite touched, those that it made first and the last of them foremost.
std::vector<Node*> touched(const RewriteInfo& rewrite, std::string_view pass, Graph& graph, const Graph* before) {
    std::vector<Node*> values;
    const auto add = [&](NodeId id) {
        Node* node = graph.find(id);
        if (node && isReplaceable(*node) && std::find(values.begin(), values.end(), node) == values.end())
            values.push_back(node);
    };
    for (const Node& node : graph.nodes()) {
        const Provenance& from = node.provenance();
        if ((before == nullptr || before->find(node.id()) == nullptr) &&
            (from.createdBy == rewrite.rule || from.createdBy == pass) &&
            std::find(from.origin.begin(), from.origin.end(), rewrite.nodeId) != from.origin.end())
            add(node.id());
    }
    std::reverse(values.begin(), values.end());
    add(rewrite.nodeId);
    if (const Node* was = before ? before->find(rewrite.nodeId) : nullptr) {
        for (const Node* input : was->inputs()) add(input->id());
        for (const Node* reader : was->users()) add(reader->id());
    }
    return values;
}

Result<bool> spoilFirst(const std::vector<Node*>& values, FaultEffect effect, const Rewriter& rewriter) {
    for (Node* node : values) {
        CT_TRY(const bool done, spoil(node->graph(), *node, effect, rewriter));
        if (done) return true;
    }
    return false;
}

/// Of the whole graph, last first.
std::vector<Node*> allValues(Graph& graph) {
    std::vector<Node*> values;
    for (Node& node : graph.nodes())
        if (isReplaceable(node)) values.push_back(&node);
    std::reverse(values.begin(), values.end());
    return values;
}

}  // namespace

Result<bool> spoilGraph(const Pass& pass, Module& module, const Module& before, Rewriter& rewriter) {
    if (!faultsAsked()) return false;
    rewriter.setBodyPaths(module);
    bool changed = false;
    const std::vector<RewriteInfo> done = rewriter.done();
    for (const RewriteInfo& rewrite : done) {
        const FaultEffect effect = faultEffect("rule", rewrite.rule, pass.name);
        Module* body = effect == FaultEffect::None ? nullptr : module.body(rewrite.body);
        if (body == nullptr) continue;
        const Module* was = before.body(rewrite.body);
        CT_TRY(const bool spoiled,
               spoilFirst(touched(rewrite, pass.name, body->graph(), was ? &was->graph() : nullptr), effect, rewriter));
        changed |= spoiled;
    }
    const FaultEffect effect = faultEffect("pass", pass.name);
    const std::vector<Node*> values = effect == FaultEffect::None ? std::vector<Node*>() : allValues(module.graph());
    if (rewriter.outOfFuel() || rewriter.cancelled()) return changed;
    for (Node* node : values) {
        CT_TRY(const bool spoiled, spoil(module.graph(), *node, effect, rewriter));
        if (!spoiled) continue;
        rewriter.record("fault", module.graph(), node->name(), node->id(), "asked for by CUTAWAY_FAULT");
        return true;
    }
    return changed;
}

}  // namespace cutaway
