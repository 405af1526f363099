#include "engine/passes/pre_grad/default_passes.h"

#include "engine/ir/live_nodes.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/passes/pre_grad/torch_graph.h"

namespace cutaway {
namespace {

using namespace pregrad;

// ---------------------------------------------------------------- PRE-3

struct NumpyName {
    std::string_view numpy, torch;
};
constexpr NumpyName kNumpyNames[] = {{"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"}, {"a", "input"}, {"x1", "input"}, {"x2", "other"}};

std::string torchName(const Op& op, const std::string& keyword) {
    for (const NumpyName& name : kNumpyNames)
        if (name.numpy == keyword && torchCallTakes(op, name.torch)) return std::string(name.torch);
    return keyword;
}

Result<bool> renameNumpyKeywords(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!node->isCall() || !node->op().isOpaque() || node->op().style() != Op::Style::Function || node->kwargs().empty()) continue;
        NamedArguments keywords;
        bool renamed = false;
        for (const auto& [key, value] : node->kwargs()) {
            keywords.emplace_back(torchName(node->op(), key), value);
            renamed |= keywords.back().first != key;
        }
        if (!renamed) continue;
        if (!rewriter.begin("numpy_compat_normalization", *node, "the function has a parameter of PyTorch's name")) return changed;
        graph.setOp(*node, node->op(), node->args(), node->type(), std::move(keywords));
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- PRE-4

bool isSinkable(const Node& node) {
    return isFunction(node, {"torch.relu", "torch.tanh"}) || isMethod(node, "relu") || isMethod(node, "tanh");
}

struct CatArguments {
    const std::vector<Argument>* tensors = nullptr;
    Argument dim = 0;
};
/// PyTorch understands `tensors` and `dim` only; anything else is left alone.
std::optional<CatArguments> catArguments(const Node& cat) {
    CatArguments out;
    for (const auto& [key, value] : cat.kwargs())
        if (key != "tensors" && key != "dim") return std::nullopt;
    const Argument* tensors = argument(cat, 0, "tensors");
    out.tensors = tensors ? tensors->list() : nullptr;
    if (const Argument* dim = argument(cat, 1, "dim")) out.dim = *dim;
    if (out.tensors == nullptr || cat.args().size() > 2) return std::nullopt;
    return out;
}

Result<bool> sinkCats(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node = graph.first(); node != nullptr;) {
        Node& cat = *node;
        node = node->next();
        if (!isFunction(cat, {"torch.cat"})) continue;
        Node* last = &cat;   // the concatenation or the last view of it
        Node* user = onlyUser(cat);
        while (user && isMethod(*user, "view")) {
            last = user;
            user = onlyUser(*user);
        }
        const auto parts = catArguments(cat);
        if (!user || !isSinkable(*user) || !parts) continue;
        if (!rewriter.begin("sink_cat_after_pointwise", *user, "the function works element by element, so it may come before the concatenation"))
            return changed;
        TorchBuilder builder(rewriter, cat, *user);
        NamedArguments keywords = user->kwargs();
        std::erase_if(keywords, [](const auto& each) { return each.first == "input"; });
        std::vector<Argument> computed;
        for (const Argument& part : *parts->tensors) {
            const bool method = user->op().style() == Op::Style::Method;
            computed.emplace_back(method ? &builder.method(user->op().name(), {part}, keywords) : &builder.function(user->op().name(), {part}, keywords));
        }
        Node& fresh = builder.function("torch.cat", {Argument(std::move(computed)), parts->dim});
        graph.replaceUses(*user, *last);
        if (node == user) node = user->next();
        graph.erase(*user);
        rewriter.replace(cat, fresh);
        changed = true;   // the new concatenation is not looked at again, as in PyTorch
    }
    return changed;
}

// ---------------------------------------------------------------- PRE-10

bool isLastDim(const Node& softmax) {
    const TensorType* type = tensorType(operand(softmax, 0, "input"));
    const Argument* dim = argument(softmax, 1, "dim");
    if (type == nullptr || integer(dim) == std::nullopt) return false;
    return wrappedDim(dim, type->rank()) == type->rank() - 1;
}
/// empty.exponential_(1.0) that nobody else reads.
bool isFreshExponential(const Node& node) {
    if (!isMethod(node, "exponential_") || node.users().size() != 1 || !node.kwargs().empty()) return false;
    if (node.args().size() != 2 || node.arg(1).asReal() != 1.0) return false;
    const Node* source = node.arg(0).node();
    return source && source->users().size() == 1;
}

Result<bool> gumbelMax(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<Node*> nodes;  // the pass erases nodes, but none of these
    for (Node& node : graph.nodes())
        if (isFunction(node, {"torch.argmax"})) nodes.push_back(&node);
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
        Node& argmax = **at;
        if (argmax.args().size() != 1 || argmax.kwargs().size() != 2) continue;
        if (integer(argument(argmax, 9, "dim")) != -1) continue;
        const Argument* keep = argument(argmax, 9, "keepdim");
        Node* quotient = argmax.arg(0).node();
        if (!keep || keep->asInt() != 1 || !quotient || !isFunction(*quotient, {"operator.truediv"}) || quotient->users().size() != 1) continue;
        Node *softmax = quotient->arg(0).node(), *noise = quotient->arg(1).node();
        if (!softmax || !noise || !isFreshExponential(*noise)) continue;
        if (!isFunction(*softmax, {"torch.nn.functional.softmax"}) || softmax->users().size() != 1 || softmax->args().empty()) continue;
        // The order of probabilities is the order of logits only along the dim that both work on.
        if (!isLastDim(*softmax) && !rewriter.options().parity) continue;
        Node* logits = softmax->arg(0).node();
        if (logits == nullptr) continue;
        if (!rewriter.begin("apply_gumbel_max_trick", argmax, "the largest of softmax(x) / e is the largest of x - log(e)")) return changed;
        TorchBuilder builder(rewriter, *quotient, *quotient);
        Node& log = builder.function("torch.log", {Argument(noise)});
        Node& negative = builder.function("operator.neg", {Argument(&log)});
        Node& sum = builder.function("operator.add", {Argument(logits), Argument(&negative)});
        rewriter.replace(*quotient, sum);
        graph.erase(*softmax);
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- PRE-13

bool isViewOp(const Node& node) {
    if (!node.isCall()) return false;
    for (std::string_view name : {"aten.transpose.int", "aten.permute.default", "aten.view.default", "aten.reshape.default"})
        if (node.op().name() == name) return true;
    return false;
}
bool isQuantize(const Node& node) {
    return node.isCall("quantized_decomposed.quantize_per_tensor.default") || node.isCall("quantized_decomposed.quantize_per_tensor.tensor");
}

/// The views between a quantization and what it quantizes, first to last; empty unless each is read once.
std::vector<Node*> viewChain(const Node& quantize) {
    std::vector<Node*> chain;
    Node* at = quantize.arg(0).node();
    for (; at && isViewOp(*at); at = at->arg(0).node()) {
        if (at->users().size() != 1) return {};
        chain.insert(chain.begin(), at);
    }
    if (at == nullptr || at->users().size() != 1) return {};
    return chain;
}

Result<bool> liftQuantizations(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isQuantize(*node) || node->args().empty() || node->inputs().size() != 1) continue;
        const std::vector<Node*> chain = viewChain(*node);
        if (chain.empty()) continue;
        if (!rewriter.begin("quant_lift_up", *node, "every view on the way is read once, and so is its source")) return changed;
        Node& source = *chain.front()->arg(0).node();
        Node& last = *chain.back();
        graph.replaceUses(*node, last);
        graph.moveBefore(*node, *chain.front());
        std::vector<Argument> args = node->args();
        args[0] = Argument(&source);
        ValueType type = source.type();
        if (type.tensor() && node->type().tensor()) type.tensor()->dtype = node->type().tensor()->dtype;
        graph.replaceInput(*chain.front(), source, *node);
        graph.setOp(*node, node->op(), std::move(args), std::move(type), node->kwargs());
        for (Node* view : chain)
            if (auto inferred = inferCall(view->op(), view->args()); inferred && !inferred->isOpaque()) graph.setType(*view, std::move(*inferred));
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> numpyCompatNormalization(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, renameNumpyKeywords); }
Result<bool> sinkCatAfterPointwise(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, sinkCats); }
Result<bool> applyGumbelMaxTrick(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, gumbelMax); }
Result<bool> quantLiftUp(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, liftQuantizations); }

}  // namespace cutaway
