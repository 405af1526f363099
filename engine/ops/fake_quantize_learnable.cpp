// Fake quantization whose scale and zero point are learned, and its gradients.
#include <algorithm>
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

constexpr int64_t kWholeTensor = -1;

/// The dim that has a scale for each position, or kWholeTensor.
Result<int64_t> axisOf(const InferContext& c, const TensorType& self) {
    if (c.op().schema()->find("axis") < 0) return kWholeTensor;
    CT_TRY(const int64_t axis, c.integer("axis"));
    if (axis < 0 || axis >= self.rank())
        return c.fail("axis " + std::to_string(axis) + " is not a dim of " + self.text() + " counted from the front");
    return axis;
}
bool backwardOf(const InferContext& c) { return c.op().schema()->find("grad") >= 0; }
/// Errors: parameters that are not float32, or not one number for each position.
Result<void> checkParameters(const InferContext& c, const TensorType& self) {
    CT_TRY(const int64_t axis, axisOf(c, self));
    CT_TRY(const int64_t low, c.integer("quant_min"));
    CT_TRY(const int64_t high, c.integer("quant_max"));
    if (low > high) return c.fail("quant_min must not exceed quant_max");
    for (const std::string_view param : {"scale", "zero_point"}) {
        CT_TRY(const TensorType type, c.tensor(param));
        if (axis != kWholeTensor && self.sizes[static_cast<size_t>(axis)] == SymInt(0))
            return c.fail("needs elements along axis " + std::to_string(axis) + " of " + self.text());
        if (axis != kWholeTensor && type.dtype != DType::F32 && !(backwardOf(c) && type.dtype == DType::BF16))
            return c.fail("needs '" + std::string(param) + "' in float32, not " + type.text());
        const SymInt wanted = axis == kWholeTensor ? SymInt(1) : self.sizes[static_cast<size_t>(axis)];
        const bool fits =
            type.rank() == 1 && (!type.sizes[0].isInt() || !wanted.isInt() ||
                                 (axis == kWholeTensor ? type.sizes[0].value() > 0 : type.sizes[0] == wanted));
        if (!fits)
            return c.fail("needs '" + std::string(param) + "' as a vector of " + wanted.text() + ", not " +
                          type.text());
    }
    return {};
}
TensorType likeSelf(const TensorType& self) {
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = preservedStrides(self);
    return type;
}
Result<ValueType> inferLearnable(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor("self"));
    if (!isFloating(self.dtype)) return c.fail("needs a tensor of floats, not " + self.text());
    CT_TRY_VOID(checkParameters(c, self));
    return ValueType(likeSelf(self));
}
Result<ValueType> inferLearnableBackward(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor("self"));
    CT_TRY(const TensorType gradient, c.tensor("grad"));
    if (self.dtype != gradient.dtype || (self.dtype != DType::F32 && self.dtype != DType::BF16))
        return c.fail("needs two tensors of float32 or of bfloat16, not " + gradient.text() + " and " + self.text());
    if (!(self.sizes == gradient.sizes))
        return c.fail("the gradient " + gradient.text() + " is not of the tensor's sizes");
    CT_TRY_VOID(checkParameters(c, self));
    CT_TRY(const int64_t low, c.integer("quant_min"));
    CT_TRY(const int64_t high, c.integer("quant_max"));
    if (low > 0 || high < 0) return c.fail("the range from quant_min to quant_max must include 0");
    CT_TRY(const TensorType scale, c.tensor("scale"));
    const TensorType parameter = TensorType::contiguous(DType::F32, scale.sizes, self.device);
    TensorType result = likeSelf(self);
    result.dtype = DType::F32;
    return ValueType(TupleType{std::move(result), parameter, parameter});
}

/// What each position of the axis has; one entry for a whole tensor.
struct Parameters {
    std::vector<float> scales, zeros;
    int64_t inner = 1;  // elements that stand next to each other with one scale
    float low = 0, high = 0;

    size_t at(int64_t element) const {
        return scales.size() == 1 ? 0 : static_cast<size_t>(element / inner) % scales.size();
    }
};
/// PyTorch rounds zero points to the nearest number, but those of a whole tensor in the backward by adding a half.
Parameters parametersOf(const EvalContext& c, bool backward) {
    const Tensor self = c.in("self");
    Parameters p{packElements<float>(c.in("scale")), packElements<float>(c.in("zero_point"))};
    p.low = static_cast<float>(c.integerOr("quant_min", 0));
    p.high = static_cast<float>(c.integerOr("quant_max", 0));
    const int64_t axis = *axisOf(c, *c.tensor("self"));
    if (axis == kWholeTensor) {
        p.scales.resize(1);
        p.zeros.resize(1);
    }
    for (int64_t d = axis + 1; axis != kWholeTensor && d < self.rank(); ++d) p.inner *= self.size(d);
    for (float& zero : p.zeros) {
        zero = backward && axis == kWholeTensor ? zero + 0.5f : std::nearbyint(zero);
        zero = std::trunc(std::clamp(zero, p.low, p.high));
    }
    return p;
}
EvalResult evalLearnable(const EvalContext& c) {
    const Parameters p = parametersOf(c, false);
    Tensor out = c.result();
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> x = packElements<T>(c.in("self"));
        for (size_t i = 0; i < x.size(); ++i) {
            const size_t at = p.at(static_cast<int64_t>(i));
            const T q = std::nearbyint(x[i] * static_cast<T>(1.0f / p.scales[at])) + T(p.zeros[at]);
            x[i] = (std::min(std::max(q, T(p.low)), T(p.high)) - T(p.zeros[at])) * T(p.scales[at]);
        }
        unpackElements(x, out);
    });
    return out;
}
/// Of a number that is clamped, the gradient goes to scale and zero point alone.
EvalResult evalLearnableBackward(const EvalContext& c) {
    const Parameters p = parametersOf(c, true);
    const auto factor = static_cast<float>(c.real("grad_factor", 1));
    const std::vector<float> x = packElements<float>(c.in("self")), dy = packElements<float>(c.in("grad"));
    std::vector<float> dx(x.size());
    std::vector<double> dScale(p.scales.size()), dZero(p.scales.size());
    for (size_t i = 0; i < x.size(); ++i) {
        const size_t at = p.at(static_cast<int64_t>(i));
        const float scale = p.scales[at], zero = p.zeros[at], inverse = 1.0f / scale;
        const float q = std::nearbyint(x[i] * inverse + zero);  // here the zero point comes first
        if (q >= p.low && q <= p.high) {
            dx[i] = dy[i];
            dScale[at] += static_cast<double>(dy[i] * ((q - zero) * scale - x[i]) * inverse * factor);
        } else {
            dScale[at] += static_cast<double>(dy[i] * ((q < p.low ? p.low : p.high) - zero) * factor);
            dZero[at] += static_cast<double>(dy[i] * -1 * scale * factor);
        }
    }
    TensorList results{c.result(0), c.result(1), c.result(2)};
    unpackElements(dx, results[0]);
    dScale.resize(static_cast<size_t>(results[1].numel()));
    dZero.resize(dScale.size());
    unpackElements(dScale, results[1]);
    unpackElements(dZero, results[2]);
    return results;
}
void deriveLearnable(Derivation& d) {
    const DType given = d.in(0).dtype(), known = given == DType::BF16 ? given : DType::F32;
    std::vector<Argument> args{convert(d.dy(), known), convert(d.in(0), known)};
    for (size_t i = 1; i < d.count(); ++i) args.push_back(d.arg(i));
    const Value gradients = d.call("aten." + std::string(d.op().baseName()) + "_backward.default", std::move(args));
    for (size_t i = 0; i < 3; ++i)
        if (d.needs(i)) d.input(i) = convert(gradients[static_cast<int64_t>(i)], d.in(i).dtype());
}

constexpr OpDef kFakeQuantizeLearnableOps[] = {
    {.schema =
         "aten._fake_quantize_learnable_per_tensor_affine.default(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
     .infer = inferLearnable,
     .eval = evalLearnable,
     .derive = deriveLearnable,
     .samples =
         "f32[4, 5], f32[1]>0, f32[1], -8, 7\nf32[2, 3, 4, 5][60, 1, 15, 3], f32[1]%, f32[1], 0, 15, 0.5\nf32[5, 4][1, 5], f32[1]%, f32[1], -128, 127\nf32[0], f32[1]>0, f32[1], 0, 255"},
    {.schema =
         "aten._fake_quantize_learnable_per_channel_affine.default(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
     .infer = inferLearnable,
     .eval = evalLearnable,
     .derive = deriveLearnable,
     .samples =
         "f32[3, 4], f32[3]>0, f32[3], 0, -8, 7\nf32[2, 3, 4], f32[3]%, f32[3], 1, -128, 127, 0.5\nf32[2, 3, 4, 5][60, 1, 15, 3], f32[5]%, f32[5], 3, 0, 15"},
    {.schema =
         "aten._fake_quantize_learnable_per_tensor_affine_backward.default(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
         "float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
     .infer = inferLearnableBackward,
     .eval = evalLearnableBackward,
     .samples =
         "f32[4, 5], f32[4, 5], f32[1]%, f32[1], -8, 7\nf32[4, 5], f32[4, 5][1, 4], f32[1]>0, f32[1], 0, 3, 0.5"},
    {.schema =
         "aten._fake_quantize_learnable_per_channel_affine_backward.default(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, "
         "float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
     .infer = inferLearnableBackward,
     .eval = evalLearnableBackward,
     .samples =
         "f32[3, 4], f32[3, 4], f32[3]%, f32[3], 0, -8, 7\nf32[4, 5], f32[4, 5], f32[4]>0, f32[4], 0, -8, 7\nf32[2, 3, 4], f32[2, 3, 4], f32[3]%, f32[3], 1, 0, 15, 0.5"},
};

}  // namespace

std::span<const OpDef> fakeQuantizeLearnableOps() { return kFakeQuantizeLearnableOps; }

}  // namespace cutaway
