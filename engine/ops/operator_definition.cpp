#include "engine/ops/operator_definition.h"

#include <algorithm>

#include "engine/ir/module.h"

namespace cutaway {
namespace {

bool isDefinedCall(const Node& node) { return node.isCall() && definitionOf(node.op()) != nullptr; }

/// The call becomes the last one of what it computes, under its id and name, or goes when its results do.
Result<void> writeOut(Graph& graph, Node& call) {
    GraphBuilder builder(graph, &call);
    builder.setProvenance(call.provenance());
    Decomposition decomposition(call, builder);
    const Values values = call.op().def()->decompose(decomposition);
    if (builder.error()) {
        Error error = *builder.error();
        error.where = call.name();
        return error;
    }
    if (values.isTuple()) {
        const std::vector<Node*> users = call.users();
        for (Node* user : users) {
            const auto at = user->isCall("operator.getitem") ? user->arg(1).asInt() : std::nullopt;
            if (!at || *at < 0 || *at >= static_cast<int64_t>(values.values().size()))
                return unsupported(call.op().name() + ": its results are read as a whole", call.name(), {});
            graph.replaceUses(*user, *values.values()[static_cast<size_t>(*at)].node());
            graph.erase(*user);
        }
        graph.erase(call);
        return {};
    }
    Node* made = values.values()[0].node();
    const auto& created = builder.created();
    if (std::find(created.begin(), created.end(), made) != created.end() && !made->hasUsers()) {
        graph.setOp(call, made->op(), made->args(), made->type());
        graph.erase(*made);
    } else {
        graph.replaceUses(call, *made);
        graph.erase(call);
    }
    return {};
}

}  // namespace

bool callsDefined(const Module& module) {
    for (const Node& node : module.graph().nodes())
        if (isDefinedCall(node)) return true;
    return std::any_of(module.subgraphs.begin(), module.subgraphs.end(),
                       [](const auto& each) { return callsDefined(*each.second); });
}

Result<void> writeOutDefined(Module& module) {
    for (auto& [name, body] : module.subgraphs) CT_TRY_VOID(writeOutDefined(*body));
    Graph& graph = module.graph();
    for (Node* node = graph.first(); node != nullptr;) {
        Node* const previous = node->previous();
        Node* next = node->next();
        if (isDefinedCall(*node)) {
            CT_TRY_VOID(writeOut(graph, *node));
            next = previous != nullptr ? previous->next() : graph.first();  // definitions may call others
        }
        node = next;
    }
    return {};
}

}  // namespace cutaway
