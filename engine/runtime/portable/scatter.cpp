// Elements that land at places which an index names, one place an element or one place a slice, along one dim: written,
// added or reduced. Lines along the dim are independent; within a line elements land in their order.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

enum class Landing : uint8_t { Replace, Add, Multiply, Mean, Largest, Smallest };

Landing landingOf(std::string_view reduce) {
    if (reduce == "sum" || reduce == "add") return Landing::Add;
    if (reduce == "prod" || reduce == "multiply") return Landing::Multiply;
    if (reduce == "mean") return Landing::Mean;
    if (reduce == "amax") return Landing::Largest;
    return reduce == "amin" ? Landing::Smallest : Landing::Replace;
}

/// What lands, and where.
struct Scatter {
    int32_t dim = 0;
    Strided index;
    Strided source;                      // one element, of strides 0, for a number
    const CtArgument* number = nullptr;  // in place of `source`
    Landing landing = Landing::Replace;
    bool includeSelf = true;
};

/// Towards minus infinity.
int64_t floorQuotient(int64_t a, int64_t b) {
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <class T>
T quotientOf(T sum, int64_t count) {
    if constexpr (std::is_integral_v<T>) return floorQuotient(sum, count);
    else return sum / static_cast<T>(static_cast<double>(count));
}

template <class T>
void land(Landing landing, bool first, T given, T& value) {
    if (first || landing == Landing::Replace) value = given;
    else if (landing == Landing::Multiply) value = productOf(value, given);
    else if (landing == Landing::Add || landing == Landing::Mean) value = sumOf(value, given);
    else if constexpr (!kIsComplex<T>) {
        // NaN wins, and of equals what was there first.
        const bool better = landing == Landing::Largest ? given > value : given < value;
        if (!isNan(value) && (better || isNan(given))) value = given;
    }
}

constexpr int64_t kLineBytes = sizeof(std::complex<double>) + sizeof(int64_t);
int64_t scatterScratch(const CtCall& call, int32_t tasks) {
    const Strided self = operandOf(call, 0);
    return self.sizes[dimOf(call, 1, self)] * kLineBytes * tasks;
}

/// The index's part of a line of the target: its first element, or false if the index has no such line.
bool startOfLine(const Strided& target, const Strided& index, const Strided& source, int32_t dim, int64_t line,
                 int64_t& inIndex, int64_t& inSource) {
    inIndex = inSource = 0;
    for (int32_t d = target.rank; d-- > 0;) {
        if (d == dim) continue;
        const int64_t at = line % target.sizes[d];
        line /= target.sizes[d];
        if (at >= index.sizes[d]) return false;
        inIndex += at * index.strides[d];
        inSource += at * source.strides[d];
    }
    return true;
}

template <class T>
void scatterLines(const Run& run, const Scatter& s) {
    const Strided self = run.in(0), out = run.out();
    const int32_t dim = s.dim;
    const int64_t size = self.sizes[dim], given = s.index.elements() == 0 ? 0 : s.index.sizes[dim];
    const bool counts = s.landing == Landing::Mean || !s.includeSelf;
    const T number = s.number ? rounded(self.dtype, numberOf<T>(*s.number)) : T{};
    const Indices index(s.index);
    run.share(size == 0 ? 0 : self.elements() / size, [&](int64_t task, int64_t begin, int64_t end) {
        auto* const values = reinterpret_cast<T*>(run.scratch + task * size * kLineBytes);
        auto* const landed = reinterpret_cast<int64_t*>(run.scratch + task * size * kLineBytes +
                                                        size * int64_t{sizeof(std::complex<double>)});
        for (int64_t line = begin; line < end; ++line) {
            load(self.dtype, self.at(self.offsetOf(line, dim)), self.strides[dim], size, values);
            if (counts) std::fill_n(landed, size, s.includeSelf ? 1 : 0);
            int64_t inIndex, inSource;
            const bool any = given > 0 && startOfLine(self, s.index, s.source, dim, line, inIndex, inSource);
            for (int64_t first = 0; any && first < given; first += kChunk) {
                T chunk[kChunk];
                const int64_t count = std::min(kChunk, given - first), stride = s.source.strides[dim];
                if (s.number) std::fill_n(chunk, count, number);
                else load(s.source.dtype, s.source.at(inSource + first * stride), stride, count, chunk);
                for (int64_t i = 0; i < count; ++i) {
                    const int64_t to = index[inIndex + (first + i) * s.index.strides[dim]];
                    if (to < 0 || to >= size) failOutside(to, dim, size);
                    land(s.landing, counts && landed[to]++ == 0, chunk[i], values[to]);
                }
            }
            for (int64_t i = 0; s.landing == Landing::Mean && i < size; ++i)
                if (landed[i] > 1) values[i] = quotientOf(values[i], landed[i]);
            store(out.dtype, out.at(out.offsetOf(line, dim)), out.strides[dim], size, values);
        }
    });
}
void scatter(const Run& run, Scatter s) {
    const Strided self = run.in(0);
    s.dim = dimOf(*run.call, 1, self);
    // No place of a dim of size 0 can be written to. An index without elements may have any rank.
    if (self.elements() == 0 && s.index.elements() > 0 && self.sizes[s.dim] == 0) failOutside(0, s.dim, 0);
    withNumber(self.dtype, [&](auto tag) { scatterLines<decltype(tag)>(run, s); });
}

/// (self, dim, index, src or value, reduce, include_self)
template <bool fromTensor>
void scatterElements(const Run& run) {
    const CtCall& call = *run.call;
    Scatter s;
    s.index = run.in(2);
    if (fromTensor) s.source = run.in(3);
    else s.number = &call.args[3];
    if (is(call, "aten.scatter_add.default")) s.landing = Landing::Add;
    if (call.argCount > 4) s.landing = landingOf(textOf(call, 4));
    if (call.argCount > 5) s.includeSelf = integerOf(call, 5) != 0;
    scatter(run, s);
}
/// (self, dim, index, source, reduce, include_self): one place a slice.
void reduceSlices(const Run& run) {
    const Strided self = run.in(0), index = run.in(2);
    Scatter s;
    s.source = run.in(3);
    const int32_t dim = dimOf(*run.call, 1, self);
    s.index = s.source;
    s.index.data = index.data;
    s.index.dtype = index.dtype;
    std::fill_n(s.index.strides, CT_MAX_RANK, 0);
    s.index.strides[dim] = index.strides[0];
    s.landing = landingOf(textOf(*run.call, 4));
    s.includeSelf = integerOf(*run.call, 5) != 0;
    scatter(run, s);
}

constexpr Function kScatterFunctions[] = {
    {"aten.scatter.src", scatterElements<true>, scatterScratch},
    {"aten.scatter.value", scatterElements<false>, scatterScratch},
    {"aten.scatter.reduce", scatterElements<true>, scatterScratch},
    {"aten.scatter.value_reduce", scatterElements<false>, scatterScratch},
    {"aten.scatter_add.default", scatterElements<true>, scatterScratch},
    {"aten.scatter_reduce.two", scatterElements<true>, scatterScratch},
    {"aten.index_reduce.default", reduceSlices, scatterScratch},
};

}  // namespace

std::span<const Function> scatterFunctions() { return kScatterFunctions; }

}  // namespace cutaway::portable
