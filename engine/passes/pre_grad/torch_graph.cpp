#include "engine/passes/pre_grad/torch_graph.h"

#include <set>

#include "engine/ops/torch/torch_calls.h"

namespace cutaway::pregrad {

bool isFunction(const Node& node, std::initializer_list<std::string_view> names) {
    if (!node.isCall() || node.op().style() != Op::Style::Function) return false;
    return std::find(names.begin(), names.end(), std::string_view(node.op().name())) != names.end();
}
bool isMethod(const Node& node, std::string_view name) {
    return node.isCall() && node.op().style() == Op::Style::Method && node.op().name() == name;
}
bool isLinear(const Node& node) { return isFunction(node, {"torch._C._nn.linear", "torch.nn.functional.linear"}); }

const Argument* argument(const Node& node, size_t position, std::string_view keyword) {
    if (position < node.args().size()) return &node.arg(position);
    for (const auto& [key, value] : node.kwargs())
        if (key == keyword) return &value;
    return nullptr;
}
Node* operand(const Node& node, size_t position, std::string_view keyword) {
    const Argument* found = argument(node, position, keyword);
    return found ? found->node() : nullptr;
}
std::optional<int64_t> integer(const Argument* argument) {
    if (argument == nullptr || argument->get<bool>()) return std::nullopt;
    return argument->asInt();
}
const TensorType* tensorType(const Node* node) { return node ? node->type().tensor() : nullptr; }
std::optional<std::vector<int64_t>> knownSizes(const Node* node) {
    const TensorType* type = tensorType(node);
    if (type == nullptr || !allInts(type->sizes)) return std::nullopt;
    return toInts(type->sizes);
}
std::optional<int64_t> wrappedDim(const Argument* dim, int64_t rank, int64_t fallback) {
    const bool absent = dim == nullptr || dim->isNone();
    auto value = absent ? std::optional(fallback) : integer(dim);
    if (value && *value < 0) *value += rank;
    return value && *value >= 0 && *value < std::max<int64_t>(rank, 1) ? value : std::nullopt;
}

Node& TorchBuilder::function(std::string_view name, std::vector<Argument> args, NamedArguments keywords) {
    return call(findOrMakeOpaque(name), std::move(args), std::move(keywords));
}
Node& TorchBuilder::method(std::string_view name, std::vector<Argument> args, NamedArguments keywords) {
    return call(findOrMakeOpaque(name, Op::Style::Method), std::move(args), std::move(keywords));
}
Node& TorchBuilder::item(Node& tuple, int64_t position) {
    const TupleType* items = tuple.type().tuple();
    ValueType type = OpaqueType{};
    if (items && position >= 0 && static_cast<size_t>(position) < items->size())
        type = (*items)[static_cast<size_t>(position)];
    Node& node =
        m_graph->call(requireOp("operator.getitem"), {Argument(&tuple), Argument(position)}, std::move(type), m_before);
    m_graph->setProvenance(node, m_provenance);
    return node;
}
Node& TorchBuilder::subscript(Node& source, Argument index) {
    std::vector<Argument> args = {Argument(&source), std::move(index)};
    return call(requireOp("operator.getitem"), std::move(args), {});
}
Node& TorchBuilder::call(const Op& op, std::vector<Argument> args, NamedArguments keywords) {
    auto type = inferTorchCall(op, args, keywords);
    Node& node = m_graph->call(op, std::move(args), type ? std::move(*type) : ValueType(OpaqueType{}), m_before, {},
                               std::move(keywords));
    m_graph->setProvenance(node, m_provenance);
    return node;
}

void rewriteCall(Node& node, std::string_view function, std::vector<Argument> args, NamedArguments keywords) {
    node.graph().setOp(node, findOrMakeOpaque(function), std::move(args), node.type(), std::move(keywords));
}

namespace {
void collectNames(const Argument& argument, std::set<std::string>& names) {
    if (const auto* subgraph = argument.get<SubgraphRef>()) names.insert(subgraph->name);
    if (const auto* items = argument.list())
        for (const Argument& item : *items) collectNames(item, names);
}
}  // namespace

void refuseAll(const Module& body, Rewriter& rewriter, std::string_view why) {
    for (const Node& node : body.graph().nodes()) rewriter.refuse(rewriter.pass(), node, why);
    for (const auto& [name, inner] : body.subgraphs) refuseAll(*inner, rewriter, why);
}

Result<bool> onEveryGraph(Module& module, Rewriter& rewriter, Result<bool> (*pass)(Graph&, Rewriter&)) {
    std::set<std::string> named;
    for (const Node& node : module.graph().nodes()) {
        for (const Argument& arg : node.args()) collectNames(arg, named);
        for (const auto& [key, arg] : node.kwargs()) collectNames(arg, named);
    }
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        if (!named.contains(name)) {
            refuseAll(*body, rewriter, "no call names the subgraph that it is in");
            continue;
        }
        CT_TRY(const bool inner, onEveryGraph(*body, rewriter, pass));
        changed |= inner;
    }
    CT_TRY(const bool own, pass(module.graph(), rewriter));
    return changed || own;
}

}  // namespace cutaway::pregrad
