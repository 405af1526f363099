#include "engine/passes/joint/canonicalize_quant.h"

#include <algorithm>

#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

bool names(const Argument& argument, const std::string& body) {
    if (const auto* subgraph = argument.get<SubgraphRef>()) return subgraph->name == body;
    const auto* items = argument.list();
    return items && std::any_of(items->begin(), items->end(), [&](const Argument& item) { return names(item, body); });
}

int64_t readersOf(const Graph& graph, const std::string& body) {
    int64_t count = 0;
    for (const Node& node : graph.nodes()) {
        bool reads =
            std::any_of(node.args().begin(), node.args().end(), [&](const Argument& arg) { return names(arg, body); });
        for (const auto& [key, arg] : node.kwargs()) reads |= names(arg, body);
        count += reads;
    }
    return count;
}

/// InvokeQuant(True) and InvokeQuant(codegen_low_precision = True) as a dict; without an object, its defaults.
Argument optionsOf(const Node* made) {
    constexpr std::string_view kFields[] = {"codegen_low_precision"};
    ArgumentDict options{{{std::string(kFields[0]), true}}};
    if (made == nullptr) return Argument(std::make_shared<const ArgumentDict>(std::move(options)));
    const auto set = [&](const std::string& name, const Argument& value) {
        for (auto& [key, old] : options.items)
            if (key == name) return void(old = value);
        options.items.emplace_back(name, value);
    };
    for (size_t i = 0; i < made->args().size() && i < std::size(kFields); ++i)
        set(std::string(kFields[i]), made->arg(i));
    for (const auto& [key, value] : made->kwargs()) set(key, value);
    return Argument(std::make_shared<const ArgumentDict>(std::move(options)));
}

/// The body returns its single value instead of a tuple, and the getitem goes.
void unwrap(Module& module, Node& call, Rewriter& rewriter) {
    const auto* reference = call.args().empty() ? nullptr : call.arg(0).get<SubgraphRef>();
    Node* reader = call.users().size() == 1 ? call.users()[0] : nullptr;
    const bool first = reader && reader->isCall("operator.getitem") && reader->arg(1).asInt() == 0;
    Module* body = reference ? module.subgraph(reference->name) : nullptr;
    if (!first || body == nullptr || readersOf(module.graph(), reference->name) != 1) return;
    Graph& inner = body->graph();
    const auto* returned = inner.outputNode() ? inner.outputNode()->arg(0).list() : nullptr;
    if (returned == nullptr || returned->size() != 1) return;
    const Argument value = (*returned)[0];
    inner.setArg(*inner.outputNode(), 0, value);
    module.graph().setType(call, reader->type());
    rewriter.replace(*reader, call);
}

}  // namespace

Result<bool> canonicalizeQuant(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, canonicalizeQuant(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    std::vector<Node*> calls;
    for (Node* node : graph.nodeList())
        if (node->isCall() && node->op().name().starts_with("higher_order.invoke_quant_packed")) calls.push_back(node);
    for (Node* node : calls) {
        Node* options = nullptr;
        NamedArguments keywords;
        for (const auto& [key, arg] : node->kwargs()) {
            if (key == "quant_options") options = arg.node();
            else keywords.emplace_back(key, arg);
        }
        if (keywords.size() != node->kwargs().size() && options == nullptr) {
            rewriter.refuse("canonicalize_quant", *node, "its quant_options are given, but made by no call");
            continue;
        }
        keywords.emplace_back("quant_options", optionsOf(options));
        if (rewriter.begin("canonicalize_quant", *node,
                           "code is generated from invoke_quant, whose options are known here and no operand") !=
            Go::Yes)
            return changed;
        graph.setOp(*node, findOrMakeOpaque("higher_order.invoke_quant"), node->args(), node->type(),
                    std::move(keywords));
        if (options && !options->hasUsers()) graph.erase(*options);
        unwrap(module, *node, rewriter);
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
