#include "engine/passes/freezing/quant_prepack.h"

#include <algorithm>

#include "engine/ir/live_nodes.h"
#include "engine/ir/module.h"
#include "engine/passes/freezing/options.h"
#include "engine/passes/freezing/quant_linear.h"
#include "engine/passes/freezing/quant_operands.h"

namespace cutaway {
namespace {

constexpr std::string_view kPromote = "dequant_promotion", kConv = "qconv_weight_prepack",
                           kLinear = "qlinear_weight_prepack";

/// The nodes as they stand, last first.
std::vector<NodeId> lastFirst(const Graph& graph) {
    std::vector<NodeId> ids;
    for (const Node& node : graph.nodes()) ids.push_back(node.id());
    std::reverse(ids.begin(), ids.end());
    return ids;
}

// -- dequantizing once for each reader

/// The calls from the dequantize call to `end`, which is one, or its conversion or reshape; empty if it is none.
std::vector<Node*> chainTo(Node& end, const Refusing& no) {
    std::vector<Node*> chain{&end};
    const auto step = [&](std::string_view op) {
        if (chain.back()->isCall(op) && chain.back()->arg(0).node()) chain.push_back(chain.back()->arg(0).node());
    };
    step("aten.reshape.default");
    step("prims.convert_element_type.default");
    Node& first = *chain.back();
    if (!isDequantizeTensor(first)) {
        no("it reads ", NodeWithKind{&first}, ", which is not a dequantized tensor");
        return {};
    }
    std::reverse(chain.begin(), chain.end());
    for (size_t i = 0; i + 1 < chain.size(); ++i)
        if (chain[i]->users().size() != 1) {
            no.about(chain[i], chain[i], " has ", Counted{chain[i]->users().size(), "reader"});
            return {};
        }
    return chain;
}
/// `reader` gets a copy of the chain.
void copyChain(Graph& graph, Rewriter& rewriter, const std::vector<Node*>& chain, Node& reader) {
    GraphBuilder builder = rewriter.builder(graph, &reader, *chain.back());
    Argument value = chain.front()->arg(0);
    for (const Node* link : chain) {
        std::vector<Argument> args = link->args();
        args[0] = value;
        value = builder.callBound(link->op(), std::move(args));
    }
    for (size_t i = 0; i < reader.args().size(); ++i)
        graph.setArg(reader, i,
                     reader.arg(i).mapNodes([&](Node* node) { return node == chain.back() ? value.node() : node; }));
}

// -- convolutions

struct QuantizedConvolution {
    QuantizedActivation x;
    QuantizedWeight w;
};
/// Whether the plain convolution of the same operands has the sizes that the transposed one has.
bool fitsUntransposed(const Node& conv, const QuantizedConvolution& found) {
    const SymDims &x = found.x.quantized->tensor().sizes, &w = found.w.quantized->tensor().sizes,
                  &y = conv.tensor().sizes;
    const auto numbers = [&](std::string_view param) {
        std::vector<int64_t> values;
        if (const auto* items = conv.arg(param).list())
            for (const Argument& item : *items) values.push_back(item.asInt().value_or(0));
        values.resize(w.size() - 2, values.empty() ? 1 : values.front());
        return values;
    };
    if (!allInts(x) || !allInts(w) || !allInts(y)) return false;
    const std::vector<int64_t> stride = numbers("stride"), padding = numbers("padding"), dilation = numbers("dilation");
    const SymInt groups = conv.arg("groups").asInt().value_or(1);
    if (!(x[1] == w[1] * groups) || !(y[1] == w[0])) return false;
    for (size_t i = 0; i < stride.size(); ++i) {
        const int64_t room = x[i + 2].value() + 2 * padding[i] - dilation[i] * (w[i + 2].value() - 1) - 1;
        if (stride[i] < 1 || room < 0 || room / stride[i] + 1 != y[i + 2].value()) return false;
    }
    return true;
}
bool readConvolution(const Module& module, const Node& conv, bool parity, QuantizedConvolution& found,
                     const Refusing& no) {
    if (!readActivation(conv.arg("input").node(), found.x, no)) return false;
    if (!readWeight(module, conv.arg("weight").node(), parity, found.w, no)) return false;
    if (!dtypesAgree(found.x, found.w, no)) return false;
    const TensorType& input = found.x.quantized->tensor();
    if (input.rank() != 3 && input.rank() != 4) return no("it convolves ", input, ", not one or two spatial dims");
    if (input.device.type != DeviceType::Cpu) return no("it is computed on ", input.device, ", not on the CPU");
    if (found.x.byTensors) return no.about(found.x.dequantize, "the scale of its input is a tensor");
    if (input.dtype != DType::U8) return no("its input, ", input, ", is not uint8, as the operator wants it");
    // PyTorch takes it for a plain one, which then has another result, or none.
    if (conv.arg("transposed").asInt().value_or(0) != 0 && !(parity && fitsUntransposed(conv, found)))
        return no("it is transposed");
    return true;
}
Result<void> packQuantizedConvolution(Rewriter& rewriter, Node& conv, const QuantizedConvolution& found) {
    GraphBuilder builder = rewriter.builder(conv.graph(), &conv, conv);
    const Argument x(found.x.quantized), stride = conv.arg("stride"), padding = conv.arg("padding"),
                                         dilation = conv.arg("dilation"), groups = conv.arg("groups");
    const Value packed = builder.call("onednn.qconv_prepack.default",
                                      {Argument(found.w.quantized), found.w.scale, found.x.scale, found.x.zero, stride,
                                       padding, dilation, groups, knownSizes(found.x.quantized->tensor())});
    const Value y =
        builder.call("onednn.qconv_pointwise.default",
                     {x, found.x.scale, found.x.zero, packed, found.w.scale, found.w.zero, conv.arg("bias"), stride,
                      padding, dilation, groups, 1.0, 0, found.w.dtype, "none", Argument(std::vector<Argument>{}), ""});
    if (builder.error()) return *builder.error();
    replaceWhole(rewriter, conv, *y.node());
    return {};
}

// -- matrix products

struct QuantizedLinear {
    LinearForm form;
    QuantizedActivation x;
    QuantizedWeight w;
};
bool readLinear(const Module& module, Node& product, bool parity, QuantizedLinear& found, const Refusing& no) {
    if (!readLinearForm(product, parity, found.form, no)) return false;
    if (!readActivation(found.form.input, found.x, no)) return false;
    if (!readWeight(module, found.form.weight, parity, found.w, no)) return false;
    if (found.w.clone) return no.about(found.w.clone, "its weight is copied");
    if (!dtypesAgree(found.x, found.w, no)) return false;
    const TensorType& input = found.x.quantized->tensor();
    if (input.device.type != DeviceType::Cpu) return no("it is computed on ", input.device, ", not on the CPU");
    if (input.dtype != DType::U8 && input.dtype != DType::I8)
        return no("its input, ", input, ", is neither uint8 nor int8");
    return true;
}
Result<void> packQuantizedLinear(Rewriter& rewriter, Node& product, const QuantizedLinear& found) {
    GraphBuilder builder = rewriter.builder(product.graph(), found.form.result, product);
    const Value packed = builder.call("onednn.qlinear_prepack.default",
                                      {Argument(found.w.quantized), knownSizes(found.x.quantized->tensor())});
    const Value y =
        builder.call(found.x.byTensors ? "onednn.qlinear_pointwise.tensor" : "onednn.qlinear_pointwise.default",
                     {Argument(found.x.quantized), found.x.scale, found.x.zero, packed, found.w.scale, found.w.zero,
                      found.form.bias ? Argument(found.form.bias) : Argument(), 1.0, 0, found.w.dtype, "none",
                      Argument(std::vector<Argument>{}), ""});
    if (builder.error()) return *builder.error();
    replaceWhole(rewriter, *found.form.result, *y.node());
    return {};
}

}  // namespace

Result<bool> promoteDequantize(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    for (const NodeId id : lastFirst(graph)) {
        Node* end = graph.find(id);
        const bool starts = end != nullptr && (isDequantizeTensor(*end) || end->isCall("aten.reshape.default") ||
                                               end->isCall("prims.convert_element_type.default"));
        if (!starts) continue;
        const Refusing no(rewriter, kPromote, *end);
        const std::vector<Node*> chain = chainTo(*end, no);
        if (chain.empty()) continue;
        std::vector<Node*> readers;
        for (Node* user : end->users())
            if (std::find(readers.begin(), readers.end(), user) == readers.end()) readers.push_back(user);
        if (readers.size() < 2) {
            no(end, " has ", Counted{readers.size(), "reader"});
            continue;
        }
        const Go go = rewriter.begin(kPromote, *end, "each reader may become a product of the integers");
        if (go == Go::Stop) break;
        if (go == Go::Skip) continue;
        for (size_t i = 1; i < readers.size(); ++i) copyChain(graph, rewriter, chain, *readers[i]);
    }
    return rewriter.changed();
}

Result<bool> packQuantizedWeights(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    const bool parity = rewriter.request().parity;
    for (const NodeId id : lastFirst(graph)) {
        Node* node = graph.find(id);
        if (node == nullptr || !node->isCall()) continue;
        if (node->isCall("aten.convolution.default")) {
            QuantizedConvolution found;
            if (!readConvolution(module, *node, parity, found, Refusing(rewriter, kConv, *node))) continue;
            const Go go = rewriter.begin(kConv, *node, "it convolves the integers, and scales the sums");
            if (go == Go::Stop) break;
            if (go == Go::Yes) CT_TRY_VOID(packQuantizedConvolution(rewriter, *node, found));
        } else if (isProduct(*node)) {
            QuantizedLinear found;
            if (!readLinear(module, *node, parity, found, Refusing(rewriter, kLinear, *node))) continue;
            const Go go = rewriter.begin(kLinear, *node, "it multiplies the integers, and scales the sums");
            if (go == Go::Stop) break;
            if (go == Go::Yes) CT_TRY_VOID(packQuantizedLinear(rewriter, *node, found));
        }
    }
    return rewriter.changed();
}

}  // namespace cutaway
