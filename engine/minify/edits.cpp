#include "engine/minify/edits.h"

#include <algorithm>
#include <set>

#include "engine/ops/build.h"

namespace cutaway {
namespace {

constexpr std::string_view kGetItem = "operator.getitem";

constexpr std::string_view kFull = "aten.full.default";

bool isPlainConstant(const Node& node) { return node.isCall(kFull) && node.inputs().empty(); }

bool isGetItem(const Node& node) { return node.isCall(kGetItem); }

/// The node before which a new input is inserted: the first that is not an input.
Node* behindInputs(const Graph& graph) {
    for (Node& node : graph.nodes())
        if (!node.isPlaceholder()) return &node;
    return nullptr;
}

/// Whether the node stays although nobody reads it: it writes to memory or has another effect.
bool isNeeded(const Node& node, bool keepRandom) {
    if (node.isOutput() || node.isPlaceholder()) return true;
    if (!node.isCall()) return false;
    return node.op().mutates() || node.is(Tag::Impure) || (keepRandom && node.is(Tag::Random));
}

/// Readers of `value` read an operand of `call` that has its type; `value` goes.
bool readInstead(Module& module, Node& value, const Node& call) {
    const TensorType* type = value.type().tensor();
    if (!type) return false;
    for (Node* operand : call.inputs()) {
        const TensorType* other = operand->type().tensor();
        if (!other || !other->sameMeta(*type)) continue;
        module.graph().replaceUses(value, *operand);
        module.graph().erase(value);
        return true;
    }
    return false;
}

}  // namespace

bool makeInput(Module& module, Node& node) {
    if (node.isOutput() || node.isPlaceholder()) return false;
    if (!node.type().tensor()) {
        bool any = false;
        for (Node* user : std::vector<Node*>(node.users())) any = makeInput(module, *user) || any;
        return any;
    }
    Graph& graph = module.graph();
    const std::string name = node.name();
    Node& input = graph.placeholder(name, node.type(), behindInputs(graph));
    InputSpec spec;
    spec.kind = InputSpec::Kind::UserInput;
    module.inputs.push_back(std::move(spec));
    graph.replaceUses(node, input);
    graph.erase(node);
    graph.renameParameter(input, name);
    return true;
}

bool makeConstant(Module& module, Node& input, double value) {
    const std::vector<Node*> placeholders = module.graph().placeholders();
    const auto at = std::find(placeholders.begin(), placeholders.end(), &input);
    const TensorType* type = input.type().tensor();
    if (at == placeholders.end() || !type || isComplex(type->dtype) || !allInts(type->sizes)) return false;
    if (type->strides != TensorType::contiguous(type->dtype, type->sizes).strides) return false;
    for (const OutputSpec& output : module.outputs)
        if (output.target == input.name()) return false;
    const bool writes = std::any_of(input.users().begin(), input.users().end(),
                                    [](const Node* user) { return user->isCall() && user->op().mutates(); });
    if (writes || !module.inputs[static_cast<size_t>(at - placeholders.begin())].isGiven()) return false;
    const Argument filled = type->dtype == DType::Bool ? Argument(true)
                            : isFloating(type->dtype)  ? Argument(value)
                                                       : Argument(int64_t{0});
    GraphBuilder builder(module.graph(), behindInputs(module.graph()));
    const Value constant = builder.call(kFull, {Argument(type->sizes), filled},
                                        {{"dtype", Argument(type->dtype)}, {"device", Argument(type->device)}});
    if (!constant || !constant.type().sameMeta(*type)) return false;
    module.inputs.erase(module.inputs.begin() + (at - placeholders.begin()));
    module.graph().replaceUses(input, *constant.node());
    module.graph().erase(input);
    return true;
}

bool bypass(Module& module, Node& node) { return node.isCall() && readInstead(module, node, node); }

bool bypassParts(Module& module, Node& node) {
    if (node.type().tensor()) return false;
    bool any = false;
    for (Node* part : std::vector<Node*>(node.users()))
        if (!part->isOutput()) any = readInstead(module, *part, node) || any;
    return any;
}

bool dropDeadCalls(Module& module, bool keepRandom) {
    Graph& graph = module.graph();
    bool any = false;
    for (Node *node = graph.last(), *before; node; node = before) {
        before = node->previous();
        if (node->hasUsers() || isNeeded(*node, keepRandom)) continue;
        graph.erase(*node);
        any = true;
    }
    for (auto& [name, body] : module.subgraphs) any = dropDeadCalls(*body, keepRandom) || any;
    return any;
}

bool dropUnusedInputs(Module& module) {
    const std::vector<Node*> placeholders = module.graph().placeholders();
    std::vector<InputSpec> kept;
    std::set<std::string> written;
    for (const OutputSpec& output : module.outputs)
        if (!output.target.empty()) written.insert(output.target);
    for (size_t i = 0; i < placeholders.size(); ++i) {
        const InputSpec& spec = module.inputs[i];
        if (!placeholders[i]->hasUsers() && !written.contains(spec.target) &&
            !written.contains(placeholders[i]->name()))
            module.graph().erase(*placeholders[i]);
        else kept.push_back(module.inputs[i]);
    }
    const bool any = kept.size() < module.inputs.size();
    module.inputs = std::move(kept);
    return any;
}

void dropDead(Module& module, bool keepRandom) {
    dropDeadCalls(module, keepRandom);
    dropUnusedInputs(module);
}

void returnOnly(Module& module, const std::vector<Argument>& values) {
    Graph& graph = module.graph();
    if (Node* old = graph.outputNode()) graph.erase(*old);
    graph.output(Argument(ArgumentList{values, true}));
    module.outputs.assign(values.size(), OutputSpec{});
}

void keepOutputs(Module& module, const std::vector<size_t>& positions) {
    const std::vector<Argument> all = module.graph().outputs();
    std::vector<Argument> kept;
    std::vector<OutputSpec> specs;
    for (const size_t position : positions) {
        kept.push_back(all[position]);
        specs.push_back(module.outputs[position]);
    }
    module.graph().setArg(*module.graph().outputNode(), 0, Argument(ArgumentList{std::move(kept), true}));
    module.outputs = std::move(specs);
}

std::vector<NodeId> cuttableCalls(const Module& module) {
    std::vector<NodeId> calls;
    for (const Node& node : module.graph().nodes())
        if ((node.isCall() && !isGetItem(node) && !isPlainConstant(node)) || node.kind() == NodeKind::GetAttr)
            calls.push_back(node.id());
    return calls;
}

}  // namespace cutaway
