// Gradients of pooling by the largest and of resampling: each element of the gradient is added where it came from,
// plane by plane, in the order of the gradient.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// The last `spatial` dims.
int64_t planeOf(const Strided& tensor, int32_t spatial) {
    int64_t plane = 1;
    for (int32_t d = tensor.rank - spatial; d < tensor.rank; ++d) plane *= tensor.sizes[d];
    return plane;
}

/// (grad_output, self, ..., indices): indices count the elements of a plane.
template <int32_t spatial, int32_t indices>
void maxPoolBackward(const Run& run) {
    const Strided gradient = run.in(0), index = run.in(indices), out = run.out();
    const int64_t plane = planeOf(out, spatial), given = planeOf(gradient, spatial);
    const Indices places(index);
    withWide(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(plane == 0 ? 0 : out.elements() / plane, [&](int64_t task, int64_t begin, int64_t end) {
            auto* const sums = reinterpret_cast<T*>(run.scratch + task * plane * kWidest);
            for (int64_t p = begin; p < end; ++p) {
                std::fill_n(sums, plane, T{});
                for (int64_t i = p * given; i < (p + 1) * given; ++i) {
                    const int64_t at = places[index.offsetOf(i)];
                    if (at < 0 || at >= plane) throw Failure("an index lies outside its plane");
                    const auto element = loadOne<T>(gradient.dtype, gradient.at(gradient.offsetOf(i)));
                    sums[at] = sumOf(sums[at], element);
                }
                storeRange(out, p * plane, (p + 1) * plane, sums);
            }
        });
    });
}
template <int32_t spatial>
int64_t poolScratch(const CtCall& call, int32_t tasks) {
    return planeOf(Strided(call.results[0]), spatial) * kWidest * tasks;
}

// -- resampling

enum class Kind : uint8_t { Nearest, NearestExact, Linear, Cubic };

/// An element along one dim and its share.
struct Share {
    int64_t at = 0;
    double weight = 1;
};
constexpr int32_t kMostShares = 4;
struct Shares {
    Share shares[kMostShares];
    int32_t count = 0;
    void add(int64_t at, double weight) { shares[count++] = {at, weight}; }
};

/// A position as an index, also where a scale near 0 sends it beyond all numbers of 64 bits; NaN is 0.
int64_t indexOf(double position, int64_t most) {
    if (!(position > 0)) return 0;
    return position < static_cast<double>(most) ? static_cast<int64_t>(position) : most;
}
/// The shares of output element `o` along a dim. `scale`: 0 if not given.
Shares sharesAt(Kind kind, int64_t o, int64_t in, int64_t out, double scale, bool alignCorners) {
    const bool nearest = kind == Kind::Nearest || kind == Kind::NearestExact;
    double step = scale > 0 ? 1.0 / scale : static_cast<double>(in) / static_cast<double>(out);
    if (!nearest && alignCorners) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    Shares made;
    // Here PyTorch takes no scale where a size stays or doubles, also of lines and volumes (2.15).
    if (kind == Kind::Nearest && (out == in || out == 2 * in)) {
        made.add(o / (out / in), 1);
        return made;
    }
    if (nearest) {
        const float half = kind == Kind::NearestExact ? 0.5f : 0.0f;
        made.add(indexOf(std::floor((static_cast<float>(o) + half) * static_cast<float>(step)), in - 1), 1);
        return made;
    }
    const double place = alignCorners ? step * static_cast<double>(o) : step * (static_cast<double>(o) + 0.5) - 0.5;
    if (kind == Kind::Linear) {
        const double at = std::max(place, 0.0);
        const int64_t low = indexOf(at, in - 1), high = std::min(low + 1, in - 1);
        const double part = std::min(at - static_cast<double>(low), 1.0);
        made.add(low, 1 - part);
        made.add(high, part);
        return made;
    }
    constexpr double kA = -0.75;
    const auto near = [](double x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
    const auto far = [](double x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
    const double base = std::floor(place), t = place - base;
    const double weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int k = 0; k < kMostShares; ++k) made.add(indexOf(base + k - 1, in - 1), weights[k]);
    return made;
}

/// The sizes along the dims of a plane and the shares of each output index, one dim after the other.
struct Resampling {
    int32_t spatial;
    int64_t in[3], out[3];
    const Shares* shares[3];
};
/// Adds the gradient's element `o` of a plane to all that it was made from: dim by dim, the first outermost.
void spreadOver(const Resampling& r, int32_t dim, const int64_t* o, int64_t at, double weight, double* sums) {
    if (dim == r.spatial) {
        sums[at] += weight;
        return;
    }
    const Shares& along = r.shares[dim][o[dim]];
    for (int32_t i = 0; i < along.count; ++i)
        spreadOver(r, dim + 1, o, at * r.in[dim] + along.shares[i].at, weight * along.shares[i].weight, sums);
}

/// (grad_output, output_size, input_size, [align_corners,] scales by dim)
template <int32_t spatial, Kind kind>
void resampleBackward(const Run& run) {
    constexpr bool kAligns = kind == Kind::Linear || kind == Kind::Cubic;
    const CtCall& call = *run.call;
    const Strided gradient = run.in(0), out = run.out();
    auto* next = reinterpret_cast<Shares*>(run.scratch);
    Resampling r{spatial, {}, {}, {}};
    for (int32_t d = 0; d < spatial; ++d) {
        r.in[d] = out.sizes[d + 2];
        r.out[d] = gradient.sizes[d + 2];
        r.shares[d] = next;
        const int32_t scale = (kAligns ? 4 : 3) + d;
        const double given = scale < call.argCount && isGiven(call, scale) ? numberOf<double>(call.args[scale]) : 0;
        for (int64_t o = 0; o < r.out[d]; ++o)
            *next++ = sharesAt(kind, o, r.in[d], r.out[d], given, kAligns && integerOf(call, 3) != 0);
    }
    const int64_t plane = planeOf(out, spatial), given = planeOf(gradient, spatial);
    char* const room = reinterpret_cast<char*>(next);
    run.share(plane == 0 ? 0 : out.elements() / plane, [&](int64_t task, int64_t begin, int64_t end) {
        auto* const sums = reinterpret_cast<double*>(room) + task * plane;
        for (int64_t p = begin; p < end; ++p) {
            std::fill_n(sums, plane, 0.0);
            for (int64_t i = 0; i < given; ++i) {
                int64_t o[3] = {}, rest = i;
                for (int32_t d = spatial; d-- > 0; rest /= r.out[d]) o[d] = rest % r.out[d];
                const auto element = loadOne<double>(gradient.dtype, gradient.at(gradient.offsetOf(p * given + i)));
                spreadOver(r, 0, o, 0, element, sums);
            }
            storeRange(out, p * plane, (p + 1) * plane, sums);
        }
    });
}
template <int32_t spatial>
int64_t resampleScratch(const CtCall& call, int32_t tasks) {
    const Strided gradient = operandOf(call, 0);
    int64_t shares = 0;
    for (int32_t d = 0; d < spatial; ++d) shares += gradient.sizes[d + 2];
    return shares * static_cast<int64_t>(sizeof(Shares)) + planeOf(Strided(call.results[0]), spatial) * 8 * tasks;
}
template <int32_t spatial, Kind kind>
constexpr Function resample(const char* op) {
    return {op, resampleBackward<spatial, kind>, resampleScratch<spatial>};
}

constexpr Function kWindowFunctions[] = {
    {"aten.max_pool2d_with_indices_backward.default", maxPoolBackward<2, 7>, poolScratch<2>},
    {"aten.max_pool3d_with_indices_backward.default", maxPoolBackward<3, 7>, poolScratch<3>},
    {"aten.adaptive_max_pool2d_backward.default", maxPoolBackward<2, 2>, poolScratch<2>},
    {"aten.adaptive_max_pool3d_backward.default", maxPoolBackward<3, 2>, poolScratch<3>},
    resample<1, Kind::Nearest>("aten.upsample_nearest1d_backward.default"),
    resample<2, Kind::Nearest>("aten.upsample_nearest2d_backward.default"),
    resample<3, Kind::Nearest>("aten.upsample_nearest3d_backward.default"),
    resample<1, Kind::NearestExact>("aten._upsample_nearest_exact1d_backward.default"),
    resample<2, Kind::NearestExact>("aten._upsample_nearest_exact2d_backward.default"),
    resample<3, Kind::NearestExact>("aten._upsample_nearest_exact3d_backward.default"),
    resample<1, Kind::Linear>("aten.upsample_linear1d_backward.default"),
    resample<2, Kind::Linear>("aten.upsample_bilinear2d_backward.default"),
    resample<3, Kind::Linear>("aten.upsample_trilinear3d_backward.default"),
    resample<2, Kind::Cubic>("aten.upsample_bicubic2d_backward.default"),
};

}  // namespace

std::span<const Function> windowFunctions() { return kWindowFunctions; }

}  // namespace cutaway::portable
