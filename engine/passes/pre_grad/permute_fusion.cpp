#include "engine/passes/pre_grad/permute_fusion.h"

#include "engine/ir/live_nodes.h"
#include "engine/passes/pre_grad/torch_graph.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

using namespace pregrad;

constexpr std::string_view kModule = "torch__inductor_fx_passes_pre_grad_";  // as FX prints the module

bool swapsLastTwo(const Node& node, const Refusing& no) {
    const TensorType* type = tensorType(&node);
    if (!isMethod(node, "permute") || !type) return no.about(&node, NodeWithKind{&node}, " is not a permute");
    std::vector<Argument> dims;
    const Argument* named = argument(node, 99, "permutation");
    if (node.args().size() > 3) dims.assign(node.args().begin() + 1, node.args().end());
    else if (named && named->list() && named->list()->size() > 2) dims = *named->list();
    const int64_t rank = type->rank();
    if (dims.empty() || static_cast<int64_t>(dims.size()) != rank)
        return no.about(&node, "the dims of ", node, " are not written out one by one, or are fewer than three");
    for (int64_t i = 0; i < rank; ++i) {
        const int64_t wanted = i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
        if (wrappedDim(&dims[static_cast<size_t>(i)], rank) != wanted)
            return no.about(&node, node, " puts dim ", dims[static_cast<size_t>(i)], " in place ", i,
                            ", and does not just exchange the last two");
    }
    return true;
}

/// What the permute reads, if it is such a permute; else null.
Node* permuted(Node* node, const Refusing& no) {
    return node && swapsLastTwo(*node, no) ? operand(*node, 0, "input") : nullptr;
}

std::vector<Argument> linearArguments(const Node& linear) {
    const Argument* bias = argument(linear, 2, "bias");
    return {Argument(operand(linear, 0, "input")), Argument(operand(linear, 1, "weight")), bias ? *bias : Argument()};
}

void put(Node& old, std::string_view function, std::vector<Argument> args, const std::vector<Node*>& absorbed,
         Rewriter& rewriter) {
    TorchBuilder builder(rewriter, old, old);
    rewriter.replace(old, builder.function(std::string(kModule) + std::string(function), std::move(args)));
    for (Node* node : absorbed)
        if (!node->hasUsers()) node->graph().erase(*node);
}

Result<bool> linearThenPermute(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isMethod(*node, "permute")) continue;
        const Refusing no(rewriter, "linear_permute_fusion", *node);
        Node* linear = permuted(node, no);
        if (!linear) continue;
        if (!isLinear(*linear)) {
            no.about(linear, NodeWithKind{linear}, " is not a linear layer");
            continue;
        }
        if (rewriter.begin("linear_permute_fusion", *node, "the product can be computed transposed") != Go::Yes)
            return changed;
        put(*node, "linear_transpose", linearArguments(*linear), {linear}, rewriter);
        changed = true;
    }
    return changed;
}

Result<bool> permuteThenLinear(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        Node* permute = isLinear(*node) ? operand(*node, 0, "input") : nullptr;
        Node* source = permuted(permute, {rewriter, "permute_linear_fusion", *node});
        if (!source) continue;
        if (rewriter.begin("permute_linear_fusion", *node, "the product can read its operand transposed") != Go::Yes)
            return changed;
        std::vector<Argument> args = linearArguments(*node);
        args[0] = Argument(source);
        put(*node, "transpose_linear", std::move(args), {permute}, rewriter);
        changed = true;
    }
    return changed;
}

Result<bool> permuteThenMatmul(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isFunction(*node, {"torch.bmm", "torch.matmul"})) continue;
        Node *left = operand(*node, 0, "input"), *right = operand(*node, 1, "other");
        if (right == nullptr) right = operand(*node, 1, "mat2");
        const Refusing no(rewriter, "permute_matmul_fusion", *node);
        if (!left || !right) no("its operands are not written as input and other or mat2");
        if (!left || !right) continue;
        // If neither operand is such a permute, the refusal is about the one that is a permute of other dims.
        const bool sayLeft = isMethod(*left, "permute") || !isMethod(*right, "permute");
        Node *leftSource = permuted(left, {}), *rightSource = permuted(right, {});
        if (!leftSource && !rightSource) swapsLastTwo(sayLeft ? *left : *right, no);
        if (!leftSource && !rightSource) continue;
        if (rewriter.begin("permute_matmul_fusion", *node, "the product can read its operands transposed") != Go::Yes)
            return changed;
        std::vector<Node*> absorbed;
        if (leftSource) absorbed.push_back(left);
        if (rightSource && right != left) absorbed.push_back(right);
        put(*node, "transpose_matmul",
            {Argument(leftSource ? leftSource : left), Argument(rightSource ? rightSource : right),
             Argument(leftSource != nullptr), Argument(rightSource != nullptr)},
            absorbed, rewriter);
        changed = true;
    }
    return changed;
}

Result<bool> onMainGraph(Module& module, Rewriter& rewriter, Result<bool> (*pass)(Graph&, Rewriter&)) {
    for (const auto& [name, body] : module.subgraphs)
        refuseAll(*body, rewriter, "the pass does not look into subgraphs, which have no example inputs");
    return pass(module.graph(), rewriter);
}

}  // namespace

Result<bool> linearPermuteFusion(Module& module, Rewriter& rewriter) {
    return onMainGraph(module, rewriter, linearThenPermute);
}
Result<bool> permuteLinearFusion(Module& module, Rewriter& rewriter) {
    return onMainGraph(module, rewriter, permuteThenLinear);
}
Result<bool> permuteMatmulFusion(Module& module, Rewriter& rewriter) {
    return onMainGraph(module, rewriter, permuteThenMatmul);
}

}  // namespace cutaway
