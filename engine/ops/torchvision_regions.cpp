// Kernels of torchvision's regions: elements of feature maps, interpolated at places that each region has as many of as
// it is large, which only its values say (roi_align without a sampling ratio), and their position-sensitive forms, in
// which each bin reads a channel of its own.
#include "engine/ops/torchvision_regions.h"

#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

constexpr int64_t kNumbersOfRegion = 5;  // image, left, top, right, bottom

/// The sizes of a call: [images, channels, height, width] and [regions, outputs, down, across].
struct RegionSizes {
    int64_t images, channels, height, width, outputs, down, across;
    bool sensitive;
    std::vector<int64_t> mapping = {};  // the channel of each bin, where the call says it

    RegionSizes(const Dims& maps, const Dims& bins, bool positionSensitive)
        : images(maps[0]),
          channels(maps[1]),
          height(maps[2]),
          width(maps[3]),
          outputs(bins[1]),
          down(bins[2]),
          across(bins[3]),
          sensitive(positionSensitive) {}
    /// The channel that a bin of an output channel reads.
    int64_t channelOf(int64_t output, int64_t row, int64_t column, int64_t bin) const {
        if (!mapping.empty()) return mapping[static_cast<size_t>(bin)];
        return sensitive ? (output * down + row) * across + column : output;
    }
    int64_t planeOf(int64_t image, int64_t channel) const { return (image * channels + channel) * height * width; }
};
/// Calls body(region, image, output, row, column, bin) for each bin, which are numbered row-major. An error names a
/// region of an image that is not there.
template <class T, class Body>
std::optional<Error> forEachBin(const EvalContext& c, const RegionSizes& s, const std::vector<T>& boxes, Body&& body) {
    int64_t bin = 0;
    const auto regions = static_cast<int64_t>(boxes.size()) / kNumbersOfRegion;
    for (int64_t region = 0; region < regions; ++region) {
        const T* box = boxes.data() + region * kNumbersOfRegion;
        if (!(box[0] > -1) || !(box[0] < static_cast<T>(s.images)))
            return c.fail("region " + std::to_string(region) + " is of an image that is not in the batch");
        const auto image = static_cast<int64_t>(box[0]);
        for (int64_t output = 0; output < s.outputs; ++output)
            for (int64_t row = 0; row < s.down; ++row)
                for (int64_t column = 0; column < s.across; ++column) body(box, image, output, row, column, bin++);
    }
    return std::nullopt;
}

/// The places at which one bin is sampled along one dim.
template <class T>
struct SampledBin {
    T from, step;   // the bin's start, and its length
    int64_t count;  // places in it; none of a region without extent

    SampledBin(T low, T high, bool atLeastOne, int64_t bins, int64_t bin, int64_t given) {
        const T length = atLeastOne ? std::max(high - low, T(1)) : high - low;
        step = length / static_cast<T>(bins);
        count = given > 0 ? given : static_cast<int64_t>(std::ceil(step));
        from = low + static_cast<T>(bin) * step;
    }
    T place(int64_t number) const { return from + (static_cast<T>(number) + T(0.5)) * step / static_cast<T>(count); }
};
/// The two elements next to a place of a dim of `size` elements; both weights are 0 beyond one element outside.
template <class T>
struct Neighbours {
    int64_t low = 0, high = 0;
    T ofLow = 0, ofHigh = 0;

    Neighbours(T at, int64_t size) {
        if (!(at >= -1) || at > static_cast<T>(size)) return;
        at = std::max(at, T(0));
        low = static_cast<int64_t>(at);
        high = low + 1;
        if (low >= size - 1) {
            low = high = size - 1;
            at = static_cast<T>(low);
        }
        ofHigh = at - static_cast<T>(low);
        ofLow = 1 - ofHigh;
    }
};
/// body(bin, element of the maps, weight) for all that belong together, and count(bin, places) for each bin.
template <class T, class Body, class Count>
std::optional<Error> forEachTap(const EvalContext& c, const RegionSizes& s, const std::vector<T>& boxes, Body&& body,
                                Count&& count) {
    const auto scale = static_cast<T>(c.real("spatial_scale"));
    const int64_t samples = c.integerOr("sampling_ratio", -1);
    const bool shifted = s.sensitive || c.flag("aligned");
    const T offset = shifted ? T(0.5) : T(0);
    return forEachBin(c, s, boxes,
                      [&](const T* box, int64_t image, int64_t output, int64_t row, int64_t column, int64_t bin) {
                          const auto edge = [&](int which) { return box[which] * scale - offset; };
                          const SampledBin<T> down(edge(2), edge(4), !shifted, s.down, row, samples),
                              across(edge(1), edge(3), !shifted, s.across, column, samples);
                          const int64_t plane = s.planeOf(image, s.channelOf(output, row, column, bin));
                          const int64_t places = down.count * across.count;
                          count(bin, places);
                          const double share = 1.0 / static_cast<double>(std::max<int64_t>(places, 1));
                          for (int64_t i = 0; i < down.count; ++i) {
                              const Neighbours<T> y(down.place(i), s.height);
                              for (int64_t k = 0; k < across.count; ++k) {
                                  const Neighbours<T> x(across.place(k), s.width);
                                  const auto tap = [&](int64_t atY, int64_t atX, T weight) {
                                      if (weight != 0)
                                          body(bin, plane + atY * s.width + atX, static_cast<double>(weight) * share);
                                  };
                                  tap(y.low, x.low, y.ofLow * x.ofLow);
                                  tap(y.low, x.high, y.ofLow * x.ofHigh);
                                  tap(y.high, x.low, y.ofHigh * x.ofLow);
                                  tap(y.high, x.high, y.ofHigh * x.ofHigh);
                              }
                          }
                      });
}
/// body(bin, element, weight): the whole elements of each bin of a region of whole elements, all of one weight.
template <class T, class Body>
std::optional<Error> forEachElement(const EvalContext& c, const RegionSizes& s, const std::vector<T>& boxes,
                                    Body&& body) {
    const auto scale = static_cast<T>(c.real("spatial_scale"));
    return forEachBin(
        c, s, boxes, [&](const T* box, int64_t image, int64_t output, int64_t row, int64_t column, int64_t bin) {
            const auto edge = [&](int which) { return static_cast<int64_t>(std::round(box[which] * scale)); };
            // The last row and column of a map belong to no bin, as in torchvision.
            const auto span = [&](int which, int64_t bins, int64_t at, int64_t size) {
                const int64_t low = edge(which), length = std::max<int64_t>(edge(which + 2) - low, 1);
                const T step = static_cast<T>(length) / static_cast<T>(bins);
                const auto first = static_cast<int64_t>(std::floor(static_cast<T>(at) * step)),
                           end = static_cast<int64_t>(std::ceil(static_cast<T>(at + 1) * step));
                return std::pair(std::clamp<int64_t>(first + low, 0, size - 1),
                                 std::clamp<int64_t>(end + low, 0, size - 1));
            };
            const auto [top, bottom] = span(2, s.down, row, s.height);
            const auto [left, right] = span(1, s.across, column, s.width);
            if (bottom <= top || right <= left) return;
            const int64_t plane = s.planeOf(image, s.channelOf(output, row, column, bin));
            const double share = 1.0 / static_cast<double>((bottom - top) * (right - left));
            for (int64_t y = top; y < bottom; ++y)
                for (int64_t x = left; x < right; ++x) body(bin, plane + y * s.width + x, share);
        });
}

/// Sums of the maps' elements by bin, or of the bins' gradients by element; `visit` says which belong together.
template <class Visit>
std::optional<Error> sumByWeight(const Tensor& read, Tensor& written, bool backward, Visit&& visit) {
    const std::vector<double> from = packElements<double>(read);
    std::vector<double> sums(static_cast<size_t>(written.numel()), 0.0);
    auto wrong = visit(
        [&](int64_t bin, int64_t element, double weight) {
            const auto to = static_cast<size_t>(backward ? element : bin),
                       at = static_cast<size_t>(backward ? bin : element);
            sums[to] += from[at] * weight;
        },
        sums);
    if (!wrong) unpackElements(sums, written);
    return wrong;
}
Tensor channelsOfBins(const EvalContext& c, const RegionSizes& s, int64_t regions) {
    Tensor channels = c.result(1);
    int32_t* out = channels.as<int32_t>();
    for (int64_t region = 0; region < regions; ++region)
        for (int64_t i = 0; i < s.outputs * s.down * s.across; ++i) *out++ = static_cast<int32_t>(i);
    return channels;
}

template <bool kSensitive>
EvalResult alignForward(const EvalContext& c) {
    const Tensor maps = c.in(size_t{0}), rois = c.in(1);
    Tensor out = c.result(0);
    const RegionSizes s(maps.sizes(), out.sizes(), kSensitive);
    std::optional<Error> wrong;
    withFloat(maps.dtype(), [&](auto tag) {
        const auto boxes = packElements<decltype(tag)>(rois);
        wrong = sumByWeight(maps, out, false, [&](auto add, std::vector<double>& sums) {
            return forEachTap(c, s, boxes, add, [&](int64_t bin, int64_t places) {
                // A mean of no elements; the other form counts one at least.
                if (kSensitive && places == 0) sums[static_cast<size_t>(bin)] = std::nan("");
            });
        });
    });
    if (wrong) return *wrong;
    if (kSensitive) return TensorList{out, channelsOfBins(c, s, rois.size(0))};
    return out;
}
/// Takes over what a forward said of its bins; false where that names channels that are not there.
bool readMapping(const EvalContext& c, RegionSizes& s) {
    if (c.op().schema()->find("channel_mapping") < 0) return true;
    s.mapping = packElements<int64_t>(c.in("channel_mapping"));
    return std::all_of(s.mapping.begin(), s.mapping.end(),
                       [&](int64_t channel) { return channel >= 0 && channel < s.channels; });
}
template <bool kSensitive>
EvalResult alignBackward(const EvalContext& c) {
    const Tensor gradient = c.in(size_t{0}), rois = c.in(1);
    Tensor out = c.result();
    RegionSizes s(out.sizes(), gradient.sizes(), kSensitive);
    if (!readMapping(c, s)) return c.fail("channel_mapping names a channel that the maps do not have");
    std::optional<Error> wrong;
    withFloat(gradient.dtype(), [&](auto tag) {
        const auto boxes = packElements<decltype(tag)>(rois);
        wrong = sumByWeight(gradient, out, true, [&](auto add, std::vector<double>&) {
            return forEachTap(c, s, boxes, add, [](int64_t, int64_t) {});
        });
    });
    if (wrong) return *wrong;
    return out;
}
template <bool kBackward>
EvalResult poolBySensitivePosition(const EvalContext& c) {
    const Tensor read = c.in(size_t{0}), rois = c.in(1);
    Tensor out = c.result(0);
    RegionSizes s((kBackward ? out : read).sizes(), (kBackward ? read : out).sizes(), true);
    if (!readMapping(c, s)) return c.fail("channel_mapping names a channel that the maps do not have");
    std::optional<Error> wrong;
    withFloat(read.dtype(), [&](auto tag) {
        const auto boxes = packElements<decltype(tag)>(rois);
        wrong = sumByWeight(read, out, kBackward,
                            [&](auto add, std::vector<double>&) { return forEachElement(c, s, boxes, add); });
    });
    if (wrong) return *wrong;
    if (kBackward) return out;
    return TensorList{out, channelsOfBins(c, s, rois.size(0))};
}

/// [regions, channels, pooled height, pooled width]; channels are divided among the bins in position-sensitive forms.
Result<TensorType> inferBins(const InferContext& c, bool sensitive) {
    CT_TRY_VOID(checkRegions(c));
    CT_TRY(const TensorType x, c.tensor("input"));
    CT_TRY(const TensorType boxes, c.tensor("rois"));
    CT_TRY(const SymInt height, c.size("pooled_height"));
    CT_TRY(const SymInt width, c.size("pooled_width"));
    for (const SymInt& size : {height, width})
        if (exceeds(1, size)) return c.fail("pools to " + size.text() + " bins");
    SymInt channels = x.sizes[1];
    if (sensitive) {
        const SymInt bins = height * width;
        if (bins.isInt() && leavesRemainder(channels, bins.value()))
            return c.fail(channels.text() + " channels cannot be divided among " + bins.text() + " bins");
        channels = floorDiv(channels, bins);
    }
    return TensorType::contiguous(x.dtype, {boxes.sizes[0], channels, height, width}, x.device);
}
Result<ValueType> inferSensitive(const InferContext& c) {
    CT_TRY(const TensorType bins, inferBins(c, true));
    return ValueType(TupleType{bins, TensorType::contiguous(DType::I32, bins.sizes, bins.device)});
}
Result<ValueType> inferMaps(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor("grad"));
    CT_TRY(const TensorType boxes, c.tensor("rois"));
    if (gradient.rank() != 4 || boxes.rank() != 2 || !isFloating(gradient.dtype) || boxes.dtype != gradient.dtype)
        return c.fail("needs gradients of 4 dims and regions of their dtype, not " + gradient.text() + " and " +
                      boxes.text());
    SymDims sizes;
    if (c.op().schema()->find("channel_mapping") >= 0) {
        CT_TRY(const TensorType mapping, c.tensor("channel_mapping"));
        if (mapping.dtype != DType::I32 || differ(mapping.sizes, gradient.sizes))
            return c.fail("needs a channel for each gradient, not " + mapping.text());
    }
    for (const char* param : {"batch_size", "channels", "height", "width"}) {
        CT_TRY(const SymInt size, c.size(param));
        sizes.push_back(size);
    }
    if (differ(boxes.sizes[0], gradient.sizes[0]) || differ(boxes.sizes[1], SymInt(kNumbersOfRegion)))
        return c.fail("needs five numbers for each region of the gradient, not " + boxes.text());
    if (c.op().schema()->find("channel_mapping") < 0 && differ(gradient.sizes[1], sizes[1]))
        return c.fail("the gradient " + gradient.text() + " does not have " + sizes[1].text() + " channels");
    return ValueType(TensorType::contiguous(gradient.dtype, sizes, gradient.device));
}
/// The sizes of the maps as arguments.
void addSizes(std::vector<Argument>& arguments, const Value& maps) {
    for (int64_t dim = 0; dim < 4; ++dim) arguments.emplace_back(maps.size(dim));
}
/// A backward is linear in the gradient: what comes back to it is the forward of what comes back to the maps.
void deriveRoiAlignBackward(Derivation& d) {
    d.input(0) =
        d.call("torchvision.roi_align.default", {d.dy(), d.in("rois"), d.arg("spatial_scale"), d.arg("pooled_height"),
                                                 d.arg("pooled_width"), d.arg("sampling_ratio"), d.arg("aligned")});
}
void deriveSensitive(Derivation& d, std::string_view op, bool sampled) {
    if (!d.dy(0)) return;
    std::vector<Argument> arguments = {
        d.dy(0), d.in("rois"), d.out(1), d.arg("spatial_scale"), d.arg("pooled_height"), d.arg("pooled_width")};
    if (sampled) arguments.push_back(d.arg("sampling_ratio"));
    addSizes(arguments, d.in("input"));
    d.input(0) = d.call(op, arguments);
}

constexpr OpDef kRegionOps[] = {
    {.schema =
         "torchvision._roi_align_backward.default(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
     .infer = inferMaps,
     .eval = alignBackward<false>,
     .derive = deriveRoiAlignBackward,
     .samples =
         "f32[4, 3, 2, 3], f32[4, 5]%, 9.0, 2, 3, 2, 3, 6, 7, -1, False\nf64[3, 2, 3, 2], f64[3, 5]%, 4.0, 3, 2, 1, 2, 5, 5, 2, True"},
    {.schema =
         "torchvision.ps_roi_align.default(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
     .infer = inferSensitive,
     .eval = alignForward<true>,
     .derive = [](Derivation& d) { deriveSensitive(d, "torchvision._ps_roi_align_backward.default", true); },
     .samples =
         "f32[2, 12, 6, 7], f32[4, 5]%, 9.0, 2, 3, -1\nf64[1, 8, 5, 5], f64[3, 5]%, 8.0, 2, 2, 2\nf32[1, 4, 5, 5], f32[0, 5], 1.0, 2, 2, 0"},
    {.schema =
         "torchvision._ps_roi_align_backward.default(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
     .infer = inferMaps,
     .eval = alignBackward<true>,
     .samples =
         "f32[4, 2, 2, 3], f32[4, 5]%, i32[4, 2, 2, 3]<12, 9.0, 2, 3, -1, 2, 12, 6, 7\nf64[3, 2, 2, 2], f64[3, 5]%, i32[3, 2, 2, 2]<8, 8.0, 2, 2, 2, 1, 8, 5, 5"},
    {.schema =
         "torchvision.ps_roi_pool.default(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
     .infer = inferSensitive,
     .eval = poolBySensitivePosition<false>,
     .derive = [](Derivation& d) { deriveSensitive(d, "torchvision._ps_roi_pool_backward.default", false); },
     .samples =
         "f32[2, 12, 6, 7], f32[4, 5]%, 9.0, 2, 3\nf64[1, 8, 5, 5], f64[3, 5]%, 8.0, 2, 2\nf32[1, 4, 5, 5], f32[0, 5], 1.0, 2, 2"},
    {.schema =
         "torchvision._ps_roi_pool_backward.default(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
     .infer = inferMaps,
     .eval = poolBySensitivePosition<true>,
     .samples =
         "f32[4, 2, 2, 3], f32[4, 5]%, i32[4, 2, 2, 3]<12, 9.0, 2, 3, 2, 12, 6, 7\nf64[3, 2, 2, 2], f64[3, 5]%, i32[3, 2, 2, 2]<8, 8.0, 2, 2, 1, 8, 5, 5"},
};

}  // namespace

Result<void> checkRegions(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor("input"));
    CT_TRY(const TensorType boxes, c.tensor("rois"));
    if (x.rank() != 4 || boxes.rank() != 2 || differ(boxes.sizes[1], SymInt(kNumbersOfRegion)))
        return c.fail("needs maps of 4 dims and regions of 5 numbers, not " + x.text() + " and " + boxes.text());
    if ((x.dtype != DType::F32 && x.dtype != DType::F64 && x.dtype != DType::F16) || boxes.dtype != x.dtype)
        return c.fail("needs maps of float32, float64 or float16, and regions of their dtype");
    return {};
}
Result<ValueType> inferRoiAlign(const InferContext& c) {
    CT_TRY(TensorType bins, inferBins(c, false));
    return ValueType(std::move(bins));
}
EvalResult evalRoiAlign(const EvalContext& c) { return alignForward<false>(c); }
void deriveRoiAlign(Derivation& d) {
    std::vector<Argument> arguments = {d.dy(), d.in("rois"), d.arg("spatial_scale"), d.arg("pooled_height"),
                                       d.arg("pooled_width")};
    addSizes(arguments, d.in("input"));
    arguments.push_back(d.arg("sampling_ratio"));
    arguments.push_back(d.arg("aligned"));
    d.input(0) = d.call("torchvision._roi_align_backward.default", arguments);
}

std::span<const OpDef> torchvisionRegionOps() { return kRegionOps; }

}  // namespace cutaway
