#include "engine/runtime/module_io.h"

#include <set>
#include <unordered_map>

#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

void writeNode(ByteWriter& out, const Node& node, const NodeNumber& number) {
    out.pod(node.kind());
    if (node.isOutput()) return writeArgument(out, node.arg(0), number);
    out.text(node.name());
    writeType(out, node.type());
    if (!node.isCall()) return out.text(node.target());
    out.text(node.op().name());
    out.pod(node.op().style());
    out.count(node.args().size());
    for (const Argument& arg : node.args()) writeArgument(out, arg, number);
    out.count(node.kwargs().size());
    for (const auto& [key, arg] : node.kwargs()) {
        out.text(key);
        writeArgument(out, arg, number);
    }
}

Node* readNode(ByteReader& in, Graph& graph, const NodeAt& nodeAt) {
    const auto kind = in.pod<NodeKind>();
    if (kind == NodeKind::Output) return &graph.output(readArgument(in, nodeAt));
    const std::string name(in.text());
    ValueType type = readType(in);
    if (kind != NodeKind::Call) {
        const std::string target(in.text());
        return kind == NodeKind::GetAttr ? &graph.getAttr(target, std::move(type), nullptr, name)
                                         : &graph.placeholder(name, std::move(type));
    }
    const std::string op(in.text());
    const auto style = in.pod<Op::Style>();
    std::vector<Argument> args;
    in.each([&] { args.push_back(readArgument(in, nodeAt)); });
    std::vector<std::pair<std::string, Argument>> kwargs;
    in.each([&] {
        std::string key(in.text());
        kwargs.emplace_back(std::move(key), readArgument(in, nodeAt));
    });
    if (in.failed()) return nullptr;
    return &graph.call(findOrMakeOpaque(op, style), std::move(args), std::move(type), nullptr, name, std::move(kwargs));
}

void writeBound(ByteWriter& out, const std::optional<int64_t>& bound) {
    out.pod(bound.has_value());
    out.pod(bound.value_or(0));
}
std::optional<int64_t> readBound(ByteReader& in) {
    const bool known = in.pod<bool>();
    const auto value = in.pod<int64_t>();
    return known ? std::optional(value) : std::nullopt;
}

}  // namespace

void writeModule(ByteWriter& out, const Module& module, std::vector<Tensor>& tensors) {
    std::unordered_map<const Node*, uint32_t> numbers;
    const NodeNumber number = [&](const Node& node) { return numbers.at(&node); };
    std::set<std::string> attributes;
    out.count(module.graph().size());
    for (const Node& node : module.graph().nodes()) {
        writeNode(out, node, number);
        numbers.emplace(&node, static_cast<uint32_t>(numbers.size()));
        if (node.kind() == NodeKind::GetAttr && module.tensors.contains(node.target()))
            attributes.insert(node.target());
    }
    out.count(attributes.size());
    for (const std::string& name : attributes) {
        out.text(name);
        tensors.push_back(module.tensors.at(name));
    }
    out.count(module.symbols.size());
    for (const auto& [name, info] : module.symbols) {
        out.text(name);
        for (const auto* bound : {&info.lower, &info.upper, &info.hint}) writeBound(out, *bound);
    }
    out.count(module.subgraphs.size());
    for (const auto& [name, body] : module.subgraphs) {
        out.text(name);
        writeModule(out, *body, tensors);
    }
}

std::shared_ptr<Module> readModule(ByteReader& in, const std::vector<Tensor>& tensors, size_t& next) {
    auto module = std::make_shared<Module>();
    std::vector<Node*> nodes;
    const NodeAt nodeAt = [&](uint32_t number) { return number < nodes.size() ? nodes[number] : nullptr; };
    in.each([&] { nodes.push_back(readNode(in, module->graph(), nodeAt)); });
    in.each([&] {
        const std::string name(in.text());
        if (next < tensors.size()) module->tensors[name] = tensors[next++];
        else in.fail();
    });
    in.each([&] {
        SymbolInfo& info = module->symbols[std::string(in.text())];
        for (auto* bound : {&info.lower, &info.upper, &info.hint}) *bound = readBound(in);
    });
    in.each([&] {
        const std::string name(in.text());
        const std::shared_ptr<Module> body = readModule(in, tensors, next);
        if (!in.failed()) module->subgraphs.emplace_back(name, std::make_unique<Module>(*body));
    });
    return module;
}

}  // namespace cutaway
