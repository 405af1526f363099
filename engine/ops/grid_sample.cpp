// Sampling of planes and volumes at positions that a grid gives: its last dim holds x and y (and z), -1 and 1 being the
// borders.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/support/cubic_taps.h"

namespace cutaway {
namespace {

enum Blend : int64_t { kBilinear, kNearest, kBicubic };
enum Border : int64_t { kZeros, kEdge, kReflection };

struct Sampling {
    int64_t blend = kBilinear, border = kZeros;
    bool alignCorners = false;
};
Result<Sampling> readSampling(const InferContext& c) {
    Sampling s;
    CT_TRY(s.blend, c.integer("interpolation_mode"));
    CT_TRY(s.border, c.integer("padding_mode"));
    s.alignCorners = c.flag("align_corners");
    if (s.blend < 0 || s.blend > 2)
        return c.fail("unknown interpolation_mode " + std::to_string(s.blend) +
                      "; 0 is bilinear, 1 nearest, 2 bicubic");
    if (s.border < 0 || s.border > 2)
        return c.fail("unknown padding_mode " + std::to_string(s.border) + "; 0 is zeros, 1 border, 2 reflection");
    return s;
}
Result<ValueType> inferSample(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor("input"));
    CT_TRY(const TensorType grid, c.tensor("grid"));
    const bool volume = c.op().name().find("3d") != std::string::npos;
    const int64_t spatial = volume ? 3 : 2;
    if (input.rank() != spatial + 2 || grid.rank() != spatial + 2)
        return c.fail("needs an input and a grid of " + std::string(volume ? "five" : "four") + " dims, not " +
                      input.text() + " and " + grid.text());
    CT_TRY(const Sampling sampling, readSampling(c));
    if (volume && sampling.blend == kBicubic) return c.fail("bicubic samples planes only");
    if (!isFloating(input.dtype) || input.dtype != grid.dtype)
        return c.fail("needs input and grid of one floating-point dtype");
    const SymInt &batch = input.sizes[0], &gridBatch = grid.sizes[0];
    if (differ(batch, gridBatch)) return c.fail("the batches of " + input.text() + " and " + grid.text() + " differ");
    if (!(grid.sizes.back() == SymInt(spatial)))
        return c.fail("the last dim of the grid " + grid.text() + " must hold x and y" + (volume ? " and z" : ""));
    for (size_t dim = 2; dim < input.sizes.size(); ++dim)
        if (input.sizes[dim] == SymInt(0))
            return c.fail("dim " + std::to_string(dim) + " of " + input.text() + " has no elements");
    SymDims sizes = {batch, input.sizes[1]};
    sizes.insert(sizes.end(), grid.sizes.begin() + 1, grid.sizes.end() - 1);
    return ValueType(TensorType::contiguous(input.dtype, sizes, input.device));
}

// -- kernels

/// A position along a dim in elements, and its derivative by the grid's coordinate.
template <class T>
struct Place {
    T at = 0, slope = 1;
};
template <class T>
Place<T> unnormalised(T coordinate, int64_t size, bool alignCorners) {
    if (alignCorners) return {(coordinate + 1) / 2 * static_cast<T>(size - 1), static_cast<T>(size - 1) / 2};
    return {((coordinate + 1) * static_cast<T>(size) - 1) / 2, static_cast<T>(size) / 2};
}
/// Folded back into the plane as the padding mode says.
template <class T>
Place<T> bounded(Place<T> p, int64_t size, const Sampling& s) {
    if (s.border == kZeros) return p;
    if (s.border == kReflection) {
        const T low = s.alignCorners ? T(0) : T(-0.5), span = static_cast<T>(s.alignCorners ? size - 1 : size);
        if (span == 0) return {0, 0};
        T from = p.at - low;
        if (from < 0) {
            from = -from;
            p.slope = -p.slope;
        }
        const T extra = std::fmod(from, span);
        const bool back = std::fmod(std::floor(from / span), T(2)) != 0;
        p.at = (back ? span - extra : extra) + low;
        if (back) p.slope = -p.slope;
    }
    const T last = static_cast<T>(size - 1);
    if (!(p.at > 0)) return {0, 0};
    if (p.at >= last) return {last, 0};
    return p;
}
/// An element that is read, with its weight and the weight's derivatives by x and y.
template <class T>
struct SampleTap {
    int64_t row = 0, column = 0;
    T weight = 1, byX = 0, byY = 0;
};
constexpr double kNowhere = 1e9;
/// The index of a whole position; anything far away or not a number lies outside every plane.
template <class T>
int64_t wholeIndex(T at) {
    return std::fabs(at) < T(kNowhere) ? static_cast<int64_t>(at) : -100;
}

/// The taps of one position of the grid that lie in a plane of `height` by `width` elements.
template <class T>
std::vector<SampleTap<T>> tapsAt(T x, T y, int64_t height, int64_t width, const Sampling& s) {
    Place<T> px = unnormalised(x, width, s.alignCorners), py = unnormalised(y, height, s.alignCorners);
    std::vector<SampleTap<T>> taps;
    auto add = [&](SampleTap<T> tap) {
        if (tap.row >= 0 && tap.row < height && tap.column >= 0 && tap.column < width) taps.push_back(tap);
    };
    if (s.blend == kBicubic) {
        const T left = std::floor(px.at), top = std::floor(py.at);
        T wx[4], dx[4], wy[4], dy[4];
        cubicTaps(px.at - left, wx, dx);
        cubicTaps(py.at - top, wy, dy);
        for (int i = 0; i < 4; ++i)
            for (int k = 0; k < 4; ++k) {
                const Place<T> row = bounded(Place<T>{top + static_cast<T>(i - 1), 1}, height, s),
                               column = bounded(Place<T>{left + static_cast<T>(k - 1), 1}, width, s);
                add({wholeIndex(row.at), wholeIndex(column.at), wx[k] * wy[i], dx[k] * wy[i] * px.slope,
                     wx[k] * dy[i] * py.slope});
            }
        return taps;
    }
    px = bounded(px, width, s);
    py = bounded(py, height, s);
    if (s.blend == kNearest) {
        add({wholeIndex(std::nearbyint(py.at)), wholeIndex(std::nearbyint(px.at))});
        return taps;
    }
    const T left = std::floor(px.at), top = std::floor(py.at), fx = px.at - left, fy = py.at - top;
    for (int corner = 0; corner < 4; ++corner) {
        const bool right = corner % 2 != 0, below = corner / 2 != 0;
        const T wx = right ? fx : 1 - fx, wy = below ? fy : 1 - fy;
        add({wholeIndex(top) + (below ? 1 : 0), wholeIndex(left) + (right ? 1 : 0), wx * wy,
             (right ? wy : -wy) * px.slope, (below ? wx : -wx) * py.slope});
    }
    return taps;
}

/// body(sample, output position, taps) for every position of the grid.
template <class T, class Body>
void forEachPosition(const Tensor& input, const Tensor& grid, const Sampling& s, Body&& body) {
    const std::vector<T> places = packElements<T>(grid);
    const int64_t positions = grid.size(1) * grid.size(2);
    for (int64_t n = 0; n < grid.size(0); ++n)
        for (int64_t o = 0; o < positions; ++o) {
            const auto at = static_cast<size_t>((n * positions + o) * 2);
            body(n, o, tapsAt(places[at], places[at + 1], input.size(2), input.size(3), s));
        }
}
EvalResult evalSample(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor input = c.in("input"), grid = c.in("grid");
    const Sampling s = *readSampling(c);
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> planes = packElements<T>(input);
        std::vector<T> sampled(static_cast<size_t>(out.numel()), T(0));
        const int64_t channels = input.size(1), plane = input.size(2) * input.size(3),
                      positions = grid.size(1) * grid.size(2);
        forEachPosition<T>(input, grid, s, [&](int64_t n, int64_t o, const std::vector<SampleTap<T>>& taps) {
            for (int64_t k = 0; k < channels; ++k) {
                T total = 0;
                for (const auto& tap : taps)
                    total +=
                        planes[static_cast<size_t>((n * channels + k) * plane + tap.row * input.size(3) + tap.column)] *
                        tap.weight;
                sampled[static_cast<size_t>((n * channels + k) * positions + o)] = total;
            }
        });
        unpackElements(sampled, out);
    });
    return out;
}

Result<ValueType> inferSampleBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor("grad_output"));
    CT_TRY(const TensorType input, c.tensor("input"));
    CT_TRY(const TensorType grid, c.tensor("grid"));
    CT_TRY(const ValueType sampled, inferSample(c));
    if (!(gradient.sizes == sampled.tensor()->sizes) || gradient.dtype != input.dtype)
        return c.fail("the gradient " + gradient.text() + " is not that of " + sampled.tensor()->text());
    CT_TRY(const std::vector<int64_t> mask, c.integers("output_mask"));
    if (mask.size() != 2) return c.fail("output_mask needs two flags");
    TupleType types(2);
    if (mask[0]) types[0] = TensorType::contiguous(input.dtype, input.sizes, input.device);
    types[1] = TensorType::contiguous(grid.dtype, grid.sizes, grid.device);
    return ValueType(std::move(types));
}
EvalResult evalSampleBackward(const EvalContext& c) {
    const Tensor input = c.in("input"), grid = c.in("grid");
    const bool wantsInput = c.integersOf("output_mask")[0] != 0;
    const Sampling s = *readSampling(c);
    TensorList out = {wantsInput ? c.result(0) : Tensor(), c.result(1)};
    withFloat(input.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> planes = packElements<T>(input), g = packElements<T>(c.in("grad_output"));
        std::vector<T> forInput(planes.size(), T(0)), forGrid(static_cast<size_t>(grid.numel()), T(0));
        const int64_t channels = input.size(1), plane = input.size(2) * input.size(3),
                      positions = grid.size(1) * grid.size(2);
        forEachPosition<T>(input, grid, s, [&](int64_t n, int64_t o, const std::vector<SampleTap<T>>& taps) {
            const auto place = static_cast<size_t>((n * positions + o) * 2);
            for (int64_t k = 0; k < channels; ++k) {
                const T arriving = g[static_cast<size_t>((n * channels + k) * positions + o)];
                for (const auto& tap : taps) {
                    const auto at =
                        static_cast<size_t>((n * channels + k) * plane + tap.row * input.size(3) + tap.column);
                    forInput[at] += arriving * tap.weight;
                    forGrid[place] += arriving * planes[at] * tap.byX;
                    forGrid[place + 1] += arriving * planes[at] * tap.byY;
                }
            }
        });
        if (wantsInput) unpackElements(forInput, out[0]);
        unpackElements(forGrid, out[1]);
    });
    return out;
}

// -- volumes

/// An element of a volume that is read, with its weight and the weight's derivatives by x, y and z.
template <class T>
struct VolumeTap {
    int64_t at = 0;
    T weight = 1;
    std::array<T, 3> slopes = {0, 0, 0};
};
/// The taps of the position x, y, z that lie in a volume of these sizes, the size along x first.
template <class T>
std::vector<VolumeTap<T>> volumeTaps(const T* position, const std::array<int64_t, 3>& sizes, const Sampling& s) {
    std::array<Place<T>, 3> places;
    for (size_t i = 0; i < 3; ++i)
        places[i] = bounded(unnormalised(position[i], sizes[i], s.alignCorners), sizes[i], s);
    std::vector<VolumeTap<T>> taps;
    for (int corner = 0; corner < (s.blend == kNearest ? 1 : 8); ++corner) {
        VolumeTap<T> tap;
        std::array<T, 3> weights = {1, 1, 1};
        bool inside = true;
        int64_t stride = 1;
        for (size_t i = 0; i < 3; ++i) {
            const bool far = (corner >> i & 1) != 0;
            const T base = s.blend == kNearest ? std::nearbyint(places[i].at) : std::floor(places[i].at),
                    part = places[i].at - base;
            const int64_t index = wholeIndex(base) + (far ? 1 : 0);
            inside = inside && index >= 0 && index < sizes[i];
            if (s.blend == kBilinear) {
                weights[i] = far ? part : 1 - part;
                tap.slopes[i] = far ? places[i].slope : -places[i].slope;
            }
            tap.at += index * stride;
            stride *= sizes[i];
        }
        if (!inside) continue;
        tap.weight = weights[0] * weights[1] * weights[2];
        for (size_t i = 0; i < 3; ++i) tap.slopes[i] *= weights[(i + 1) % 3] * weights[(i + 2) % 3];
        taps.push_back(tap);
    }
    return taps;
}
/// body(element of the input, element of the result, first number of the position, tap) for everything that is read.
template <class T, class Body>
void forEachVolumeTap(const Tensor& input, const Tensor& grid, const Sampling& s, Body&& body) {
    const std::vector<T> places = packElements<T>(grid);
    const std::array<int64_t, 3> sizes = {input.size(4), input.size(3), input.size(2)};
    const int64_t volume = sizes[0] * sizes[1] * sizes[2], channels = input.size(1),
                  positions = grid.size(1) * grid.size(2) * grid.size(3);
    for (int64_t n = 0; n < grid.size(0); ++n)
        for (int64_t o = 0; o < positions; ++o) {
            const auto place = static_cast<size_t>((n * positions + o) * 3);
            for (const VolumeTap<T>& tap : volumeTaps(places.data() + place, sizes, s))
                for (int64_t k = 0; k < channels; ++k) {
                    const int64_t line = n * channels + k;
                    body(static_cast<size_t>(line * volume + tap.at), static_cast<size_t>(line * positions + o), place,
                         tap);
                }
        }
}
EvalResult evalVolumes(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor input = c.in("input");
    const Sampling s = *readSampling(c);
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> volumes = packElements<T>(input);
        std::vector<T> sampled(static_cast<size_t>(out.numel()), T(0));
        forEachVolumeTap<T>(input, c.in("grid"), s, [&](size_t from, size_t to, size_t, const VolumeTap<T>& tap) {
            sampled[to] += volumes[from] * tap.weight;
        });
        unpackElements(sampled, out);
    });
    return out;
}
EvalResult evalVolumesBackward(const EvalContext& c) {
    const Tensor input = c.in("input"), grid = c.in("grid");
    const bool wantsInput = c.integersOf("output_mask")[0] != 0;
    const Sampling s = *readSampling(c);
    TensorList out = {wantsInput ? c.result(0) : Tensor(), c.result(1)};
    withFloat(input.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> volumes = packElements<T>(input), g = packElements<T>(c.in("grad_output"));
        std::vector<T> forInput(volumes.size(), T(0)), forGrid(static_cast<size_t>(grid.numel()), T(0));
        forEachVolumeTap<T>(input, grid, s, [&](size_t from, size_t to, size_t place, const VolumeTap<T>& tap) {
            forInput[from] += g[to] * tap.weight;
            for (size_t i = 0; i < 3; ++i) forGrid[place + i] += g[to] * volumes[from] * tap.slopes[i];
        });
        if (wantsInput) unpackElements(forInput, out[0]);
        unpackElements(forGrid, out[1]);
    });
    return out;
}

// -- as arithmetic and look-ups

struct Plane {
    Decomposition& d;
    Value input, grid;
    SymInt batch, channels, height, width;
    Sampling s;
    bool perChannel;  // the grid is repeated for every channel, so that one loop does all
    Value samples, planes;

    Value clamp(const Value& x, const SymInt& size) const {
        return d.call("aten.clamp.default", {x, 0, Argument(size - SymInt(1))});
    }
    Value reflected(const Value& x, const SymInt& size) const {
        const double n = static_cast<double>(size.value()), low = s.alignCorners ? 0 : -0.5,
                     span = s.alignCorners ? n - 1 : n;
        if (span == 0) return unary("aten.zeros_like.default", x);
        const Value from = unary("aten.abs.default", x - low);
        const Value extra = d.call("aten.fmod.Scalar", {from, span});
        const Value turns = convert(unary("aten.floor.default", from / span), DType::I8);
        const Value even = compareScalar("eq", d.call("aten.bitwise_and.Scalar", {turns, 1}), int64_t{0});
        const Value forward = extra + low;
        return where(even, forward, subtractFrom(span + low, extra));
    }
    Value source(const Value& x, const SymInt& size) const {
        const double half = static_cast<double>(size.value()) * 0.5;
        const Value at = x * (s.alignCorners ? half - 0.5 : half) + (half - 0.5);
        if (s.border == kZeros) return at;
        return clamp(s.border == kReflection ? reflected(at, size) : at, size);
    }
    /// The elements at whole positions times a weight; outside the plane 0.
    Value read(const Value& x, const Value& y, const Value& weight) const {
        const auto less = [&](const Value& v, const SymInt& size) {
            return d.call("aten.lt.Scalar", {v, Argument(size)});
        };
        const Value left = compareScalar("ge", x, int64_t{0}), right = less(x, width),
                    top = compareScalar("ge", y, int64_t{0}), bottom = less(y, height);
        const Value rows = d.call("aten.logical_and.default", {top, bottom});
        const Value inside =
            d.call("aten.logical_and.default", {left, d.call("aten.logical_and.default", {right, rows})});
        const SymDims shape = {batch, perChannel ? channels : SymInt(1), grid.size(perChannel ? 2 : 1),
                               grid.size(perChannel ? 3 : 2)};
        const auto kept = [&](const Value& v, DType dtype) {
            return view(where(inside, v, scalarTensor(d.builder(), int64_t{0}, dtype, v.type().device)), shape);
        };
        const Value wholeX = convert(x, DType::I64), wholeY = convert(y, DType::I64);
        const Value column = kept(wholeX, DType::I64), row = kept(wholeY, DType::I64);
        Value factor;
        if (weight) factor = kept(weight, weight.dtype());
        else
            factor = view(where(inside, scalarTensor(d.builder(), int64_t{1}, DType::I64, x.type().device),
                                scalarTensor(d.builder(), int64_t{0}, DType::I64, x.type().device)),
                          shape);
        const std::vector<Argument> at = {samples, planes, row, column};
        return d.call("aten.index.Tensor", {input, Argument(at)}) * factor;
    }
};
Value between(const Plane& p, const Value& x, const Value& y) {
    const Value west = unary("aten.floor.default", x), north = unary("aten.floor.default", y);
    const Value east = west + 1, south = north + 1;
    // The product of a weight's two factors, the one along x first, as PyTorch writes it.
    const auto area = [](const Value& a, const Value& b, const Value& e, const Value& f) {
        const Value across = a - b, down = e - f;
        return across * down;
    };
    const Value northWest = area(east, x, south, y), northEast = area(x, west, south, y),
                southWest = area(east, x, y, north), southEast = area(x, west, y, north);
    Value total = p.read(west, north, northWest);
    total = total + p.read(east, north, northEast);
    total = total + p.read(west, south, southWest);
    return total + p.read(east, south, southEast);
}
Values decomposeSample(Decomposition& d) {
    const Sampling s = *readSampling(d);
    const Value input = toOpmath(d.in("input")), given = toOpmath(d.in("grid"));
    if (s.blend == kBicubic || !input.size(2).isInt() || !input.size(3).isInt()) return Values::notHandled();
    const bool perChannel =
        input.type().device.type != DeviceType::Cpu || s.blend != kBilinear || !d.in("input").type().isContiguous();
    Plane p{d, input, given, input.size(0), input.size(1), input.size(2), input.size(3), s, perChannel, {}, {}};
    if (perChannel)
        p.grid = expand(view(given, {p.batch, SymInt(1), given.size(1), given.size(2), SymInt(2)}),
                        {p.batch, p.channels, given.size(1), given.size(2), SymInt(2)});
    const Device device = input.type().device;
    p.samples = view(iota(d.builder(), p.batch, device), {p.batch, SymInt(1), SymInt(1), SymInt(1)});
    p.planes = view(iota(d.builder(), p.channels, device), {SymInt(1), p.channels, SymInt(1), SymInt(1)});
    const int64_t last = p.grid.rank() - 1;
    const Value xs = d.call("aten.select.int", {p.grid, last, 0}), ys = d.call("aten.select.int", {p.grid, last, 1});
    const Value x = p.source(xs, p.width), y = p.source(ys, p.height);
    if (s.blend == kBilinear) return convert(between(p, x, y), d.out().dtype);
    const Value column = unary("aten.round.default", x);
    return convert(p.read(column, unary("aten.round.default", y), Value()), d.out().dtype);
}
void deriveSample(Derivation& d, std::string_view backward) {
    const std::vector<Argument> mask = {Argument(d.needs(0)), Argument(d.needs(1))};
    const Value both = d.call(backward, {d.dy(), d.in("input"), d.in("grid"), d.arg("interpolation_mode"),
                                         d.arg("padding_mode"), d.arg("align_corners"), Argument(mask)});
    if (d.needs(0)) d.input(0) = both[0];
    if (d.needs(1)) d.input(1) = both[1];
}

constexpr std::string_view kGridSamples = R"(
f32[2, 3, 4, 5], f32[2, 2, 3, 2]<2, 0, 0, False
f32[1, 2, 3, 4], f32[1, 2, 2, 2]<2, 1, 0, True
f32[2, 2, 4, 5], f32[2, 3, 2, 2]<2, 0, 1, False
f32[2, 2, 4, 5], f32[2, 3, 2, 2]<2, 0, 2, False
f32[1, 2, 4, 5], f32[1, 3, 2, 2]<2, 0, 2, True
f64[1, 2, 4, 5], f64[1, 3, 2, 2]<2, 1, 2, False
f64[1, 2, 4, 5], f64[1, 3, 2, 2]<2, 2, 0, False
f32[1, 2, 4, 5], f32[1, 3, 2, 2]<2, 2, 1, True
f64[1, 1, 4, 5], f64[1, 3, 2, 2]<3, 2, 2, False
)";

constexpr OpDef kGridSampleOps[] = {
    {.schema =
         "aten.grid_sampler_2d.default(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     .infer = inferSample,
     .eval = evalSample,
     .expand = Expand::Decompose,
     .decompose = decomposeSample,
     .derive = [](Derivation& d) { deriveSample(d, "aten.grid_sampler_2d_backward.default"); },
     .samples = kGridSamples},
    {.schema =
         "aten.grid_sampler_3d.default(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     .infer = inferSample,
     .eval = evalVolumes,
     .derive = [](Derivation& d) { deriveSample(d, "aten.grid_sampler_3d_backward.default"); },
     .samples = R"(
f32[2, 2, 3, 4, 5], f32[2, 2, 1, 3, 3]<2, 0, 0, False
f64[1, 2, 2, 3, 4], f64[1, 2, 2, 2, 3]<2, 0, 1, True
f64[1, 2, 2, 3, 4], f64[1, 2, 2, 2, 3]<3, 0, 2, False
f32[1, 2, 2, 3, 4], f32[1, 2, 2, 2, 3]<2, 1, 0, True
)"},
    shorthand(
        "aten.grid_sampler.default(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call(d.in(0).rank() == 5 ? "aten.grid_sampler_3d.default" : "aten.grid_sampler_2d.default",
                          {d.in(0), d.in(1), d.arg(2), d.arg(3), d.arg(4)});
        },
        "f32[2, 3, 4, 5], f32[2, 2, 3, 2]<2, 0, 0, False\nf32[1, 2, 3, 4], f32[1, 2, 2, 2]<2, 1, 1, True\nf32[1, 2, 2, 3, 4], f32[1, 2, 1, 2, 3]<2, 0, 0, False"),
    // The gradients of the input and of the grid.
    {.schema =
         "aten.grid_sampler_2d_backward.default(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, "
         "bool[2] output_mask) -> (Tensor, Tensor)",
     .infer = inferSampleBackward,
     .eval = evalSampleBackward,
     .samples = R"(
f32[2, 3, 2, 3], f32[2, 3, 4, 5], f32[2, 2, 3, 2]<2, 0, 0, False, [True, True]
f64[1, 2, 3, 2], f64[1, 2, 4, 5], f64[1, 3, 2, 2]<2, 2, 0, True, [True, True]
f32[1, 2, 3, 2], f32[1, 2, 4, 5], f32[1, 3, 2, 2]<2, 0, 2, False, [True, True]
f32[1, 2, 3, 2], f32[1, 2, 4, 5], f32[1, 3, 2, 2]<2, 1, 1, False, [False, True]
)"},
    {.schema =
         "aten.grid_sampler_3d_backward.default(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, "
         "bool[2] output_mask) -> (Tensor, Tensor)",
     .infer = inferSampleBackward,
     .eval = evalVolumesBackward,
     .samples = R"(
f32[2, 2, 2, 1, 3], f32[2, 2, 3, 4, 5], f32[2, 2, 1, 3, 3]<2, 0, 0, False, [True, True]
f64[1, 2, 2, 2, 2], f64[1, 2, 2, 3, 4], f64[1, 2, 2, 2, 3]<2, 1, 1, True, [False, True]
)"},
};

}  // namespace

std::span<const OpDef> gridSampleOps() { return kGridSampleOps; }

}  // namespace cutaway
