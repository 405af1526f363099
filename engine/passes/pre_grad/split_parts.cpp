#include "engine/passes/pre_grad/split_parts.h"

namespace cutaway::pregrad {

std::optional<std::vector<int64_t>> splitSizes(const Node& split) {
    const TupleType* parts = split.type().tuple();
    const TensorType* input = tensorType(operand(split, 0, "tensor"));
    if (!parts || !input) return std::nullopt;
    const auto dim = wrappedDim(argument(split, 2, "dim"), input->rank());
    if (!dim) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const ValueType& part : *parts) {
        const TensorType* type = part.tensor();
        const auto size = type && *dim < type->rank() ? type->sizes[static_cast<size_t>(*dim)].asInt() : std::nullopt;
        if (!size) return std::nullopt;
        sizes.push_back(*size);
    }
    return sizes;
}

std::optional<int64_t> partNumber(const Node& node) {
    if (!node.isCall("operator.getitem")) return std::nullopt;
    const auto number = node.arg(1).asInt();
    return number && *number >= 0 ? number : std::nullopt;
}

std::optional<NormalSplit> normalSplit(const Node& node, const Refusing& no) {
    if (!isFunction(node, {"torch.functional.split", "torch.split"})) {
        no.about(&node, NodeWithKind{&node}, " is not a split");
        return std::nullopt;
    }
    const auto refuse = [&](const char* what) {
        no.about(&node, node, what, " (normalization_pass writes split(x, [sizes], dim=d))");
        return std::nullopt;
    };
    if (node.args().size() != 2 || node.kwargs().size() != 1) return refuse(" is not written in the normal form");
    NormalSplit out;
    out.input = node.arg(0).node();
    const auto* sizes = node.arg(1).list();
    const auto dim = integer(argument(node, 2, "dim"));
    if (!tensorType(out.input)) {
        no.about(&node, "what ", node, " splits, ", NodeWithKind{out.input}, ", is not known to be a tensor");
        return std::nullopt;
    }
    if (!sizes || !dim || *dim < 0)
        return refuse(sizes ? " has no dim counted from the front" : " is given no list of sizes");
    out.dim = *dim;
    out.rank = tensorType(out.input)->rank();
    for (const Argument& size : *sizes) {
        if (!size.get<int64_t>()) return refuse(" is given a size that is not a number");
        out.sizes.push_back(*size.asInt());
    }
    std::set<int64_t> seen;
    for (const Node* reader : node.users()) {
        const auto number = partNumber(*reader);
        if (!number || *number >= static_cast<int64_t>(out.sizes.size())) {
            no.about(reader, NodeWithKind{reader}, " reads ", node, " otherwise than one of its ", out.sizes.size(),
                     " parts, counted from the front");
            return std::nullopt;
        }
        if (!seen.insert(*number).second) {
            no.about(reader, *reader, " takes part ", *number, " of ", node, " once more");
            return std::nullopt;
        }
    }
    return out;
}

Node& sliceOf(TorchBuilder& builder, const NormalSplit& split, int64_t first, int64_t last) {
    ArgumentList index{{}, true};
    const auto slice = [](Argument start, Argument stop) {
        return Argument(
            std::make_shared<const ArgumentSlice>(ArgumentSlice{std::move(start), std::move(stop), Argument()}));
    };
    for (int64_t dim = 0; dim < split.rank; ++dim)
        index.items.push_back(dim == split.dim ? slice(split.begin(first), split.begin(last + 1)) : slice({}, {}));
    return builder.subscript(*split.input, Argument(std::move(index)));
}

void eraseUnread(Graph& graph, const std::vector<Node*>& nodes) {
    // By id: a node may stand in the list twice.
    std::set<NodeId> candidates, splits;
    for (const Node* node : nodes)
        if (node->isCall()) candidates.insert(node->id());
    for (const NodeId id : candidates) {
        Node* node = graph.find(id);
        if (node->hasUsers()) continue;
        if (node->isCall("operator.getitem") && node->arg(0).node()) splits.insert(node->arg(0).node()->id());
        graph.erase(*node);
    }
    for (const NodeId id : splits)
        if (Node* split = graph.find(id); split && split->isCall() && !split->hasUsers()) graph.erase(*split);
}

}  // namespace cutaway::pregrad
