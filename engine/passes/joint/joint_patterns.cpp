#include "engine/passes/joint/joint_patterns.h"

#include "engine/ir/infer.h"

namespace cutaway {
namespace {

constexpr std::string_view kConvert = "prims.convert_element_type.default";

/// The call that makes operand 0, if it is of this op and has this node as its only reader.
Node* onlyProducer(const Node& node, std::string_view op) {
    Node* source = node.arg(0).node();
    return source && source->isCall(op) && source->users().size() == 1 ? source : nullptr;
}

/// What a view or permute can be replaced by, and by which rule.
struct Shortcut {
    Node* replacement = nullptr;
    std::string_view rule, why;
};

Shortcut viewShortcut(const Node& node) {
    Node* source = node.arg(0).node();
    if (source == nullptr || !source->type().tensor()) return {};
    if (source->tensor().sizes == node.tensor().sizes) return {source, "pointless_view", "the shape is the same"};
    if (Node* inner = onlyProducer(node, "aten.view.default"))
        if (Node* origin = inner->arg(0).node(); origin && origin->tensor().sizes == node.tensor().sizes)
            return {origin, "pointless_view_pair", "the second view restores the shape that the first one changed"};
    return {};
}

Shortcut permuteShortcut(const Node& node) {
    Node* inner = onlyProducer(node, "aten.permute.default");
    if (inner == nullptr) return {};
    const int64_t rank = node.tensor().rank();
    const auto outerDims = InferContext(node.op(), node.args()).dims("dims", rank, false);
    const auto innerDims = InferContext(inner->op(), inner->args()).dims("dims", rank, false);
    if (!outerDims || !innerDims) return {};
    for (size_t i = 0; i < outerDims->size(); ++i)
        if ((*innerDims)[static_cast<size_t>((*outerDims)[i])] != static_cast<int64_t>(i)) return {};
    return {inner->arg(0).node(), "pointless_permute_pair", "the second permute undoes the first"};
}

bool isPlainFloat(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64; }

template <class Visit>
Result<bool> sweep(Module& module, Rewriter& rewriter, Visit visit) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, sweep(*body, rewriter, visit));
        changed |= inner;
    }
    Graph& graph = module.graph();
    // The list is fixed up front; erased slots are recognised by their id.
    std::vector<NodeId> ids;
    for (const Node& node : graph.nodes()) ids.push_back(node.id());
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
        Node* node = graph.find(*id);
        if (node == nullptr || !node->isCall()) continue;
        CT_TRY(const bool one, visit(*node, rewriter));
        changed |= one;
    }
    return changed;
}

}  // namespace

Result<bool> earlyPatterns(Module& module, Rewriter& rewriter) {
    return sweep(module, rewriter, [](Node& node, Rewriter& gate) -> Result<bool> {
        Shortcut shortcut;
        if (node.isCall("aten.view.default")) shortcut = viewShortcut(node);
        else if (node.isCall("aten.permute.default")) shortcut = permuteShortcut(node);
        if (shortcut.replacement == nullptr || !gate.begin(shortcut.rule, node, shortcut.why)) return false;
        Node* inner = node.arg(0).node();
        gate.replace(node, *shortcut.replacement);
        if (inner != shortcut.replacement && !inner->hasUsers()) inner->graph().erase(*inner);
        return true;
    });
}

Result<bool> passPattern0(Module& module, Rewriter& rewriter) {
    return sweep(module, rewriter, [](Node& node, Rewriter& gate) -> Result<bool> {
        if (!node.isCall(kConvert)) return false;
        Node* inner = onlyProducer(node, kConvert);
        if (inner == nullptr || !isPlainFloat(inner->tensor().dtype) || !isPlainFloat(node.tensor().dtype)) return false;
        if (!gate.begin("pointless_convert", node, "only the last dtype of a chain of conversions counts")) return false;
        Graph& graph = node.graph();
        GraphBuilder builder = gate.builder(graph, &node, node);
        const Value direct = builder.call(kConvert, {inner->arg(0), node.tensor().dtype});
        if (builder.error()) return *builder.error();
        gate.replace(node, *direct.node());
        graph.erase(*inner);
        return true;
    });
}

}  // namespace cutaway
