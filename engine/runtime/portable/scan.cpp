// Prefix sums, products and extremes along a dim.
#include "engine/runtime/portable/portable.h"
#include "engine/support/complex_logarithms.h"

namespace cutaway::portable {
namespace {

constexpr int64_t kTogether = 4;  // as many as cycles that an addition takes

/// Elements of `from` as they are once converted to the dtype `to`.
template <class T>
void loadConverted(const Strided& from, int64_t offset, int64_t stride, int64_t count, int32_t to, T* elements) {
    if (from.dtype == to) return load(to, from.at(offset), stride, count, elements);
    withWide(from.dtype, [&](auto tag) {
        decltype(tag) given[kBlock<T>];
        std::complex<double> converted[kBlock<T>];
        load(from.dtype, from.at(offset), stride, count, given);
        store(to, converted, 1, count, given);
        load(to, converted, 1, count, elements);
    });
}

int64_t lineCount(const Strided& tensor, int32_t dim) {
    return tensor.sizes[dim] == 0 ? 0 : tensor.elements() / tensor.sizes[dim];
}

/// Lines beside each other in memory, one position of all of them after the other.
template <class T, class Step>
void scanAbreast(const Strided& x, const Strided& y, int32_t dim, int64_t line, int64_t lines, Step step) {
    const int32_t last = x.rank - 1;
    const int64_t from = x.offsetOf(line, dim), to = y.offsetOf(line, dim);
    T totals[kBlock<T>], next[kBlock<T>];
    for (int64_t i = 0; i < x.sizes[dim]; ++i) {
        loadConverted(x, from + i * x.strides[dim], x.strides[last], lines, y.dtype, next);
        for (int64_t k = 0; k < lines; ++k) totals[k] = i == 0 ? next[k] : step(totals[k], next[k]);
        store(y.dtype, y.at(to + i * y.strides[dim]), y.strides[last], lines, totals);
    }
}
/// So many lines step by step: a step waits for the one before in its own line only. Of the last group only `wanted`
/// are stored; the others are copies of the first, so that a line's bits do not follow from how many are beside it.
template <int64_t lines, class T, class Step>
void scanLines(const Strided& x, const Strided& y, int32_t dim, int64_t line, int64_t wanted, Step step) {
    int64_t from[lines], to[lines];
    T totals[lines]{}, chunks[lines][kBlock<T>];
    for (int64_t k = 0; k < lines; ++k) {
        from[k] = x.offsetOf(line + (k < wanted ? k : 0), dim);
        to[k] = y.offsetOf(line + (k < wanted ? k : 0), dim);
    }
    for (int64_t first = 0; first < x.sizes[dim]; first += kBlock<T>) {
        const int64_t count = std::min(kBlock<T>, x.sizes[dim] - first);
        for (int64_t k = 0; k < lines; ++k) {
            loadConverted(x, from[k] + first * x.strides[dim], x.strides[dim], count, y.dtype, chunks[k]);
            if (first > 0) chunks[k][0] = step(totals[k], chunks[k][0]);
            totals[k] = chunks[k][0];
        }
        for (int64_t i = 1; i < count; ++i)
            for (int64_t k = 0; k < lines; ++k) chunks[k][i] = totals[k] = step(totals[k], chunks[k][i]);
        for (int64_t k = 0; k < wanted; ++k)
            store(y.dtype, y.at(to[k] + first * y.strides[dim]), y.strides[dim], count, chunks[k]);
    }
}
template <class T, class Step>
void scan(const Run& run, Step step) {
    const Strided x = run.in(0), y = run.out();
    const int32_t dim = dimOf(*run.call, 1, x);
    const int64_t beside = dim == x.rank - 1 ? 1 : x.sizes[x.rank - 1], all = lineCount(x, dim);
    run.share(all, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end;) {
            int64_t lines = std::min({kBlock<T>, beside - line % beside, end - line});
            if (lines > 1) scanAbreast<T>(x, y, dim, line, lines, step);
            else if (beside > 1 || all < kTogether) scanLines<1, T>(x, y, dim, line, 1, step);
            else scanLines<kTogether, T>(x, y, dim, line, lines = std::min(kTogether, end - line), step);
            line += lines;
        }
    });
}
/// Steps of complex numbers are called: inlined, which NaN comes out would follow from a line's place beside others.
template <class T, class Step>
void scanInlined(const Run& run, T (*called)(T, T), Step inlined) {
    if constexpr (std::is_arithmetic_v<T>) scan<T>(run, inlined);
    else scan<T>(run, called);
}
void cumsum(const Run& run) {
    withWide(run.out().dtype, [&](auto tag) {
        using T = decltype(tag);
        scanInlined<T>(run, sumOf<T>, [](T a, T b) { return sumOf(a, b); });
    });
}
void cumprod(const Run& run) {
    withWide(run.out().dtype, [&](auto tag) {
        using T = decltype(tag);
        scanInlined<T>(run, productOf<T>, [](T a, T b) { return productOf(a, b); });
    });
}
void logcumsumexp(const Run& run) {
    const auto step = [](auto a, auto b) { return logAddExpOf(a, b); };
    if (isComplex(run.out().dtype)) scan<std::complex<double>>(run, step);
    else scan<double>(run, step);
}

/// The extreme so far and its position; of equals the last, and a NaN stays.
template <bool largest>
void extremes(const Run& run) {
    const Strided x = run.in(0), values = run.out(0), positions = run.out(1);
    const int32_t dim = dimOf(*run.call, 1, x);
    const int64_t length = x.sizes[dim];
    withReal(x.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(lineCount(x, dim), [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t line = begin; line < end; ++line) {
                T best{}, chunk[kBlock<T>];
                int64_t where = 0, places[kBlock<T>];
                for (int64_t first = 0; first < length; first += kBlock<T>) {
                    const int64_t count = std::min(kBlock<T>, length - first);
                    const auto start = [&](const Strided& t) {
                        return t.at(t.offsetOf(line, dim) + first * t.strides[dim]);
                    };
                    load(x.dtype, start(x), x.strides[dim], count, chunk);
                    for (int64_t i = 0; i < count; ++i) {
                        const T x_i = chunk[i];
                        const bool better = isNan(x_i) || (!isNan(best) && (largest ? x_i >= best : x_i <= best));
                        if (first + i == 0 || better) {
                            best = x_i;
                            where = first + i;
                        }
                        chunk[i] = best;
                        places[i] = where;
                    }
                    store(values.dtype, start(values), values.strides[dim], count, chunk);
                    store(positions.dtype, start(positions), positions.strides[dim], count, places);
                }
            }
        });
    });
}

constexpr Function kScanFunctions[] = {
    {"aten.cumsum.default", cumsum},
    {"aten.cumprod.default", cumprod},
    {"aten.cummax.default", extremes<true>},
    {"aten.cummin.default", extremes<false>},
    {"aten.logcumsumexp.default", logcumsumexp},
};

}  // namespace

std::span<const Function> scanFunctions() { return kScanFunctions; }

}  // namespace cutaway::portable
