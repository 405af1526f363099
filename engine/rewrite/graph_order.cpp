#include "engine/rewrite/graph_order.h"

#include <algorithm>

#include "engine/ir/infer.h"
#include "engine/ops/op_registry.h"
#include "engine/support/check.h"

namespace cutaway {

bool sortTopologically(Graph& graph) {
    std::vector<Node*> pending = graph.nodeList();
    std::reverse(pending.begin(), pending.end());
    std::vector<bool> ready(graph.idLimit(), false);
    std::vector<std::vector<Node*>> parked(graph.idLimit());
    std::vector<Node*> order;
    order.reserve(pending.size());
    while (!pending.empty()) {
        Node* node = pending.back();
        pending.pop_back();
        Node* missing = nullptr;
        for (Node* input : node->inputs())
            if (!ready[index(input->id())]) missing = input;
        if (missing) {
            parked[index(missing->id())].push_back(node);
            continue;
        }
        ready[index(node->id())] = true;
        order.push_back(node);
        auto& waiting = parked[index(node->id())];
        pending.insert(pending.end(), waiting.rbegin(), waiting.rend());
        waiting.clear();
    }
    CT_CHECK(order.size() == graph.size(), "a graph has no cycles");
    bool moved = false;
    Node* next = nullptr;
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
        if (next && (*node)->next() != next) {
            graph.moveBefore(**node, *next);
            moved = true;
        }
        next = *node;
    }
    return moved;
}

namespace {

Result<void> retype(Graph& graph, Node& node) {
    auto type = inferCall(node.op(), node.args());
    if (!type && node.isCall("aten.view.default")) {
        if (const Op* reshape = findOp("aten.reshape.default")) {
            CT_TRY(ValueType reshaped, inferCall(*reshape, node.args()));
            graph.setOp(node, *reshape, node.args(), std::move(reshaped));
            return {};
        }
    }
    if (!type) return type.error();
    graph.setType(node, std::move(*type));
    return {};
}

}  // namespace

Result<void> retypeReaders(Graph& graph, Node& changed) {
    std::vector<bool> dirty(graph.idLimit(), false);
    dirty[index(changed.id())] = true;
    for (Node* node = changed.next(); node != nullptr; node = node->next()) {
        if (!node->isCall() || node->op().isOpaque()) continue;
        const auto inputs = node->inputs();
        if (std::none_of(inputs.begin(), inputs.end(), [&](const Node* input) { return dirty[index(input->id())]; })) continue;
        const ValueType before = node->type();
        if (auto done = retype(graph, *node); !done) {
            Error error = done.error();
            error.where = node->name();
            return error;
        }
        if (!sameType(before, node->type())) dirty[index(node->id())] = true;
    }
    return {};
}

}  // namespace cutaway
