// Quantized numbers as PyTorch's export writes them: real tensors turned into integers by a scale and a zero point,
// and back, the parameters being given per tensor, channel, token or group.
#include <cmath>
#include <limits>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/matrix.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed_int4.h"

namespace cutaway {
namespace {

// -- what a call may say

/// The largest range of a dtype that quantized numbers may have, or an error.
Result<std::pair<double, double>> quantizedRange(const InferContext& c, DType dtype) {
    switch (dtype) {
        case DType::U8: return std::pair{0.0, 255.0};
        case DType::I8: return std::pair{-128.0, 127.0};
        case DType::U16: return std::pair{0.0, 65535.0};
        case DType::I16: return std::pair{-32768.0, 32767.0};
        case DType::I32: return std::pair{-2147483648.0, 2147483647.0};
        case DType::F8E5M2: return std::pair{-57344.0, 57344.0};
        case DType::F8E4M3FN: return std::pair{-448.0, 448.0};
        default:
            return c.fail("no quantized numbers of dtype " + std::string(info(dtype).torchName) +
                          "; use an 8- or 16-bit integer, int32 or an 8-bit float");
    }
}
/// Checks dtype, quant_min and quant_max, where they are numbers.
Result<DType> quantizedType(const InferContext& c) {
    const DType dtype = c.dtype("dtype").value_or(DType::F32);
    CT_TRY(const auto range, quantizedRange(c, dtype));
    const auto low = c.arg("quant_min").asReal(), high = c.arg("quant_max").asReal();
    if ((low && *low < range.first) || (high && *high > range.second))
        return c.fail("quant_min or quant_max lies outside " + std::string(info(dtype).torchName));
    return dtype;
}
TensorType quantizedLike(const TensorType& input, DType dtype) {
    TensorType type = TensorType::contiguous(dtype, input.sizes, input.device);
    type.strides = preservedStrides(input);
    return type;
}
Result<TensorType> realInput(const InferContext& c) {
    CT_TRY(TensorType input, c.tensor(size_t{0}));
    if (input.dtype != DType::F32 && !isHalf(input.dtype))
        return c.fail("quantizes float32, float16 and bfloat16, not " + std::string(info(input.dtype).torchName));
    return input;
}
/// The written dtype must be the tensor's.
Result<TensorType> quantizedInput(const InferContext& c) {
    CT_TRY(TensorType input, c.tensor(size_t{0}));
    CT_TRY(const DType dtype, quantizedType(c));
    if (input.dtype != dtype)
        return c.fail("the tensor is " + std::string(info(input.dtype).torchName) + ", the call says " +
                      std::string(info(dtype).torchName));
    return input;
}

/// How scales and zero points spread over the input: to one number, along a dim, to the rows, or to runs of a row.
enum class Spread { Tensor, Channel, Token, Group };

/// Sizes in which the parameters broadcast against the input; for groups, against the input cut into groups.
Result<SymDims> parameterSizes(const InferContext& c, const TensorType& input, Spread spread) {
    const auto count = [&](std::string_view param) -> Result<SymInt> {
        if (c.arg(param).isNone() || c.arg(param).isNumber()) return SymInt(1);
        CT_TRY(const TensorType type, c.tensor(param));
        return numel(type.sizes);
    };
    SymDims sizes(input.sizes.size(), SymInt(1));
    std::string_view scales = "scales", zeros = "zero_points";
    if (spread == Spread::Tensor) {
        scales = "scale";
        zeros = "zero_point";
    } else if (spread == Spread::Channel) {
        if (input.rank() == 0) return c.fail("needs at least one dim");
        CT_TRY(const int64_t axis, c.dim("axis", input.rank()));
        sizes[static_cast<size_t>(axis)] = input.sizes[static_cast<size_t>(axis)];
    } else if (spread == Spread::Token) {
        sizes = input.sizes;
        if (!sizes.empty()) sizes.back() = 1;
    } else {
        CT_TRY(const int64_t size, c.integer("group_size"));
        if (input.rank() != 2) return c.fail("needs a matrix");
        if (size <= 1 || leavesRemainder(input.sizes[1], size))
            return c.fail("groups of " + std::to_string(size) + " do not divide a row of " + input.sizes[1].text());
        sizes = {input.sizes[0], floorDiv(input.sizes[1], SymInt(size)), SymInt(1)};
    }
    for (std::string_view param : {scales, zeros}) {
        CT_TRY(const SymInt given, count(param));
        const SymInt wanted = numel(sizes);
        const bool fits = c.arg(param).isNone() || !given.isInt() || !wanted.isInt() || given.value() == wanted.value();
        if (!fits)
            return c.fail("'" + std::string(param) + "' has " + given.text() + " elements; needs " + wanted.text());
    }
    return sizes;
}

template <Spread S>
Result<ValueType> inferQuantize(const InferContext& c) {
    CT_TRY(const TensorType input, S == Spread::Tensor || S == Spread::Channel ? realInput(c) : c.tensor(size_t{0}));
    CT_TRY(const DType dtype, quantizedType(c));
    CT_TRY_VOID(parameterSizes(c, input, S));
    return ValueType(quantizedLike(input, dtype));
}
template <Spread S>
Result<ValueType> inferDequantize(const InferContext& c) {
    CT_TRY(const TensorType input, quantizedInput(c));
    CT_TRY_VOID(parameterSizes(c, input, S));
    const std::string_view wanted = c.op().schema()->find("out_dtype") >= 0 ? "out_dtype" : "output_dtype";
    const DType dtype = c.dtype(wanted).value_or(DType::F32);
    if (!isFloating(dtype)) return c.fail("'" + std::string(wanted) + "' is not a floating-point dtype");
    if (S == Spread::Group) return ValueType(TensorType::contiguous(dtype, input.sizes, input.device));
    return ValueType(quantizedLike(input, dtype));
}

// -- kernels

/// A parameter in the given sizes, row-major; a number is a tensor of one element.
Tensor parameter(const EvalContext& c, std::string_view param, const Dims& sizes) {
    if (c.arg(param).isNone()) return broadcastTo(Tensor::scalar(DType::I64, int64_t{0}), sizes);
    const Tensor given = c.in(param).contiguous();
    return given.view(sizes, contiguousStrides(sizes), given.offset());
}
/// The input cut into groups along its rows.
Tensor grouped(const Tensor& tensor, int64_t size) {
    const Tensor packed = tensor.contiguous();
    const Dims sizes{tensor.size(0), tensor.size(1) / size, size};
    return packed.view(sizes, contiguousStrides(sizes), packed.offset());
}
double limit(const EvalContext& c, std::string_view param) { return toDouble(c.number(param)); }

/// Runs f(input, scale, zero point) over all elements, in double or float.
template <class T, Spread S, class F>
EvalResult overElements(const EvalContext& c, F f) {
    Tensor input = c.in(size_t{0}), out = c.result();
    const Dims sizes = toInts(*parameterSizes(c, *c.tensor(size_t{0}), S));
    const bool tensorwise = S == Spread::Tensor;
    const Tensor scale = parameter(c, tensorwise ? "scale" : "scales", sizes),
                 zero = parameter(c, tensorwise ? "zero_point" : "zero_points", sizes);
    if (out.numel() == 0) return out;
    if (S != Spread::Group) {
        elementwise<T, 3>(out, {input, scale, zero}, f);
        return out;
    }
    const int64_t size = c.integerOr("group_size", 1);
    Tensor packed = Tensor::empty(out.dtype(), {input.size(0), input.size(1) / size, size});
    elementwise<T, 3>(packed, {grouped(input, size), scale, zero}, f);
    copyInto(out, packed.view(out.sizes(), contiguousStrides(out.sizes()), packed.offset()));
    return out;
}
template <class T>
T boundedLevel(T value, double low, double high) {
    return std::min(std::max(value, static_cast<T>(low)), static_cast<T>(high));
}
/// Rounding before the zero point is added; per tensor the reciprocal of the scale is taken in double.
EvalResult evalQuantizeTensor(const EvalContext& c) {
    const double low = limit(c, "quant_min"), high = limit(c, "quant_max");
    const auto inverse = static_cast<float>(1.0 / toDouble(c.number("scale")));
    return overElements<float, Spread::Tensor>(
        c, [=](float x, float, float zero) { return boundedLevel(std::nearbyint(x * inverse) + zero, low, high); });
}
EvalResult evalQuantizeChannel(const EvalContext& c) {
    const double low = limit(c, "quant_min"), high = limit(c, "quant_max");
    return overElements<float, Spread::Channel>(c, [=](float x, float scale, float zero) {
        return boundedLevel(std::nearbyint(x * (1.0f / scale)) + zero, low, high);
    });
}
/// Rounding after it; in double where the scales are.
template <Spread S>
EvalResult evalQuantizeRows(const EvalContext& c) {
    const double low = limit(c, "quant_min"), high = limit(c, "quant_max");
    auto run = [&](auto tag) -> EvalResult {
        using T = decltype(tag);
        return overElements<T, S>(c, [=](T x, T scale, T zero) {
            return boundedLevel(std::nearbyint(x * (T(1) / scale) + zero), low, high);
        });
    };
    return c.tensor("scales")->dtype == DType::F64 ? run(double{}) : run(float{});
}
template <Spread S>
EvalResult evalDequantize(const EvalContext& c) {
    const std::string_view scale = S == Spread::Tensor ? "scale" : "scales";
    auto run = [&](auto tag) -> EvalResult {
        using T = decltype(tag);
        return overElements<T, S>(c, [](T q, T s, T zero) { return (q - zero) * s; });
    };
    return c.resultType().dtype == DType::F64 || (S != Spread::Tensor && c.tensor(scale)->dtype == DType::F64)
               ? run(double{})
               : run(float{});
}

// -- lowering; groups run by the kernel above

/// A parameter at the wanted element.
Expr parameterAt(LowerContext& c, std::string_view param, const std::vector<Expr>& at, DType dtype) {
    if (c.arg(param).isNone()) return constantOf(Scalar(0.0), dtype);
    if (c.arg(param).isNumber()) return c.numberAt(param, dtype);
    const TensorType type = c.in(param);
    std::vector<Expr> index;
    if (type.rank() == static_cast<int64_t>(at.size())) index = at;
    else if (type.rank() == 1 && at.size() > 1) index = {numel(type.sizes) == SymInt(1) ? Expr::integer(0) : at[0]};
    for (size_t i = 0; i < index.size(); ++i)
        if (type.sizes[i] == SymInt(1)) index[i] = Expr::integer(0);
    if (static_cast<int64_t>(index.size()) != type.rank()) return Expr();
    return Expr::cast(c.loadAt(static_cast<size_t>(c.position(param)), index), dtype);
}
template <Spread S>
std::vector<Expr> parameterIndex(LowerContext& c) {
    if (S == Spread::Channel)
        return {c.index()[static_cast<size_t>(c.dimOf("axis", c.in(size_t{0}).rank()))], Expr::integer(0)};
    if (S == Spread::Token) return c.index();
    return std::vector<Expr>(2, Expr::integer(0));
}
/// The dtype that the kernels above compute in.
template <Spread S>
DType quantizedIn(LowerContext& c, bool rounds) {
    if (!rounds && c.out().dtype == DType::F64) return DType::F64;
    const bool byRow = S == Spread::Token || (!rounds && S == Spread::Channel);
    return byRow && c.in("scales").dtype == DType::F64 ? DType::F64 : DType::F32;
}
template <Spread S>
Expr lowerQuantize(LowerContext& c) {
    const bool tensorwise = S == Spread::Tensor;
    if (c.index().empty() && S != Spread::Tensor) return Expr();
    const DType dtype = quantizedIn<S>(c, true);
    const Expr x = Expr::cast(c.loadAt(0, c.index()), dtype);
    const DType wide = tensorwise ? DType::F64 : dtype;
    const Expr scale = parameterAt(c, tensorwise ? "scale" : "scales", parameterIndex<S>(c), wide),
               zero = parameterAt(c, tensorwise ? "zero_point" : "zero_points", parameterIndex<S>(c), dtype);
    if (!scale || !zero) return Expr();
    const Expr inverse = Expr::cast(constantLike(scale, 1) / scale, dtype);
    const Expr rounded = S == Spread::Token ? call1("round", x * inverse + zero) : call1("round", x * inverse) + zero;
    const Expr low = c.numberAt("quant_min", dtype), high = c.numberAt("quant_max", dtype);
    return Expr::make(ExprKind::Min, {Expr::make(ExprKind::Max, {rounded, low}, dtype), high}, dtype);
}
template <Spread S>
Expr lowerDequantize(LowerContext& c) {
    const bool tensorwise = S == Spread::Tensor;
    if (c.index().empty() && S != Spread::Tensor) return Expr();
    const DType dtype = quantizedIn<S>(c, false);
    const Expr q = Expr::cast(c.loadAt(0, c.index()), dtype);
    const Expr scale = parameterAt(c, tensorwise ? "scale" : "scales", parameterIndex<S>(c), dtype),
               zero = parameterAt(c, tensorwise ? "zero_point" : "zero_points", parameterIndex<S>(c), dtype);
    if (!scale || !zero) return Expr();
    return (q - zero) * scale;
}

template <Spread S>
constexpr OpDef quantizeRow(std::string_view schema, Fn<EvalResult(const EvalContext&)> eval,
                            std::string_view samples) {
    return {.schema = schema,
            .tags = Tag::NoGradient,
            .infer = inferQuantize<S>,
            .eval = eval,
            .lower = S == Spread::Group ? Fn<Expr(LowerContext&)>() : Fn<Expr(LowerContext&)>(lowerQuantize<S>),
            .samples = samples};
}
template <Spread S>
constexpr OpDef dequantizeRow(std::string_view schema, std::string_view samples) {
    return {.schema = schema,
            .tags = Tag::NoGradient,
            .infer = inferDequantize<S>,
            .eval = evalDequantize<S>,
            .lower = S == Spread::Group ? Fn<Expr(LowerContext&)>() : Fn<Expr(LowerContext&)>(lowerDequantize<S>),
            .samples = samples};
}

// -- 4-bit weights (packed_int4.h)

/// Of symbolic sizes nothing is known.
Result<ValueType> inferPackInt4(const InferContext& c) {
    CT_TRY(const TensorType numbers, c.tensor(size_t{0}));
    if (numbers.dtype != DType::I32 || numbers.rank() != 2) return c.fail("needs an int32 matrix");
    if (differ(mod(numbers.sizes[0], SymInt(16)), SymInt(0)) || differ(mod(numbers.sizes[1], SymInt(2)), SymInt(0)))
        return c.fail("needs a multiple of 16 rows and an even number of columns");
    return ValueType(
        TensorType::contiguous(DType::U8, {numbers.sizes[0], floorDiv(numbers.sizes[1], SymInt(2))}, numbers.device));
}
Result<ValueType> inferInt4Product(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor("mat2"));
    CT_TRY(const TensorType scales, c.tensor("qScaleAndZeros"));
    CT_TRY(const int64_t group, c.integer("qGroupSize", 0));
    if (!isFloating(x.dtype) || x.rank() != 2 || weight.dtype != DType::U8 || weight.rank() != 2)
        return c.fail("needs a matrix of floats and packed weights");
    if (group != 32 && group != 64 && group != 128 && group != 256)
        return c.fail("knows groups of 32, 64, 128 and 256 columns");
    if (differ(x.sizes[1], weight.sizes[1] * SymInt(2)) || differ(mod(x.sizes[1], SymInt(group)), SymInt(0)))
        return c.fail("the columns of the weights are not those of the matrix, or no multiple of the groups'");
    if (scales.rank() != 3 || differ(scales.sizes[0], floorDiv(x.sizes[1], SymInt(group))) ||
        differ(scales.sizes[1], weight.sizes[0]) || differ(scales.sizes[2], SymInt(2)))
        return c.fail("needs a scale and a zero per group of columns and row of the weights");
    return ValueType(TensorType::contiguous(x.dtype, {x.sizes[0], weight.sizes[0]}, x.device));
}
/// x @ w^T, where w is (number - 8) * scale + zero.
EvalResult evalInt4Product(const EvalContext& c) {
    const Tensor x = c.in(size_t{0}).to(DType::F32).contiguous(), numbers = unpackInt4(c.in("mat2")),
                 scales = c.in("qScaleAndZeros").to(DType::F32).contiguous();
    const int64_t group = c.integerOr("qGroupSize", 32), rows = numbers.size(0), columns = numbers.size(1);
    Tensor weight = Tensor::empty(DType::F32, {rows, columns}), product = Tensor::empty(DType::F32, {x.size(0), rows}),
           out = c.result();
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
            const float* pair = scales.as<float>() + (column / group * rows + row) * 2;
            weight.as<float>()[row * columns + column] =
                static_cast<float>(numbers.as<int32_t>()[row * columns + column] - 8) * pair[0] + pair[1];
        }
    multiplyMatrices(x, weight.view({columns, rows}, {1, columns}, 0), product);
    copyInto(out, product);
    return out;
}

constexpr OpDef kQuantizeOps[] = {
    // clamp(round(input / scale) + zero_point, quant_min, quant_max)
    quantizeRow<Spread::Tensor>(
        "quantized_decomposed.quantize_per_tensor.default(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        evalQuantizeTensor, R"(
f32[4, 5], 0.0371, 3, -128, 127, torch.int8
f32[2, 3, 4, 5][60, 1, 15, 3], 0.05, 128, 0, 255, torch.uint8
bf16[7], 0.1, 0, -8, 7, torch.int8
f16[7], 0.25, 5, 0, 255, torch.uint8
f32[], 0.5, 0, -32768, 32767, torch.int16
f32[0, 3], 0.5, 0, 0, 255, torch.uint8
f32[5, 4][1, 5], 0.013, -7, -100, 100, torch.int32
f32[3], 1.0, 0, 0, 65535, torch.uint16
f32[40], 0.5, 0, -448, 448, torch.float8_e4m3fn
)"),
    quantizeRow<Spread::Tensor>(
        "quantized_decomposed.quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        evalQuantizeTensor,
        "f32[4, 5], f32[]>0, i64[]<9, -128, 127, torch.int8\nf32[4, 5], f64[1]>0, i32[1]<9, 0, 255, torch.uint8\nbf16[3], f32[1]>0, i64[1], -128, 127, torch.int8"),
    quantizeRow<Spread::Tensor>(
        "quantized_decomposed.quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor",
        evalQuantizeTensor, "f32[4, 5], f32[]>0, i64[]<9, i64[], i64[]>0, torch.int8"),
    // (input - zero_point) * scale
    dequantizeRow<Spread::Tensor>(
        "quantized_decomposed.dequantize_per_tensor.default(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, "
        "ScalarType? out_dtype=None) -> Tensor",
        R"(
i8[4, 5], 0.0371, 3, -128, 127, torch.int8
u8[2, 3, 4, 5][60, 1, 15, 3], 0.05, 128, 0, 255, torch.uint8
i16[7], 0.1, 0, -8, 7, torch.int16, out_dtype=torch.float64
u8[7], 0.25, 5, 0, 255, torch.uint8, out_dtype=torch.bfloat16
i32[], 0.5, 0, -100, 100, torch.int32
u8[0, 3], 0.5, 0, 0, 255, torch.uint8
)"),
    dequantizeRow<Spread::Tensor>(
        "quantized_decomposed.dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, "
        "ScalarType? out_dtype=None) -> Tensor",
        "i8[4, 5], f32[]>0, i64[]<9, -128, 127, torch.int8\nu8[4, 5], f64[1]>0, i32[1]<9, 0, 255, torch.uint8"),
    dequantizeRow<Spread::Tensor>(
        "quantized_decomposed.dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, "
        "ScalarType? out_dtype=None) -> Tensor",
        "i8[4, 5], f32[]>0, i64[]<9, i64[], i64[]>0, torch.int8"),
    // One scale and zero point per position of a dim.
    quantizeRow<Spread::Channel>(
        "quantized_decomposed.quantize_per_channel.default(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        evalQuantizeChannel,
        "f32[3, 4], f32[3]>0, i64[3], 0, -128, 127, torch.int8\nf32[3, 4], f32[4]>0, i32[4], 1, 0, 255, torch.uint8\nf32[2, 3, 4, 5][60, 1, 15, 3], f32[3]>0, i64[3], 1, -127, 127, torch.int8\nbf16[2, 3], f32[2]>0, i64[2], 0, -8, 7, torch.int8"),
    dequantizeRow<Spread::Channel>(
        "quantized_decomposed.dequantize_per_channel.default(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, "
        "ScalarType? out_dtype=None) -> Tensor",
        "i8[3, 4], f32[3]>0, i64[3], 0, -128, 127, torch.int8\nu8[3, 4], f32[4]>0, i32[4], 1, 0, 255, torch.uint8\ni8[2, 3, 4, 5], f32[3]>0, None, 1, -127, 127, torch.int8\ni8[2, 3], f64[2]>0, i64[2], 0, -8, 7, torch.int8, out_dtype=torch.float64"),
    // One per row of the last dim.
    quantizeRow<Spread::Token>(
        "quantized_decomposed.quantize_per_token.default(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
        evalQuantizeRows<Spread::Token>,
        "f32[3, 4], f32[3, 1]>0, i64[3, 1], -128, 127, torch.int8\nf32[2, 3, 4], f64[2, 3, 1]>0, i64[2, 3, 1], -128, 127, torch.int8"),
    dequantizeRow<Spread::Token>(
        "quantized_decomposed.dequantize_per_token.default(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, "
        "ScalarType output_dtype) -> Tensor",
        "i8[3, 4], f32[3, 1]>0, i64[3, 1], -128, 127, torch.int8, torch.float32\ni8[2, 3, 4], f64[2, 3, 1]>0, f64[2, 3, 1], -128, 127, torch.int8, torch.float32"),
    // One per run of group_size elements of a row.
    quantizeRow<Spread::Group>(
        "quantized_decomposed.quantize_per_channel_group.default(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, "
        "int group_size) -> Tensor",
        evalQuantizeRows<Spread::Group>, "f32[3, 8], f32[3, 2]>0, f32[3, 2], -8, 7, torch.int8, 4"),
    dequantizeRow<Spread::Group>(
        "quantized_decomposed.dequantize_per_channel_group.default(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, "
        "int group_size, ScalarType output_dtype) -> Tensor",
        "i8[3, 8], f32[3, 2]>0, i64[3, 2], -8, 7, torch.int8, 4, torch.float32\ni8[3, 8], f32[3, 2]>0, None, -8, 7, torch.int8, 4, torch.float32"),
    // 4-bit weights for the CPU.
    {.schema = "aten._convert_weight_to_int4pack_for_cpu.default(Tensor self, int innerKTiles) -> Tensor",
     .infer = inferPackInt4,
     .eval = [](const EvalContext& c) { return packInt4(c.in(size_t{0})); }},
    {.schema =
         "aten._weight_int4pack_mm_for_cpu.default(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferInt4Product,
     .eval = evalInt4Product},
    // A conversion that no pattern looks through.
    {.schema = "quantized_decomposed.convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType input, c.tensor(size_t{0}));
         return ValueType(quantizedLike(input, c.dtype("dtype").value_or(input.dtype)));
     },
     .eval =
         [](const EvalContext& c) {
             Tensor out = c.result();
             copyInto(out, c.in(size_t{0}));
             return out;
         },
     .lower = [](LowerContext& c) { return c.loadOwn(0); },
     .samples = "f32[2, 3], torch.bfloat16\ni8[4], torch.float32"},
};

}  // namespace

std::span<const OpDef> quantizeOps() { return kQuantizeOps; }

}  // namespace cutaway
