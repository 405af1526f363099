// Pooling to a given size, whose windows divide each dim into so many parts and overlap where it does not divide; and
// the gradients of padding with repeated elements. All work plane by plane.
#include <bit>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

constexpr int32_t kMostDims = 3;

/// A tensor as planes: its last dims, and where each plane begins.
struct Planes {
    Strided tensor;
    int32_t spatial;
    int64_t sizes[kMostDims], strides[kMostDims], plane = 1, count = 1;

    Planes(const Strided& from, int32_t dims) : tensor(from), spatial(dims) {
        const int32_t lead = from.rank - dims;
        for (int32_t d = 0; d < dims; ++d) {
            sizes[d] = from.sizes[lead + d];
            strides[d] = from.strides[lead + d];
            plane *= sizes[d];
        }
        for (int32_t d = 0; d < lead; ++d) count *= from.sizes[d];
    }
    int64_t begin(int64_t number) const {
        Strided lead = tensor;
        lead.rank = tensor.rank - spatial;
        return lead.offsetOf(number);
    }
    /// Where element `number` of a plane lies in it.
    int64_t place(int64_t number) const {
        int64_t offset = 0;
        for (int32_t d = spatial; d-- > 0; number /= sizes[d]) offset += number % sizes[d] * strides[d];
        return offset;
    }
    char* at(int64_t first, int64_t number) const { return tensor.at(first + place(number)); }
};

/// Which of `in` elements along a dim the o-th of `out` is made of: those of neighbours overlap where it does not
/// divide.
int64_t startOf(int64_t o, int64_t in, int64_t out) { return o * in / out; }
int64_t endOf(int64_t o, int64_t in, int64_t out) { return ((o + 1) * in + out - 1) / out; }

/// The window of an element of the smaller plane in the larger one.
struct Part {
    int32_t dims;
    int64_t start[kMostDims], end[kMostDims], count = 1;

    Part(const Planes& large, const Planes& small, int64_t number) : dims(large.spatial) {
        for (int32_t d = dims; d-- > 0; number /= small.sizes[d]) {
            const int64_t o = number % small.sizes[d];
            start[d] = startOf(o, large.sizes[d], small.sizes[d]);
            end[d] = endOf(o, large.sizes[d], small.sizes[d]);
            count *= end[d] - start[d];
        }
    }
    /// body(offset in the plane, number of the element) row by row.
    template <class Body>
    void forEach(const Planes& large, Body&& body) const {
        int64_t at[kMostDims];
        std::copy_n(start, dims, at);
        const int32_t last = dims - 1;
        for (bool more = true; more;) {
            int64_t offset = 0, number = 0;
            for (int32_t d = 0; d < last; ++d) {
                offset += at[d] * large.strides[d];
                number = number * large.sizes[d] + at[d];
            }
            for (int64_t k = start[last]; k < end[last]; ++k)
                body(offset + k * large.strides[last], number * large.sizes[last] + k);
            more = false;
            for (int32_t d = last; d-- > 0 && !more;) {
                more = ++at[d] < end[d];
                if (!more) at[d] = start[d];
            }
        }
    }
};

/// The mean of each part. Planes of two dims divide before they add, as the operator of the name does.
template <int32_t dims>
void average(const Run& run) {
    const Planes in(run.in(0), dims), out(run.out(), dims);
    run.share(out.count * out.plane, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Part part(in, out, i % out.plane);
            const int64_t from = in.begin(i / out.plane);
            const auto count = static_cast<double>(part.count);
            double sum = 0;
            part.forEach(in, [&](int64_t offset, int64_t) {
                const auto element = loadOne<double>(in.tensor.dtype, in.tensor.at(from + offset));
                sum += dims == 2 ? element / count : element;
            });
            if (dims != 2) sum /= count;
            storeOne(out.tensor.dtype, out.at(out.begin(i / out.plane), i % out.plane), sum);
        }
    });
}
/// (grad_output, self)
template <int32_t dims>
void averageBackward(const Run& run) {
    const Planes dy(run.in(0), dims), dx(run.out(), dims);
    run.share(dx.count, [&](int64_t task, int64_t begin, int64_t end) {
        auto* const sums = reinterpret_cast<double*>(run.scratch) + task * dx.plane;
        for (int64_t p = begin; p < end; ++p) {
            std::fill_n(sums, dx.plane, 0.0);
            const int64_t from = dy.begin(p);
            for (int64_t o = 0; o < dy.plane; ++o) {
                const Part part(dx, dy, o);
                auto element = loadOne<double>(dy.tensor.dtype, dy.at(from, o));
                element /= static_cast<double>(part.count);
                part.forEach(dx, [&](int64_t, int64_t number) { sums[number] += element; });
            }
            storeRange(dx.tensor, p * dx.plane, (p + 1) * dx.plane, sums);
        }
    });
}
template <int32_t dims>
int64_t planeScratch(const CtCall& call, int32_t tasks) {
    return Planes(Strided(call.results[0]), dims).plane * kWidest * tasks;
}
/// The largest element of each column in the rows so far, as a whole number in the same order, and the number of its
/// row: the first of equals, the last NaN. Whole numbers as wide as T and masks, since GCC makes vectors neither of
/// comparisons of floats, which might trap, nor of branches.
template <class T>
struct Columns {
    using Key = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    static constexpr Key kMost = std::numeric_limits<Key>::max();  // NaN
    Key *keys, *rows;

    static Key keyOf(T element) {
        const Key bits = std::bit_cast<Key>(element + T(0));  // -0 is 0
        constexpr auto infinity = std::bit_cast<Key>(std::numeric_limits<T>::infinity());
        const Key ordered = bits ^ ((bits >> (sizeof(Key) * 8 - 1)) & kMost);
        const Key number = (bits & kMost) > infinity ? 0 : -1;
        return (ordered & number) | (kMost & ~number);
    }
    void clear(int64_t width) const { std::fill_n(keys, width, std::numeric_limits<Key>::min()); }
    void add(const T* elements, Key row, int64_t width) const {
        Key* const __restrict best = keys, * const __restrict from = rows;
        for (int64_t k = 0; k < width; ++k) {
            const Key key = keyOf(elements[k]);
            const Key more = ((key > best[k]) | (key == kMost)) ? -1 : 0;
            best[k] = (key & more) | (best[k] & ~more);
            from[k] = (row & more) | (from[k] & ~more);
        }
    }
    /// Which column has the largest from `begin` to `end`.
    int64_t largest(int64_t begin, int64_t end) const {
        int64_t at = begin;
        for (int64_t k = begin + 1; k < end; ++k) {
            const bool same = keys[k] == keys[at];
            const bool wins = keys[k] == kMost ? rows[k] >= rows[at] : rows[k] < rows[at];
            if (keys[k] > keys[at] || (same && wins)) at = k;
        }
        return at;
    }
};
/// What largest() keeps of a row of the larger plane and one of the smaller, an element each.
constexpr int64_t kOfLarge = 3 * sizeof(double), kOfSmall = 2 * sizeof(double);

/// The largest of each part and where it stands in its plane.
template <int32_t dims>
void largest(const Run& run) {
    constexpr int32_t last = dims - 1;
    const Planes in(run.in(0), dims);
    if (!run.wants(0) && !run.wants(1)) return;
    const Planes out(run.out(run.wants(0) ? 0 : 1), dims);
    const int64_t width = in.sizes[last], across = out.sizes[last];
    withFloat(in.tensor.dtype, [&](auto tag) {
        using T = decltype(tag);
        using Key = typename Columns<T>::Key;
        const bool plain = (in.tensor.dtype == CT_F32 || in.tensor.dtype == CT_F64) && in.strides[last] == 1;
        run.share(across == 0 ? 0 : out.count * out.plane / across, [&](int64_t task, int64_t begin, int64_t end) {
            char* const room = run.scratch + task * (width * kOfLarge + across * kOfSmall);
            auto* const wheres = reinterpret_cast<int64_t*>(room);
            auto* const values = reinterpret_cast<T*>(wheres + across);
            auto* const elements = values + across;
            auto* const keys = reinterpret_cast<Key*>(elements + width);
            const Columns<T> columns{keys, keys + width};
            for (int64_t i = begin; i < end; ++i) {
                const int64_t own = i * across % out.plane, from = in.begin(i * across / out.plane);
                Part part(in, out, own);
                part.start[last] = 0;
                part.end[last] = 1;  // the first element of each row
                columns.clear(width);
                part.forEach(in, [&](int64_t offset, int64_t number) {
                    const auto* const at = in.tensor.at(from + offset);
                    if (!plain) load(in.tensor.dtype, at, in.strides[last], width, elements);
                    columns.add(plain ? reinterpret_cast<const T*>(at) : elements, static_cast<Key>(number / width),
                                width);
                });
                for (int64_t o = 0; o < across; ++o) {
                    const int64_t at = columns.largest(startOf(o, width, across), endOf(o, width, across));
                    wheres[o] = columns.rows[at] * width + at;
                    values[o] = loadOne<T>(in.tensor.dtype, in.at(from, wheres[o]));
                }
                if (run.wants(0)) storeRange(run.out(0), i * across, (i + 1) * across, values);
                if (run.wants(1)) storeRange(run.out(1), i * across, (i + 1) * across, wheres);
            }
        });
    });
}
template <int32_t dims>
int64_t rowScratch(const CtCall& call, int32_t tasks) {
    const Planes in(operandOf(call, 0), dims);
    return (in.sizes[dims - 1] * kOfLarge + call.args[1].items[dims - 1].integer * kOfSmall) * tasks;
}

/// (grad_output, self, padding in pairs from the last dim backwards): each element of the gradient is added where the
/// padded element came from.
template <int32_t dims>
void repeatedBackward(const Run& run) {
    const Planes dy(run.in(0), dims), dx(run.out(), dims);
    const CtArgument* const padding = run.call->args[2].items;
    withWide(dx.tensor.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(dx.count, [&](int64_t task, int64_t begin, int64_t end) {
            auto* const sums = reinterpret_cast<T*>(run.scratch + task * dx.plane * kWidest);
            for (int64_t p = begin; p < end; ++p) {
                std::fill_n(sums, dx.plane, T{});
                const int64_t from = dy.begin(p);
                for (int64_t i = 0; i < dy.plane; ++i) {
                    int64_t rest = i, to = 0, step = 1;
                    for (int32_t d = dims; d-- > 0; rest /= dy.sizes[d], step *= dx.sizes[d]) {
                        const int64_t before = padding[2 * (dims - 1 - d)].integer;
                        to += step * std::clamp<int64_t>(rest % dy.sizes[d] - before, 0, dx.sizes[d] - 1);
                    }
                    const auto element = loadOne<T>(dy.tensor.dtype, dy.at(from, i));
                    sums[to] = sumOf(sums[to], element);
                }
                storeRange(dx.tensor, p * dx.plane, (p + 1) * dx.plane, sums);
            }
        });
    });
}

constexpr Function kPoolFunctions[] = {
    {"aten._adaptive_avg_pool2d.default", average<2>},
    {"aten._adaptive_avg_pool3d.default", average<3>},
    {"aten._adaptive_avg_pool2d_backward.default", averageBackward<2>, planeScratch<2>},
    {"aten._adaptive_avg_pool3d_backward.default", averageBackward<3>, planeScratch<3>},
    {"aten.adaptive_max_pool2d.default", largest<2>, rowScratch<2>},
    {"aten.adaptive_max_pool3d.default", largest<3>, rowScratch<3>},
    {"aten.replication_pad1d_backward.default", repeatedBackward<1>, planeScratch<1>},
    {"aten.replication_pad2d_backward.default", repeatedBackward<2>, planeScratch<2>},
    {"aten.replication_pad3d_backward.default", repeatedBackward<3>, planeScratch<3>},
};

}  // namespace

std::span<const Function> poolFunctions() { return kPoolFunctions; }

}  // namespace cutaway::portable
