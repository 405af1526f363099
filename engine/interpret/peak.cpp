#include "engine/interpret/peak.h"

#include <algorithm>

namespace cutaway {
namespace {

double bytesOf(const ValueType& type) {
    if (const TupleType* items = type.tuple()) {
        double sum = 0;
        for (const ValueType& item : *items) sum += bytesOf(item);
        return sum;
    }
    const TensorType* tensor = type.tensor();
    if (tensor == nullptr || !allInts(tensor->sizes) || !allInts(tensor->strides)) return 0;
    double last = 0;
    for (size_t d = 0; d < tensor->sizes.size(); ++d) {
        const auto size = static_cast<double>(tensor->sizes[d].value());
        if (size == 0) return 0;
        last += (size - 1) * std::abs(static_cast<double>(tensor->strides[d].value()));
    }
    return (last + 1) * byteSize(tensor->dtype);
}

/// The node whose memory a node's value lies in: views, getitem and in-place calls have none of their own.
const Node* ownerOf(const Node& node) {
    const Node* owner = &node;
    while (owner->isCall() && !owner->args().empty() && owner->arg(0).node() != nullptr &&
           (owner->is(Tag::View) || owner->op().mutates() || owner->isCall("operator.getitem")))
        owner = owner->arg(0).node();
    return owner;
}

double bodiesPeak(const Module& module, const Argument& arg) {
    if (const auto* reference = arg.get<SubgraphRef>()) {
        const Module* body = module.subgraph(reference->name);
        return body ? peakBytes(*body) : 0;
    }
    double most = 0;
    if (const auto* items = arg.list())
        for (const Argument& item : *items) most = std::max(most, bodiesPeak(module, item));
    return most;
}

}  // namespace

double peakBytes(const Module& module) {
    const Graph& graph = module.graph();
    std::vector<const Node*> lastReader(graph.idLimit(), nullptr);  // of an owner's memory
    bool mutates = false;
    for (const Node& node : graph.nodes()) {
        lastReader[index(ownerOf(node)->id())] = &node;
        node.forEachInput([&](const Node* input) { lastReader[index(ownerOf(*input)->id())] = &node; });
        mutates |= node.isCall() && node.op().mutates();
    }
    double held = 0, peak = 0;
    std::vector<std::vector<const Node*>> freedBy(graph.idLimit());
    for (const Node& node : graph.nodes())
        if (node.isCall() && ownerOf(node) == &node)
            freedBy[index(lastReader[index(node.id())]->id())].push_back(&node);
    for (const Node& node : graph.nodes()) {
        // A graph that mutates works on copies of what it is given.
        const bool own = node.isCall() ? ownerOf(node) == &node : mutates && !node.isOutput();
        if (own) held += bytesOf(node.type());
        double inside = 0;
        if (node.isCall())
            for (const Argument& arg : node.args()) inside = std::max(inside, bodiesPeak(module, arg));
        peak = std::max(peak, held + inside);
        for (const Node* freed : freedBy[index(node.id())]) held -= bytesOf(freed->type());
    }
    return peak;
}

double inputBytes(const Module& module) {
    double sum = 0;
    for (const Node* node : module.graph().placeholders()) sum += bytesOf(node->type());
    return sum;
}

double outputBytes(const Module& module) {
    double sum = 0;
    for (const Argument& value : module.graph().outputs())
        if (const Node* node = value.node()) sum += bytesOf(node->type());
    return sum;
}

}  // namespace cutaway
