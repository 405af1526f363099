#include "engine/passes/post_grad/cpu_products.h"

#include <algorithm>

#include "engine/interpret/interpret.h"
#include "engine/ops/packed_int4.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kInt4 = "aten._weight_int4pack_mm_for_cpu.default",
                           kLinear = "mkldnn._linear_pointwise.default";
constexpr std::string_view kConcat = "concat_linear_woq_int4", kGroup = "grouped_gemm_pass";

/// A family of products: the op, and what joins two of them.
struct ProductFamily {
    std::string_view op, rule;
    /// Whether the weight of `node` fits that of the first product; says why not.
    bool (*fits)(const Node& first, const Node& node, const Refusing& no, const Rewriter& rewriter);
    /// Whether the rest of a product allows to join it.
    bool (*joins)(const Node& node, const Refusing& no, const Rewriter& rewriter);
    Result<void> (*merge)(Module& module, Rewriter& rewriter, const std::vector<Node*>& products);
    std::string_view why;
};

const TensorType* weightType(const Node& node) {
    return node.arg(1).node() ? node.arg(1).node()->type().tensor() : nullptr;
}

/// The products of the tensor that `node` reads, if they are all that reads it.
std::vector<Node*> productsBeside(Node& node, const ProductFamily& family, Rewriter& rewriter) {
    const Refusing no(rewriter, family.rule, node);
    const std::vector<Node*>& readers = node.arg(0).node()->users();
    if (node.tensor().device.type != DeviceType::Cpu) {
        no("it is computed on ", node.tensor().device);
        return std::vector<Node*>();
    }
    if (readers.size() < 2) {
        no("nothing else reads ", *node.arg(0).node());
        return std::vector<Node*>();
    }
    for (size_t i = 0; i < readers.size(); ++i) {
        const Node& reader = *readers[i];
        if (!reader.isCall(family.op) || reader.arg(0).node() != node.arg(0).node()) {
            no.about(&reader, reader, " reads ", *node.arg(0).node(), " and is not such a product");
            return std::vector<Node*>();
        }
        if (i > 0 && reader.arg(1).node() == readers[0]->arg(1).node()) {
            no.about(&reader, "two products have the same weight");
            return std::vector<Node*>();
        }
        if (!family.joins(reader, no, rewriter) || !family.fits(*readers[0], reader, no, rewriter)) return {};
    }
    return readers;
}

Result<bool> mergeAll(Module& module, Rewriter& rewriter, const ProductFamily& family) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, mergeAll(*body, rewriter, family));
        changed |= inner;
    }
    std::vector<NodeId> products;
    for (const Node& node : module.graph().nodes())
        if (node.isCall(family.op) && node.arg(0).node() && node.type().tensor()) products.push_back(node.id());
    for (const NodeId id : products) {
        Node* node = module.graph().find(id);
        if (node == nullptr) continue;  // joined with an earlier one
        const std::vector<Node*> together = productsBeside(*node, family, rewriter);
        if (together.empty()) continue;
        if (rewriter.begin(family.rule, *node, family.why) != Go::Yes) return changed;
        CT_TRY_VOID(family.merge(module, rewriter, together));
        changed = true;
    }
    return changed;
}

/// The product that stands first.
Node& firstOf(const std::vector<Node*>& products) {
    Node* first = products[0];
    for (Node* node : products)
        if (node->graph().isBefore(*node, *first)) first = node;
    return *first;
}

// ---------------------------------------------------------------- 4-bit weights

bool fitsInt4(const Node& first, const Node& node, const Refusing& no, const Rewriter&) {
    const TensorType *one = weightType(first), *other = weightType(node);
    if (!(one->sizes[1] == other->sizes[1]))
        return no.about(&node, "the weights have different numbers of columns: ", *one, " and ", *other);
    return equal(first.arg("qGroupSize"), node.arg("qGroupSize")) ||
           no.about(&node, "the weights have groups of different sizes");
}
bool joinsInt4(const Node& node, const Refusing& no, const Rewriter&) {
    for (const std::string_view param : {"mat2", "qScaleAndZeros"}) {
        const Node* constant = node.arg(param).node();
        const TensorType* type =
            constant && constant->kind() == NodeKind::GetAttr ? constant->type().tensor() : nullptr;
        if (type == nullptr || !allInts(type->sizes))
            return no.about(constant, NodeWithKind{constant},
                            " is not a tensor of the module, whose numbers are known");
    }
    return true;
}

std::string freshProductName(const Module& module, std::string name) {
    const auto taken = [&](const std::string& wanted) {
        if (module.tensors.contains(wanted)) return true;
        for (const Node& node : module.graph().nodes())
            if (node.kind() == NodeKind::GetAttr && node.target() == wanted) return true;
        return false;
    };
    const std::string wanted = name;
    for (int number = 1; taken(name); ++number) name = wanted + "_" + std::to_string(number);
    return name;
}
Node& newConstant(Module& module, Node& before, const Node& like, Tensor tensor) {
    TensorType type = like.tensor();
    type.sizes.clear();
    for (const int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
    type = TensorType::contiguous(type.dtype, type.sizes, type.device);
    const std::string name = freshProductName(module, like.target() + "_concat");
    module.tensors[name] = std::move(tensor);
    return module.graph().getAttr(name, ValueType(std::move(type)), &before);
}
/// The tensors one after the other along a dim.
Tensor joined(const std::vector<Tensor>& parts, int64_t dim) {
    Dims sizes = parts[0].sizes();
    sizes[static_cast<size_t>(dim)] = 0;
    for (const Tensor& part : parts) sizes[static_cast<size_t>(dim)] += part.size(dim);
    Tensor out = Tensor::empty(parts[0].dtype(), sizes);
    int64_t at = out.offset();
    for (const Tensor& part : parts) {
        Tensor place = out.view(part.sizes(), out.strides(), at);
        copyInto(place, part);
        at += part.size(dim) * out.stride(dim);
    }
    return out;
}

Result<void> mergeInt4(Module& module, Rewriter& rewriter, const std::vector<Node*>& products) {
    std::vector<Tensor> numbers, scales;
    std::vector<Argument> sections;
    for (const Node* node : products) {
        CT_TRY(const Tensor packed, attributeOf(module, *node->arg("mat2").node()));
        CT_TRY(Tensor scale, attributeOf(module, *node->arg("qScaleAndZeros").node()));
        numbers.push_back(unpackInt4(packed));
        scales.push_back(std::move(scale));
        sections.emplace_back(packed.size(0));
    }
    Node& first = firstOf(products);
    Node& weight = newConstant(module, first, *products[0]->arg("mat2").node(), packInt4(joined(numbers, 0)));
    Node& scale = newConstant(module, first, *products[0]->arg("qScaleAndZeros").node(), joined(scales, 1));
    GraphBuilder builder = rewriter.builder(module.graph(), &first, *products[0]);
    std::vector<Argument> args = products[0]->args();
    args[1] = Argument(&weight);
    args[3] = Argument(&scale);
    const Value pieces =
        builder.call("aten.split_with_sizes.default",
                     {builder.callBound(products[0]->op(), std::move(args)), Argument(std::move(sections)), 1});
    std::vector<Value> results;
    for (size_t i = 0; i < products.size() && !builder.error(); ++i)
        results.push_back(builder.call("aten.clone.default", {pieces[static_cast<int64_t>(i)]},
                                       {{"memory_format", MemoryFormat::Contiguous}}));
    if (builder.error()) return *builder.error();
    for (size_t i = 0; i < products.size(); ++i) rewriter.replace(*products[i], *results[i].node());
    return {};
}

// ---------------------------------------------------------------- oneDNN

bool fitsGroup(const Node& first, const Node& node, const Refusing& no, const Rewriter&) {
    const TensorType *one = weightType(first), *other = weightType(node);
    return (one && other && one->sizes == other->sizes) || no.about(&node, "the weights have different sizes");
}
bool joinsGroup(const Node& node, const Refusing& no, const Rewriter& rewriter) {
    const auto* function = node.arg("attr").get<std::string>();
    return rewriter.request().parity || (function && *function == "none") ||
           no.about(&node, "a function is computed behind ", node);
}
Result<void> mergeGroup(Module& module, Rewriter& rewriter, const std::vector<Node*>& products) {
    std::vector<Argument> weights, biases;
    for (const Node* node : products) {
        weights.push_back(node->arg(1));
        biases.push_back(node->arg(2));
    }
    GraphBuilder builder = rewriter.builder(module.graph(), &firstOf(products), *products[0]);
    const Value group = builder.call("torch__inductor_mkldnn_lowerings_grouped_gemm_lowering",
                                     {products[0]->arg(0), Argument(std::move(weights)), Argument(std::move(biases))});
    std::vector<Value> results;
    for (size_t i = 0; i < products.size() && !builder.error(); ++i) results.push_back(group[static_cast<int64_t>(i)]);
    if (builder.error()) return *builder.error();
    for (size_t i = 0; i < products.size(); ++i) rewriter.replace(*products[i], *results[i].node());
    sortTopologically(module.graph());  // a weight may be made behind the first product
    return {};
}

constexpr ProductFamily kInt4Family{kInt4,     kConcat,   fitsInt4,
                                    joinsInt4, mergeInt4, "one product of joined weights reads the tensor once"};
constexpr ProductFamily kGroupFamily{
    kLinear, kGroup, fitsGroup, joinsGroup, mergeGroup, "one call computes all products and reads the tensor once"};

}  // namespace

Result<bool> concatInt4Linear(Module& module, Rewriter& rewriter) { return mergeAll(module, rewriter, kInt4Family); }
Result<bool> groupLinears(Module& module, Rewriter& rewriter) { return mergeAll(module, rewriter, kGroupFamily); }

}  // namespace cutaway
