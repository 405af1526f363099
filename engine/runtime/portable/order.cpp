// Sorting and selection by rank along a dim. NaN is the largest value; equal elements keep their order.
#include <utility>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// An element by its rank and its position in the line; no two of a line are equal.
struct Ranked {
    uint64_t key;
    int64_t position;
    bool operator<(const Ranked& other) const { return key != other.key ? key < other.key : position < other.position; }
};
constexpr uint64_t kSign = uint64_t{1} << 63, kNan = ~uint64_t{0};

uint64_t keyOf(int64_t value) { return static_cast<uint64_t>(value) ^ kSign; }
uint64_t keyOf(double value) {
    const double number = value + 0.0;  // -0.0 is not smaller
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    const uint64_t turned = bits ^ (static_cast<uint64_t>(static_cast<int64_t>(bits) >> 63) | kSign);
    return value != value ? kNan : turned;
}

/// The lines of a tensor along a dim, or all of it as one line.
class Lines {
  public:
    Lines(const Strided& tensor, int32_t dim) : m_tensor(tensor), m_dim(dim) {
        length = dim < 0 ? tensor.elements() : tensor.sizes[dim];
        count = dim < 0 ? 1 : length == 0 ? 0 : tensor.elements() / length;
    }
    int64_t count, length;

    int64_t offsetOf(int64_t line, int64_t position) const {
        return m_dim < 0 ? m_tensor.offsetOf(position)
                         : m_tensor.offsetOf(line, m_dim) + position * m_tensor.strides[m_dim];
    }
    /// Keys from the smallest element on, or from the largest: visit(keys of elements that follow each other, position
    /// of the first, how many).
    template <class Visit>
    void forKeys(int64_t line, bool descending, const Visit& visit) const {
        const auto fill = [&](auto number, int64_t first, int64_t offset, int64_t stride, int64_t number_of) {
            decltype(number) chunk[kChunk];
            uint64_t keys[kChunk];
            const uint64_t turn = descending ? kNan : 0;
            for (int64_t from = 0; from < number_of; from += kChunk) {
                const int64_t many = std::min(kChunk, number_of - from);
                load(m_tensor.dtype, m_tensor.at(offset + from * stride), stride, many, chunk);
                for (int64_t i = 0; i < many; ++i) keys[i] = keyOf(chunk[i]) ^ turn;
                visit(keys, first + from, many);
            }
        };
        const auto fillAll = [&](auto number) {
            if (m_dim >= 0) return fill(number, 0, m_tensor.offsetOf(line, m_dim), m_tensor.strides[m_dim], length);
            const int32_t last = m_tensor.rank - 1;
            const int64_t each = m_tensor.sizes[last];
            forRows(m_tensor, m_tensor, 0, rowsOf(m_tensor), [&](int64_t at, int64_t, int64_t row) {
                fill(number, row * each, at, m_tensor.strides[last], each);
            });
        };
        if (isFloating(m_tensor.dtype)) fillAll(double{});
        else fillAll(int64_t{});
    }
    void rank(int64_t line, bool descending, Ranked* ranked) const {
        forKeys(line, descending, [ranked](const uint64_t* keys, int64_t position, int64_t many) {
            for (int64_t i = 0; i < many; ++i) ranked[position + i] = {keys[i], position + i};
        });
    }
    /// The first `wanted` in order, of which there are few: most elements are compared with the last of them alone.
    void rankFirst(int64_t line, bool descending, int64_t wanted, Ranked* ranked) const {
        int64_t before = 0;
        forKeys(line, descending, [&before, wanted, ranked](const uint64_t* keys, int64_t position, int64_t many) {
            int64_t have = before;
            for (int64_t i = 0; i < many; ++i) {
                if (have == wanted && keys[i] >= ranked[wanted - 1].key) continue;
                int64_t at = have < wanted ? have++ : wanted - 1;
                for (; at > 0 && keys[i] < ranked[at - 1].key; --at) ranked[at] = ranked[at - 1];
                ranked[at] = {keys[i], position + i};
            }
            before = have;
        });
    }

  private:
    Strided m_tensor;
    int32_t m_dim;
};

int64_t rankingScratch(int64_t length, int64_t tasks) { return length * tasks * static_cast<int64_t>(sizeof(Ranked)); }
template <int32_t dimParameter, int32_t times = 1>
int64_t lineScratch(const CtCall& call, int32_t tasks) {
    const Strided x = operandOf(call, 0);
    return times *
           rankingScratch(dimParameter < 0 ? x.elements() : x.sizes[dimOf(call, std::max(dimParameter, 0), x)], tasks);
}

/// Sorts by one byte of the keys after the other, from the last on; bytes that are the same in all are passed over.
void sortByBytes(Ranked* ranked, Ranked* spare, int64_t length) {
    constexpr int kBytes = 8, kValues = 256;
    int64_t counts[kBytes][kValues] = {};
    for (int64_t i = 0; i < length; ++i)
        for (int b = 0; b < kBytes; ++b) ++counts[b][ranked[i].key >> (8 * b) & 255];
    Ranked *from = ranked, *to = spare;
    for (int b = 0; b < kBytes; ++b) {
        if (counts[b][ranked[0].key >> (8 * b) & 255] == length) continue;
        int64_t begin = 0;
        for (int64_t& count : counts[b]) begin += std::exchange(count, begin);
        for (int64_t i = 0; i < length; ++i) to[counts[b][from[i].key >> (8 * b) & 255]++] = from[i];
        std::swap(from, to);
    }
    if (from != ranked) std::copy_n(from, length, ranked);
}
/// Where the first `count` of a line, in order, are in `ranked`, whose other half is free.
void sortFirst(const Lines& lines, int64_t line, bool descending, int64_t count, Ranked* ranked) {
    constexpr int64_t kFew = 256, kShare = 8, kWorthCounting = 128;
    if (count <= kFew && count * kShare <= lines.length) return lines.rankFirst(line, descending, count, ranked);
    lines.rank(line, descending, ranked);
    Ranked* const end = ranked + lines.length;
    // Bytes leave equal elements in the order in which they stand, which is that of the line only before any were
    // moved.
    if (count == lines.length && count >= kWorthCounting) return sortByBytes(ranked, end, count);
    if (count < lines.length) std::nth_element(ranked, ranked + count, end);
    std::sort(ranked, ranked + count);
}
/// Elements `first` to `first + count` by rank of each line, to lines of that length. Without `values`, positions only.
void keepRanked(const Run& run, int32_t dim, bool descending, int64_t first, int64_t count, int32_t values,
                int32_t positions) {
    const Strided x = run.in(0), places = run.out(positions), kept = values < 0 ? Strided() : run.out(values);
    const Lines lines(x, dim);
    // Where only one rank is kept the dim may be gone.
    const bool whole = places.rank == x.rank && places.sizes[dim] == count;
    run.share(count == 0 ? 0 : lines.count, [&](int64_t task, int64_t begin, int64_t end) {
        auto* ranked = reinterpret_cast<Ranked*>(run.scratch) + task * 2 * lines.length;
        for (int64_t line = begin; line < end; ++line) {
            sortFirst(lines, line, descending, first + count, ranked);
            for (int64_t k = 0; k < count; ++k) {
                const auto place = [&](const Strided& t) {
                    return whole ? t.offsetOf(line, dim) + k * t.strides[dim] : t.offsetOf(line);
                };
                const int64_t position = ranked[first + k].position;
                *reinterpret_cast<int64_t*>(places.at(place(places))) = position;
                if (values >= 0)
                    copyElement(bytesOf(x.dtype), x.at(lines.offsetOf(line, position)), kept.at(place(kept)));
            }
        }
    });
}

template <int32_t dimParameter, int32_t values>
void sort(const Run& run) {
    const Strided x = run.in(0);
    const int32_t dim = dimOf(*run.call, dimParameter, x);
    const bool descending = integerOf(*run.call, dimParameter + 1) != 0;
    keepRanked(run, dim, descending, 0, x.sizes[dim], values, values < 0 ? 0 : 1);
}
void topk(const Run& run) {
    const int32_t dim = dimOf(*run.call, 2, run.in(0));
    keepRanked(run, dim, integerOf(*run.call, 3) != 0, 0, integerOf(*run.call, 1), 0, 1);
}
void kthvalue(const Run& run) {
    keepRanked(run, dimOf(*run.call, 2, run.in(0)), false, integerOf(*run.call, 1) - 1, 1, 0, 1);
}

/// choose(ranked, length) names the element of each line that is kept, by its position.
template <class Choose>
void keepOne(const Run& run, int32_t dim, Choose choose) {
    const Strided x = run.in(0), values = run.out(0), positions = dim < 0 ? Strided() : run.out(1);
    const Lines lines(x, dim);
    run.share(lines.count, [&](int64_t task, int64_t begin, int64_t end) {
        auto* ranked = reinterpret_cast<Ranked*>(run.scratch) + task * lines.length;
        for (int64_t line = begin; line < end; ++line) {
            lines.rank(line, false, ranked);
            const int64_t position = choose(ranked, lines.length);
            copyElement(bytesOf(x.dtype), x.at(lines.offsetOf(line, position)), values.at(values.offsetOf(line)));
            if (dim >= 0) *reinterpret_cast<int64_t*>(positions.at(positions.offsetOf(line))) = position;
        }
    });
}

/// The lower median; with a NaN in the line that is the answer, unless NaN is skipped.
template <bool skipsNan, bool whole>
void median(const Run& run) {
    const Strided x = run.in(0);
    const bool floats = isFloating(x.dtype);
    if (whole && x.elements() == 0) {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const int64_t least = std::numeric_limits<int64_t>::min();
        const Strided y = run.out();
        if (floats) storeOne(y.dtype, y.data, nan);
        else storeOne(y.dtype, y.data, least);
        return;
    }
    keepOne(run, whole ? -1 : dimOf(*run.call, 1, x), [floats](Ranked* ranked, int64_t length) {
        const auto noNumber = [&](const Ranked& r) { return floats && r.key == kNan; };
        const int64_t missing = std::count_if(ranked, ranked + length, noNumber);
        if (missing > 0 && !skipsNan) return std::find_if(ranked, ranked + length, noNumber)->position;
        const int64_t given = std::max<int64_t>(length - missing, 1);
        Ranked* const middle = ranked + (given - 1) / 2;
        std::nth_element(ranked, middle, ranked + length);
        return middle->position;
    });
}
/// The smallest of a line's most frequent elements, and the last place where it stands.
void mode(const Run& run) {
    const Strided x = run.in(0);
    const bool floats = isFloating(x.dtype);
    keepOne(run, dimOf(*run.call, 1, x), [floats](Ranked* ranked, int64_t length) {
        std::sort(ranked, ranked + length);
        int64_t most = 0, chosen = 0, together = 0;
        for (int64_t i = 0; i < length; ++i) {
            const bool same = i > 0 && ranked[i].key == ranked[i - 1].key && !(floats && ranked[i].key == kNan);
            together = same ? together + 1 : 1;
            if (together > most) {
                most = together;
                chosen = i;
            }
        }
        return ranked[chosen].position;
    });
}

constexpr Function kOrderFunctions[] = {
    {"aten.sort.default", sort<1, 0>, lineScratch<1, 2>},
    {"aten.sort.stable", sort<2, 0>, lineScratch<2, 2>},
    {"aten.argsort.default", sort<1, -1>, lineScratch<1, 2>},
    {"aten.argsort.stable", sort<2, -1>, lineScratch<2, 2>},
    {"aten.topk.default", topk, lineScratch<2, 2>},
    {"aten.kthvalue.default", kthvalue, lineScratch<2, 2>},
    {"aten.median.dim", median<false, false>, lineScratch<1>},
    {"aten.median.default", median<false, true>, lineScratch<-1>},
    {"aten.nanmedian.dim", median<true, false>, lineScratch<1>},
    {"aten.nanmedian.default", median<true, true>, lineScratch<-1>},
    {"aten.mode.default", mode, lineScratch<1>},
};

}  // namespace

std::span<const Function> orderFunctions() { return kOrderFunctions; }

}  // namespace cutaway::portable
