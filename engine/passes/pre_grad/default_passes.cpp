#include "engine/passes/pre_grad/default_passes.h"

#include "engine/ir/live_nodes.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/passes/pre_grad/torch_graph.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

using namespace pregrad;

// ---------------------------------------------------------------- PRE-3

constexpr std::string_view kNumpy = "numpy_compat_normalization";

struct NumpyName {
    std::string_view numpy, torch;
};
constexpr NumpyName kNumpyNames[] = {{"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"},
                                     {"a", "input"},  {"x1", "input"},         {"x2", "other"}};

std::string torchName(const Op& op, const std::string& keyword) {
    for (const NumpyName& name : kNumpyNames)
        if (name.numpy == keyword && torchCallTakes(op, name.torch)) return std::string(name.torch);
    return keyword;
}

bool takesKeywords(const Node& node, const Refusing& no) {
    if (!node.isCall()) return false;
    if (!node.op().isOpaque()) return no(KindOf{node}, " is an operator, which numpy does not have");
    if (node.op().style() != Op::Style::Function)
        return no(KindOf{node}, " is not a function, and only functions are called as in numpy");
    return !node.kwargs().empty() || no("it is called without keywords");
}

Result<bool> renameNumpyKeywords(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!takesKeywords(*node, {rewriter, kNumpy, *node})) continue;
        NamedArguments keywords;
        bool renamed = false;
        for (const auto& [key, value] : node->kwargs()) {
            keywords.emplace_back(torchName(node->op(), key), value);
            renamed |= keywords.back().first != key;
        }
        if (!renamed) {
            Refusing(rewriter, kNumpy, *node)("no keyword of it is numpy's name for a parameter of ", KindOf{*node},
                                              ": the first is ", keywords[0].first);
            continue;
        }
        if (rewriter.begin(kNumpy, *node, "the function has a parameter of PyTorch's name") != Go::Yes) return changed;
        graph.setOp(*node, node->op(), node->args(), node->type(), std::move(keywords));
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- PRE-4

constexpr std::string_view kSink = "sink_cat_after_pointwise";

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

/// What keeps the function behind its concatenation; found after that concatenation was visited.
bool refuseToSink(const Node& function, const Refusing& no) {
    const Node *reader = &function, *at = function.inputs().empty() ? nullptr : function.inputs()[0];
    for (; at && isMethod(*at, "view"); reader = at, at = at->arg(0).node())
        if (onlyUser(*at) != reader) return no.about(at, OtherReader{*at, reader});
    if (!at || !isFunction(*at, {"torch.cat"}))
        return no.about(at, NodeWithKind{at}, " is not a concatenation (torch.cat)");
    if (onlyUser(*at) != reader) return no.about(at, OtherReader{*at, reader});
    if (!catArguments(*at)) return no.about(at, *at, " has other arguments than a list of tensors and a dim");
    return no.about(at, *at, " was made by this pass, where another function sank");
}

Result<bool> sinkCats(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node = graph.first(); node != nullptr;) {
        Node& cat = *node;
        node = node->next();
        if (isSinkable(cat)) refuseToSink(cat, {rewriter, kSink, cat});
        if (!isFunction(cat, {"torch.cat"})) continue;
        Node* last = &cat;  // the concatenation or the last view of it
        Node* user = onlyUser(cat);
        while (user && isMethod(*user, "view")) {
            last = user;
            user = onlyUser(*user);
        }
        const auto parts = catArguments(cat);
        if (!user || !isSinkable(*user) || !parts) continue;
        if (rewriter.begin(kSink, *user,
                           "the function works element by element, so it may come before the concatenation") != Go::Yes)
            return changed;
        TorchBuilder builder(rewriter, cat, *user);
        NamedArguments keywords = user->kwargs();
        std::erase_if(keywords, [](const auto& each) { return each.first == "input"; });
        std::vector<Argument> computed;
        for (const Argument& part : *parts->tensors) {
            const bool method = user->op().style() == Op::Style::Method;
            computed.emplace_back(method ? &builder.method(user->op().name(), {part}, keywords)
                                         : &builder.function(user->op().name(), {part}, keywords));
        }
        Node& fresh = builder.function("torch.cat", {Argument(std::move(computed)), parts->dim});
        graph.replaceUses(*user, *last);
        if (node == user) node = user->next();
        graph.erase(*user);
        rewriter.replace(cat, fresh);
        changed = true;  // the new concatenation is not looked at again, as in PyTorch
    }
    return changed;
}

// ---------------------------------------------------------------- PRE-10

bool isLastDim(const Node& softmax, const Refusing& no) {
    const TensorType* type = tensorType(operand(softmax, 0, "input"));
    const Argument* dim = argument(softmax, 1, "dim");
    if (type == nullptr || integer(dim) == std::nullopt)
        return no.about(&softmax, "the dim of ", softmax, " is not known");
    return wrappedDim(dim, type->rank()) == type->rank() - 1 ||
           no.about(&softmax, "the dim of ", softmax, " is ", *dim, ", not the last of ", *type);
}
/// empty.exponential_(1.0) that nobody else reads.
bool isFreshExponential(const Node* noise, const Refusing& no) {
    if (!noise || !isMethod(*noise, "exponential_"))
        return no.about(noise, "it divides by ", NodeWithKind{noise}, ", not by the method exponential_");
    if (noise->users().size() != 1) return no.about(noise, OtherReader{*noise, noise->users()[0]});
    if (!noise->kwargs().empty() || noise->args().size() != 2 || noise->arg(1).asReal() != 1.0)
        return no.about(noise, "the rate of ", *noise, " is not given as 1");
    const Node* source = noise->arg(0).node();
    return source && (source->users().size() == 1 || no.about(source, OtherReader{*source, noise}));
}

/// argmax(softmax(logits) / noise).
struct Sampling {
    Node *quotient, *softmax, *noise, *logits;
};
std::optional<Sampling> samplingAt(const Node& argmax, bool parity, const Refusing& no) {
    Sampling out{};
    const Argument* keep = argument(argmax, 9, "keepdim");
    if (argmax.args().size() != 1 || argmax.kwargs().size() != 2 || integer(argument(argmax, 9, "dim")) != -1 ||
        !keep || keep->asInt() != 1) {
        no("it is not called with dim=-1 and keepdim=True, as sampling is");
        return std::nullopt;
    }
    out.quotient = argmax.arg(0).node();
    if (!out.quotient || !isFunction(*out.quotient, {"operator.truediv"})) {
        no.about(out.quotient, NodeWithKind{out.quotient}, " is not a quotient (operator.truediv)");
        return std::nullopt;
    }
    if (out.quotient->users().size() != 1) {
        no.about(out.quotient, OtherReader{*out.quotient, &argmax});
        return std::nullopt;
    }
    out.softmax = out.quotient->arg(0).node();
    out.noise = out.quotient->arg(1).node();
    if (!isFreshExponential(out.noise, no)) return std::nullopt;
    if (!out.softmax || !isFunction(*out.softmax, {"torch.nn.functional.softmax"}) || out.softmax->args().empty()) {
        no.about(out.softmax, NodeWithKind{out.softmax}, " is not torch.nn.functional.softmax");
        return std::nullopt;
    }
    if (out.softmax->users().size() != 1) {
        no.about(out.softmax, OtherReader{*out.softmax, out.quotient});
        return std::nullopt;
    }
    // The order of probabilities is the order of logits only along the dim that both work on.
    if (!parity && !isLastDim(*out.softmax, no)) return std::nullopt;
    out.logits = out.softmax->arg(0).node();
    if (out.logits == nullptr) {
        no("the logits are not a tensor");
        return std::nullopt;
    }
    return out;
}

constexpr std::string_view kGumbel = "apply_gumbel_max_trick";

Result<bool> gumbelMax(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<Node*> nodes;  // the pass erases nodes, but none of these
    for (Node& node : graph.nodes())
        if (isFunction(node, {"torch.argmax"})) nodes.push_back(&node);
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
        Node& argmax = **at;
        const auto found = samplingAt(argmax, rewriter.request().parity, {rewriter, kGumbel, argmax});
        if (!found) continue;
        const auto [quotient, softmax, noise, logits] = *found;
        if (rewriter.begin(kGumbel, argmax, "the largest of softmax(x) / e is the largest of x - log(e)") != Go::Yes)
            return changed;
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
    for (std::string_view name :
         {"aten.transpose.int", "aten.permute.default", "aten.view.default", "aten.reshape.default"})
        if (node.op().name() == name) return true;
    return false;
}
bool isQuantize(const Node& node) {
    return node.isCall("quantized_decomposed.quantize_per_tensor.default") ||
           node.isCall("quantized_decomposed.quantize_per_tensor.tensor");
}

/// The views between a quantization and what it quantizes, first to last; empty unless each is read once.
std::vector<Node*> viewChain(const Node& quantize, const Refusing& no) {
    std::vector<Node*> chain;
    if (quantize.args().empty() || quantize.inputs().size() != 1) {
        no("its scale or its zero point is computed in the graph, too");
        return chain;
    }
    const Node* reader = &quantize;
    Node* at = quantize.arg(0).node();
    for (; at && isViewOp(*at); reader = at, at = at->arg(0).node()) {
        if (at->users().size() != 1) {
            no.about(at, OtherReader{*at, reader});
            return std::vector<Node*>();
        }
        chain.insert(chain.begin(), at);
    }
    if (chain.empty()) no.about(at, "what it quantizes, ", NodeWithKind{at}, ", is not a view");
    if (chain.empty() || at == nullptr) return {};
    if (at->users().size() != 1) {
        no.about(at, OtherReader{*at, reader});
        return std::vector<Node*>();
    }
    return chain;
}

Result<bool> liftQuantizations(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isQuantize(*node)) continue;
        const std::vector<Node*> chain = viewChain(*node, {rewriter, "quant_lift_up", *node});
        if (chain.empty()) continue;
        if (rewriter.begin("quant_lift_up", *node, "every view on the way is read once, and so is its source") !=
            Go::Yes)
            return changed;
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
            if (auto inferred = inferCall(view->op(), view->args()); inferred && !inferred->isOpaque())
                graph.setType(*view, std::move(*inferred));
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> numpyCompatNormalization(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, renameNumpyKeywords);
}
Result<bool> sinkCatAfterPointwise(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, sinkCats);
}
Result<bool> applyGumbelMaxTrick(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, gumbelMax);
}
Result<bool> quantLiftUp(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, liftQuantizations);
}

}  // namespace cutaway
