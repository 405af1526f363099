#include "engine/partition/join_graphs.h"

#include <algorithm>
#include <map>

#include "engine/autograd/functionalize.h"
#include "engine/rewrite/graph_order.h"

namespace cutaway {

Result<std::vector<size_t>> savedOutputs(const Module& forward, const Module& backward) {
    std::map<std::string, size_t> saved;
    for (size_t i = 0; i < forward.outputs.size(); ++i)
        if (forward.outputs[i].kind == OutputSpec::Kind::Saved) saved.emplace(forward.outputs[i].target, i);
    std::vector<size_t> found;
    const std::vector<Node*> placeholders = backward.graph().placeholders();
    for (size_t i = 0; i < placeholders.size() && i < backward.inputs.size(); ++i) {
        if (backward.inputs[i].kind != InputSpec::Kind::Saved) continue;
        const auto at = saved.find(placeholders[i]->name());
        if (at == saved.end())
            return invalidInput("the backward takes '" + placeholders[i]->name() + "', which the forward does not save",
                                placeholders[i]->name());
        found.push_back(at->second);
    }
    return found;
}

NodeId joinedId(const Module& forward, NodeId ofBackward, uint32_t firstId) {
    const bool taken = forward.graph().find(ofBackward) != nullptr;
    return taken ? static_cast<NodeId>(firstId + static_cast<uint32_t>(ofBackward)) : ofBackward;
}

namespace {

using Twins = std::map<const Node*, Node*>;

/// A saved value in the layout in which the backward takes it.
Node& asTaken(Graph& graph, Node& value, const Node& placeholder) {
    const TensorType *left = value.type().tensor(), *taken = placeholder.type().tensor();
    if (left == nullptr || taken == nullptr || left->strides == taken->strides) return value;
    return laidOutLike(GraphBuilder(graph), value, *taken);
}

Argument twinOf(const Argument& argument, const Twins& twins) {
    return argument.mapNodes([&](const Node* node) { return twins.at(node); });
}

Node& withProvenance(Graph& graph, Node& made, const Node& node) {
    Provenance provenance = node.provenance();
    provenance.backward = true;
    graph.setProvenance(made, std::move(provenance));
    return made;
}

/// The backward's node, which reads nothing yet. Recomputed nodes are in the forward, too, and passes that ran on one
/// half alone may have given the same ids to others.
Node& takeFree(Graph& graph, const Module& forward, const Node& node, uint32_t firstId) {
    return graph.takeAs(node, joinedId(forward, node.id(), firstId));
}

Node& copyOf(Graph& graph, const Module& forward, const Node& node, const Twins& twins, uint32_t firstId) {
    Node& taken = takeFree(graph, forward, node, firstId);
    if (node.kind() == NodeKind::GetAttr) return taken;
    std::vector<Argument> args;
    for (const Argument& arg : node.args()) args.push_back(twinOf(arg, twins));
    std::vector<std::pair<std::string, Argument>> kwargs;
    for (const auto& [key, arg] : node.kwargs()) kwargs.emplace_back(key, twinOf(arg, twins));
    graph.setOp(taken, node.op(), std::move(args), node.type(), std::move(kwargs));
    return withProvenance(graph, taken, node);
}

}  // namespace

Result<std::shared_ptr<Module>> joinGraphs(const Module& forward, const Module& backward, uint32_t firstId) {
    CT_TRY(const std::vector<size_t> saved, savedOutputs(forward, backward));
    auto joined = std::make_shared<Module>();
    joined->name = forward.name;
    joined->tensors = forward.tensors;
    joined->tensors.insert(backward.tensors.begin(), backward.tensors.end());
    joined->symbols = forward.symbols;
    joined->origin = forward.origin;
    for (const Module* half : {&forward, &backward})
        for (const auto& [name, body] : half->subgraphs)
            if (!joined->subgraph(name)) joined->subgraphs.emplace_back(name, std::make_unique<Module>(*body));

    Graph& graph = joined->graph();
    firstId = std::max({firstId, forward.graph().idLimit(), backward.graph().idLimit()});
    graph.reserveIds(2 * firstId);
    joined->inputs = forward.inputs;
    std::vector<const Node*> copies;
    for (const Node& node : forward.graph().nodes()) {
        if (node.isOutput()) continue;
        if (isFinalCopy(node)) copies.push_back(&node);
        else graph.take(node);
    }
    const auto inForward = [&](const Node* node) { return graph.find(node->id()); };
    const std::vector<Argument> forwardOutputs = forward.graph().outputs();

    Twins twins;
    Node* afterInputs = graph.first();
    while (afterInputs && afterInputs->isPlaceholder()) afterInputs = afterInputs->next();
    const std::vector<Node*> placeholders = backward.graph().placeholders();
    size_t nextSaved = 0;
    for (size_t i = 0; i < placeholders.size(); ++i) {
        if (backward.inputs[i].kind == InputSpec::Kind::Saved) {
            Node& value = *graph.find(forwardOutputs[saved[nextSaved++]].node()->id());
            twins[placeholders[i]] = &asTaken(graph, value, *placeholders[i]);
            continue;
        }
        const Node& given = *placeholders[i];
        Node& input = takeFree(graph, forward, given, firstId);
        if (afterInputs) graph.moveBefore(input, *afterInputs);
        twins[placeholders[i]] = &input;
        joined->inputs.push_back(backward.inputs[i]);
    }
    std::vector<const Node*> backwardCopies;
    for (const Node& node : backward.graph().nodes()) {
        if (node.isOutput() || node.isPlaceholder()) continue;
        if (isFinalCopy(node)) backwardCopies.push_back(&node);
        else twins[&node] = &copyOf(graph, forward, node, twins, firstId);
    }
    for (const Node* copy : copies) graph.take(*copy);
    for (const Node* copy : backwardCopies) twins[copy] = &copyOf(graph, forward, *copy, twins, firstId);

    ArgumentList outputs{{}, true};
    for (size_t i = 0; i < forwardOutputs.size(); ++i) {
        const OutputSpec spec = i < forward.outputs.size() ? forward.outputs[i] : OutputSpec{};
        if (spec.kind == OutputSpec::Kind::Saved) continue;
        outputs.items.push_back(forwardOutputs[i].mapNodes(inForward));
        joined->outputs.push_back(spec);
    }
    const std::vector<Argument> gradients = backward.graph().outputs();
    for (size_t i = 0; i < gradients.size(); ++i) {
        outputs.items.push_back(twinOf(gradients[i], twins));
        joined->outputs.push_back(i < backward.outputs.size() ? backward.outputs[i] : OutputSpec{});
    }
    graph.output(Argument(std::move(outputs)));
    return joined;
}

}  // namespace cutaway
