// Resampling of planes and volumes to another size. All forms are shorthand for look-ups and arithmetic, so that
// autograd and fusion need nothing of their own.
#include "engine/ops/resample.h"

#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

/// Along one dim: elements in and out, and the scale that was given instead of a size, if any.
struct Axis {
    SymInt in, out;
    std::optional<double> scale;
    bool numbers() const { return in.isInt() && out.isInt(); }
    /// Input elements per output element; nothing where the sizes say it and are not numbers yet.
    std::optional<double> step(bool alignCorners) const {
        if (!alignCorners && scale && *scale > 0) return 1.0 / *scale;
        if (!numbers()) return std::nullopt;
        const auto from = static_cast<double>(in.value()), to = static_cast<double>(out.value());
        if (alignCorners) return to > 1 ? (from - 1) / (to - 1) : 0;
        return from / to;
    }
};
std::optional<double> givenNumber(const CallView& c, const char* param) {
    if (c.op().schema()->find(param) < 0) return std::nullopt;
    const auto number = c.scalar(param);
    return number ? std::optional(toDouble(*number)) : std::nullopt;
}
/// The scales of a call: scale_factors of the vec overloads, scales or scales_d/h/w of the others.
Result<std::vector<std::optional<double>>> readScales(const InferContext& c, size_t spatial) {
    std::vector<std::optional<double>> scales(spatial);
    if (c.op().schema()->find("scale_factors") >= 0) {
        const auto* list = c.arg("scale_factors").list();
        if (list == nullptr) return scales;
        if (list->size() != spatial) return c.fail("scale_factors needs " + std::to_string(spatial) + " numbers");
        for (size_t i = 0; i < spatial; ++i) {
            scales[i] = (*list)[i].asReal();
            if (!scales[i]) return c.fail("scale_factors needs literal numbers");
        }
        return scales;
    }
    static constexpr const char* kNames[] = {"scales_d", "scales_h", "scales_w"};
    for (size_t i = 0; i < spatial; ++i) scales[i] = givenNumber(c, spatial == 1 ? "scales" : kNames[3 - spatial + i]);
    return scales;
}
Result<std::vector<Axis>> readAxes(const InferContext& c, const TensorType& x, size_t spatial) {
    if (x.rank() != static_cast<int64_t>(spatial) + 2)
        return c.fail("needs a tensor of " + std::to_string(spatial + 2) + " dims, not " + x.text());
    for (size_t dim = 1; dim < x.sizes.size(); ++dim)
        if (x.sizes[dim] == SymInt(0))
            return c.fail("dim " + std::to_string(dim) + " of " + x.text() + " has no elements");
    CT_TRY(const auto scales, readScales(c, spatial));
    const bool sized = !c.arg("output_size").isNone();
    SymDims sizes;
    if (sized) {
        CT_TRY(sizes, c.sizes("output_size"));
        if (sizes.size() != spatial) return c.fail("output_size needs " + std::to_string(spatial) + " numbers");
    }
    std::vector<Axis> axes(spatial);
    for (size_t i = 0; i < spatial; ++i) {
        const SymInt& in = x.sizes[i + 2];
        if (!sized && !scales[i]) return c.fail("needs output_size or scale_factors");
        axes[i].in = in;
        axes[i].scale = scales[i];
        if (sized) {
            axes[i].out = sizes[i];
        } else {
            axes[i].out = scaledSize(in, *scales[i]);
        }
        for (const SymInt* size : {&axes[i].in, &axes[i].out})
            if (size->isInt() && size->value() < 1)
                return c.fail("resamples " + axes[i].in.text() + " elements to " + axes[i].out.text());
    }
    return axes;
}

/// count times the step of an axis: a number, or a float that is computed of the sizes at run time.
Value stepsAlong(Decomposition& d, const Axis& axis, bool alignCorners, const Value& count) {
    if (const auto step = axis.step(alignCorners)) return count * *step;
    const SymInt less = alignCorners ? 1 : 0;
    const Value from =
        d.call("aten.mul.Scalar",
               {full(d.builder(), {}, Scalar(1.0), count.dtype(), count.type().device), Argument(axis.in - less)});
    // Of one element the first is taken, as if it were divided by one.
    const Value step =
        d.call("aten.div.Scalar", {from, Argument(alignCorners ? max(axis.out - less, SymInt(1)) : axis.out)});
    return count * (alignCorners && axis.out == SymInt(1) ? step * 0.0 : step);
}

Value countUp(Decomposition& d, const SymInt& count) {
    return d.call("prims.iota.default", {Argument(count)},
                  {{"start", 0},
                   {"step", 1},
                   {"dtype", DType::I64},
                   {"device", d.in(size_t{0}).type().device},
                   {"requires_grad", false}});
}
Value lookUp(Decomposition& d, const Value& x, const std::vector<Value>& indices) {
    std::vector<Argument> list(2);
    for (const Value& index : indices) list.emplace_back(index);
    return d.call("aten._unsafe_index.Tensor", {x, Argument(std::move(list))});
}
/// In the operand's memory format.
Value inResampledFormat(Decomposition& d, const Value& y) {
    const TensorType& x = d.in(size_t{0}).type();
    if (!y || !isChannelsLast(x))
        return !y || y.type().isContiguous()
                   ? y
                   : d.call("aten.clone.default", {y}, {{"memory_format", MemoryFormat::Contiguous}});
    if (isChannelsLast(y.type())) return y;
    return d.call("aten.clone.default", {y},
                  {{"memory_format", x.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast}});
}
/// [n] as [n, 1, ...] with `after` more dims.
Value column(Value x, size_t after) {
    for (size_t i = 0; i < after; ++i) x = unsqueeze(x, -1);
    return x;
}

/// A scale that does not belong to the sizes may lead beyond the end.
bool leadsBeyond(const Axis& axis, bool exact) {
    if (axis.numbers())
        return (static_cast<double>(axis.out.value() - 1) + (exact ? 0.5 : 0.0)) * *axis.step(false) >=
               static_cast<double>(axis.in.value());
    return axis.scale && !(axis.in * SymInt(static_cast<int64_t>(*axis.scale)) == axis.out);
}
template <size_t spatial, bool exact>
Values decomposeNearest(Decomposition& d) {
    const Value x = d.in(size_t{0});
    auto axes = readAxes(d, x.type(), spatial);
    if (!axes) {
        d.builder().fail(axes.error());
        return Value();
    }
    // Where planes keep or double a size, PyTorch's kernel takes no scale (2.15); lines and volumes do.
    if (spatial == 2 && !exact)
        for (Axis& axis : *axes)
            for (const double whole : {1.0, 2.0})
                if (axis.out == axis.in * SymInt(static_cast<int64_t>(whole))) axis.scale = whole;
    const Value wide = toOpmath(x);
    std::vector<Value> indices;
    for (size_t i = 0; i < spatial; ++i) {
        const Axis& axis = (*axes)[i];
        const Value count = convert(countUp(d, axis.out) * 1 + 0, DType::F32);
        Value position = convert(stepsAlong(d, axis, false, count + (exact ? 0.5 : 0.0)), DType::I64);
        if (leadsBeyond(axis, exact))
            position = d.call("aten.clamp_max.default", {position, Argument(axis.in - SymInt(1))});
        indices.push_back(column(position, spatial - 1 - i));
    }
    return convert(inResampledFormat(d, lookUp(d, wide, indices)), x.dtype());
}

/// Planes of bytes are blended too, dim by dim, with weights that are whole numbers.
bool blends(DType dtype, size_t spatial) { return isFloating(dtype) || (dtype == DType::U8 && spatial == 2); }

Value exp2Of(Decomposition& d, const Value& exponent) {
    return d.call("aten.pow.Scalar", {2.0, convert(exponent, DType::F32)});
}
/// TapWeights along one dim. Those of bytes are multiples of 2^-precision, the finest for which all fit into 16 bits,
/// and each blend is rounded to a byte, as PyTorch's kernels do.
struct TapWeights {
    std::vector<Value> parts;
    Value precision;  // null: floats
};
TapWeights weightsFor(Decomposition& d, std::vector<Value> parts, DType dtype) {
    if (isFloating(dtype)) return {std::move(parts), Value()};
    const Value largest =
        unary("aten.amax.default",
              d.call("aten.stack.default", {Argument(std::vector<Argument>(parts.begin(), parts.end())), 0}));
    const Value scaled = largest * exp2Of(d, countUp(d, 22) + 1) + 0.5;
    const Value precision = unary("aten.sum.default", convert(compareScalar("lt", scaled, 32768.0), DType::I64));
    const Value scale = exp2Of(d, precision);
    for (Value& part : parts) part = convert(part * scale + unary("aten.sign.default", part) * 0.5, DType::I32);
    return {std::move(parts), precision};
}
Value blendedTaps(Decomposition& d, const std::vector<Value>& values, const TapWeights& weights) {
    Value total;
    for (size_t i = 0; i < values.size(); ++i) {
        const Value term = values[i] * weights.parts[i];
        total = total ? total + term : term;
    }
    if (!weights.precision) return total;
    const Value half = convert(exp2Of(d, weights.precision - 1), DType::I32);
    const Value shifted =
        d.call("aten.bitwise_right_shift.Tensor", {total + half, convert(weights.precision, DType::I32)});
    return d.call("aten.clamp.default", {shifted, 0, 255});
}

/// Source positions along an axis: step * (i + 0.5) - 0.5, or step * i with aligned corners.
Value positionsAlong(Decomposition& d, const Axis& axis, bool alignCorners, const Value& count) {
    return alignCorners ? stepsAlong(d, axis, true, count) : stepsAlong(d, axis, false, count + 0.5) - 0.5;
}
template <size_t spatial>
Values decomposeLinearResample(Decomposition& d) {
    const Value input = d.in(size_t{0});
    auto axes = readAxes(d, input.type(), spatial);
    if (axes && !blends(input.dtype(), spatial))
        axes = d.fail("does not blend elements of " + std::string(info(input.dtype()).torchName));
    if (!axes) {
        d.builder().fail(axes.error());
        return Value();
    }
    const bool bytes = !isFloating(input.dtype());
    const Value x = bytes ? convert(input, DType::I32) : toOpmath(input);
    const DType compute = bytes ? DType::F32 : x.dtype();
    const bool align = d.flag("align_corners");
    std::vector<Value> positions, low, high;
    for (size_t i = 0; i < spatial; ++i) {
        const Axis& axis = (*axes)[i];
        SymDims shape(spatial - i, SymInt(1));
        shape[0] = axis.out;
        const Value at = positionsAlong(d, axis, align, convert(countUp(d, axis.out), compute));
        positions.push_back(view(d.call("aten.clamp_min.default", {at, 0.0}), shape));
        low.push_back(convert(positions.back(), DType::I64));
        high.push_back(d.call("aten.clamp_max.default", {low.back() + 1, Argument(axis.in - SymInt(1))}));
    }
    std::vector<Value> corners;
    for (size_t corner = 0; corner < size_t{1} << spatial; ++corner) {
        std::vector<Value> at;
        for (size_t i = 0; i < spatial; ++i) at.push_back(corner >> (spatial - 1 - i) & 1 ? high[i] : low[i]);
        corners.push_back(lookUp(d, x, at));
    }
    // Neighbours along the last dim first.
    for (size_t i = spatial; i-- > 0;) {
        const Value fraction = positions[i] - low[i];
        const Value weight = d.call("aten.clamp_max.default", {d.call("aten.clamp_min.default", {fraction, 0.0}), 1.0});
        const TapWeights weights =
            bytes ? weightsFor(d, {subtractFrom(1.0, weight), weight}, input.dtype()) : TapWeights();
        std::vector<Value> joined;
        for (size_t k = 0; k < corners.size(); k += 2)
            joined.push_back(bytes ? blendedTaps(d, {corners[k], corners[k + 1]}, weights)
                                   : corners[k] + (corners[k + 1] - corners[k]) * weight);
        corners = std::move(joined);
    }
    return convert(inResampledFormat(d, corners[0]), input.dtype());
}

/// TapWeights of the four taps around fraction t, by cubic convolution with A = -0.75.
std::vector<Value> cubicWeights(Decomposition& d, const Value& t) {
    constexpr double kA = -0.75;
    auto both = [&](const Value& a, const Value& b) {
        return d.call("aten.stack.default", {Argument(std::vector<Argument>{a, b}), 0});
    };
    const Value inner = both(t, subtractFrom(1.0, t));
    const Value further = t + 1.0;
    const Value outer = both(further, subtractFrom(2.0, t));
    const Value far = ((outer * kA - 5 * kA) * outer + 8 * kA) * outer - 4 * kA;
    const Value near = (inner * (kA + 2) - (kA + 3)) * inner * inner + 1;
    const Value fars = d.call("aten.unbind.int", {far});
    const Value first = fars[0], last = fars[1];
    const Value nears = d.call("aten.unbind.int", {near});
    return {first, nears[0], nears[1], last};
}
Values decomposeBicubic(Decomposition& d) {
    const Value input = d.in(size_t{0});
    auto axes = readAxes(d, input.type(), 2);
    if (axes && !blends(input.dtype(), 2))
        axes = d.fail("does not blend elements of " + std::string(info(input.dtype()).torchName));
    if (!axes) {
        d.builder().fail(axes.error());
        return Value();
    }
    const bool bytes = !isFloating(input.dtype());
    const Value x = bytes ? convert(input, DType::I32) : toOpmath(input);
    const DType compute = bytes ? DType::F32 : x.dtype();
    const bool align = d.flag("align_corners");
    const Value rowCount = convert(countUp(d, (*axes)[0].out), compute);
    const Value columnCount = convert(countUp(d, (*axes)[1].out), compute);
    const Value across = positionsAlong(d, (*axes)[1], align, columnCount);
    const Value down = unsqueeze(positionsAlong(d, (*axes)[0], align, rowCount), -1);
    const Value left = unary("aten.floor.default", across), top = unary("aten.floor.default", down);
    auto fraction = [&](const Value& at, const Value& base) {
        return d.call("aten.clamp_max.default", {d.call("aten.clamp_min.default", {at - base, 0.0}), 1.0});
    };
    const Value fractionDown = fraction(down, top);
    const Value fractionAcross = fraction(across, left);
    const Value leftIndex = convert(left, DType::I64), topIndex = convert(top, DType::I64);
    auto taps = [](const Value& base) { return std::vector<Value>{base - 1, base, base + 1, base + 2}; };
    const std::vector<Value> rows = taps(topIndex), columns = taps(leftIndex);
    const TapWeights weightsAcross = weightsFor(d, cubicWeights(d, fractionAcross), input.dtype()),
                     weightsDown = weightsFor(d, cubicWeights(d, fractionDown), input.dtype());
    auto inside = [&](const Value& index, const SymInt& size) {
        return d.call("aten.clamp_max.default",
                      {d.call("aten.clamp_min.default", {index, 0}), Argument(size - SymInt(1))});
    };
    std::vector<Value> lines;
    for (const Value& row : rows) {
        std::vector<Value> values;
        for (const Value& columnIndex : columns) {
            const Value r = inside(row, (*axes)[0].in);
            values.push_back(lookUp(d, x, {r, inside(columnIndex, (*axes)[1].in)}));
        }
        lines.push_back(blendedTaps(d, values, weightsAcross));
    }
    return convert(inResampledFormat(d, blendedTaps(d, lines, weightsDown)), input.dtype());
}

constexpr OpDef resampleRow(std::string_view schema, Fn<Values(Decomposition&)> decompose, std::string_view samples) {
    return {.schema = schema,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Composite,
            .decompose = decompose,
            .samples = samples};
}
constexpr std::string_view kVec1 = "f32[1, 2, 4], [7], None\nf32[2, 3, 4], None, [2.0]\nbf16[1, 2, 5], [3], None";
constexpr std::string_view kVec2 =
    "f32[1, 2, 3, 4], [6, 8], None\nf32[1, 2, 3, 4], None, [2.0, 2.0]\nf64[2, 1, 5, 4], [3, 2], None\nbf16[1, 2, 3, 4], [5, 7], None\nf32[1, 2, 3, 4], None, [1.5, 2.5]\nf32[1, 3, 4, 4][48, 1, 12, 3], [8, 8], None\nf32[1, 1, 1, 1], [3, 3], None";
constexpr std::string_view kVec3 = "f32[1, 2, 3, 4, 2], [6, 5, 4], None\nf32[1, 1, 2, 2, 2], None, [2.0, 2.0, 2.0]";
constexpr std::string_view kLinear1 =
    "f32[1, 2, 4], [7], False, None\nf32[2, 3, 4], None, True, [2.0]\nf64[1, 2, 5], [3], False, None";
constexpr std::string_view kLinear2 =
    "f32[1, 2, 3, 4], [6, 8], False, None\nf32[1, 2, 3, 4], [6, 8], True, None\nf32[1, 2, 3, 4], None, False, [2.0, 2.0]\nf64[2, 1, 5, 4], [3, 2], False, None\nbf16[1, 2, 3, 4], [5, 7], False, None\nf32[1, 2, 3, 4], None, True, [1.5, 2.5]\nf32[1, 3, 4, 4][48, 1, 12, 3], [8, 8], False, None\nf32[1, 1, 1, 1], [3, 3], True, None";
constexpr std::string_view kLinear3 =
    "f32[1, 2, 3, 4, 2], [6, 5, 4], False, None\nf32[1, 1, 2, 2, 2], None, True, [2.0, 2.0, 2.0]";
constexpr std::string_view kCubicSamples =
    "f32[1, 2, 3, 4], [6, 8], False, None\nf32[1, 2, 3, 4], [4, 5], True, None\nf32[1, 2, 3, 4], None, False, [2.0, 2.0]\nf64[1, 1, 5, 5], [3, 4], False, None";

constexpr OpDef kResampleOps[] = {
    // The element at floor(i * step); the exact forms sample at the middle of each output element.
    resampleRow("aten.upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
                decomposeNearest<1, false>, kVec1),
    resampleRow("aten.upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
                decomposeNearest<2, false>, kVec2),
    resampleRow("aten.upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
                decomposeNearest<3, false>, kVec3),
    resampleRow(
        "aten._upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        decomposeNearest<1, true>, kVec1),
    resampleRow(
        "aten._upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        decomposeNearest<2, true>, kVec2),
    resampleRow(
        "aten._upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        decomposeNearest<3, true>, kVec3),
    resampleRow("aten.upsample_nearest1d.default(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
                decomposeNearest<1, false>, "f32[1, 2, 4], [7]\nf32[1, 2, 4], [8], 2.0"),
    resampleRow(
        "aten.upsample_nearest2d.default(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeNearest<2, false>,
        "f32[1, 2, 3, 4], [6, 8]\nf32[1, 2, 3, 4], [6, 8], 2.0, 2.0\nbf16[1, 2, 3, 4], [5, 7]"),
    resampleRow(
        "aten.upsample_nearest3d.default(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeNearest<3, false>, "f32[1, 2, 3, 4, 2], [6, 5, 4]"),
    resampleRow(
        "aten._upsample_nearest_exact2d.default(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeNearest<2, true>, "f32[1, 2, 3, 4], [6, 8]"),
    resampleRow(
        "aten._upsample_nearest_exact1d.default(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        decomposeNearest<1, true>, "f32[1, 2, 4], [7]\nf32[1, 2, 4], [8], 2.0"),
    resampleRow(
        "aten._upsample_nearest_exact3d.default(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeNearest<3, true>, "f32[1, 2, 3, 4, 2], [6, 5, 4]"),
    // Between the neighbours on either side, dim by dim.
    resampleRow(
        "aten.upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        decomposeLinearResample<1>, kLinear1),
    resampleRow(
        "aten.upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        decomposeLinearResample<2>, kLinear2),
    resampleRow(
        "aten.upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        decomposeLinearResample<3>, kLinear3),
    resampleRow(
        "aten.upsample_bilinear2d.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeLinearResample<2>,
        "f32[1, 2, 3, 4], [6, 8], False\nf32[1, 2, 3, 4], [6, 8], True\nf64[1, 2, 3, 4], [6, 8], False, 2.0, 2.0"),
    resampleRow(
        "aten.upsample_linear1d.default(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        decomposeLinearResample<1>,
        "f32[1, 2, 4], [7], False\nf32[2, 3, 4], [8], True, 2.0\nf64[1, 2, 4], [8], False, 2.0"),
    resampleRow(
        "aten.upsample_trilinear3d.default(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeLinearResample<3>,
        "f32[1, 2, 3, 4, 2], [6, 5, 4], False\nf64[1, 1, 2, 2, 2], [4, 4, 4], True, 2.0, 2.0, 2.0"),
    // Four by four neighbours.
    resampleRow(
        "aten.upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        decomposeBicubic, kCubicSamples),
    resampleRow(
        "aten.upsample_bicubic2d.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        decomposeBicubic, "f32[1, 2, 3, 4], [6, 8], False\nf64[1, 1, 5, 5], [3, 4], True"),
};

}  // namespace

SymInt scaledSize(const SymInt& in, double scale) {
    if (in.isInt()) return SymInt(static_cast<int64_t>(static_cast<double>(in.value()) * scale));
    if (scale >= 1 && scale == std::floor(scale) && scale < 1e6) return in * SymInt(static_cast<int64_t>(scale));
    if (scale > 1e-6 && scale < 1 && 1 / scale == std::floor(1 / scale))
        return floorDiv(in, SymInt(static_cast<int64_t>(1 / scale)));
    const Expr scaled =
        Expr::make(ExprKind::Mul, {Expr::real(scale, DType::F64), Expr::cast(in.expr(), DType::F64)}, DType::F64);
    return SymInt(Expr::call("TruncToInt", {scaled}, DType::I64));
}

std::span<const OpDef> resampleOps() { return kResampleOps; }

}  // namespace cutaway
