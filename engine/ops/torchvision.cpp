// torchvision's operators. roi_align (regions of feature maps sampled to one size) and deform_conv2d (convolutions with
// shifted taps) are look-ups with weights, so that autograd and fusion need nothing of their own. Kernels compute
// roi_pool (the largest elements of a region's bins) and nms (non-maximum suppression of boxes).
#include <cmath>
#include <numeric>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/ops/torchvision_regions.h"

namespace cutaway {
namespace {

Value scaledBoxes(const Value& x, const SymInt& by) { return x.builder().call("aten.mul.Scalar", {x, Argument(by)}); }
Value atMost(const Value& x, const SymInt& most) {
    return x.builder().call("aten.clamp_max.default", {x, Argument(most)});
}
Value both(const Value& a, const Value& b) { return a.builder().call("aten.bitwise_and.Tensor", {a, b}); }
/// `weight` where the condition holds, else 0.
Value weightWhere(Decomposition& d, const Value& condition, const Value& weight) {
    return where(condition, weight, scalarTensor(d, 0.0, weight));
}

// -- regions

/// The two elements next to each sampled place along one dim of a map, and their weights: [regions, pooled, samples].
struct Line {
    Value low, high, ofLow, ofHigh;
};
/// Regions from `from` to `to` (one number each) cut into `pooled` bins with `samples` places in each.
Line placesAlong(Decomposition& d, const Value& from, const Value& to, const SymInt& pooled, int64_t samples,
                 const SymInt& size) {
    const bool aligned = d.flag("aligned");
    Value length = to - from;
    if (!aligned) length = d.call("aten.clamp_min.default", {length, 1.0});
    const Value bin = d.call("aten.div.Scalar", {length, Argument(pooled)});
    const Device device = from.type().device;
    const auto region = [](const Value& x) { return unsqueeze(unsqueeze(x, -1), -1); };
    const Value bins = unsqueeze(convert(iota(d.builder(), pooled, device), from.dtype()), -1);
    const Value inBin = convert(iota(d.builder(), SymInt(samples), device), from.dtype()) + 0.5;
    const Value at = region(from) + bins * region(bin) + inBin * region(bin) / static_cast<double>(samples);
    const Value inside = both(compareScalar("ge", at, -1.0), d.call("aten.le.Scalar", {at, Argument(size)}));
    const SymInt last = size - SymInt(1);
    const Value place = d.call("aten.clamp_min.default", {at, 0.0}), whole = convert(place, DType::I64);
    const Value ends = d.call("aten.ge.Scalar", {whole, Argument(last)});
    const Value low = atMost(whole, last), high = atMost(whole + 1, last);
    const Value part = where(ends, scalarTensor(d, 0.0, place), place - low);
    return {low, high, weightWhere(d, inside, subtractFrom(1.0, part)), weightWhere(d, inside, part)};
}
/// With a sampling ratio; without one a region has as many samples as it is large, and the kernel computes it.
Values roiAlign(Decomposition& d) {
    const Value given = d.in(size_t{0}), boxes = d.in(1);
    const auto height = read(d, d.size("pooled_height")), width = read(d, d.size("pooled_width"));
    const auto samples = read(d, d.integer("sampling_ratio"));
    if (!height || !width || !samples) return Value(d.builder(), nullptr);
    if (*samples <= 0) return Values::notHandled();
    const Value x = toOpmath(given);
    // No gradient reaches the regions, as in torchvision.
    const Value regions = unary("aten.detach.default", toOpmath(boxes));
    const auto number = [&](int64_t which) { return d.call("aten.select.int", {regions, int64_t{1}, which}); };
    const double scale = d.real("spatial_scale"), offset = d.flag("aligned") ? 0.5 : 0.0;
    const auto edge = [&](int64_t which) { return number(which) * scale - offset; };
    const Line down = placesAlong(d, edge(2), edge(4), *height, *samples, x.size(2)),
               across = placesAlong(d, edge(1), edge(3), *width, *samples, x.size(3));
    // [regions, channels, pooled height, pooled width, samples down, samples across]
    const auto asRows = [](const Value& v) { return unsqueeze(unsqueeze(unsqueeze(v, 1), 3), 5); };
    const auto asColumns = [](const Value& v) { return unsqueeze(unsqueeze(unsqueeze(v, 1), 1), 4); };
    const auto spread = [](Value v, int before, int after) {
        for (int i = 0; i < before; ++i) v = unsqueeze(v, 0);
        for (int i = 0; i < after; ++i) v = unsqueeze(v, -1);
        return v;
    };
    const Value batch = spread(convert(number(0), DType::I64), 0, 5),
                channel = spread(iota(d.builder(), x.size(1), x.type().device), 1, 4);
    Value total;
    for (const auto& [row, rowWeight] : {std::pair(down.low, down.ofLow), std::pair(down.high, down.ofHigh)})
        for (const auto& [column, columnWeight] :
             {std::pair(across.low, across.ofLow), std::pair(across.high, across.ofHigh)}) {
            const std::vector<Argument> at = {batch, channel, asRows(row), asColumns(column)};
            const Value term =
                d.call("aten.index.Tensor", {x, Argument(at)}) * (asRows(rowWeight) * asColumns(columnWeight));
            total = total ? total + term : term;
        }
    const double count = static_cast<double>(*samples) * static_cast<double>(*samples);
    return convert(sum(total, {-2, -1}, false) / count, given.dtype());
}

// -- shifted convolutions

/// Sizes of a call: taps, results, and channels by group.
struct Shifted {
    SymInt batch, channels, outputs, rows, columns;
    int64_t taps = 0, groups = 1, offsetGroups = 1;
};
/// The input's elements at each tap's place, blended: [batch, offset groups, channels, taps, rows, columns].
Value tapped(Decomposition& d, const Value& x, const Value& offset, const Shifted& s, int64_t kernelWidth) {
    const Device device = x.type().device;
    const auto numbers = [&](const SymInt& count) { return convert(iota(d.builder(), count, device), x.dtype()); };
    const Value shifts = reshape(offset, {s.batch, s.offsetGroups, s.taps, 2, s.rows, s.columns});
    // Where a tap stands without its shift: [taps, rows, columns], the same for all.
    const auto place = [&](bool down) {
        const char* const names[] = {down ? "stride_h" : "stride_w", down ? "pad_h" : "pad_w",
                                     down ? "dilation_h" : "dilation_w"};
        const double stride = static_cast<double>(d.integerOr(names[0], 1)),
                     pad = static_cast<double>(d.integerOr(names[1], 0)),
                     dilation = static_cast<double>(d.integerOr(names[2], 1));
        const Value start = numbers(down ? s.rows : s.columns) * stride - pad;
        const Value tap = iota(d.builder(), SymInt(s.taps), device);
        const Argument width(kernelWidth);
        const Value inKernel =
            down ? d.call("aten.div.Tensor_mode", {tap, width}, {{"rounding_mode", std::string("floor")}})
                 : d.call("aten.remainder.Scalar", {tap, width});
        const Value step = unsqueeze(unsqueeze(convert(inKernel, x.dtype()) * dilation, -1), -1);
        return (down ? unsqueeze(start, -1) : start) + step;
    };
    const auto shifted = [&](bool down) {
        return place(down) + d.call("aten.select.int", {shifts, int64_t{3}, int64_t{down ? 0 : 1}});
    };
    const Value y = shifted(true), left = shifted(false);
    const Value flat =
        reshape(x, {s.batch, s.offsetGroups, floorDiv(s.channels, SymInt(s.offsetGroups)), x.size(2) * x.size(3)});
    const auto floor = [](const Value& v) { return unary("aten.floor.default", v); };
    const Value top = floor(y), first = floor(left), partDown = y - top, partAcross = left - first;
    Value total;
    for (const bool below : {false, true})
        for (const bool right : {false, true}) {
            const Value row = convert(below ? top + 1.0 : top, DType::I64),
                        column = convert(right ? first + 1.0 : first, DType::I64);
            const auto within = [&](const Value& v, const SymInt& size) {
                return both(compareScalar("ge", v, int64_t{0}), d.call("aten.lt.Scalar", {v, Argument(size)}));
            };
            const auto clamped = [&](const Value& v, const SymInt& size) {
                return atMost(d.call("aten.clamp_min.default", {v, int64_t{0}}), size - SymInt(1));
            };
            const Value inside = both(within(row, x.size(2)), within(column, x.size(3)));
            const Value at = scaledBoxes(clamped(row, x.size(2)), x.size(3)) + clamped(column, x.size(3));
            const Value weight = weightWhere(d, inside,
                                             (below ? partDown : subtractFrom(1.0, partDown)) *
                                                 (right ? partAcross : subtractFrom(1.0, partAcross)));
            const SymInt places = s.rows * s.columns * SymInt(s.taps);
            const Value index = expand(reshape(at, {s.batch, s.offsetGroups, 1, places}),
                                       {s.batch, s.offsetGroups, flat.size(2), places});
            const Value elements = d.call("aten.gather.default", {flat, int64_t{3}, index});
            const Value term = elements * reshape(weight, {s.batch, s.offsetGroups, 1, places});
            total = total ? total + term : term;
        }
    return total;
}
Values deformedConvolution(Decomposition& d) {
    const DType result = d.in("input").dtype();
    for (const char* param : {"weight", "offset", "mask", "bias"})
        if (d.in(param).dtype() != result) return refuse(d, "the operands differ in dtype");
    const auto wide = [&](const char* param) { return toOpmath(d.in(param)); };
    const Value x = wide("input"), weight = wide("weight"), offset = wide("offset"), mask = wide("mask"),
                bias = wide("bias");
    if (x.rank() != 4 || weight.rank() != 4 || offset.rank() != 4 || bias.rank() != 1)
        return refuse(d, "needs input, weight and offset of 4 dims, and a bias");
    if (!isFloating(x.dtype())) return refuse(d, "needs floating-point numbers");
    Shifted s;
    if (mask.rank() == 0 || differ(mask.size(0), x.size(0))) return refuse(d, "needs a mask for each of the batch");
    if (!weight.size(2).isInt() || !weight.size(3).isInt()) return refuse(d, "needs a kernel of known size");
    s.batch = x.size(0);
    s.channels = x.size(1);
    s.outputs = weight.size(0);
    s.rows = offset.size(2);
    s.columns = offset.size(3);
    s.taps = weight.size(2).value() * weight.size(3).value();
    s.groups = d.integerOr("groups", 1);
    s.offsetGroups = d.integerOr("offset_groups", 1);
    if (s.groups < 1 || s.offsetGroups < 1 || s.taps < 1) return refuse(d, "needs groups and taps");
    const SymInt shifts = SymInt(s.offsetGroups) * SymInt(s.taps);
    if (differ(offset.size(1), SymInt(2) * shifts) || differ(offset.size(0), s.batch))
        return refuse(d, "needs two shifts for each tap and offset group, not " + offset.type().text());
    if (differ(weight.size(1) * SymInt(s.groups), s.channels) || leavesRemainder(s.channels, s.offsetGroups) ||
        differ(bias.size(0), s.outputs) || leavesRemainder(s.outputs, s.groups))
        return refuse(d, "channels of input, weight and bias do not fit each other");
    const auto resultSize = [&](const SymInt& size, int64_t kernel, bool down) {
        const int64_t stride = d.integerOr(down ? "stride_h" : "stride_w", 1),
                      pad = d.integerOr(down ? "pad_h" : "pad_w", 0),
                      dilation = d.integerOr(down ? "dilation_h" : "dilation_w", 1);
        const SymInt reach = SymInt(dilation) * SymInt(kernel - 1) + SymInt(1);
        return floorDiv(size + SymInt(2) * SymInt(pad) - reach, SymInt(std::max<int64_t>(stride, 1))) + SymInt(1);
    };
    if (differ(s.rows, resultSize(x.size(2), weight.size(2).value(), true)) ||
        differ(s.columns, resultSize(x.size(3), weight.size(3).value(), false)))
        return refuse(d, "offset " + offset.type().text() + " does not have the result's sizes");
    Value columns = tapped(d, x, offset, s, weight.size(3).value());
    const SymInt places = s.rows * s.columns * SymInt(s.taps);
    if (d.flag("use_mask")) {
        if (mask.rank() != 4 || differ(mask.size(1), shifts))
            return refuse(d, "needs one factor for each tap and offset group, not " + mask.type().text());
        columns = columns * reshape(mask, {s.batch, s.offsetGroups, 1, places});
    }
    const SymInt inner = weight.size(1) * SymInt(s.taps), area = s.rows * s.columns;
    const Value matrices = reshape(columns, {s.batch, s.groups, inner, area});
    const Value kernels = reshape(weight, {s.groups, floorDiv(s.outputs, SymInt(s.groups)), inner});
    const Value product = d.call("aten.matmul.default", {kernels, matrices});
    return convert(reshape(product, {s.batch, s.outputs, s.rows, s.columns}) + reshape(bias, {1, s.outputs, 1, 1}),
                   result);
}

// -- the largest elements of regions

Result<ValueType> inferRoiPool(const InferContext& c) {
    CT_TRY_VOID(checkRegions(c));
    CT_TRY(const TensorType x, c.tensor("input"));
    CT_TRY(const TensorType boxes, c.tensor("rois"));
    CT_TRY(const SymInt height, c.size("pooled_height"));
    CT_TRY(const SymInt width, c.size("pooled_width"));
    for (const SymInt& size : {height, width})
        if (size.isInt() && size.value() < 0) return c.fail("a negative size");
    const SymDims sizes = {boxes.sizes[0], x.sizes[1], height, width};
    return ValueType(TupleType{TensorType::contiguous(x.dtype, sizes, x.device),
                               TensorType::contiguous(DType::I32, sizes, x.device)});
}
/// The part of a dim of `size` elements that bin `bin` covers, of a region of whole elements from `from` on.
template <class T>
std::pair<int64_t, int64_t> roiBinOf(int64_t bin, T step, int64_t from, int64_t size) {
    const auto low = static_cast<int64_t>(std::floor(static_cast<T>(bin) * step)),
               high = static_cast<int64_t>(std::ceil(static_cast<T>(bin + 1) * step));
    return {std::clamp<int64_t>(low + from, 0, size), std::clamp<int64_t>(high + from, 0, size)};
}
EvalResult evalRoiPool(const EvalContext& c) {
    const Tensor input = c.in("input"), rois = c.in("rois");
    Tensor out = c.result(0), places = c.result(1);
    const int64_t batch = input.size(0), channels = input.size(1), height = input.size(2), width = input.size(3),
                  pooledHeight = out.size(2), pooledWidth = out.size(3);
    std::optional<Error> wrong;
    withFloat(input.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto x = packElements<T>(input), boxes = packElements<T>(rois);
        const auto scale = static_cast<T>(c.real("spatial_scale"));
        std::vector<T> most;
        std::vector<int64_t> at;
        for (int64_t region = 0; region < rois.size(0); ++region) {
            const T* box = boxes.data() + region * 5;
            const auto image = static_cast<int64_t>(box[0]);
            if (!(box[0] > -1) || image >= batch) {
                wrong = c.fail("region " + std::to_string(region) + " is of an image that is not in the batch");
                return;
            }
            const auto edge = [&](int which) { return static_cast<int64_t>(std::round(box[which] * scale)); };
            const int64_t left = edge(1), top = edge(2);
            const T across = static_cast<T>(std::max<int64_t>(edge(3) - left + 1, 1)) / static_cast<T>(pooledWidth),
                    down = static_cast<T>(std::max<int64_t>(edge(4) - top + 1, 1)) / static_cast<T>(pooledHeight);
            for (int64_t channel = 0; channel < channels; ++channel) {
                const T* plane = x.data() + (image * channels + channel) * height * width;
                for (int64_t i = 0; i < pooledHeight * pooledWidth; ++i) {
                    const auto [firstRow, endRow] = roiBinOf<T>(i / pooledWidth, down, top, height);
                    const auto [firstColumn, endColumn] = roiBinOf<T>(i % pooledWidth, across, left, width);
                    const bool empty = endRow <= firstRow || endColumn <= firstColumn;
                    T largest = empty ? 0 : static_cast<T>(-std::numeric_limits<float>::max());
                    int64_t place = -1;
                    for (int64_t row = firstRow; row < endRow; ++row)
                        for (int64_t column = firstColumn; column < endColumn; ++column)
                            if (const T value = plane[row * width + column]; value > largest) {
                                largest = value;
                                place = row * width + column;
                            }
                    most.push_back(largest);
                    at.push_back(place);
                }
            }
        }
        unpackElements(most, out);
        unpackElements(at, places);
    });
    if (wrong) return *wrong;
    return TensorList{out, places};
}
/// The gradient goes to where the largest elements were; bins without elements pass none on.
void deriveRoiPool(Derivation& d) {
    if (!d.dy(0)) return;
    const Value x = d.in("input");
    if (numel(x.sizes()) == SymInt(0)) {
        d.input(0) = unary("aten.zeros_like.default", x);
        return;
    }
    const SymInt places = d.out(1).size(2) * d.out(1).size(3);
    const SymDims flat = {d.out(1).size(0), d.out(1).size(1), places};
    const Value at = convert(reshape(d.out(1), flat), DType::I64), g = reshape(d.dy(0), flat);
    const Value image = convert(d.call("aten.select.int", {d.in("rois"), int64_t{1}, int64_t{0}}), DType::I64);
    const std::vector<Argument> index = {unsqueeze(unsqueeze(image, -1), -1),
                                         unsqueeze(iota(d.builder(), x.size(1), x.type().device), -1),
                                         d.call("aten.clamp_min.default", {at, int64_t{0}})};
    const Value zeros = full(d.builder(), {x.size(0), x.size(1), x.size(2) * x.size(3)}, Scalar(int64_t{0}), x.dtype(),
                             x.type().device);
    const Value kept = weightWhere(d, compareScalar("ge", at, int64_t{0}), g);
    d.input(0) = reshape(d.call("aten.index_put.default", {zeros, Argument(index), kept, true}), x.sizes());
}

// -- non-maximum suppression

Result<ValueType> refuseBoxes(const InferContext& c) {
    return unsupported(c.op().name() + ": how many boxes are kept depends on the values", {},
                       {"annotate the result with a symbol (u0)"});
}
/// Boxes by falling score; each that is kept removes later ones whose intersection over union is above the threshold.
EvalResult evalNms(const EvalContext& c) {
    const Tensor given = c.in("dets"), scores = c.in("scores");
    if (given.rank() != 2 || given.size(1) != 4 || scores.rank() != 1 || scores.size(0) != given.size(0))
        return c.fail("needs boxes of 4 numbers and a score for each");
    if ((given.dtype() != DType::F32 && given.dtype() != DType::F64) || scores.dtype() != given.dtype())
        return c.fail("needs boxes and scores of one dtype, float32 or float64");
    std::vector<int64_t> kept;
    withFloat(given.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const auto boxes = packElements<T>(given), score = packElements<T>(scores);
        const auto edge = [&](int64_t box, int64_t which) { return boxes[static_cast<size_t>(box * 4 + which)]; };
        const auto area = [&](int64_t box) { return (edge(box, 2) - edge(box, 0)) * (edge(box, 3) - edge(box, 1)); };
        std::vector<int64_t> order(score.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            const T x = score[static_cast<size_t>(a)], y = score[static_cast<size_t>(b)];
            return (std::isnan(x) && !std::isnan(y)) || x > y;
        });
        for (size_t i = 0; i < order.size(); ++i) {
            const int64_t box = order[i];
            if (box < 0) continue;
            kept.push_back(box);
            for (size_t k = i + 1; k < order.size(); ++k) {
                if (order[k] < 0) continue;
                const auto shared = [&](int64_t low) {
                    return std::max(T(0), std::min(edge(box, low + 2), edge(order[k], low + 2)) -
                                              std::max(edge(box, low), edge(order[k], low)));
                };
                const T inner = shared(0) * shared(1);
                if (inner / (area(box) + area(order[k]) - inner) > c.real("iou_threshold")) order[k] = -1;
            }
        }
    });
    Tensor out = Tensor::empty(DType::I64, {static_cast<int64_t>(kept.size())});
    std::copy(kept.begin(), kept.end(), out.as<int64_t>());
    return out;
}

constexpr OpDef kTorchvisionOps[] = {
    {.schema =
         "torchvision.roi_pool.default(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
     .infer = inferRoiPool,
     .eval = evalRoiPool,
     .derive = deriveRoiPool,
     .samples =
         "f32[2, 3, 6, 7], f32[4, 5]%, 4.0, 2, 3\nf64[1, 2, 5, 5], f64[3, 5]%, 8.0, 3, 2\nf32[1, 2, 5, 5], f32[2, 5]%, 0.5, 2, 2\nf32[1, 2, 5, 5], f32[0, 5], 1.0, 2, 2"},
    {.schema = "torchvision.nms.default(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = refuseBoxes,
     .eval = evalNms},
    {.schema =
         "torchvision.roi_align.default(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
     .infer = inferRoiAlign,
     .eval = evalRoiAlign,
     .expand = Expand::Composite,
     .decompose = roiAlign,
     .derive = deriveRoiAlign,
     .samples =
         "f32[2, 3, 6, 7], f32[4, 5]%, 1.0, 2, 3, 2, False\nf64[1, 2, 5, 5], f64[3, 5]%, 4.0, 3, 2, 1, True\nf64[1, 2, 5, 5], f64[2, 5]%, 12.0, 2, 2, 3, False\nf32[2, 3, 6, 7], f32[4, 5]%, 9.0, 2, 2, -1, False\nf64[1, 2, 5, 5], f64[3, 5]%, 7.0, 1, 2, 0, True"},
    shorthand(
        "torchvision.deform_conv2d.default(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
        deformedConvolution,
        "f32[2, 4, 6, 5], f32[3, 4, 3, 3], f32[2, 18, 6, 5]<2, f32[2, 1], f32[3], 1, 1, 1, 1, 1, 1, 1, 1, False\nf64[1, 4, 6, 6], f64[4, 2, 2, 3], f64[1, 24, 3, 2]<3, f64[1, 12, 3, 2], f64[4], 2, 2, 1, 0, 2, 1, 2, 2, True",
        Tag::Heavy),
};

}  // namespace

std::span<const OpDef> torchvisionOps() { return kTorchvisionOps; }

}  // namespace cutaway
