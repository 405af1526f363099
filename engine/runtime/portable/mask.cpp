// Elements chosen by a mask or for not being 0, or counted in bins.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// body(place) for all places where the mask holds, row by row.
template <class Body>
void forMasked(const Strided& mask, const Strided& sizes, Body&& body) {
    const Strided holds = broadcast(mask, sizes.sizes, sizes.rank);
    const int64_t count = sizes.elements();
    for (int64_t i = 0; i < count; ++i)
        if (*holds.at(holds.offsetOf(i)) != 0) body(i);
}

/// (self, mask, source): elements of the source where the mask holds, one after the other.
void maskedScatter(const Run& run) {
    const Strided out = run.out(), source = run.in(2);
    copyAll(run, broadcast(run.in(0), out.sizes, out.rank), out);
    const int64_t given = source.elements(), bytes = bytesOf(out.dtype);
    int64_t next = 0;
    forMasked(run.in(1), out, [&](int64_t i) {
        if (next == given) throw Failure("the source has fewer elements than the mask selects");
        copyElement(bytes, source.at(source.offsetOf(next++)), out.at(out.offsetOf(i)));
    });
}
/// (grad_output, mask, sizes): the elements where the mask holds, zeros behind them.
void maskedScatterBackward(const Run& run) {
    const Strided gradient = run.in(0), mask = run.in(1), out = run.out();
    Strided both;
    both.rank = std::max(gradient.rank, mask.rank);
    for (int32_t d = 0; d < both.rank; ++d) {
        const int32_t a = d - (both.rank - gradient.rank), b = d - (both.rank - mask.rank);
        const int64_t x = a < 0 ? 1 : gradient.sizes[a], y = b < 0 ? 1 : mask.sizes[b];
        both.sizes[d] = x == 1 ? y : x;
    }
    const Strided spread = broadcast(gradient, both.sizes, both.rank);
    const int64_t count = out.elements(), bytes = bytesOf(out.dtype);
    int64_t next = 0;
    forMasked(mask, both, [&](int64_t i) {
        if (next == count) throw Failure("the mask selects more elements than the sizes hold");
        copyElement(bytes, spread.at(spread.offsetOf(i)), out.at(out.offsetOf(next++)));
    });
    constexpr char kZero[16] = {};
    for (; next < count; ++next) copyElement(bytes, kZero, out.at(out.offsetOf(next)));
}

/// (self, size, fill_value): the coordinates of the first `size` elements that are not 0.
void nonzeroStatic(const Run& run) {
    const Strided self = run.in(0), out = run.out();
    const int64_t fill = integerOf(*run.call, 2), count = self.elements();
    const int32_t rank = run.operands[run.call->args[0].integer].rank;
    int64_t found = 0;
    for (int64_t i = 0; i < count && found < out.sizes[0] && rank > 0; ++i) {
        const auto element = loadOne<std::complex<double>>(self.dtype, self.at(self.offsetOf(i)));
        if (element == 0.0) continue;
        int64_t place[CT_MAX_RANK], rest = i;
        for (int32_t d = rank; d-- > 0; rest /= self.sizes[d]) place[d] = rest % self.sizes[d];
        storeRange(out, found * rank, (found + 1) * rank, place);
        ++found;
    }
    for (int64_t i = found * rank; i < out.elements(); ++i) storeRange(out, i, i + 1, &fill);
}

/// (self, bins, min, max): equal bounds stand for those of the elements; if these are equal too, the bins reach one to
/// either side.
template <class T>
void countInBins(const Run& run) {
    const Strided x = run.in(0), out = run.out();
    const int32_t last = x.rank - 1;
    const int64_t bins = integerOf(*run.call, 1), length = x.sizes[last], rows = rowsOf(x);
    T low = numberOf<T>(run.call->args[2]), high = numberOf<T>(run.call->args[3]);
    const auto forAll = [&](int64_t begin, int64_t end, auto&& body) {
        forRows(x, x, begin, end, [&](int64_t at, int64_t, int64_t) {
            for (int64_t i = 0; i < length; ++i) {
                const auto value = loadOne<T>(x.dtype, x.at(at + i * x.strides[last]));
                body(value);
            }
        });
    };
    if (low == high && rows > 0) {
        low = std::numeric_limits<T>::infinity();
        high = -low;
        bool finite = true;
        forAll(0, rows, [&](T value) {
            low = std::min(low, value);
            high = std::max(high, value);
            finite &= std::isfinite(value);
        });
        if (!finite) throw Failure("the elements are not finite; give min and max");
    }
    if (low == high) {
        low -= 1;
        high += 1;
    }
    auto* const counts = reinterpret_cast<int64_t*>(run.scratch);
    std::fill_n(counts, bins * std::max(run.tasks, 1), 0);
    run.share(rows, [&](int64_t task, int64_t begin, int64_t end) {
        forAll(begin, end, [&](T value) {
            if (!(value >= low && value <= high)) return;
            const auto bin = static_cast<int64_t>((value - low) * static_cast<T>(bins) / (high - low));
            ++counts[task * bins + std::clamp<int64_t>(bin, 0, bins - 1)];
        });
    });
    for (int64_t bin = 0; bin < bins; ++bin) {
        for (int64_t task = 1; task < run.tasks; ++task) counts[bin] += counts[task * bins + bin];
        const T count = static_cast<T>(counts[bin]);
        storeOne(out.dtype, out.at(bin * out.strides[0]), count);
    }
}
void histogram(const Run& run) {
    withFloat(run.in(0).dtype, [&](auto tag) { countInBins<decltype(tag)>(run); });
}
int64_t histogramScratch(const CtCall& call, int32_t tasks) { return integerOf(call, 1) * 8 * std::max(tasks, 1); }

constexpr Function kMaskFunctions[] = {
    {"aten.masked_scatter.default", maskedScatter},
    {"aten.masked_scatter_backward.default", maskedScatterBackward},
    {"aten.nonzero_static.default", nonzeroStatic},
    {"aten.histc.default", histogram, histogramScratch},
};

}  // namespace

std::span<const Function> maskFunctions() { return kMaskFunctions; }

}  // namespace cutaway::portable
