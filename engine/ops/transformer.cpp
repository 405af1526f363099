// What nn.TransformerEncoder and nn.MultiheadAttention call where no gradient is asked for: a whole layer, its
// attention, the projections before it, and a softmax that leaves out what a mask hides (true: hidden).
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

// -- softmax of what a mask leaves

enum MaskType : int64_t { kPositions = 0, kPadding = 1, kAll = 2 };  // [L, L], [batch, L], or the scores' own sizes

/// The kind of a mask: the call's mask_type if the mask has 2 dims and the scores 4, else kAll.
Result<int64_t> maskTypeOf(const InferContext& c, const TensorType& x, const TensorType& mask) {
    if (mask.dtype != DType::Bool) return c.fail("needs a mask of bool, not " + mask.text());
    int64_t type = kAll;
    if (mask.rank() == 2 && x.rank() == 4) {
        if (!c.has("mask_type")) return c.fail("needs mask_type for a mask of 2 dims: 0 (positions) or 1 (padding)");
        CT_TRY(type, c.integer("mask_type"));
    }
    SymDims wanted = x.sizes;
    if (type == kPositions) wanted = {x.sizes[2], x.sizes[2]};
    else if (type == kPadding) wanted = {x.sizes[0], x.sizes[2]};
    else if (type != kAll) return c.fail("mask_type is 0 (positions), 1 (padding) or 2 (as large as the scores)");
    if (mask.sizes.size() != wanted.size() || differ(mask.sizes, wanted))
        return c.fail("the mask " + mask.text() + " does not fit " + x.text());
    if (type != kAll && differ(x.sizes[2], x.sizes[3])) return c.fail("needs square scores, not " + x.text());
    return type;
}
Result<ValueType> inferMaskedSoftmax(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const TensorType mask, c.tensor("mask"));
    if (c.has("dim")) CT_TRY_VOID(c.dim("dim", x.rank()));
    CT_TRY_VOID(maskTypeOf(c, x, mask));
    if (!isFloating(x.dtype) || byteSize(x.dtype) < 2)
        return c.fail("needs floating-point numbers, not " + std::string(info(x.dtype).torchName));
    return ValueType(TensorType::contiguous(x.dtype, x.sizes, x.device));
}
int64_t softmaxDim(const Decomposition& d) { return d.has("dim") ? d.integerOr("dim", -1) : -1; }
/// The mask in dims that broadcast to the scores'.
Value besideScores(Decomposition& d) {
    const Value x = d.in(size_t{0}), mask = d.in("mask");
    if (mask.rank() != 2 || x.rank() != 4) return mask;
    const SymInt one(1);
    return d.integerOr("mask_type", kAll) == kPadding ? reshape(mask, {mask.size(0), one, one, mask.size(1)})
                                                      : unsqueeze(unsqueeze(mask, 0), 0);
}
Values maskedSoftmax(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const Value shown =
        d.call("aten.masked_fill.Scalar", {x, besideScores(d), -std::numeric_limits<double>::infinity()});
    return d.call("aten._softmax.default", {shown, softmaxDim(d), false});
}
Result<ValueType> inferMaskedSoftmaxBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor("grad_output"));
    CT_TRY(const TensorType output, c.tensor("output"));
    CT_TRY(const TensorType mask, c.tensor("mask"));
    if (c.has("dim")) CT_TRY_VOID(c.dim("dim", output.rank()));
    if (mask.dtype != DType::Bool) return c.fail("needs a mask of bool, not " + mask.text());
    if (gradient.dtype != output.dtype) return c.fail("gradient and output of different dtypes");
    for (const TensorType& other : {gradient, mask})
        if (other.rank() != output.rank() || differ(other.sizes, output.sizes))
            return c.fail(other.text() + " does not have the sizes of the output " + output.text());
    if (!isFloating(output.dtype)) return c.fail("needs floating-point numbers, not " + output.text());
    return ValueType(TensorType::contiguous(output.dtype, output.sizes, output.device));
}
/// What is hidden has no part in the sum either, whatever the output holds there.
Values maskedSoftmaxBackward(Decomposition& d) {
    const Value y = d.call("aten.masked_fill.Scalar", {d.in("output"), d.in("mask"), int64_t{0}});
    return d.call("aten._softmax_backward_data.default", {d.in("grad_output"), y, softmaxDim(d), y.dtype()});
}
void deriveMaskedSoftmax(Derivation& d) {
    const Value mask = expand(besideScores(d), d.in(size_t{0}).sizes());
    d.input(0) = d.call("aten._masked_softmax_backward.default", {d.dy(), d.out(), mask, d.arg("dim")});
}

// -- attention

/// One tensor of `count` sizes, or a refusal that names it.
Result<TensorType> sizedTensor(const InferContext& c, std::string_view param, const SymDims& sizes) {
    CT_TRY(const TensorType type, c.tensor(param));
    if (type.rank() != static_cast<int64_t>(sizes.size()) || differ(type.sizes, sizes))
        return c.fail("'" + std::string(param) + "' is " + type.text() + ", not " +
                      TensorType::contiguous(type.dtype, sizes, type.device).text());
    return type;
}
/// The width of each head; the embedding is cut into as many as there are heads.
Result<int64_t> headWidth(const InferContext& c, int64_t width, std::string_view param) {
    CT_TRY(const int64_t heads, c.integer(param));
    if (heads < 1 || width < 1 || width % heads != 0)
        return c.fail("cannot cut an embedding of " + std::to_string(width) + " into " + std::to_string(heads) +
                      " heads");
    return width / heads;
}

Result<ValueType> inferProjections(const InferContext& c) {
    CT_TRY(const TensorType qkv, c.tensor("qkv"));
    if (qkv.rank() != 3 || !isFloating(qkv.dtype))
        return c.fail("needs floating-point projections of 3 dims, not " + qkv.text());
    if (!qkv.sizes[2].isInt() || qkv.sizes[2].value() % 3 != 0)
        return c.fail("needs queries, keys and values of one known width, not " + qkv.text());
    CT_TRY(const TensorType bias, sizedTensor(c, "qkv_bias", {qkv.sizes[2]}));
    if (bias.dtype != qkv.dtype) return c.fail("projections and bias of different dtypes");
    CT_TRY(const int64_t inHead, headWidth(c, qkv.sizes[2].value() / 3, "num_heads"));
    CT_TRY(const int64_t heads, c.integer("num_heads"));
    const TensorType one = TensorType::contiguous(qkv.dtype, {qkv.sizes[0], heads, qkv.sizes[1], inHead}, qkv.device);
    return ValueType(TupleType{one, one, one});
}
/// [batch, length, width] as [batch, heads, length, width of a head].
Value asHeads(const Value& x, int64_t width, int64_t heads) {
    return permute(reshape(x, {x.size(0), x.size(1), heads, width / heads}), {0, 2, 1, 3});
}
/// Queries, keys and values with their bias, the queries scaled for their products with keys.
std::vector<Value> projections(Decomposition& d, const Value& qkv, const Value& bias, int64_t width, int64_t heads) {
    const Value all = toOpmath(qkv) + toOpmath(bias);
    std::vector<Value> out;
    for (int64_t part = 0; part < 3; ++part) {
        Value one = d.call("aten.slice.Tensor", {all, int64_t{2}, part * width, (part + 1) * width});
        if (part == 0) one = one * (1 / std::sqrt(static_cast<double>(width / heads)));
        one = asHeads(convert(one, qkv.dtype()), width, heads);
        out.push_back(d.call("aten.clone.default", {one}, {{"memory_format", MemoryFormat::Contiguous}}));
    }
    return out;
}

struct Attention {
    Value query, key, value, qkvWeight, qkvBias, weight, bias, mask;
    Argument maskType;
    int64_t width = 0, heads = 1;
    bool needsWeights = false, average = true;

    bool ofItself() const { return query.node() == key.node() && key.node() == value.node(); }
};
Value layerLinear(Decomposition& d, const Value& x, const Value& weight, const Value& bias) {
    return d.call("aten.linear.default", {x, weight, bias ? Argument(bias) : Argument()});
}
/// The heads side by side again, projected.
Value projected(Decomposition& d, const Attention& a, const Value& context) {
    const Value turned = permute(context, {0, 2, 1, 3});
    return layerLinear(d, reshape(turned, {a.query.size(0), a.query.size(1), SymInt(a.width)}), a.weight, a.bias);
}
/// The result and the weights that it was blended with, if these are asked for.
std::pair<Value, Value> attend(Decomposition& d, const Attention& a) {
    if (a.ofItself() && !a.mask && !a.needsWeights && (a.width / a.heads) % 8 == 0) {
        const Value all = layerLinear(d, a.query, a.qkvWeight, a.qkvBias);
        const auto part = [&](int64_t which) {
            return asHeads(d.call("aten.slice.Tensor", {all, int64_t{2}, which * a.width, (which + 1) * a.width}),
                           a.width, a.heads);
        };
        return {projected(d, a, d.call("aten.scaled_dot_product_attention.default", {part(0), part(1), part(2)})),
                Value()};
    }
    Value qkv;
    if (a.ofItself()) {
        qkv = layerLinear(d, a.query, a.qkvWeight, Value());
    } else {
        std::vector<Value> parts;
        for (const Value& x : {a.query, a.key, a.value}) {
            const auto start = static_cast<int64_t>(parts.size()) * a.width;
            const Value rows = d.call("aten.slice.Tensor", {a.qkvWeight, int64_t{0}, start, start + a.width});
            parts.push_back(layerLinear(d, x, rows, Value()));
        }
        qkv = cat(d.builder(), parts, 2);
    }
    const std::vector<Value> each = projections(d, qkv, a.qkvBias, a.width, a.heads);
    const Value scores = d.call("aten.matmul.default", {each[0], transposeLast(each[1])});
    Value weights;
    if (a.mask) {
        const Value hidden = a.mask.dtype() == DType::Bool
                                 ? a.mask
                                 : d.call("aten._to_copy.default", {a.mask}, {{"dtype", DType::Bool}});
        weights = d.call("aten._masked_softmax.default", {scores, hidden, int64_t{3}, a.maskType});
    } else {
        weights = d.call("aten._softmax.default", {scores, int64_t{3}, false});
    }
    const Value out = projected(d, a, d.call("aten.matmul.default", {weights, each[2]}));
    if (!a.needsWeights) return {out, Value()};
    return {out, a.average ? sum(weights, {1}, false) / static_cast<double>(a.heads) : weights};
}
/// What the attention and the whole layer ask: qkv_weight and qkv_bias hold rows for queries, keys and values.
Result<void> checkAttention(const InferContext& c, const TensorType& x, std::string_view heads) {
    CT_TRY(const int64_t width, c.integer("embed_dim"));
    CT_TRY_VOID(headWidth(c, width, heads));
    if (x.rank() != 3 || differ(x.sizes[2], SymInt(width)))
        return c.fail("needs an input of 3 dims, the last of " + std::to_string(width) + ", not " + x.text());
    if (!isFloating(x.dtype)) return c.fail("needs floating-point numbers, not " + x.text());
    CT_TRY_VOID(sizedTensor(c, "qkv_weight", {3 * width, width}));
    CT_TRY_VOID(sizedTensor(c, "qkv_bias", {3 * width}));
    CT_TRY_VOID(sizedTensor(c, "proj_weight", {width, width}));
    CT_TRY_VOID(sizedTensor(c, "proj_bias", {width}));
    return {};
}
bool accepts(Decomposition& d, Result<void> checked) {
    if (!checked) d.builder().fail(std::move(checked).error());
    return !d.builder().error();
}
Attention attentionOf(Decomposition& d, std::string_view heads) {
    Attention a;
    a.qkvWeight = d.in("qkv_weight");
    a.qkvBias = d.in("qkv_bias");
    a.weight = d.in("proj_weight");
    a.bias = d.in("proj_bias");
    if (d.has("mask")) a.mask = d.in("mask");
    a.maskType = d.arg("mask_type");
    a.width = d.integerOr("embed_dim", 0);
    a.heads = d.integerOr(heads, 1);
    return a;
}
Values multiHeadAttention(Decomposition& d) {
    if (!accepts(d, checkAttention(d, d.in("query").type(), "num_head"))) return Value(d.builder(), nullptr);
    Attention a = attentionOf(d, "num_head");
    a.query = d.in("query");
    a.key = d.in("key");
    a.value = d.in("value");
    for (const Value& other : {a.key, a.value})
        if (other.rank() != 3 || differ(other.sizes(), a.query.sizes()))
            return refuse(d, "needs query, key and value of one shape, not " + a.query.type().text() + " and " +
                                 other.type().text());
    a.needsWeights = d.flag("need_weights", true);
    a.average = d.flag("average_attn_weights", true);
    const auto [out, weights] = attend(d, a);
    return {out, weights};
}

// -- a layer

Values encoderLayer(Decomposition& d) {
    const Value src = d.in("src");
    if (!accepts(d, checkAttention(d, src.type(), "num_heads"))) return Value(d.builder(), nullptr);
    if (numel(src.sizes()) == SymInt(0)) return unary("aten.clone.default", src);
    Attention a = attentionOf(d, "num_heads");
    const auto normed = [&](const Value& x, const std::string& number) {
        return d.call("aten.layer_norm.default",
                      {x, Argument(std::vector<int64_t>{a.width}), d.in("norm_weight_" + number),
                       d.in("norm_bias_" + number), d.arg("eps"), true});
    };
    const bool first = d.flag("norm_first");
    a.query = a.key = a.value = first ? normed(src, "1") : src;
    Value x = attend(d, a).first + src;
    if (!first) x = normed(x, "1");
    Value inner = layerLinear(d, first ? normed(x, "2") : x, d.in("ffn_weight_1"), d.in("ffn_bias_1"));
    // The GPU's gelu is that of its products' last step, the tanh form.
    const std::string gelu = src.type().device.type == DeviceType::Cuda ? "tanh" : "none";
    inner = d.flag("use_gelu") ? d.call("aten.gelu.default", {inner}, {{"approximate", gelu}})
                               : unary("aten.relu.default", inner);
    x = layerLinear(d, inner, d.in("ffn_weight_2"), d.in("ffn_bias_2")) + x;
    return first ? x : normed(x, "2");
}

/// Shorthand that PyTorch does not differentiate: it stays whole until gradients are made.
constexpr OpDef withoutGradient(std::string_view schema, Fn<Values(Decomposition&)> rule, std::string_view samples) {
    OpDef row = shorthand(schema, rule, samples, Tag::Heavy);
    row.expand = Expand::Decompose;
    return row;
}

constexpr OpDef kTransformerOps[] = {
    {.schema = "aten._masked_softmax.default(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
     .infer = inferMaskedSoftmax,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = maskedSoftmax,
     .derive = deriveMaskedSoftmax,
     .samples = R"(
f32[2, 3, 4, 4], b8[4, 4], 3, 0
f32[2, 3, 4, 4], b8[2, 4], 3, 1
f32[2, 3, 4, 4], b8[2, 4], 1, 1
f32[2, 3, 4, 4], b8[2, 3, 4, 4], None, 2
f64[2, 5], b8[2, 5], 0
f32[5], b8[5]
)"},
    {.schema =
         "aten._masked_softmax_backward.default(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
     .infer = inferMaskedSoftmaxBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = maskedSoftmaxBackward,
     .samples = "f32[2, 3, 4], f32[2, 3, 4]<1, b8[2, 3, 4]\nf64[2, 5], f64[2, 5]<1, b8[2, 5], 0"},
    // qkv + qkv_bias cut into heads of queries (times one over the root of their width), keys and values.
    {.schema =
         "aten._transform_bias_rescale_qkv.default(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
     .infer = inferProjections,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value qkv = d.in("qkv");
         return Values(projections(d, qkv, d.in("qkv_bias"), qkv.size(2).value() / 3, d.integerOr("num_heads", 1)));
     },
     .samples = "f32[2, 3, 24], f32[24], 2\nf64[1, 5, 12], f64[12], 4"},
    withoutGradient(
        "aten._native_multi_head_attention.default(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, "
        "Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
        multiHeadAttention, R"(
f32[2, 3, 8]<1, f32[2, 3, 8]<1, f32[2, 3, 8]<1, 8, 2, f32[24, 8]<1, f32[24]<1, f32[8, 8]<1, f32[8]<1
f32[2, 3, 8]<1, f32[2, 3, 8]<1, f32[2, 3, 8]<1, 8, 4, f32[24, 8]<1, f32[24]<1, f32[8, 8]<1, f32[8]<1, None, True, False
f32[2, 3, 8]<1, f32[2, 3, 8]<1, f32[2, 3, 8]<1, 8, 1, f32[24, 8]<1, f32[24]<1, f32[8, 8]<1, f32[8]<1, b8[3, 3], False, True, 0
)"),
    withoutGradient(
        "aten._transformer_encoder_layer_fwd.default(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, "
        "Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
        "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
        encoderLayer, R"(
f32[2, 3, 8]<1, 8, 2, f32[24, 8]<1, f32[24]<1, f32[8, 8]<1, f32[8]<1, False, False, 1e-5, f32[8], f32[8], f32[8], f32[8], f32[16, 8]<1, f32[16]<1, f32[8, 16]<1, f32[8]<1
f32[2, 3, 8]<1, 8, 1, f32[24, 8]<1, f32[24]<1, f32[8, 8]<1, f32[8]<1, True, True, 1e-5, f32[8]<1, f32[8]<1, f32[8]<1, f32[8]<1, f32[16, 8]<1, f32[16]<1, f32[8, 16]<1, f32[8]<1
f32[2, 3, 8]<1, 8, 2, f32[24, 8]<1, f32[24]<1, f32[8, 8]<1, f32[8]<1, True, False, 1e-5, f32[8], f32[8], f32[8], f32[8], f32[16, 8]<1, f32[16]<1, f32[8, 16]<1, f32[8]<1, b8[2, 3], 1
f64[2, 4, 6]<1, 6, 3, f64[18, 6]<1, f64[18]<1, f64[6, 6]<1, f64[6]<1, False, True, 1e-5, f64[6], f64[6], f64[6], f64[6], f64[5, 6]<1, f64[5]<1, f64[6, 5]<1, f64[6]<1, b8[4, 4], 0
)"),
};

}  // namespace

std::span<const OpDef> transformerOps() { return kTransformerOps; }

}  // namespace cutaway
