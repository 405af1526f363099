// Scales and zero points chosen from data, and fake quantization: rounding to what quantized numbers can hold while
// staying real, which training goes through.
#include <cmath>
#include <limits>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

// -- parameters from data

Result<ValueType> inferChosen(const InferContext& c, bool symmetric) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    if (input.dtype != DType::F32 && !isHalf(input.dtype)) return c.fail("chooses for float32, float16 and bfloat16");
    CT_TRY(const int64_t low, c.integer("quant_min"));
    CT_TRY(const int64_t high, c.integer("quant_max"));
    if (low >= high) return c.fail("quant_min must be less than quant_max");
    constexpr DType kTargets[] = {DType::U8,  DType::I8,     DType::U16,     DType::I16,
                                  DType::I32, DType::F8E5M2, DType::F8E4M3FN};
    const DType target = c.dtype("dtype").value_or(DType::I8);
    if (std::find(std::begin(kTargets), std::end(kTargets), target) == std::end(kTargets))
        return c.fail("chooses for uint8, int8, uint16, int16, int32 and float8, not " +
                      std::string(info(target).torchName));
    // The zero point is an int32 on the way.
    if (!symmetric && (low < std::numeric_limits<int32_t>::min() || high > std::numeric_limits<int32_t>::max()))
        return c.fail("quant_min and quant_max must fit into int32");
    if (low > 0 || high < 0) return c.fail("the range from quant_min to quant_max must include 0");
    if (numel(input.sizes) == SymInt(0)) return c.fail("a tensor without elements has no range");
    return ValueType(TupleType{TensorType::contiguous(DType::F64, {SymInt(1)}, input.device),
                               TensorType::contiguous(DType::I64, {SymInt(1)}, input.device)});
}
/// The range of the data, widened to hold 0, over the range of the quantized numbers; rounded to the data's dtype after
/// each step.
EvalResult evalChosen(const EvalContext& c, bool symmetric) {
    const DType dtype = c.in(size_t{0}).dtype();
    const auto rounded = [dtype](float value) {
        return static_cast<float>(toDouble(Tensor::scalar(dtype, static_cast<double>(value)).item()));
    };
    const std::vector<float> values = packElements<float>(c.in(size_t{0}));
    const int64_t low = c.integerOr("quant_min", 0), high = c.integerOr("quant_max", 0);
    Tensor scale = c.result(0), zero = c.result(1);
    float least = 0, most = 0;
    for (float value : values) {
        least = std::min(least, value);
        most = std::max(most, value);
    }
    const auto eps = static_cast<float>(c.real("eps"));
    const double range = static_cast<double>(high) - static_cast<double>(low);
    float step;
    int64_t zeroPoint = 0;
    if (symmetric) {
        step = std::max(rounded(std::max(-least, most) / static_cast<float>(range / 2)), eps);
        if (c.dtype("dtype") == DType::U8) zeroPoint = 128;
    } else {
        step = std::max(rounded(rounded(most - least) / static_cast<float>(range)), eps);
        const double wanted = static_cast<double>(low) - std::nearbyint(static_cast<double>(least / step));
        const double within = std::clamp(wanted, static_cast<double>(low), static_cast<double>(high));
        zeroPoint = std::isnan(wanted) ? high : static_cast<int64_t>(within);
    }
    *scale.as<double>() = static_cast<double>(step);
    *zero.as<int64_t>() = zeroPoint;
    return TensorList{scale, zero};
}

SymDims rowSizes(const TensorType& input) {
    SymDims sizes = input.sizes;
    sizes.back() = 1;
    return sizes;
}
/// The kernel's dtypes, which PyTorch's shape rule for these two ops does not give.
Result<ValueType> inferChosenPerToken(const InferContext& c, bool symmetric) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    if (input.rank() == 0) return c.fail("needs at least one dim");
    if (isComplex(input.dtype) || input.dtype == DType::Bool || (symmetric && !isFloating(input.dtype)))
        return c.fail("needs a tensor of real numbers");
    if (input.sizes.back() == SymInt(0)) return c.fail("the rows of " + input.text() + " have no elements");
    if (c.dtype("dtype") != DType::I8 && symmetric) return c.fail("chooses for int8 only");
    const DType scale = !symmetric ? DType::F64 : input.dtype == DType::F16 ? DType::F32 : input.dtype;
    return ValueType(TupleType{TensorType::contiguous(scale, rowSizes(input), input.device),
                               TensorType::contiguous(symmetric ? scale : DType::I64, rowSizes(input), input.device)});
}
EvalResult evalChosenPerToken(const EvalContext& c, bool symmetric) {
    const Tensor input = c.in(size_t{0});
    const std::vector<float> values = packElements<float>(input);
    // Half floats are rounded after each step.
    const auto rounded = [dtype = input.dtype()](float value) {
        return isHalf(dtype) ? static_cast<float>(toDouble(Tensor::scalar(dtype, static_cast<double>(value)).item()))
                             : value;
    };
    Tensor scale = c.result(0), zero = c.result(1);
    std::vector<float> scales, zeros;
    const auto width = static_cast<size_t>(input.size(-1));
    for (size_t row = 0; row < static_cast<size_t>(scale.numel()); ++row) {
        float least = 0, most = 0;
        for (size_t i = 0; i < width; ++i) {
            least = std::min(least, values[row * width + i]);
            most = std::max(most, values[row * width + i]);
        }
        if (symmetric) {
            scales.push_back(std::max(std::max(-least, most), 1e-5f) / 127.0f);
            zeros.push_back(0);
            continue;
        }
        const float step = std::max(rounded(rounded(most - least) / 255.0f), std::numeric_limits<float>::epsilon());
        const float low = rounded(least / step), high = rounded(most / step);
        const float zeroPoint =
            rounded(rounded(-128 + low) + rounded(127 + high)) > 0 ? rounded(-128 - low) : rounded(127 - high);
        scales.push_back(step);
        zeros.push_back(std::nearbyint(std::clamp(zeroPoint, -128.0f, 127.0f)));
    }
    unpackElements(scales, scale);
    unpackElements(zeros, zero);
    return TensorList{scale, zero};
}

// -- fake quantization

Result<ValueType> inferFake(const InferContext& c, bool withMask) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (!isFloating(self.dtype)) return c.fail("needs a floating-point tensor");
    CT_TRY(const int64_t low, c.integer("quant_min"));
    CT_TRY(const int64_t high, c.integer("quant_max"));
    if (low > high) return c.fail("quant_min must not exceed quant_max");
    if (const int zero = c.op().schema()->find("zero_point");
        zero >= 0 && c.op().schema()->params[static_cast<size_t>(zero)].kind == ParamKind::Int) {
        CT_TRY(const int64_t value, c.integer("zero_point"));
        if (value < low || value > high)
            return c.fail("zero_point " + std::to_string(value) + " is not between quant_min and quant_max");
    }
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    if (!withMask) return ValueType(std::move(type));
    TensorType mask = type;
    mask.dtype = DType::Bool;
    return ValueType(TupleType{type, mask});
}
Result<ValueType> inferFakeChannel(const InferContext& c, std::string_view scaleParam, bool withMask) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const TensorType scale, c.tensor(scaleParam));
    CT_TRY(const TensorType zero, c.tensor(scaleParam == "scale" ? "zero_point" : "zero_points"));
    CT_TRY(const int64_t axis, c.dim("axis", self.rank()));
    const bool python = scaleParam == "scales";  // the op of quantized_decomposed, which is written in Python
    CT_TRY(const int64_t written, c.integer("axis"));
    if (!python && (written < 0 || zero.sizes == SymDims{SymInt(0)}))
        return c.fail("needs an axis counted from the front, with elements");
    if (scale.dtype != DType::F32 || (python && self.dtype != DType::F32))
        return c.fail("needs scales of dtype float32" + std::string(python ? ", and such a tensor" : ""));
    if (self.rank() == 0 || scale.rank() != 1 || zero.rank() != 1)
        return c.fail("needs a tensor with dims, and scales and zero points as vectors");
    const SymInt size = self.sizes[static_cast<size_t>(axis)];
    for (const TensorType* type : {&scale, &zero})
        if (size.isInt() && type->sizes[0].isInt() && type->sizes[0].value() != size.value())
            return c.fail("the dim has size " + size.text() + ", the parameters " + type->sizes[0].text());
    return inferFake(c, withMask);
}
/// One number, or one per position of the axis, in sizes that broadcast against the input.
Tensor along(const EvalContext& c, std::string_view param, const Tensor& self) {
    const Tensor given = c.in(param).contiguous();
    Dims sizes(static_cast<size_t>(self.rank()), 1);
    if (c.op().schema()->find("axis") >= 0) sizes[static_cast<size_t>(c.dimOf("axis", self.rank()))] = given.numel();
    return given.view(sizes, contiguousStrides(sizes), given.offset());
}
/// Value and mask: where the unclamped number already lies in range, the gradient passes.
EvalResult evalFake(const EvalContext& c, std::string_view scaleParam, bool withMask) {
    const Tensor self = c.in(size_t{0}), scale = along(c, scaleParam, self),
                 zero = along(c, scaleParam == "scale" ? "zero_point" : "zero_points", self);
    const auto low = static_cast<float>(c.integerOr("quant_min", 0)),
               high = static_cast<float>(c.integerOr("quant_max", 0));
    if (scaleParam == "scale" && c.op().schema()->find("axis") >= 0 && isIntegral(zero.dtype()))
        for (int64_t i = 0; i < zero.numel(); ++i)
            if (const int64_t value = toInt(zero.item(i));
                value < c.integerOr("quant_min", 0) || value > c.integerOr("quant_max", 0))
                return c.fail("zero_point " + std::to_string(value) + " is not between quant_min and quant_max");
    const bool enabled =
        c.op().schema()->find("fake_quant_enabled") < 0 || toInt(c.in("fake_quant_enabled").item()) != 0;
    Tensor out = c.result(0);
    TensorList results{out};
    if (withMask) results.push_back(c.result(1));
    // The scale is taken in float also where the tensor is double.
    withFloat(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto quantized = [](T x, T s, T z) {
            return std::nearbyint(x * static_cast<T>(1.0f / static_cast<float>(s))) + z;
        };
        elementwise<T, 3>(results[0], {self, scale, zero}, [=](T x, T s, T z) {
            return enabled ? (std::min(std::max(quantized(x, s, z), T(low)), T(high)) - z) *
                                 static_cast<T>(static_cast<float>(s))
                           : x;
        });
        if (!withMask) return;
        elementwise<T, 3>(results[1], {self, scale, zero}, [=](T x, T s, T z) {
            const T q = quantized(x, s, z);
            return static_cast<T>(!enabled || (q >= low && q <= high));
        });
    });
    return results;
}
void deriveMasked(Derivation& d) {
    d.input(0) = d.call("aten." +
                            std::string(d.op().baseName() == "fake_quantize_per_channel_affine_cachemask"
                                            ? "fake_quantize_per_channel_affine_cachemask_backward"
                                            : "fake_quantize_per_tensor_affine_cachemask_backward") +
                            ".default",
                        {d.dy(0), d.out(1)});
}
Values decomposeMaskedBackward(Decomposition& d) {
    if (d.in(1).dtype() != DType::Bool) return refuse(d, "the mask must be bool");
    if (!(d.in(0).sizes() == d.in(1).sizes()))
        return refuse(d, "the mask " + d.in(1).type().text() + " is not of the gradient's sizes");
    return d.in(0) * d.in(1);
}
/// PyTorch's backward of this op: the gradient passes where the quantized number lies in range before it is clamped.
void deriveFakeChannel(Derivation& d) {
    const Value self = d.in(0);
    SymDims sizes(static_cast<size_t>(self.rank()), SymInt(1));
    sizes[static_cast<size_t>(d.dimOf("axis", self.rank()))] = d.in(1).size(0);
    const Value scale = view(d.in(1), sizes), zero = view(d.in(2), sizes);
    const Value inverse = unary("aten.reciprocal.default", scale);
    const Value quantized = unary("aten.round.default", self * inverse) + zero;
    const Value above = d.call("aten.ge.Scalar", {quantized, d.arg("quant_min")}),
                below = d.call("aten.le.Scalar", {quantized, d.arg("quant_max")});
    d.input(0) = d.dy() * d.call("aten.logical_and.default", {above, below});
}

constexpr OpDef kQuantizeParametersOps[] = {
    {.schema =
         "quantized_decomposed.choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferChosen(c, false); },
     .eval = [](const EvalContext& c) { return evalChosen(c, false); },
     .samples =
         "f32[4, 5], -128, 127, 1e-5, torch.int8\nf32[7]>0, 0, 255, 1e-5, torch.uint8\nbf16[3], -128, 127, 1e-5, torch.int8"},
    {.schema =
         "quantized_decomposed.choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferChosen(c, true); },
     .eval = [](const EvalContext& c) { return evalChosen(c, true); },
     .samples = "f32[4, 5], -127, 127, 1e-5, torch.int8\nf32[7]>0, 0, 255, 1e-5, torch.uint8"},
    {.schema =
         "quantized_decomposed.choose_qparams_per_token.default(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferChosenPerToken(c, true); },
     .eval = [](const EvalContext& c) { return evalChosenPerToken(c, true); },
     .samples = "f32[3, 4], torch.int8\nf16[2, 3, 4], torch.int8\nf32[5], torch.int8"},
    {.schema =
         "quantized_decomposed.choose_qparams_per_token_asymmetric.default(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
     .infer = [](const InferContext& c) { return inferChosenPerToken(c, false); },
     .eval = [](const EvalContext& c) { return evalChosenPerToken(c, false); },
     .samples = "f32[3, 4], torch.int8\nf32[2, 3, 4]>0, torch.int8"},
    {.schema =
         "quantized_decomposed.fake_quant_per_channel.default(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor",
     .infer = [](const InferContext& c) { return inferFakeChannel(c, "scales", false); },
     .eval = [](const EvalContext& c) { return evalFake(c, "scales", false); },
     .derive = deriveFakeChannel,
     .samples = "f32[3, 4], f32[3]>0, i32[3], 0, -8, 7\nf32[3, 4], f32[4]>0, i32[4], 1, 0, 15"},
    // The tensor rounded to the grid of quantized numbers, and where it was not clamped.
    {.schema =
         "aten.fake_quantize_per_tensor_affine_cachemask.default(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .infer = [](const InferContext& c) { return inferFake(c, true); },
     .eval = [](const EvalContext& c) { return evalFake(c, "scale", true); },
     .derive = deriveMasked,
     .samples =
         "f32[4, 5], 0.1, 3, -8, 7\nf32[2, 3, 4, 5][60, 1, 15, 3], 0.05, 0, 0, 255\nbf16[7], 0.5, 0, -128, 127\nf32[0], 0.1, 0, 0, 255"},
    {.schema =
         "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, "
         "int quant_max) -> (Tensor output, Tensor mask)",
     .infer = [](const InferContext& c) { return inferFake(c, true); },
     .eval = [](const EvalContext& c) { return evalFake(c, "scale", true); },
     .derive = deriveMasked,
     .samples = "f32[4, 5], f32[1]>0, i32[1], i64[1]>0, -8, 7"},
    {.schema =
         "aten.fake_quantize_per_channel_affine_cachemask.default(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .infer = [](const InferContext& c) { return inferFakeChannel(c, "scale", true); },
     .eval = [](const EvalContext& c) { return evalFake(c, "scale", true); },
     .derive = deriveMasked,
     .samples = "f32[3, 4], f32[3]>0, i32[3]<7, 0, -8, 7\nf32[2, 3, 4], f32[3]>0, i32[3]<7, 1, 0, 255"},
    shorthand(
        "aten.fake_quantize_per_tensor_affine.default(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.fake_quantize_per_tensor_affine_cachemask.default",
                          {d.in(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4)})[0];
        },
        "f32[4, 5], 0.1, 3, -8, 7\nf32[4, 5][1, 4], 0.02, 0, -128, 127"),
    shorthand(
        "aten.fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value on = d.call("aten.ones.default", {Argument(SymDims{SymInt(1)})},
                                    {{"dtype", DType::I64}, {"device", d.in(0).type().device}});
            return d.call("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
                          {d.in(0), d.arg(1), d.arg(2), on, d.arg(3), d.arg(4)})[0];
        },
        "f32[4, 5], f32[1]>0, i32[1], -8, 7"),
    shorthand(
        "aten.fake_quantize_per_channel_affine.default(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.fake_quantize_per_channel_affine_cachemask.default",
                          {d.in(0), d.arg(1), d.arg(2), d.arg(3), d.arg(4), d.arg(5)})[0];
        },
        "f32[3, 4], f32[3]>0, i32[3]<7, 0, -8, 7"),
    shorthand("aten.fake_quantize_per_tensor_affine_cachemask_backward.default(Tensor grad, Tensor mask) -> Tensor",
              decomposeMaskedBackward, "f32[3, 4], b8[3, 4]"),
    shorthand("aten.fake_quantize_per_channel_affine_cachemask_backward.default(Tensor grad, Tensor mask) -> Tensor",
              decomposeMaskedBackward, "f32[3, 4], b8[3, 4]"),
};

}  // namespace

std::span<const OpDef> quantizeParameterOps() { return kQuantizeParametersOps; }

}  // namespace cutaway
