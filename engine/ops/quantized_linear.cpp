// Quantized linear layers as oneDNN's operators have them: weights packed (here: left as they are), products summed
// exactly, post-ops in f32. And linear layers whose weights are kept in half precision.
#include <array>

#include "engine/ops/byte_product.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/matrix.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/quantized_call.h"

namespace cutaway {
namespace {

constexpr std::array<std::string_view, 8> kLinearUnaries{"none", "relu",     "leaky_relu", "tanh",
                                                         "gelu", "hardtanh", "hardswish",  "swish"};
constexpr std::array<std::string_view, 2> kUnariesOfSums{"none", "relu"};
constexpr std::array<std::string_view, 3> kLinearBinaries{"none", "sum", "add"};

// -- weights

/// The transposed view of the weight: PyTorch packs that for its kernels, here it stays as it is.
Result<TensorType> transposedWeight(const InferContext& c) {
    CT_TRY(TensorType weight, c.tensor(size_t{0}));
    if (weight.rank() != 2) return c.fail("needs a matrix, not " + weight.text());
    std::swap(weight.sizes[0], weight.sizes[1]);
    std::swap(weight.strides[0], weight.strides[1]);
    return weight;
}
Result<ValueType> inferPackedLinearWeight(const InferContext& c) {
    CT_TRY(TensorType weight, transposedWeight(c));
    if (weight.dtype != DType::I8 && weight.dtype != DType::F8E4M3FN)
        return c.fail("packs weights of int8 and float8_e4m3fn, not " + std::string(info(weight.dtype).torchName));
    return ValueType(std::move(weight));
}
Result<ValueType> inferHalfWeight(const InferContext& c) {
    CT_TRY(const TensorType weight, c.tensor(size_t{0}));
    if (weight.rank() != 2) return c.fail("needs a matrix, not " + weight.text());
    if (weight.dtype != DType::F32 && weight.dtype != DType::F16)
        return c.fail("packs weights of float32 and float16, not " + weight.text());
    TensorType type = TensorType::contiguous(DType::F16, {weight.sizes[1], weight.sizes[0]}, weight.device);
    type.strides = {SymInt(1), type.sizes[0]};
    return ValueType(std::move(type));
}
Tensor transposedMatrix(const Tensor& matrix) {
    return matrix.view({matrix.size(1), matrix.size(0)}, {matrix.stride(1), matrix.stride(0)}, matrix.offset());
}

// -- quantized products

/// Sizes of the result: those of the input, the last one being the weight's columns.
Result<TensorType> resultOf(const InferContext& c, const TensorType& input, const TensorType& weight, DType dtype) {
    if (input.rank() == 0 || weight.rank() != 2) return c.fail("needs an input with dims and a matrix of weights");
    if (differ(input.sizes.back(), weight.sizes[0]))
        return c.fail("the input " + input.text() + " has rows of " + input.sizes.back().text() +
                      ", the packed weight takes " + weight.sizes[0].text());
    TensorType type = TensorType::contiguous(dtype, input.sizes, input.device);
    type.sizes.back() = weight.sizes[1];
    type.strides = contiguousStrides(type.sizes);
    return type;
}
bool hasOther(const InferContext& c) { return c.op().schema()->find("other") >= 0; }
Result<QuantizedCall> readLinear(const InferContext& c) {
    const std::string post = hasOther(c) ? c.text("binary_post_op") : "none";
    return readQuantizedCall(c, post == "none" ? std::span<const std::string_view>(kLinearUnaries) : kUnariesOfSums,
                             kLinearBinaries);
}
/// Post-op "sum" writes into `other` in PyTorch, so the result has its layout; post-op "add" broadcasts `other`.
Result<TensorType> withOther(const InferContext& c, const QuantizedCall& call, TensorType result) {
    if (!c.has("other")) return c.fail("has no other operand for the post-op '" + call.binary + "'");
    CT_TRY(const TensorType other, c.tensor("other"));
    if (call.binary == "add") {
        if (!isFloating(other.dtype) && byteSize(other.dtype) != 1)
            return c.fail("adds floats and 8-bit integers, not " + other.text());
        if (other.dtype == DType::F64) return c.fail("adds no float64");
        bool fits = other.rank() == result.rank();
        for (size_t d = 0; fits && d < other.sizes.size(); ++d)
            fits = other.sizes[d] == SymInt(1) || !differ(other.sizes[d], result.sizes[d]);
        if (!fits) return c.fail("adds " + other.text() + " to " + result.text() + " without new dims");
        return result;
    }
    if (other.dtype != call.output)
        return c.fail("sums into an operand of the result's dtype " + std::string(info(call.output).torchName) +
                      ", not " + std::string(info(other.dtype).torchName));
    bool fits = other.rank() == result.rank();
    for (size_t d = 0; fits && d < other.sizes.size(); ++d) fits = !differ(other.sizes[d], result.sizes[d]);
    if (!fits) return c.fail("sums into an operand of the result's sizes, not " + other.text());
    // The operand's order of dims, but dense: overlaps and gaps between its elements are not taken over.
    result.strides = preservedStrides(other);
    return result;
}
Result<ValueType> inferQuantizedLinear(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor("qw"));
    if (input.dtype != DType::U8 && input.dtype != DType::I8 && !areFloatBytes(input))
        return c.fail("needs an input of uint8, int8 or float8_e4m3fn, not " +
                      std::string(info(input.dtype).torchName));
    CT_TRY(const QuantizedCall call, readLinear(c));
    CT_TRY(TensorType type, resultOf(c, input, weight, call.output));
    CT_TRY_VOID(checkQuantizedOperands(c, input, weight, weight.sizes[1]));
    if (!call.adds()) return ValueType(std::move(type));
    CT_TRY(type, withOther(c, call, std::move(type)));
    return ValueType(std::move(type));
}

/// Leading dims as rows.
Tensor asMatrix(const Tensor& tensor) {
    const Tensor packed = tensor.contiguous();
    const int64_t width = tensor.size(-1);
    int64_t rows = 1;  // counted by sizes, so that it holds for a width of 0, too
    for (int64_t d = 0; d + 1 < tensor.rank(); ++d) rows *= tensor.size(d);
    return packed.view({rows, width}, {width, 1}, packed.offset());
}
/// The matrix as uint8: int8 numbers and their zero point are shifted by 128.
Tensor unsignedBytes(const Tensor& matrix, int64_t& zero) {
    if (matrix.dtype() == DType::U8) return matrix;
    Tensor out = Tensor::empty(DType::U8, matrix.sizes());
    const auto* from = matrix.as<uint8_t>();
    for (int64_t i = 0; i < matrix.numel(); ++i) out.as<uint8_t>()[i] = from[i] ^ 0x80;
    zero += 128;
    return out;
}
/// zero * the sum of a row of the weight, for each row: what the input's zero point adds to every product. Nothing if
/// zero is 0.
std::vector<int32_t> zeroSums(const Tensor& rows, int64_t zero) {
    if (zero == 0) return {};
    std::vector<int32_t> sums(static_cast<size_t>(rows.size(0)));
    const auto* data = rows.as<int8_t>();
    for (int32_t& sum : sums) {
        uint32_t total = 0;
        for (int64_t k = 0; k < rows.size(1); ++k) total += static_cast<uint32_t>(int32_t{data[k]});
        sum = static_cast<int32_t>(total * static_cast<uint32_t>(zero));
        data += rows.size(1);
    }
    return sums;
}
void runBytes(const Tensor& input, const Tensor& weight, int64_t zero, const QuantizedFinish& finish) {
    const Tensor a = unsignedBytes(input, zero), b = transposedMatrix(weight).contiguous();
    const int64_t columns = b.size(0), inner = b.size(1);
    const std::vector<int32_t> zeros = zeroSums(b, zero);
    forRunsOfRows(a.size(0), columns * inner, inner + 4 * columns, [&](int64_t first, int64_t count) {
        std::vector<int32_t> sums(static_cast<size_t>(count * columns));
        if (inner > 0)
            multiplyBytes({count, columns, inner, a.as<uint8_t>() + first * inner, inner, b.as<int8_t>()}, sums.data());
        finish.run<int32_t>(sums.data(), zeros.empty() ? nullptr : zeros.data(), first, count, 0, columns);
    });
}
EvalResult evalLinear(const EvalContext& c) {
    auto call = readLinear(c);
    if (!call) return std::move(call).error();
    const Tensor input = asMatrix(c.in(size_t{0})), weight = c.in("qw");
    const TensorType& type = c.resultType();
    const Dims sizes = toInts(type.sizes);
    Tensor packed = Tensor::empty(call->output, sizes);
    Tensor matrix = asMatrix(packed), other;
    if (call->adds()) other = asMatrix(broadcastTo(c.in("other"), sizes));
    if (matrix.numel() > 0) {
        const QuantizedFinish finish(c, *call, matrix, other);
        if (areFloatBytes(*c.tensor(size_t{0}))) {
            Tensor sums = Tensor::empty(DType::F32, matrix.sizes());
            multiplyMatrices(input.to(DType::F32), weight.to(DType::F32), sums);
            finish.run<float>(sums.as<float>(), nullptr, 0, sums.size(0), 0, sums.size(1));
        } else {
            runBytes(input, weight, inputZero(c), finish);
        }
    }
    Tensor out = packed;
    if (!(toInts(type.strides) == packed.strides())) copyInto(out = c.result(), packed);
    return out;
}

// -- weights in half precision

Result<ValueType> inferHalfLinear(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor("w"));
    if (input.dtype != DType::F32) return c.fail("needs an input of float32, not " + input.text());
    if (weight.dtype != DType::F16) return c.fail("needs a packed weight of float16, not " + weight.text());
    if (c.has("bias")) {
        CT_TRY(const TensorType bias, c.tensor("bias"));
        if (bias.dtype != DType::F32 && !isHalf(bias.dtype)) return c.fail("needs a bias of floats");
        if (weight.rank() == 2 && differ(numel(bias.sizes), weight.sizes[1]))
            return c.fail("needs a bias of " + weight.sizes[1].text() + " elements");
    }
    CT_TRY(TensorType type, resultOf(c, input, weight, DType::F32));
    return ValueType(std::move(type));
}
/// x w + bias in float32.
EvalResult evalHalfLinear(const EvalContext& c, bool relu) {
    const Tensor input = asMatrix(c.in(size_t{0})), weight = c.in("w").to(DType::F32);
    Tensor out = c.result();
    Tensor matrix = asMatrix(out);
    multiplyMatrices(input, weight, matrix);
    const std::vector<float> bias =
        c.has("bias") ? packElements<float>(c.in("bias")) : std::vector<float>(static_cast<size_t>(weight.size(1)), 0);
    auto* y = matrix.as<float>();
    for (int64_t i = 0; i < matrix.numel(); ++i) {
        y[i] += bias[static_cast<size_t>(i) % bias.size()];
        if (relu) y[i] = std::max(y[i], 0.0f);
    }
    return out;
}

constexpr OpDef linearRow(std::string_view schema, std::string_view samples) {
    return {.schema = schema,
            .tags = Tag::Heavy | Tag::NoGradient,
            .infer = inferQuantizedLinear,
            .eval = evalLinear,
            .samples = samples};
}

constexpr OpDef kQuantizedLinearOps[] = {
    {.schema = "onednn.qlinear_prepack.default(Tensor weight, int[]? x_shape) -> Tensor",
     .tags = Tag::View | Tag::NoGradient,
     .infer = inferPackedLinearWeight,
     .eval = [](const EvalContext& c) { return c.resultView(c.in(size_t{0})); },
     .samples = "i8[3, 4], [2, 4]\ni8[8, 64], None\ni8[5, 3][1, 5], None"},
    // Zero points may be None, which PyTorch's schema does not say.
    linearRow(
        "onednn.qlinear_pointwise.default(Tensor qx, float x_scale, int x_zero_point, Tensor qw, Tensor w_scale, Tensor? w_zero_point, Tensor? bias, "
        "float output_scale, int output_zero_point, ScalarType? output_dtype, str post_op_name, Scalar?[] post_op_args, str post_op_algorithm) -> Tensor",
        R"(
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'none', [], ''
u8[2, 3, 40]<256, 0.0371, 128, i8[40, 16]!, f32[16]>0, i64[16]<1, f32[16], 31.7, 7, torch.uint8, 'relu', [], ''
i8[6, 33]!, 0.0371, -3, i8[33, 8]!, f32[8]>0, i64[8]<1, f32[8], 55.1, -4, torch.int8, 'none', [], ''
u8[5, 12]<256, 0.002, 3, i8[12, 7]!, f32[1]>0, None, None, 1.0, 0, torch.bfloat16, 'none', [], ''
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'gelu', [], 'none'
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'gelu', [], 'tanh'
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'tanh', [], ''
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'swish', [], ''
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'hardswish', [], ''
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'hardtanh', [-1.5, 2.0], ''
u8[5, 12]<256, 0.0005, 9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'leaky_relu', [0.1], ''
u8[12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'none', [], ''
u8[0, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'none', [], ''
)"),
    linearRow(
        "onednn.qlinear_pointwise.tensor(Tensor qx, Tensor x_scale, Tensor? x_zero_point, Tensor qw, Tensor w_scale, Tensor? w_zero_point, Tensor? bias, "
        "float output_scale, int output_zero_point, ScalarType? output_dtype, str post_op_name, Scalar?[] post_op_args, str post_op_algorithm) -> Tensor",
        R"(
u8[5, 12]<256, f32[1]>0, i64[1]<9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1.0, 0, torch.float32, 'none', [], ''
i8[2, 5, 12]!, f32[]>0, None, i8[12, 7]!, f32[7]>0, None, None, 1.0, 0, torch.bfloat16, 'none', [], ''
u8[5, 12]<256, f32[]>0, i64[]<9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[7], 1000.0, 7, torch.uint8, 'relu', [], ''
)"),
    linearRow(
        "onednn.qlinear_pointwise.binary(Tensor qx, float x_scale, int x_zero_point, Tensor qw, Tensor w_scale, Tensor? w_zero_point, Tensor? other, Tensor? bias, "
        "float output_scale, int output_zero_point, ScalarType? output_dtype, float other_scale, int other_zp, str binary_post_op, float binary_alpha, "
        "str unary_post_op, Scalar?[] unary_post_op_args, str unary_post_op_algorithm) -> Tensor",
        R"(
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[5, 7], f32[7], 1.0, 0, torch.float32, 1.0, 0, 'sum', 1.0, 'relu', [], ''
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[5, 7], f32[7], 1.0, 0, torch.float32, 1.0, 0, 'add', 1.0, 'none', [], ''
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[1, 7], None, 1.0, 0, torch.bfloat16, 1.0, 0, 'add', 1.0, 'relu', [], ''
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[5, 7], f32[7], 52.3, 3, torch.uint8, 1.0, 0, 'add', 1.0, 'relu', [], ''
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, u8[5, 7]<256, f32[7], 52.3, 3, torch.uint8, 7.3, 9, 'sum', 1.0, 'none', [], ''
u8[2, 5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, bf16[2, 5, 7], f32[7], 1.0, 0, torch.bfloat16, 1.0, 0, 'sum', 1.0, 'none', [], ''
u8[5, 12]<256, 0.05, 10, i8[12, 7]!, f32[7]>0, i64[7]<1, None, f32[7], 1.0, 0, torch.float32, 1.0, 0, 'none', 1.0, 'tanh', [], ''
)"),
    linearRow(
        "onednn.qlinear_pointwise.binary_tensor(Tensor qx, Tensor x_scale, Tensor? x_zero_point, Tensor qw, Tensor w_scale, Tensor? w_zero_point, Tensor? other, "
        "Tensor? bias, float output_scale, int output_zero_point, ScalarType? output_dtype, float other_scale, int other_zp, str binary_post_op, "
        "float binary_alpha, str unary_post_op, Scalar?[] unary_post_op_args, str unary_post_op_algorithm) -> Tensor",
        "u8[5, 12]<256, f32[1]>0, i64[1]<9, i8[12, 7]!, f32[7]>0, i64[7]<1, f32[5, 7], f32[7], 1.0, 0, torch.float32, 1.0, 0, 'sum', 1.0, 'relu', [], ''"),
    {.schema = "onednn.linear_prepack_fp16.default(Tensor weight, int[]? x_shape) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferHalfWeight,
     .eval =
         [](const EvalContext& c) {
             Tensor out = c.result();
             copyInto(out, transposedMatrix(c.in(size_t{0})));
             return out;
         },
     .samples = "f32[3, 4], [2, 4]\nf32[5, 3], None"},
    {.schema = "onednn.linear_dynamic_fp16.default(Tensor x, Tensor w, Tensor? bias) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferHalfLinear,
     .eval = [](const EvalContext& c) { return evalHalfLinear(c, false); },
     .samples = "f32[4, 6], f16[6, 5], f32[5]\nf32[2, 4, 6], f16[6, 5], None\nf32[0, 6], f16[6, 5], None"},
    {.schema = "onednn.linear_relu_dynamic_fp16.default(Tensor x, Tensor w, Tensor? bias) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferHalfLinear,
     .eval = [](const EvalContext& c) { return evalHalfLinear(c, true); },
     .samples = "f32[4, 6], f16[6, 5], f32[5]\nf32[2, 4, 6], f16[6, 5], None"},
};

}  // namespace

std::span<const OpDef> quantizedLinearOps() { return kQuantizedLinearOps; }

}  // namespace cutaway
