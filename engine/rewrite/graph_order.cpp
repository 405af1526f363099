#include "engine/rewrite/graph_order.h"

#include <algorithm>
#include <numeric>

#include "engine/ir/infer.h"
#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/ops/infer_rules.h"
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

void ReaderQueue::addReadersOf(const Node& node) {
    const auto later = [this](const Node* a, const Node* b) { return m_graph->isBefore(*b, *a); };
    for (Node* user : node.users()) {
        m_heap.push_back(user);
        std::push_heap(m_heap.begin(), m_heap.end(), later);
    }
}
Node* ReaderQueue::next() {
    const auto later = [this](const Node* a, const Node* b) { return m_graph->isBefore(*b, *a); };
    while (!m_heap.empty()) {
        std::pop_heap(m_heap.begin(), m_heap.end(), later);
        Node* node = m_heap.back();
        m_heap.pop_back();
        if (node == m_last) continue;  // put in by several of its operands
        m_last = node;
        return node;
    }
    return nullptr;
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

/// All readers of the node read a copy in the node's old layout.
void giveLayoutBack(Graph& graph, Node& node, const TensorType& before) {
    const std::vector<Node*> readers = node.users();
    Provenance provenance = node.provenance();
    provenance.origin = {node.id()};
    provenance.sourceName.clear();
    GraphBuilder builder(graph, node.next());
    builder.setProvenance(std::move(provenance));
    Node& copy = laidOutLike(builder, node, before);
    for (Node* reader : readers) graph.replaceInput(*reader, node, copy);
}

}  // namespace

/// `value` copied into the layout of `like`.
Node& laidOutLike(GraphBuilder builder, Node& value, const TensorType& like) {
    const SymDims strides = preservedStrides(like);
    std::vector<int64_t> order(strides.size()), inverse(strides.size());
    std::iota(order.begin(), order.end(), 0);
    if (allInts(strides))
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return strides[static_cast<size_t>(a)].value() > strides[static_cast<size_t>(b)].value();
        });
    for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    const bool rowMajor = std::is_sorted(order.begin(), order.end());
    Value result = builder.value(value);
    if (!rowMajor) result = permute(result, order);
    result = builder.call("aten.clone.default", {result}, {{"memory_format", MemoryFormat::Contiguous}});
    if (!rowMajor) result = permute(result, inverse);
    CT_CHECK(result, "any tensor can be copied");
    return *result.node();
}

Result<void> retypeReaders(Graph& graph, Node& changed, bool keepRead) {
    ReaderQueue queue(graph);
    queue.addReadersOf(changed);
    while (Node* node = queue.next()) {
        if (!node->isCall() || node->op().isOpaque()) continue;
        const ValueType before = node->type();
        if (auto done = retype(graph, *node); !done) {
            Error error = done.error();
            error.where = node->name();
            return error;
        }
        if (sameMemory(before, node->type())) continue;
        if (keepRead && before.tensor() && node->type().tensor() && storageIsRead(*node))
            giveLayoutBack(graph, *node, *before.tensor());
        else queue.addReadersOf(*node);
    }
    return {};
}

}  // namespace cutaway
