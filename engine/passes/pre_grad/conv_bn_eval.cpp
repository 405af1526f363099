#include "engine/passes/pre_grad/conv_bn_eval.h"

#include "engine/ir/live_nodes.h"
#include "engine/passes/pre_grad/torch_graph.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

using namespace pregrad;

/// The operands of a batch norm that does not train.
struct Norm {
    Node *input, *mean, *variance, *weight, *bias;
    Argument eps;
};
std::optional<Norm> normAt(const Node& node, const Refusing& no) {
    const bool python = isFunction(node, {"torch.nn.functional.batch_norm"}),
               aten = node.isCall("aten.batch_norm.default");
    if (!python && !aten) return std::nullopt;
    // Python's order is (input, mean, variance, weight, bias), ATen's (input, weight, bias, mean, variance).
    const size_t statistics = python ? 1 : 3, affine = python ? 3 : 1;
    Norm norm{operand(node, 0, "input"),
              operand(node, statistics, "running_mean"),
              operand(node, statistics + 1, "running_var"),
              operand(node, affine, "weight"),
              operand(node, affine + 1, "bias"),
              Argument(1e-5)};
    const Argument* training = argument(node, 5, "training");
    if (training && (training->get<bool>() == nullptr || *training->get<bool>())) {
        no("its training is ", *training, ", not False");
        return std::nullopt;
    }
    if (const Argument* eps = argument(node, 7, "eps")) norm.eps = *eps;
    if (norm.input == nullptr || norm.mean == nullptr || norm.variance == nullptr || !norm.eps.asReal()) {
        no("it is not given an input, a running mean, a running variance and a number for eps");
        return std::nullopt;
    }
    return norm;
}

enum class Layer : uint8_t { None, Linear, Convolution, Transposed };
Layer layerAt(const Node& node) {
    if (isLinear(node) || node.isCall("aten.linear.default")) return Layer::Linear;
    if (!node.isCall() || node.op().style() == Op::Style::Method) return Layer::None;
    std::string_view name = node.op().name();
    for (const std::string_view prefix : {"torch.nn.functional.", "torch.", "aten."})
        if (name.starts_with(prefix)) {
            name.remove_prefix(prefix.size());
            break;
        }
    for (const std::string_view plain :
         {"conv1d", "conv2d", "conv3d", "conv1d.default", "conv2d.default", "conv3d.default"})
        if (name == plain) return Layer::Convolution;
    for (const std::string_view transposed :
         {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_transpose1d.default",
          "conv_transpose2d.input", "conv_transpose3d.input"})
        if (name == transposed) return Layer::Transposed;
    return Layer::None;
}

/// Whether the norm works on the dim of the layer's channels, and each channel has a slice of the weight of its own.
bool normsChannels(const Node& layer, Layer kind, const Refusing& no) {
    const TensorType *result = tensorType(&layer), *weight = tensorType(operand(layer, 1, "weight"));
    if (result == nullptr || weight == nullptr)
        return no.about(&layer, "the type of ", layer, " or of its weight is not known");
    if (result->rank() != weight->rank())
        return no.about(&layer, layer, " is ", *result, ", of another number of dims than its weight, ", *weight);
    if (kind == Layer::Linear && result->rank() != 2)
        return no.about(&layer, layer, " is ", *result, ", whose channels are not in dim 1");
    const Argument* groups = argument(layer, 6, "groups");
    return kind != Layer::Transposed || groups == nullptr || groups->asInt() == 1 ||
           no.about(&layer, layer, " is transposed and has ", *groups, " groups");
}

/// The kind of layer whose result the norm alone reads; None where its weight cannot be scaled.
Layer scaledLayer(const Node& node, const Norm& norm, const Refusing& no) {
    const Node& layer = *norm.input;
    if (onlyUser(layer) == nullptr) {
        no.about(&layer, OtherReader{layer, &node});
        return Layer::None;
    }
    const Layer kind = layerAt(layer);
    if (kind == Layer::None) {
        no.about(&layer, NodeWithKind{&layer}, " is not a convolution or linear layer");
        return Layer::None;
    }
    return normsChannels(layer, kind, no) ? kind : Layer::None;
}

/// The layer's arguments with another weight and bias.
void exchangeParameters(Node& layer, Node& weight, Node& bias, std::vector<Argument>& args, NamedArguments& keywords) {
    args = layer.args();
    keywords = layer.kwargs();
    const auto put = [&](size_t position, std::string_view name, Node& value) {
        if (position < args.size()) {
            args[position] = Argument(&value);
            return;
        }
        std::erase_if(keywords, [&](const auto& each) { return each.first == name; });
        if (position == args.size() && keywords.empty()) args.emplace_back(&value);
        else keywords.emplace_back(name, Argument(&value));
    };
    put(1, "weight", weight);
    put(2, "bias", bias);
}

void scaleInstead(Graph& graph, Rewriter& rewriter, Node& node, const Norm& norm, Layer kind) {
    Node& layer = *norm.input;
    TorchBuilder builder(rewriter, node, node);
    Node &weight = *operand(layer, 1, "weight"), *bias = operand(layer, 2, "bias");
    Node& sum = builder.function("operator.add", {Argument(norm.variance), norm.eps});
    Node& inverse = builder.function("torch.rsqrt", {Argument(&sum)});
    std::vector<Argument> shape = {Argument(&inverse)};
    for (int64_t dim = 0; dim < weight.tensor().rank(); ++dim)
        shape.emplace_back(dim == (kind == Layer::Transposed ? 1 : 0) ? int64_t{-1} : int64_t{1});
    Node* factor = &builder.method("reshape", std::move(shape));
    if (norm.weight) {
        Node& own = builder.method("view_as", {Argument(norm.weight), Argument(factor)});
        factor = &builder.function("operator.mul", {Argument(&own), Argument(factor)});
    }
    Node& scaled = builder.function("operator.mul", {Argument(&weight), Argument(factor)});
    Node& flat = builder.method("flatten", {Argument(factor)});
    Node& centred = bias ? builder.function("operator.sub", {Argument(bias), Argument(norm.mean)})
                         : builder.function("operator.neg", {Argument(norm.mean)});
    Node* shift = &builder.function("operator.mul", {Argument(&flat), Argument(&centred)});
    if (norm.bias) shift = &builder.function("operator.add", {Argument(norm.bias), Argument(shift)});
    std::vector<Argument> args;
    NamedArguments keywords;
    exchangeParameters(layer, scaled, *shift, args, keywords);
    Node& made = graph.call(layer.op(), std::move(args), layer.type(), &node, {}, std::move(keywords));
    made.graph().setProvenance(made, flat.provenance());
    rewriter.replace(node, made);
    graph.erase(layer);
}

Result<bool> foldNorms(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        const Refusing no(rewriter, "efficient_conv_bn_eval", *node);
        // With freezing the pass has nothing to do: frozen weights and norms are folded once, not in each run.
        const bool frozen = rewriter.request().freeze;
        if (frozen) no("weights are frozen, and folded for good");
        const auto norm = frozen ? std::nullopt : normAt(*node, no);
        const Layer kind = norm ? scaledLayer(*node, *norm, no) : Layer::None;
        if (kind == Layer::None) continue;
        if (rewriter.begin("efficient_conv_bn_eval", *node,
                           "scaling the weight is less work than scaling the result") != Go::Yes)
            return changed;
        scaleInstead(graph, rewriter, *node, *norm, kind);
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> efficientConvBnEval(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, foldNorms);
}

}  // namespace cutaway
