// Sampling of planes and volumes at positions that a grid gives, and its gradients: the grid's last dim holds x and y
// (and z), -1 and 1 being the borders.
#include "engine/runtime/portable/portable.h"
#include "engine/support/cubic_taps.h"

namespace cutaway::portable {
namespace {

enum Blend : int64_t { kLinear, kNearest, kCubic };
enum Border : int64_t { kZeros, kEdge, kReflection };
struct Sampling {
    int64_t blend, border;
    bool alignCorners;
};

/// A position along a dim in elements, and its slope by the grid's number.
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
/// The index of a whole position; anything far away or not a number lies outside of all.
template <class T>
int64_t wholeIndex(T at) {
    return std::fabs(at) < T(1e9) ? static_cast<int64_t>(at) : -100;
}

/// An element that is read, with its weight and the weight's slopes by x, y and z.
template <class T>
struct Tap {
    int64_t at = 0;
    T weight = 1, slopes[3] = {0, 0, 0};
};
template <class T>
struct Taps {
    Tap<T> taps[16];
    int32_t count = 0;
};

template <class T>
void addTap(Taps<T>& taps, int64_t row, int64_t column, const int64_t* sizes, T weight, T byX, T byY) {
    if (row < 0 || row >= sizes[1] || column < 0 || column >= sizes[0]) return;
    taps.taps[taps.count++] = {row * sizes[0] + column, weight, {byX, byY, 0}};
}
/// The taps of the position x, y that lie in a plane of these sizes, the width first.
template <class T>
void planeTaps(const T* position, const int64_t* sizes, const Sampling& s, Taps<T>& taps) {
    Place<T> px = unnormalised(position[0], sizes[0], s.alignCorners),
             py = unnormalised(position[1], sizes[1], s.alignCorners);
    if (s.blend == kCubic) {
        const T left = std::floor(px.at), top = std::floor(py.at);
        T wx[4], dx[4], wy[4], dy[4];
        cubicTaps(px.at - left, wx, dx);
        cubicTaps(py.at - top, wy, dy);
        for (int i = 0; i < 4; ++i)
            for (int k = 0; k < 4; ++k) {
                const Place<T> row = bounded(Place<T>{top + static_cast<T>(i - 1), 1}, sizes[1], s),
                               column = bounded(Place<T>{left + static_cast<T>(k - 1), 1}, sizes[0], s);
                addTap(taps, wholeIndex(row.at), wholeIndex(column.at), sizes, wx[k] * wy[i], dx[k] * wy[i] * px.slope,
                       wx[k] * dy[i] * py.slope);
            }
        return;
    }
    px = bounded(px, sizes[0], s);
    py = bounded(py, sizes[1], s);
    if (s.blend == kNearest)
        return addTap(taps, wholeIndex(std::nearbyint(py.at)), wholeIndex(std::nearbyint(px.at)), sizes, T(1), T(0),
                      T(0));
    const T left = std::floor(px.at), top = std::floor(py.at), fx = px.at - left, fy = py.at - top;
    for (int corner = 0; corner < 4; ++corner) {
        const bool right = corner % 2 != 0, below = corner / 2 != 0;
        const T wx = right ? fx : 1 - fx, wy = below ? fy : 1 - fy;
        addTap(taps, wholeIndex(top) + (below ? 1 : 0), wholeIndex(left) + (right ? 1 : 0), sizes, wx * wy,
               (right ? wy : -wy) * px.slope, (below ? wx : -wx) * py.slope);
    }
}
/// The same in a volume.
template <class T>
void volumeTaps(const T* position, const int64_t* sizes, const Sampling& s, Taps<T>& taps) {
    Place<T> places[3];
    for (int i = 0; i < 3; ++i) places[i] = bounded(unnormalised(position[i], sizes[i], s.alignCorners), sizes[i], s);
    for (int corner = 0; corner < (s.blend == kNearest ? 1 : 8); ++corner) {
        Tap<T> tap;
        T weights[3] = {1, 1, 1};
        bool inside = true;
        int64_t stride = 1;
        for (int i = 0; i < 3; ++i) {
            const bool far = (corner >> i & 1) != 0;
            const T base = s.blend == kNearest ? std::nearbyint(places[i].at) : std::floor(places[i].at),
                    part = places[i].at - base;
            const int64_t index = wholeIndex(base) + (far ? 1 : 0);
            inside = inside && index >= 0 && index < sizes[i];
            if (s.blend == kLinear) {
                weights[i] = far ? part : 1 - part;
                tap.slopes[i] = far ? places[i].slope : -places[i].slope;
            }
            tap.at += index * stride;
            stride *= sizes[i];
        }
        if (!inside) continue;
        tap.weight = weights[0] * weights[1] * weights[2];
        for (int i = 0; i < 3; ++i) tap.slopes[i] *= weights[(i + 1) % 3] * weights[(i + 2) % 3];
        taps.taps[taps.count++] = tap;
    }
}

/// A call's sizes: of the plane or volume (width first), its elements, the positions of a sample, the channels.
struct Shape {
    int32_t spatial;
    int64_t sizes[3] = {1, 1, 1}, elements = 1, positions = 1, channels, batch;
    Shape(const Strided& input, const Strided& grid)
        : spatial(input.rank - 2), channels(input.sizes[1]), batch(input.sizes[0]) {
        for (int32_t i = 0; i < spatial; ++i) {
            elements *= sizes[i] = input.sizes[input.rank - 1 - i];
            positions *= grid.sizes[i + 1];
        }
    }
};
template <class T>
Taps<T> tapsAt(const Strided& grid, const Shape& shape, const Sampling& s, int64_t n, int64_t o) {
    T position[3];
    const int64_t from = grid.offsetOf(n * shape.positions + o, grid.rank - 1);
    load(grid.dtype, grid.at(from), grid.strides[grid.rank - 1], shape.spatial, position);
    Taps<T> taps;
    if (shape.spatial == 2) planeTaps(position, shape.sizes, s, taps);
    else volumeTaps(position, shape.sizes, s, taps);
    return taps;
}
/// All elements of one sample of a batch.
template <class T>
void loadSample(const Strided& tensor, int64_t n, T* to) {
    Strided sample = tensor;
    sample.data = tensor.at(n * tensor.strides[0]);
    sample.sizes[0] = 1;
    loadAll(sample, to);
}
Sampling samplingOf(const CtCall& call, int32_t first) {
    return {integerOf(call, first), integerOf(call, first + 1), integerOf(call, first + 2) != 0};
}
int64_t perTask(const Strided& input, const Strided& grid, int64_t inputs, int64_t outputs) {
    const Shape shape(input, grid);
    return (inputs * shape.elements + outputs * shape.positions) * shape.channels * 8 +
           shape.positions * shape.spatial * 8;
}

/// (input, grid, interpolation_mode, padding_mode, align_corners)
void sample(const Run& run) {
    const Strided input = run.in(0), grid = run.in(1), out = run.out();
    const Shape shape(input, grid);
    const Sampling s = samplingOf(*run.call, 2);
    const int64_t bytes = perTask(input, grid, 1, 1);
    withFloat(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(shape.batch, [&](int64_t task, int64_t begin, int64_t end) {
            auto* const planes = reinterpret_cast<T*>(run.scratch + task * bytes);
            T* const sampled = planes + shape.elements * shape.channels;
            const int64_t results = shape.channels * shape.positions;
            for (int64_t n = begin; n < end; ++n) {
                loadSample(input, n, planes);
                for (int64_t o = 0; o < shape.positions; ++o) {
                    const Taps<T> taps = tapsAt<T>(grid, shape, s, n, o);
                    for (int64_t k = 0; k < shape.channels; ++k) {
                        T total = 0;
                        for (int32_t t = 0; t < taps.count; ++t)
                            total += planes[k * shape.elements + taps.taps[t].at] * taps.taps[t].weight;
                        sampled[k * shape.positions + o] = total;
                    }
                }
                storeRange(out, n * results, (n + 1) * results, sampled);
            }
        });
    });
}
int64_t sampleScratch(const CtCall& call, int32_t tasks) {
    return perTask(operandOf(call, 0), operandOf(call, 1), 1, 1) * tasks;
}

/// What one position's gradient adds. In planes channel by channel, in volumes tap by tap, as the interpreter sums.
template <class T>
void addGradients(const Shape& shape, const Taps<T>& taps, const T* planes, const T* g, T* forInput, T* forGrid) {
    const auto add = [&](int64_t k, const Tap<T>& tap) {
        const T arriving = g[k * shape.positions];
        const int64_t at = k * shape.elements + tap.at;
        forInput[at] += arriving * tap.weight;
        for (int32_t i = 0; i < shape.spatial; ++i) forGrid[i] += arriving * planes[at] * tap.slopes[i];
    };
    const int64_t outer = shape.spatial == 2 ? shape.channels : taps.count,
                  inner = shape.spatial == 2 ? taps.count : shape.channels;
    for (int64_t a = 0; a < outer; ++a)
        for (int64_t b = 0; b < inner; ++b) add(shape.spatial == 2 ? a : b, taps.taps[shape.spatial == 2 ? b : a]);
}
/// (grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask)
void sampleBackward(const Run& run) {
    const Strided gradient = run.in(0), input = run.in(1), grid = run.in(2);
    const Shape shape(input, grid);
    const Sampling s = samplingOf(*run.call, 3);
    const int64_t bytes = perTask(input, grid, 2, 1), elements = shape.elements * shape.channels,
                  results = shape.positions * shape.channels, numbers = shape.positions * shape.spatial;
    withFloat(input.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(shape.batch, [&](int64_t task, int64_t begin, int64_t end) {
            auto* const planes = reinterpret_cast<T*>(run.scratch + task * bytes);
            T *const forInput = planes + elements, *const g = forInput + elements, *const forGrid = g + results;
            for (int64_t n = begin; n < end; ++n) {
                loadSample(input, n, planes);
                loadSample(gradient, n, g);
                std::fill_n(forInput, elements, T(0));
                std::fill_n(forGrid, numbers, T(0));
                for (int64_t o = 0; o < shape.positions; ++o)
                    addGradients(shape, tapsAt<T>(grid, shape, s, n, o), planes, g + o, forInput,
                                 forGrid + o * shape.spatial);
                if (run.wants(0)) storeRange(run.out(0), n * elements, (n + 1) * elements, forInput);
                if (run.wants(1)) storeRange(run.out(1), n * numbers, (n + 1) * numbers, forGrid);
            }
        });
    });
}
int64_t backwardScratch(const CtCall& call, int32_t tasks) {
    return perTask(operandOf(call, 1), operandOf(call, 2), 2, 1) * tasks;
}

constexpr Function kGridFunctions[] = {
    {"aten.grid_sampler_2d.default", sample, sampleScratch},
    {"aten.grid_sampler_3d.default", sample, sampleScratch},
    {"aten.grid_sampler_2d_backward.default", sampleBackward, backwardScratch},
    {"aten.grid_sampler_3d_backward.default", sampleBackward, backwardScratch},
};

}  // namespace

std::span<const Function> gridFunctions() { return kGridFunctions; }

}  // namespace cutaway::portable
