// Weights in half precision, and int8 products whose sums are scaled afterwards.
#include <algorithm>

#include "engine/ir/module.h"
#include "engine/passes/freezing/quant_linear.h"
#include "engine/passes/freezing/quant_operands.h"
#include "engine/passes/freezing/quant_prepack.h"

namespace cutaway {
namespace {

constexpr std::string_view kHalf = "linear_dynamic_fp16_weight_prepack", kSmooth = "smooth_quant_int_mm";
constexpr std::string_view kNoFuse = "quantized_decomposed.convert_element_type.no_fuse",
                           kConvertDynamic = "prims.convert_element_type.default", kReshape = "aten.reshape.default";

bool isDynamicCallOf(const Node* node, std::string_view op) { return node != nullptr && node->isCall(op); }

// -- weights in half precision

struct HalfLinear {
    LinearForm form;
    Node *weight = nullptr, *result = nullptr;
    bool relu = false;
};
bool readHalfLinear(Node& product, bool parity, HalfLinear& found, const Refusing& no) {
    if (!readLinearForm(product, parity, found.form, no)) return false;
    const Node* wide = found.form.weight;
    const Node* narrow = isDynamicCallOf(wide, kNoFuse) ? wide->arg(0).node() : nullptr;
    if (!isDynamicCallOf(narrow, kNoFuse) || narrow->tensor().dtype != DType::F16 || wide->tensor().dtype != DType::F32)
        return no.about(wide, "its weight, ", NodeWithKind{wide}, ", is not rounded to float16 and widened again");
    for (const Node* node : {wide, narrow})
        if (node->users().size() != 1) return no.about(node, node, " has ", Counted{node->users().size(), "reader"});
    found.weight = narrow->arg(0).node();
    const TensorType& input = found.form.input->tensor();
    if (input.dtype != DType::F32 || input.device.type != DeviceType::Cpu)
        return no("its input, ", input, ", is not float32 on the CPU");
    if (found.weight->tensor().dtype != DType::F32 && found.weight->tensor().dtype != DType::F16)
        return no("its weight, ", found.weight->tensor(), ", is neither float32 nor float16");
    found.result = found.form.result;
    Node* reader = onlyUser(*found.result);
    if (isDynamicCallOf(reader, "aten.relu.default")) {
        found.relu = true;
        found.result = reader;
    }
    return true;
}
Result<void> packHalfLinear(Rewriter& rewriter, Node& product, const HalfLinear& found) {
    GraphBuilder builder = rewriter.builder(product.graph(), found.result, product);
    const Value packed = builder.call("onednn.linear_prepack_fp16.default",
                                      {Argument(found.weight), knownSizes(found.form.input->tensor())});
    const Value y =
        builder.call(found.relu ? "onednn.linear_relu_dynamic_fp16.default" : "onednn.linear_dynamic_fp16.default",
                     {Argument(found.form.input), packed, found.form.bias ? Argument(found.form.bias) : Argument()});
    if (builder.error()) return *builder.error();
    replaceWhole(rewriter, *found.result, *y.node());
    return {};
}

// -- int8 products that are scaled afterwards

/// result = [reshape] ([reshape] (sums(a, b) * xScale * wScale) [+ bias])
struct ScaledProduct {
    Node *a = nullptr, *b = nullptr, *xScale = nullptr, *wScale = nullptr, *bias = nullptr, *result = nullptr;
    Argument inner, outer;  // sizes that the input and the result are reshaped to; None: they are not
    DType dtype = DType::F32;
};
Node* otherFactor(const Node& mul, const Node* factor) { return mul.arg(mul.arg(0).node() == factor ? 1 : 0).node(); }
/// The product of `value` and another tensor that alone reads it.
Node* multiplied(Node& value, Node*& factor) {
    Node* mul = onlyUser(value);
    if (!isDynamicCallOf(mul, "aten.mul.Tensor")) return nullptr;
    factor = otherFactor(*mul, &value);
    return factor != nullptr && factor != &value ? mul : nullptr;
}
bool readScales(Node& product, ScaledProduct& found, const Refusing& no) {
    Node* converted = onlyUser(product);
    if (!isDynamicCallOf(converted, kConvertDynamic))
        return no("its sums are not converted to floats, or are read again");
    found.dtype = converted->tensor().dtype;
    Node* scaled = multiplied(*converted, found.xScale);
    if (scaled == nullptr) return no.about(converted, "the sums are not multiplied by a scale of the rows");
    if (found.xScale->isCall("aten.expand.default") && found.xScale->users().size() == 1)
        found.xScale = found.xScale->arg(0).node();
    found.result = multiplied(*scaled, found.wScale);
    return found.result != nullptr || no.about(scaled, "the sums are not multiplied by a scale of the columns");
}
/// What follows the scales: a reshape, only where the input is reshaped too (as in PyTorch's patterns), and a bias.
void readTail(ScaledProduct& found) {
    Node* reshape = onlyUser(*found.result);
    if (found.inner.isNone() || !isDynamicCallOf(reshape, kReshape)) return;
    found.result = reshape;
    found.outer = reshape->arg(1);
    Node* add = onlyUser(*reshape);
    if (!isDynamicCallOf(add, "aten.add.Tensor") || add->arg("alpha").asReal() != 1.0) return;
    Node* bias = otherFactor(*add, reshape);
    const bool vector = bias && bias != reshape && bias->type().tensor() && bias->tensor().rank() == 1 &&
                        bias->tensor().sizes[0] == reshape->tensor().sizes.back() &&
                        add->tensor().dtype == reshape->tensor().dtype && isFloating(bias->tensor().dtype);
    if (!vector) return;
    found.bias = bias;
    found.result = add;
    // A pair of reshapes that ends in the result's own sizes goes, too.
    Node *flat = onlyUser(*add), *back = isDynamicCallOf(flat, kReshape) ? onlyUser(*flat) : nullptr;
    if (isDynamicCallOf(back, kReshape) && equal(back->arg(1), found.outer)) found.result = back;
}
bool isOneNumber(const Node& node) { return numel(node.tensor().sizes) == SymInt(1); }
bool readScaledProduct(Node& product, ScaledProduct& found, const Refusing& no) {
    found.a = product.arg(0).node();
    found.b = product.arg(1).node();
    if (found.b->kind() != NodeKind::GetAttr)
        return no.about(found.b, "its weight, ", NodeWithKind{found.b}, ", is not a constant");
    if (found.a->isCall(kReshape) && found.a->users().size() == 1) {
        found.inner = found.a->arg(1);
        found.a = found.a->arg(0).node();
    }
    if (!readScales(product, found, no)) return false;
    readTail(found);
    if (!found.inner.isNone() && found.outer.isNone())
        return no("its input is reshaped, but its result is not reshaped back");
    if (product.tensor().device.type != DeviceType::Cpu) return no("it is not computed on the CPU");
    if (found.dtype != DType::F32 && found.dtype != DType::BF16)
        return no("its sums become ", product.users()[0]->tensor(), ", neither float32 nor bfloat16");
    if (found.result->tensor().dtype != found.dtype)
        return no.about(found.result, "the result, ", found.result->tensor(), ", is of another dtype than the sums");
    const TensorType& scale = found.wScale->tensor();
    const SymInt columns = product.tensor().sizes[1];
    const bool byColumn =
        isOneNumber(*found.wScale) || (scale.sizes.back() == columns && numel(scale.sizes) == columns);
    if (!byColumn) return no.about(found.wScale, "the scale of the columns, ", scale, ", is not one number for each");
    return true;
}
/// Whether input and result have the same leading dims, so that the operator takes the input without reshapes.
bool keepsScaledPositions(const ScaledProduct& found) {
    const SymDims &in = found.a->tensor().sizes, &out = found.result->tensor().sizes;
    return in.size() == out.size() && std::equal(in.begin(), in.end() - 1, out.begin());
}
Value scaledAtOnce(GraphBuilder& builder, const ScaledProduct& found, const Value& packed, const Value& scale) {
    return builder.call("onednn.qlinear_pointwise.tensor",
                        {Argument(found.a), Argument(found.xScale), Argument(), packed, scale, Argument(),
                         found.bias ? Argument(found.bias) : Argument(), 1.0, 0, found.dtype, "none",
                         Argument(std::vector<Argument>{}), ""});
}
Value scaledByRow(GraphBuilder& builder, const ScaledProduct& found, const Value& packed, const Value& scale) {
    Value x = builder.value(*found.a);
    if (!found.inner.isNone()) x = builder.call(kReshape, {x, found.inner});
    Value y =
        builder.call("onednn.qlinear_pointwise.default", {x, 1.0, 0, packed, scale, Argument(), Argument(), 1.0, 0,
                                                          found.dtype, "none", Argument(std::vector<Argument>{}), ""});
    y = y * builder.value(*found.xScale);
    if (found.bias) y = y + builder.value(*found.bias);
    return found.outer.isNone() ? y : builder.call(kReshape, {y, found.outer});
}
Result<void> packScaledProduct(Rewriter& rewriter, Node& product, const ScaledProduct& found) {
    GraphBuilder builder = rewriter.builder(product.graph(), found.result, product);
    const Value rows = builder.call("aten.clone.default", {permute(builder.value(*found.b), {1, 0})},
                                    {{"memory_format", MemoryFormat::Contiguous}});
    const Value packed = builder.call("onednn.qlinear_prepack.default", {rows, knownSizes(found.a->tensor())});
    const Value scale = convert(builder.value(*found.wScale), DType::F32);
    const bool atOnce = isOneNumber(*found.xScale) && keepsScaledPositions(found);
    const Value y = atOnce ? scaledAtOnce(builder, found, packed, scale) : scaledByRow(builder, found, packed, scale);
    if (builder.error()) return *builder.error();
    replaceWhole(rewriter, *found.result, *y.node());
    return {};
}

}  // namespace

Result<bool> packDynamicWeights(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    std::vector<NodeId> ids;
    for (const Node& node : graph.nodes()) ids.push_back(node.id());
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
        Node* node = graph.find(*id);
        if (node == nullptr || !node->isCall()) continue;
        if (isProduct(*node)) {
            HalfLinear found;
            const bool parity = rewriter.request().parity;
            if (!readHalfLinear(*node, parity, found, Refusing(rewriter, kHalf, *node))) continue;
            const Go go = rewriter.begin(kHalf, *node, "the weight stays in half precision");
            if (go == Go::Stop) break;
            if (go == Go::Yes) CT_TRY_VOID(packHalfLinear(rewriter, *node, found));
        } else if (node->isCall("aten._int_mm.default")) {
            ScaledProduct found;
            if (!readScaledProduct(*node, found, Refusing(rewriter, kSmooth, *node))) continue;
            const Go go = rewriter.begin(kSmooth, *node, "the product scales its sums itself");
            if (go == Go::Stop) break;
            if (go == Go::Yes) CT_TRY_VOID(packScaledProduct(rewriter, *node, found));
        }
    }
    return rewriter.changed();
}

}  // namespace cutaway
