// Linear layers as freezing leaves them for oneDNN and MKL, with what is computed of their result at once.
#include "engine/ops/infer_rules.h"
#include "engine/ops/mkldnn.h"

namespace cutaway {

Value widened(const Value& x) { return convert(x, DType::F32); }
Argument widenedOrNone(Decomposition& d, std::string_view param) {
    return d.has(param) ? Argument(widened(d.in(param))) : Argument();
}
Value rounded(Decomposition& d, const Value& y) { return convert(y, d.in("X").dtype()); }

Value withUnary(Decomposition& d, const Value& y) {
    const std::string function(d.text("attr"));
    const auto* scalars = d.arg("scalars").list();
    const auto given = [&](size_t count) {
        return scalars && scalars->size() == count &&
               std::none_of(scalars->begin(), scalars->end(), [](const Argument& each) { return each.isNone(); });
    };
    const auto fail = [&](std::string what) {
        d.builder().fail(d.fail(std::move(what)));
        return y;
    };
    if (function == "none") return y;
    for (const std::string_view plain : {"relu", "sigmoid", "tanh", "hardswish", "hardsigmoid"})
        if (function == plain) return d.call("aten." + function + ".default", {y});
    if (function == "swish") return d.call("aten.silu.default", {y});
    if (function == "gelu") {
        const std::string how = d.text("algorithm");
        if (how != "none" && how != "tanh") return fail("gelu is computed by 'none' or 'tanh', not by '" + how + "'");
        return d.call("aten.gelu.default", {y}, {{"approximate", d.arg("algorithm")}});
    }
    if (function == "leaky_relu") {
        if (!given(1)) return fail("leaky_relu needs one number, its slope below 0");
        return d.call("aten.leaky_relu.default", {y, (*scalars)[0]});
    }
    if (function == "hardtanh") {
        if (!given(2)) return fail("hardtanh needs two numbers, the least and the largest result");
        return d.call("aten.hardtanh.default", {y, (*scalars)[0], (*scalars)[1]});
    }
    return fail("does not know the function '" + function + "'");
}

Value withBinary(Decomposition& d, const Value& y, std::string_view attrParam) {
    const std::string function(d.text(attrParam));
    for (const std::string_view known : {"add", "sub", "mul", "div"})
        if (function == known) {
            const Value both = d.call("aten." + function + ".Tensor", {y, widened(d.in("other"))});
            if (both && (both.rank() != y.rank() || differ(both.sizes(), y.sizes())))
                d.builder().fail(d.fail("'other' " + d.in("other").type().text() + " is larger than the result"));
            return both;
        }
    d.builder().fail(d.fail("does not know the function '" + function + "' of two tensors"));
    return y;
}

Result<TensorType> packedInput(const InferContext& c) {
    CT_TRY(TensorType x, c.tensor("X"));
    CT_TRY(const TensorType w, c.tensor("W"));
    if (x.dtype != DType::F32 && !isHalf(x.dtype))
        return c.fail("takes float32, bfloat16 and float16, not " + std::string(info(x.dtype).torchName));
    if (w.dtype != x.dtype)
        return c.fail("an input of " + std::string(info(x.dtype).torchName) + " and a weight of " +
                      std::string(info(w.dtype).torchName));
    return x;
}

Result<void> checkOther(const InferContext& c, const SymDims& result) {
    CT_TRY(const TensorType other, c.tensor("other"));
    CT_TRY(const TensorType x, c.tensor("X"));
    if (other.dtype != x.dtype)
        return c.fail("'other' is of dtype " + std::string(info(other.dtype).torchName) + ", the input of " +
                      std::string(info(x.dtype).torchName));
    if (other.sizes.size() != result.size())
        return c.fail("'other' has " + std::to_string(other.rank()) + " dims, the result " +
                      std::to_string(result.size()));
    return {};
}

Result<ValueType> inferPacked(const InferContext& c, int64_t leastRank, int64_t mostRank) {
    CT_TRY(TensorType weight, c.tensor(size_t{0}));
    if (weight.rank() < leastRank || weight.rank() > mostRank)
        return c.fail("packs weights of " + std::to_string(leastRank) +
                      (leastRank == mostRank ? "" : " or " + std::to_string(mostRank)) + " dims, not " +
                      std::to_string(weight.rank()));
    if (weight.dtype != DType::F32 && !isHalf(weight.dtype))
        return c.fail("packs float32, bfloat16 and float16, not " + std::string(info(weight.dtype).torchName));
    return ValueType(std::move(weight));
}

namespace {

/// [..., in] by [out, in] gives [..., out], row-major.
Result<SymDims> linearSizes(const InferContext& c, const TensorType& x, std::string_view weightParam) {
    CT_TRY(const TensorType w, c.tensor(weightParam));
    if (x.rank() == 0 || w.rank() != 2) return c.fail("needs an input of at least one dim and a weight of two");
    const SymInt &in = x.sizes.back(), &expected = w.sizes[1];
    if (differ(in, expected))
        return c.fail("the input has " + in.text() + " features, the weight takes " + expected.text());
    SymDims sizes = x.sizes;
    sizes.back() = w.sizes[0];
    return sizes;
}
Result<ValueType> inferLinear(const InferContext& c) {
    CT_TRY(const TensorType x, packedInput(c));
    CT_TRY(SymDims sizes, linearSizes(c, x, "W"));
    if (c.op().schema()->find("other") >= 0) CT_TRY_VOID(checkOther(c, sizes));
    CT_TRY_VOID(inferExpanded(c));
    return ValueType(TensorType::contiguous(x.dtype, std::move(sizes), x.device));
}
Value linearOf(Decomposition& d) {
    return d.call("aten.linear.default", {widened(d.in("X")), widened(d.in("W")), widenedOrNone(d, "B")});
}

/// MKL packs a weight for one number of rows; for another, PyTorch reads the plain ORI_W. Here both are the plain one.
Result<ValueType> inferMklLinear(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor("X"));
    CT_TRY(const TensorType packed, c.tensor("MKL_W"));
    CT_TRY(const TensorType plain, c.tensor("ORI_W"));
    for (const DType dtype : {x.dtype, packed.dtype, plain.dtype})
        if (dtype != DType::F32) return c.fail("takes float32, not " + std::string(info(dtype).torchName));
    CT_TRY(SymDims sizes, linearSizes(c, x, "ORI_W"));
    CT_TRY_VOID(inferExpanded(c));
    return ValueType(TensorType::contiguous(x.dtype, std::move(sizes), x.device));
}

// Freezing calls MKL's operators without naming an overload, and FX prints them so.
constexpr OpDef kMkldnnLinearOps[] = {
    // x @ W^T + b, then the function that `attr` names.
    {.schema =
         "mkldnn._linear_pointwise.default(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, str? algorithm) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferLinear,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values { return rounded(d, withUnary(d, linearOf(d))); },
     .samples = R"(
f32[6, 8], f32[5, 8], f32[5], 'none', [], ''
f32[6, 8], f32[5, 8], None, 'relu', [], ''
f32[2, 3, 8], f32[5, 8], f32[5], 'sigmoid', [], ''
f32[6, 8][1, 6], f32[5, 8][1, 5], f32[5], 'tanh', [], ''
f32[6, 8], f32[5, 8], f32[5], 'swish', [], ''
f32[6, 8], f32[5, 8], f32[5], 'hardswish', [], None
f32[6, 8], f32[5, 8], f32[5], 'hardsigmoid', [], ''
f32[6, 8], f32[5, 8], f32[5], 'leaky_relu', [0.1], ''
f32[6, 8], f32[5, 8], f32[5], 'hardtanh', [-1, 6.5], ''
f32[6, 8], f32[5, 8], f32[5], 'gelu', [], 'none'
f32[6, 8], f32[5, 8], f32[5], 'gelu', [], 'tanh'
f32[0, 8], f32[5, 8], f32[5], 'relu', [], ''
bf16[6, 8], bf16[5, 8], bf16[5], 'gelu', [], 'tanh'
f16[6, 8], f16[5, 8], None, 'swish', [], ''
)"},
    {.schema = "mkldnn._linear_pointwise.binary(Tensor X, Tensor other, Tensor W, Tensor? B, str attr) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferLinear,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values { return rounded(d, withBinary(d, linearOf(d), "attr")); },
     .samples = R"(
f32[6, 8], f32[6, 5], f32[5, 8], f32[5], 'add'
f32[6, 8], f32[6, 5], f32[5, 8], None, 'sub'
f32[6, 8], f32[1, 5], f32[5, 8], f32[5], 'mul'
f32[2, 3, 8], f32[2, 3, 5], f32[5, 8], f32[5], 'add'
f32[6, 8], f32[6, 5]>0, f32[5, 8], f32[5], 'div'
bf16[6, 8], bf16[6, 5], bf16[5, 8], bf16[5], 'add'
)"},
    {.schema = "mkl._mkl_linear(Tensor X, Tensor MKL_W, Tensor ORI_W, Tensor? B, int batch_size) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferMklLinear,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.linear.default", {d.in("X"), d.in("ORI_W"), d.arg("B")});
     },
     .samples = R"(
f32[6, 8], f32[5, 8], f32[5, 8], f32[5], 6
f32[6, 8], f32[5, 8], f32[5, 8], None, 6
f32[3, 8], f32[5, 8], f32[5, 8], f32[5], 6
f32[2, 3, 8], f32[5, 8], f32[5, 8], f32[5], 6
)"},
    {.schema = "mkldnn._reorder_linear_weight.default(Tensor self, int? batch_size=None) -> Tensor",
     .tags = Tag::View,
     .infer = [](const InferContext& c) { return inferPacked(c, 2, 2); },
     .eval = evalPacked,
     .samples = "f32[5, 8], 6\nbf16[5, 8]\nf32[5, 8][1, 5], 6"},
    {.schema = "mkl._mkl_reorder_linear_weight(Tensor X, int batch_size) -> Tensor",
     .tags = Tag::View,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(ValueType type, inferPacked(c, 2, 2));
         if (type.tensor()->dtype != DType::F32) return c.fail("packs float32 only");
         return type;
     },
     .eval = evalPacked,
     .samples = "f32[5, 8], 6\nf32[5, 8][1, 5], 6"},
    // Both weights of one layer; its biases are not packed.
    {.schema =
         "mkldnn._reorder_mkldnn_rnn_layer_weight.default(Tensor weight0, Tensor weight1, int hidden_size, bool reverse, "
         "bool has_biases, bool batch_first, int[]? input_size=None) -> Tensor[]",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(ValueType first, inferPacked(c, 2, 2));
         CT_TRY(TensorType second, c.tensor(1));
         if (second.rank() != 2 || second.dtype != first.tensor()->dtype)
             return c.fail("needs two matrices of one dtype");
         return ValueType(TupleType{std::move(first), ValueType(std::move(second))});
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         return TensorList{c.in(size_t{0}), c.in(1)};
     },
     .samples = "f32[16, 3], f32[16, 4], 4, False, True, False\nbf16[16, 3], bf16[16, 4], 4, True, True, True"},
};

}  // namespace

std::span<const OpDef> mkldnnLinearOps() { return kMkldnnLinearOps; }

}  // namespace cutaway
