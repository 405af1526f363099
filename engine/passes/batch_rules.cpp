#include "engine/passes/batch_rules.h"

#include "engine/passes/pre_grad/torch_graph.h"
#include "engine/text/print.h"

namespace cutaway::batching {

Search::Search(const CompileRequest& options, std::string_view rule) {
    static const OptionalPass kDefaults;
    const OptionalPass* given = options.enabled(std::string(rule));
    const OptionalPass& settings = given ? *given : kDefaults;
    least = std::max(2, static_cast<int>(settings.number("min_fuse_set_size", 5)));
    most = std::max(least, static_cast<int>(settings.number("max_fuse_set_size", 300)));
    depth = static_cast<int>(settings.number("max_fuse_search_depth", 5));
    largestGrouped = static_cast<int64_t>(settings.number("max_fuse_tensor_size_group_linear", 4096));
    sameUsers = settings.flag("fuse_nodes_with_same_users", false);
    sameParent = settings.flag("fuse_nodes_with_same_parent", false);
    broadcastBias = settings.flag("shape_broadcast_batch_linear", false);
    parity = options.parity;
}

namespace {

using namespace pregrad;
using Nodes = std::vector<Node*>;

std::string typeText(const Node* node) { return tensorType(node) ? tensorType(node)->fullText() : std::string("?"); }
std::string usersText(const Node& node, const Search& search) {
    std::string out;
    if (search.sameUsers)
        for (const Node* user : node.users()) out += " " + (user->isCall() ? user->op().name() : std::string("output"));
    return out;
}
std::string parentText(const Node& node, const Search& search) {
    const Node* parent = search.sameParent ? operand(node, 0, "input") : nullptr;
    return parent && parent->isCall() ? parent->op().name() : std::string();
}
std::vector<Argument> operands(const Nodes& subset, size_t position, std::string_view name) {
    std::vector<Argument> out;
    for (const Node* node : subset) out.emplace_back(operand(*node, position, name));
    return out;
}

/// Splits the fused value again: item i replaces call i.
void takeApart(TorchBuilder& builder, Node& tuple, const Nodes& subset, Rewriter& rewriter) {
    Nodes items;  // all before the first replacement: they are written before a call that then goes
    for (size_t i = 0; i < subset.size(); ++i) items.push_back(&builder.item(tuple, static_cast<int64_t>(i)));
    for (size_t i = 0; i < subset.size(); ++i) rewriter.replace(*subset[i], *items[i]);
}

// ---------------------------------------------------------------- one operand

std::nullopt_t noTensor(const Node* node, const Refusing& no) {
    no.about(node, NodeWithKind{node}, " is not known to be a tensor");
    return std::nullopt;
}

std::optional<std::string> pointwiseKey(const Node& node, const BatchRule& rule, const Search& search,
                                        const Refusing& no) {
    if (!isFunction(node, {rule.function})) return std::nullopt;
    const Node* input = operand(node, 0, "input");
    if (!tensorType(input) || !tensorType(&node)) return noTensor(tensorType(input) ? &node : input, no);
    const Argument* inplace = argument(node, 1, "inplace");
    const bool writes = inplace && inplace->asInt().value_or(0) != 0;
    if (writes && !search.parity) {
        no("it writes to its operand, which a batch would not");
        return std::nullopt;
    }
    return typeText(input) + (writes ? " inplace " : " ") + parentText(node, search);
}
Result<void> fusePointwise(const Nodes& subset, const BatchRule& rule, const Search&, Rewriter& rewriter) {
    TorchBuilder builder(rewriter, *subset[0], *subset[0]);
    Node& stacked = builder.function("torch.stack", {Argument(operands(subset, 0, "input"))}, {{"dim", 0}});
    NamedArguments keywords;
    if (rule.name == "batch_relu") {
        const Argument* inplace = argument(*subset[0], 1, "inplace");
        keywords.emplace_back("inplace", inplace ? *inplace : Argument(false));
    }
    Node& batched = builder.function(rule.function, {Argument(&stacked)}, keywords);
    takeApart(builder, builder.function("torch.unbind", {Argument(&batched)}, {{"dim", 0}}), subset, rewriter);
    return {};
}

std::optional<std::string> mathKey(const Node& node, const BatchRule& rule, const Search& search, const Refusing& no) {
    if (!isFunction(node, {rule.function}) || !node.hasUsers()) return std::nullopt;
    const Node* input = operand(node, 0, "input");
    if (!tensorType(input)) return noTensor(input, no);
    if (node.args().size() > 1 && !search.parity) {
        no("its options are not passed by name: ", node.arg(1));
        return std::nullopt;
    }
    std::string key = typeText(input);
    for (const auto& [name, value] : node.kwargs())
        if (name != "input")
            key += " " + name + "=" + (value.node() ? "#" + value.node()->name() : printArgument(value));
    const Node& user = *node.users()[0];
    return key + " " + (user.isCall() ? user.op().name() : std::string("output"));
}
Result<void> fuseMath(const Nodes& subset, const BatchRule& rule, const Search&, Rewriter& rewriter) {
    TorchBuilder builder(rewriter, *subset[0], *subset[0]);
    Node& stacked = builder.function("torch.stack", {Argument(operands(subset, 0, "input"))}, {{"dim", 0}});
    NamedArguments keywords = subset[0]->kwargs();
    std::erase_if(keywords, [](const auto& each) { return each.first == "input"; });
    Node& batched = builder.function(rule.function, {Argument(&stacked)}, keywords);
    takeApart(builder, builder.function("torch.unbind", {Argument(&batched)}, {{"dim", 0}}), subset, rewriter);
    return {};
}

// ---------------------------------------------------------------- linear

bool isPlainLinear(const Node& node, const Refusing& no) {
    if (!isLinear(node)) return false;
    for (const Node* matrix : {operand(node, 0, "input"), operand(node, 1, "weight")}) {
        const TensorType* type = tensorType(matrix);
        if (type == nullptr) {
            noTensor(matrix, no);
            return false;
        }
        if (type->rank() != 2) return no.about(matrix, *matrix, " is ", *type, ", no matrix");
    }
    // The results become views of one tensor, which may not be written to.
    for (const Node* user : node.users())
        if (user->isCall() && (user->op().mutates() || user->op().name().starts_with("operator.i")))
            return no.about(user, NodeWithKind{user}, " may write to it");
    return true;
}

std::optional<std::string> linearKey(const Node& node, const BatchRule&, const Search& search, const Refusing& no) {
    if (!isPlainLinear(node, no)) return std::nullopt;
    const Node* input = operand(node, 0, "input");
    const Node* tuple = input->isCall("operator.getitem") ? input->arg(0).node() : nullptr;
    return (tuple ? tuple->name() : std::string()) + " " + typeText(input) + " " +
           typeText(operand(node, 1, "weight")) + (operand(node, 2, "bias") ? " bias" : "") + usersText(node, search);
}
Result<void> fuseLinear(const Nodes& subset, const BatchRule&, const Search&, Rewriter& rewriter) {
    TorchBuilder builder(rewriter, *subset[0], *subset[0]);
    Node& inputs = builder.function("torch.stack", {Argument(operands(subset, 0, "input"))}, {{"dim", 0}});
    Node& weights = builder.function("torch.stack", {Argument(operands(subset, 1, "weight"))}, {{"dim", 0}});
    Node& transposed = builder.function("torch.transpose", {Argument(&weights), 1, 2});
    Node* product = nullptr;
    if (operand(*subset[0], 2, "bias")) {
        Node& biases = builder.function("torch.stack", {Argument(operands(subset, 2, "bias"))}, {{"dim", 0}});
        Node& raised = builder.function("torch.unsqueeze", {Argument(&biases), 1});
        product = &builder.function("torch.baddbmm", {Argument(&raised), Argument(&inputs), Argument(&transposed)});
    } else {
        product = &builder.function("torch.bmm", {Argument(&inputs), Argument(&transposed)});
    }
    takeApart(builder, builder.function("torch.unbind", {Argument(product)}, {{"dim", 0}}), subset, rewriter);
    return {};
}

std::optional<std::string> linearLhsKey(const Node& node, const BatchRule&, const Search&, const Refusing& no) {
    if (!isPlainLinear(node, no)) return std::nullopt;
    if (const Node* weight = operand(node, 1, "weight"); !knownSizes(weight)) {
        no.about(weight, "the sizes of ", *weight, " are not all numbers");
        return std::nullopt;
    }
    return operand(node, 0, "input")->name() + (operand(node, 2, "bias") ? " bias" : "");
}
Result<void> fuseLinearLhs(const Nodes& subset, const BatchRule&, const Search&, Rewriter& rewriter) {
    TorchBuilder builder(rewriter, *subset[0], *subset[0]);
    std::vector<Argument> sizes;
    for (const Node* node : subset) sizes.emplace_back((*knownSizes(operand(*node, 1, "weight")))[0]);
    Node& weights = builder.function("torch.cat", {Argument(operands(subset, 1, "weight"))}, {{"dim", 0}});
    Node& transposed = builder.function("torch.transpose", {Argument(&weights), 0, 1});
    Node* input = operand(*subset[0], 0, "input");
    Node* product = nullptr;
    if (operand(*subset[0], 2, "bias")) {
        Node& biases = builder.function("torch.cat", {Argument(operands(subset, 2, "bias"))}, {{"dim", 0}});
        product = &builder.function("torch.addmm", {Argument(&biases), Argument(input), Argument(&transposed)});
    } else {
        product = &builder.function("torch.mm", {Argument(input), Argument(&transposed)});
    }
    takeApart(builder,
              builder.function("torch.functional.split", {Argument(product), Argument(std::move(sizes))}, {{"dim", 1}}),
              subset, rewriter);
    return {};
}

// ---------------------------------------------------------------- layer norm

Argument epsilonOf(const Node& node) {
    const Argument* given = argument(node, 4, "eps");
    return given && !given->isNone() ? *given : Argument(1e-5);
}
std::optional<std::string> layerNormKey(const Node& node, const BatchRule&, const Search& search, const Refusing& no) {
    if (!isFunction(node, {"torch.nn.functional.layer_norm"})) return std::nullopt;
    const Node *input = operand(node, 0, "input"), *weight = operand(node, 2, "weight"),
               *bias = operand(node, 3, "bias");
    const Argument* shape = argument(node, 1, "normalized_shape");
    if (!tensorType(input)) return noTensor(input, no);
    if (!shape || !shape->list()) {
        no("its normalized_shape is not written as a list");
        return std::nullopt;
    }
    return typeText(input) + " " + (weight ? typeText(weight) : "") + " " + (bias ? typeText(bias) : "") + " " +
           printArgument(*shape) + " " + printArgument(epsilonOf(node)) + usersText(node, search);
}
Result<void> fuseLayerNorm(const Nodes& subset, const BatchRule&, const Search&, Rewriter& rewriter) {
    TorchBuilder builder(rewriter, *subset[0], *subset[0]);
    const Argument shape = *argument(*subset[0], 1, "normalized_shape");
    const int64_t dim = -1 - static_cast<int64_t>(shape.list()->size());
    Node& inputs = builder.function("torch.stack", {Argument(operands(subset, 0, "input"))}, {{"dim", dim}});
    Node *weights = nullptr, *biases = nullptr;
    if (operand(*subset[0], 2, "weight"))
        weights = &builder.function("torch.stack", {Argument(operands(subset, 2, "weight"))}, {{"dim", 0}});
    if (operand(*subset[0], 3, "bias"))
        biases = &builder.function("torch.stack", {Argument(operands(subset, 3, "bias"))}, {{"dim", 0}});
    Node* out = &builder.function("torch.nn.functional.layer_norm", {Argument(&inputs), shape},
                                  {{"eps", epsilonOf(*subset[0])}});
    if (weights) out = &builder.function("torch.mul", {Argument(weights), Argument(out)});
    if (biases) out = &builder.function("torch.add", {Argument(biases), Argument(out)});
    takeApart(builder, builder.function("torch.unbind", {Argument(out)}, {{"dim", dim}}), subset, rewriter);
    return {};
}

// ---------------------------------------------------------------- on ATen calls

Value stackedAten(GraphBuilder& builder, const std::vector<Argument>& tensors) {
    std::vector<Argument> raised;
    for (const Argument& tensor : tensors) raised.push_back(unsqueeze(builder.value(*tensor.node()), 0));
    return builder.call("aten.cat.default", {Argument(std::move(raised)), 0});
}
Result<void> replaceBySelects(GraphBuilder& builder, const Value& batched, const Nodes& subset, Rewriter& rewriter,
                              const std::vector<Argument>& biases = {}, const Search* search = nullptr) {
    Nodes items;
    for (size_t i = 0; i < subset.size() && !builder.error(); ++i) {
        Value item = builder.call("aten.select.int", {batched, 0, static_cast<int64_t>(i)});
        if (i < biases.size()) {
            Value bias = builder.value(*biases[i].node());
            if (search && search->broadcastBias)
                bias = builder.call("aten.broadcast_to.default", {bias, Argument(item.sizes())});
            item = bias + item;
        }
        items.push_back(item.node());
    }
    if (builder.error()) return *builder.error();
    for (size_t i = 0; i < subset.size(); ++i) rewriter.replace(*subset[i], *items[i]);
    return {};
}
std::vector<Argument> argumentsAt(const Nodes& subset, size_t position) {
    std::vector<Argument> out;
    for (const Node* node : subset) out.push_back(node->arg(position));
    return out;
}

std::optional<std::string> atenUnaryKey(const Node& node, const BatchRule& rule, const Search& search,
                                        const Refusing& no) {
    if (!node.isCall(rule.function)) return std::nullopt;
    if (!tensorType(node.arg(0).node())) return noTensor(node.arg(0).node(), no);
    return typeText(node.arg(0).node()) + parentText(node, search);
}
Result<void> fuseAtenUnary(const Nodes& subset, const BatchRule& rule, const Search&, Rewriter& rewriter) {
    GraphBuilder builder = rewriter.builder(subset[0]->graph(), subset[0], *subset[0]);
    const Value batched = builder.call(rule.function, {stackedAten(builder, argumentsAt(subset, 0))});
    return replaceBySelects(builder, batched, subset, rewriter);
}

std::optional<std::string> atenBinaryKey(const Node& node, const BatchRule& rule, const Search& search,
                                         const Refusing& no) {
    if (!node.isCall(rule.function)) return std::nullopt;
    const TensorType *left = tensorType(node.arg(0).node()), *right = tensorType(node.arg(1).node());
    if (!left || !right) {
        no(node.arg(left ? 1 : 0), " is not a tensor");
        return std::nullopt;
    }
    if (!(left->sizes == right->sizes)) {
        no("its operands differ in size: ", *left, " and ", *right);
        return std::nullopt;
    }
    std::string key = typeText(node.arg(0).node()) + " " + typeText(node.arg(1).node()) + parentText(node, search);
    for (size_t i = 2; i < node.args().size(); ++i) key += " " + printArgument(node.arg(i));
    return key;
}
Result<void> fuseAtenBinary(const Nodes& subset, const BatchRule& rule, const Search&, Rewriter& rewriter) {
    GraphBuilder builder = rewriter.builder(subset[0]->graph(), subset[0], *subset[0]);
    const Value left = stackedAten(builder, argumentsAt(subset, 0)),
                right = stackedAten(builder, argumentsAt(subset, 1));
    NamedArguments keywords;
    if (subset[0]->op().schema()->find("alpha") >= 0) keywords.emplace_back("alpha", subset[0]->arg("alpha"));
    return replaceBySelects(builder, builder.call(rule.function, {left, right}, keywords), subset, rewriter);
}

std::optional<std::string> atenLinearKey(const Node& node, const BatchRule&, const Search& search, const Refusing& no) {
    const bool biased = node.isCall("aten.addmm.default");
    if (!biased && !node.isCall("aten.mm.default")) return std::nullopt;
    if (biased && (node.arg("beta").asReal() != 1.0 || node.arg("alpha").asReal() != 1.0)) {
        no("its beta and alpha are ", node.arg("beta"), " and ", node.arg("alpha"), ", not 1");
        return std::nullopt;
    }
    const auto input = knownSizes(node.arg(biased ? 1 : 0).node()),
               weight = knownSizes(node.arg(biased ? 2 : 1).node());
    if (!input || !weight) {
        no("the sizes of its operands are not all numbers");
        return std::nullopt;
    }
    const Node* first = node.arg(biased ? 1 : 0).node();
    return std::to_string((*input)[0]) + " " + std::to_string((*input)[1]) + " " + std::to_string((*weight)[1]) + " " +
           std::string(info(first->tensor().dtype).torchName) + (biased ? " bias" : "") + usersText(node, search);
}
Result<void> fuseAtenLinear(const Nodes& subset, const BatchRule&, const Search& search, Rewriter& rewriter) {
    const bool biased = subset[0]->isCall("aten.addmm.default");
    GraphBuilder builder = rewriter.builder(subset[0]->graph(), subset[0], *subset[0]);
    const Value left = stackedAten(builder, argumentsAt(subset, biased ? 1 : 0)),
                right = stackedAten(builder, argumentsAt(subset, biased ? 2 : 1));
    const std::vector<Argument> biases = biased ? argumentsAt(subset, 0) : std::vector<Argument>();
    return replaceBySelects(builder, builder.call("aten.bmm.default", {left, right}), subset, rewriter, biases,
                            &search);
}

/// Products with and without a bias are grouped separately; PyTorch's library wants sizes that are even and not too
/// large.
std::optional<std::string> groupLinearKey(const Node& node, const BatchRule&, const Search& search,
                                          const Refusing& no) {
    const bool biased = node.isCall("aten.addmm.default");
    if (!biased && !node.isCall("aten.mm.default")) return std::nullopt;
    if (biased && (node.arg("beta").asReal() != 1.0 || node.arg("alpha").asReal() != 1.0)) {
        no("its beta and alpha are ", node.arg("beta"), " and ", node.arg("alpha"), ", not 1");
        return std::nullopt;
    }
    for (size_t i = biased ? 1 : 0; i < (biased ? 3u : 2u); ++i) {
        const auto sizes = knownSizes(node.arg(i).node());
        if (!sizes) {
            no("the sizes of ", node.arg(i), " are not all numbers");
            return std::nullopt;
        }
        for (const int64_t size : *sizes)
            if (size % 2 != 0 || size > search.largestGrouped) {
                no("a size of ", node.arg(i), " is ", size, ", not even and at most ", search.largestGrouped,
                   " (max_fuse_tensor_size_group_linear)");
                return std::nullopt;
            }
    }
    return biased ? "bias" : "";
}
Result<void> fuseGroupLinear(const Nodes& subset, const BatchRule&, const Search&, Rewriter& rewriter) {
    const bool biased = subset[0]->isCall("aten.addmm.default");
    GraphBuilder builder = rewriter.builder(subset[0]->graph(), subset[0], *subset[0]);
    const Argument biases = biased ? Argument(argumentsAt(subset, 0)) : Argument();
    const Value products = builder.call(
        "fbgemm.gmm.default",
        {Argument(argumentsAt(subset, biased ? 1 : 0)), Argument(argumentsAt(subset, biased ? 2 : 1)), biases},
        {{"smart_fused", true}});
    Nodes items;
    for (size_t i = 0; i < subset.size() && !builder.error(); ++i)
        items.push_back(products[static_cast<int64_t>(i)].node());
    if (builder.error()) return *builder.error();
    for (size_t i = 0; i < subset.size(); ++i) rewriter.replace(*subset[i], *items[i]);
    return {};
}

constexpr std::string_view kLinear = "torch._C._nn.linear, torch.nn.functional.linear";  // pregrad::isLinear
constexpr BatchRule kBatchRules[] = {
    {"batch_linear_lhs", kLinear, linearLhsKey, fuseLinearLhs},
    {"batch_linear", kLinear, linearKey, fuseLinear},
    {"batch_layernorm", "torch.nn.functional.layer_norm", layerNormKey, fuseLayerNorm},
    {"batch_tanh", "torch.tanh", pointwiseKey, fusePointwise},
    {"batch_sigmoid", "torch.sigmoid", pointwiseKey, fusePointwise},
    {"batch_relu", "torch.nn.functional.relu", pointwiseKey, fusePointwise},
    {"batch_detach", "torch.detach", mathKey, fuseMath},
    {"batch_nan_to_num", "torch.nan_to_num", mathKey, fuseMath},
    {"batch_clamp", "torch.clamp", mathKey, fuseMath},
    {"batch_dropout", "torch.nn.functional.dropout", mathKey, fuseMath},
    {"group_linear", "aten.mm.default, aten.addmm.default", groupLinearKey, fuseGroupLinear},
    {"batch_linear_post_grad", "aten.mm.default, aten.addmm.default", atenLinearKey, fuseAtenLinear},
    {"batch_aten_tanh", "aten.tanh.default", atenUnaryKey, fuseAtenUnary},
    {"batch_aten_sigmoid", "aten.sigmoid.default", atenUnaryKey, fuseAtenUnary},
    {"batch_aten_relu", "aten.relu.default", atenUnaryKey, fuseAtenUnary},
    {"batch_aten_add", "aten.add.Tensor", atenBinaryKey, fuseAtenBinary},
    {"batch_aten_sub", "aten.sub.Tensor", atenBinaryKey, fuseAtenBinary},
    {"batch_aten_mul", "aten.mul.Tensor", atenBinaryKey, fuseAtenBinary},
    {"batch_aten_div", "aten.div.Tensor", atenBinaryKey, fuseAtenBinary},
};

}  // namespace

std::span<const BatchRule> batchRules() { return kBatchRules; }

}  // namespace cutaway::batching
