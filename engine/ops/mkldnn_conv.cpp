// Convolutions as freezing leaves them for oneDNN, with what is computed of their result at once. They give
// channels-last results.
#include "engine/ops/infer_rules.h"
#include "engine/ops/mkldnn.h"

namespace cutaway {
namespace {

Result<ValueType> inferPackedConvolution(const InferContext& c) {
    CT_TRY(const TensorType x, packedInput(c));
    if (x.rank() != 4 && x.rank() != 5)
        return c.fail("needs an input of four or five dims, not " + std::to_string(x.rank()));
    CT_TRY(const ValueType computed, inferExpanded(c));
    TensorType type = TensorType::contiguous(x.dtype, computed.tensor()->sizes, x.device);
    type.strides =
        *formatStrides(x.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, type.sizes);
    if (c.op().schema()->find("other") >= 0) CT_TRY_VOID(checkOther(c, type.sizes));
    return ValueType(std::move(type));
}

/// The convolution of the call in f32, without post-ops.
Value convolutionOf(Decomposition& d) {
    const bool transposed = d.op().schema()->find("output_padding") >= 0;
    const Argument outputPadding = transposed ? d.arg("output_padding") : Argument(Dims(1, 0));
    return d.call("aten.convolution.default",
                  {widened(d.in("X")), widened(d.in("W")), widenedOrNone(d, "B"), d.arg("stride"), d.arg("padding"),
                   d.arg("dilation"), transposed, outputPadding, d.arg("groups")});
}
Values expandPointwise(Decomposition& d) { return rounded(d, withUnary(d, convolutionOf(d))); }

/// The sum (or difference, ...) with `other`, and relu of it.
Value binaryOf(Decomposition& d) {
    const auto alpha = d.scalar("alpha");
    if (alpha && toDouble(*alpha) != 1) d.builder().fail(d.fail("alpha has to be 1 or None"));
    const std::string unary = d.has("unary_attr") ? d.text("unary_attr") : "";
    if (d.has("unary_attr") && unary != "relu")
        d.builder().fail(d.fail("computes relu of the two or nothing, not '" + unary + "'"));
    const Value both = withBinary(d, convolutionOf(d), "binary_attr");
    return rounded(d, unary.empty() ? both : d.call("aten.relu.default", {both}));
}

/// Writes into `other`, which has to have the result's sizes.
Result<ValueType> inferInto(const InferContext& c) {
    CT_TRY(const ValueType computed, inferPackedConvolution(c));
    CT_TRY(TensorType other, c.tensor("other"));
    if (!(other.sizes == computed.tensor()->sizes))
        return c.fail("'other' " + other.text() + " does not have the result's sizes");
    for (size_t i = 0; i < other.sizes.size(); ++i)
        if (other.strides[i] == SymInt(0) && !(other.sizes[i] == SymInt(1)))
            return c.fail("several elements of 'other' are one place in memory; clone it first");
    if (c.text("binary_attr") != "add") return c.fail("adds to 'other'; it computes no other function of the two");
    return ValueType(std::move(other));
}

constexpr OpDef kMkldnnConvOps[] = {
    {.schema =
         "mkldnn._convolution_pointwise.default(Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, "
         "int groups, str attr, Scalar?[] scalars, str? algorithm) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferPackedConvolution,
     .eval = evalExpanded,
     .decompose = expandPointwise,
     .samples = R"(
f32[2, 3, 8, 8], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], 1, 'none', [], ''
f32[2, 3, 8, 7], f32[4, 3, 3, 2], None, [1, 0], [2, 1], [1, 2], 1, 'relu', [], ''
f32[1, 4, 6, 6], f32[4, 1, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], 4, 'sigmoid', [], None
f32[2, 4, 6, 6], f32[6, 2, 1, 1], f32[6], [0, 0], [1, 1], [1, 1], 2, 'tanh', [], ''
f32[2, 3, 6, 6][108, 1, 18, 3], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'swish', [], ''
f32[1, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'hardswish', [], ''
f32[1, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'hardsigmoid', [], ''
f32[1, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'leaky_relu', [0.2], ''
f32[1, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'hardtanh', [0.0, 6.0], ''
f32[1, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'gelu', [], 'none'
f32[1, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 1, 'gelu', [], 'tanh'
f32[1, 2, 4, 4, 4], f32[3, 2, 2, 2, 2], f32[3], [1, 1, 1], [1, 1, 1], [1, 1, 1], 1, 'relu', [], ''
bf16[2, 3, 6, 6], bf16[4, 3, 3, 3], bf16[4], [1, 1], [1, 1], [1, 1], 1, 'gelu', [], 'none'
f16[2, 3, 6, 6], f16[4, 3, 3, 3], None, [1, 1], [1, 1], [1, 1], 1, 'swish', [], ''
)"},
    {.schema =
         "mkldnn._convolution_pointwise.binary(Tensor X, Tensor other, Tensor W, Tensor? B, int[] padding, int[] stride, "
         "int[] dilation, int groups, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] unary_scalars, "
         "str? unary_algorithm) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferPackedConvolution,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values { return binaryOf(d); },
     .samples = R"(
f32[2, 3, 6, 6], f32[2, 4, 6, 6], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], ''
f32[2, 3, 6, 6], f32[2, 4, 6, 6], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], 1, 'sub', None, None, [], None
f32[2, 3, 6, 6], f32[2, 4, 1, 1], f32[4, 3, 3, 3], None, [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, None, [], None
f32[2, 3, 6, 6], f32[1, 1, 1, 1], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], 1, 'mul', 1, None, [], None
f32[1, 4, 5, 5], f32[1, 4, 3, 3]>0, f32[4, 1, 3, 3], f32[4], [0, 0], [1, 1], [1, 1], 4, 'div', 1.0, None, [], None
f32[1, 2, 4, 4, 4], f32[1, 3, 3, 3, 3], f32[3, 2, 2, 2, 2], f32[3], [0, 0, 0], [1, 1, 1], [1, 1, 1], 1, 'add', 1.0, None, [], None
bf16[2, 3, 6, 6], bf16[2, 4, 6, 6], bf16[4, 3, 3, 3], bf16[4], [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], ''
)"},
    {.schema =
         "mkldnn._convolution_pointwise_.binary(Tensor(a!) other, Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, "
         "int[] dilation, int groups, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] unary_scalars, "
         "str? unary_algorithm) -> Tensor(a!)",
     .tags = Tag::Heavy | Tag::Impure,
     .infer = inferInto,
     .eval = evalExpanded,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.copy_.default", {d.in("other"), binaryOf(d)});
     },
     .samples = R"(
f32[2, 4, 6, 6], f32[2, 3, 6, 6], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, 'relu', [], ''
f32[2, 4, 6, 6][144, 1, 24, 4], f32[2, 3, 6, 6], f32[4, 3, 3, 3], None, [1, 1], [1, 1], [1, 1], 1, 'add', None, None, [], None
bf16[2, 4, 6, 6], bf16[2, 3, 6, 6], bf16[4, 3, 3, 3], bf16[4], [1, 1], [1, 1], [1, 1], 1, 'add', 1.0, None, [], ''
)"},
    // W as PyTorch stores it, [in, out / groups, ...].
    {.schema =
         "mkldnn._convolution_transpose_pointwise.default(Tensor X, Tensor W, Tensor? B, int[] padding, int[] output_padding, "
         "int[] stride, int[] dilation, int groups, str attr, Scalar?[] scalars, str? algorithm) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferPackedConvolution,
     .eval = evalExpanded,
     .decompose = expandPointwise,
     .samples = R"(
f32[2, 3, 5, 5], f32[3, 4, 3, 3], f32[4], [1, 1], [1, 1], [2, 2], [1, 1], 1, 'none', [], ''
f32[2, 4, 5, 5], f32[4, 3, 3, 3], None, [1, 1], [0, 0], [2, 2], [1, 1], 2, 'relu', [], ''
f32[1, 2, 3, 3, 3], f32[2, 3, 2, 2, 2], f32[3], [0, 0, 0], [0, 0, 0], [2, 2, 2], [1, 1, 1], 1, 'swish', [], ''
bf16[2, 3, 5, 5], bf16[3, 4, 3, 3], bf16[4], [1, 1], [0, 0], [2, 2], [1, 1], 1, 'hardswish', [], ''
)"},
    {.schema = "mkldnn._reorder_convolution_weight.default(Tensor self, int[2] padding=[0, 0], int[2] stride=[1, 1], "
               "int[2] dilation=[1, 1], int groups=1, int[]? input_size=None) -> Tensor",
     .tags = Tag::View,
     .infer = [](const InferContext& c) { return inferPacked(c, 4, 5); },
     .eval = evalPacked,
     .samples = "f32[4, 3, 3, 3], [1, 1], [1, 1], [1, 1], 1, [2, 3, 8, 8]\nbf16[4, 3, 3, 3]\n"
                "f32[3, 2, 2, 2, 2], [0, 0, 0], [1, 1, 1], [1, 1, 1], 1, [1, 2, 4, 4, 4]"},
    {.schema =
         "mkldnn._reorder_convolution_transpose_weight.default(Tensor self, int[2] padding=[0, 0], int[2] output_padding=[0, 0], "
         "int[2] stride=[1, 1], int[2] dilation=[1, 1], int groups=1, int[]? input_size=None) -> Tensor",
     .tags = Tag::View,
     .infer = [](const InferContext& c) { return inferPacked(c, 4, 5); },
     .eval = evalPacked,
     .samples = "f32[3, 4, 3, 3], [1, 1], [1, 1], [2, 2], [1, 1], 1, [2, 3, 5, 5]\nbf16[3, 4, 3, 3]"},
};

}  // namespace

std::span<const OpDef> mkldnnConvOps() { return kMkldnnConvOps; }

}  // namespace cutaway
