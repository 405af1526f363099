#include "engine/support/fourier_lines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "engine/support/processor.h"

namespace cutaway::fourier {
namespace {

/// One number of each of L lines, or of neighbours that go the same way.
template <size_t L>
struct Numbers {
    typedef double Doubles __attribute__((vector_size(8 * L)));
    Doubles real, imag;
};

// Inlined into functions that are compiled for one processor each, and passed by reference, since how vectors are
// passed by value depends on the processor.
#define CUTAWAY_LANES static inline __attribute__((always_inline))

template <size_t L>
CUTAWAY_LANES void load(Numbers<L>& to, const double* real, const double* imag, size_t at) {
    std::memcpy(&to.real, real + at, sizeof to.real);
    std::memcpy(&to.imag, imag + at, sizeof to.imag);
}
template <size_t L>
CUTAWAY_LANES void store(double* real, double* imag, size_t at, const Numbers<L>& from) {
    std::memcpy(real + at, &from.real, sizeof from.real);
    std::memcpy(imag + at, &from.imag, sizeof from.imag);
}
template <size_t L>
CUTAWAY_LANES void add(Numbers<L>& to, const Numbers<L>& a, const Numbers<L>& b) {
    to.real = a.real + b.real;
    to.imag = a.imag + b.imag;
}
template <size_t L>
CUTAWAY_LANES void subtract(Numbers<L>& to, const Numbers<L>& a, const Numbers<L>& b) {
    to.real = a.real - b.real;
    to.imag = a.imag - b.imag;
}
/// Without std::complex's care for infinities and NaN.
template <size_t L>
CUTAWAY_LANES void multiply(Numbers<L>& to, const Numbers<L>& a, const Complex& by) {
    const auto real = a.real * by.real() - a.imag * by.imag();
    to.imag = a.real * by.imag() + a.imag * by.real();
    to.real = real;
}

/// One step in Stockham's order: it reads `radix` numbers `rest` apart and writes them side by side, so that nothing is
/// put in order afterwards. `side` numbers, those of all lines, go the same way.
struct Step {
    const double *real, *imag;
    double *toReal, *toImag;
    size_t radix, side, rest;
    const Complex* turns;
    size_t turn, root;  // from one factor to the next in `turns`; from one radix-th root of unity to the next
    double sign;
};

template <size_t L>
CUTAWAY_LANES void halves(const Step& s, size_t from, size_t to, const Complex& by) {
    for (size_t q = 0; q < s.side; q += L) {
        Numbers<L> a, b, sum, difference;
        load(a, s.real, s.imag, from + q);
        load(b, s.real, s.imag, from + q + s.side * s.rest);
        add(sum, a, b);
        subtract(difference, a, b);
        multiply(difference, difference, by);
        store(s.toReal, s.toImag, to + q, sum);
        store(s.toReal, s.toImag, to + q + s.side, difference);
    }
}
template <size_t L>
CUTAWAY_LANES void quarters(const Step& s, size_t from, size_t to, const Complex* by) {
    const size_t apart = s.side * s.rest;
    for (size_t q = 0; q < s.side; q += L) {
        Numbers<L> a, b, c, d, ac, bd, a_c, b_d, made;
        load(a, s.real, s.imag, from + q);
        load(b, s.real, s.imag, from + q + apart);
        load(c, s.real, s.imag, from + q + 2 * apart);
        load(d, s.real, s.imag, from + q + 3 * apart);
        add(ac, a, c);
        add(bd, b, d);
        subtract(a_c, a, c);
        subtract(b_d, b, d);
        const Numbers<L> turned{s.sign * b_d.imag, -s.sign * b_d.real};
        add(made, ac, bd);
        store(s.toReal, s.toImag, to + q, made);
        add(made, a_c, turned);
        multiply(made, made, by[0]);
        store(s.toReal, s.toImag, to + q + s.side, made);
        subtract(made, ac, bd);
        multiply(made, made, by[1]);
        store(s.toReal, s.toImag, to + q + 2 * s.side, made);
        subtract(made, a_c, turned);
        multiply(made, made, by[2]);
        store(s.toReal, s.toImag, to + q + 3 * s.side, made);
    }
}
/// An odd radix: roots of unity come in conjugate pairs, so x w + x' w* = (x + x') re w + i (x - x') im w, and of two
/// results that are each other's conjugates in the roots both are made of the same two sums.
template <size_t L, size_t radix>
CUTAWAY_LANES void oddParts(const Step& s, size_t from, size_t to, size_t k) {
    constexpr size_t half = radix / 2;
    const size_t apart = s.side * s.rest;
    for (size_t q = 0; q < s.side; q += L) {
        Numbers<L> first, sums[half], differences[half], total;
        load(first, s.real, s.imag, from + q);
        total = first;
#pragma GCC unroll 8
        for (size_t i = 0; i < half; ++i) {
            Numbers<L> x, y;
            load(x, s.real, s.imag, from + q + (i + 1) * apart);
            load(y, s.real, s.imag, from + q + (radix - 1 - i) * apart);
            add(sums[i], x, y);
            subtract(differences[i], x, y);
            add(total, total, sums[i]);
        }
        store(s.toReal, s.toImag, to + q, total);
#pragma GCC unroll 8
        for (size_t j = 1; j <= half; ++j) {
            Numbers<L> even = first, odd{}, made;
#pragma GCC unroll 8
            for (size_t i = 1; i <= half; ++i) {
                const Complex& root = s.turns[i * j % radix * s.root];
                even.real = even.real + sums[i - 1].real * root.real();
                even.imag = even.imag + sums[i - 1].imag * root.real();
                odd.real = odd.real - differences[i - 1].imag * root.imag();
                odd.imag = odd.imag + differences[i - 1].real * root.imag();
            }
            add(made, even, odd);
            multiply(made, made, s.turns[j * k * s.turn]);
            store(s.toReal, s.toImag, to + q + j * s.side, made);
            subtract(made, even, odd);
            multiply(made, made, s.turns[(radix - j) * k * s.turn]);
            store(s.toReal, s.toImag, to + q + (radix - j) * s.side, made);
        }
    }
}
template <size_t L, size_t radix>
CUTAWAY_LANES void oddStep(const Step& s) {
    for (size_t k = 0; k < s.rest; ++k) oddParts<L, radix>(s, s.side * k, s.side * radix * k, k);
}
template <size_t L>
CUTAWAY_LANES void stepOf(const Step& s) {
    switch (s.radix) {
        case 2:
            for (size_t k = 0; k < s.rest; ++k) halves<L>(s, s.side * k, s.side * 2 * k, s.turns[k * s.turn]);
            return;
        case 3: return oddStep<L, 3>(s);
        case 4:
            for (size_t k = 0; k < s.rest; ++k) {
                const Complex by[] = {s.turns[k * s.turn], s.turns[2 * k * s.turn], s.turns[3 * k * s.turn]};
                quarters<L>(s, s.side * k, s.side * 4 * k, by);
            }
            return;
        case 5: return oddStep<L, 5>(s);
        case 7: return oddStep<L, 7>(s);
        case 11: return oddStep<L, 11>(s);
        default: return oddStep<L, 13>(s);
    }
}
/// `most`: as many numbers as a register of the processor has.
template <size_t most>
CUTAWAY_LANES void stepBody(const Step& s) {
    if constexpr (most > kLanes)
        if (s.side % most != 0) return stepOf<kLanes>(s);
    stepOf<most>(s);
}
/// x[k] *= by[k], and by a number.
CUTAWAY_LANES void multiplyAllBody(double* real, double* imag, const Complex* by, size_t length, double factor) {
    for (size_t k = 0; k < length; ++k) {
        Numbers<kLanes> x;
        load(x, real, imag, k * kLanes);
        x.real = x.real * factor;
        x.imag = x.imag * factor;
        multiply(x, x, by[k]);
        store(real, imag, k * kLanes, x);
    }
}
/// What two numbers of a real signal's transform, `number` and its opposite, are in the transform of its even elements
/// as real parts and its odd ones as imaginary parts, and back: (x + x'*) / 2 -+ i turn (x - x'*) / 2.
CUTAWAY_LANES void pairBody(double* real, double* imag, size_t first, size_t second, const Complex& turn, double half) {
    Numbers<kLanes> a, b, even, odd, made;
    load(a, real, imag, first * kLanes);
    load(b, real, imag, second * kLanes);
    b.imag = -b.imag;
    add(even, a, b);
    subtract(odd, a, b);
    multiply(odd, odd, turn);
    even.real = even.real * half;
    even.imag = even.imag * half;
    odd.real = odd.real * half;
    odd.imag = odd.imag * half;
    add(made, even, odd);
    store(real, imag, first * kLanes, made);
    subtract(made, even, odd);
    made.imag = -made.imag;
    store(real, imag, second * kLanes, made);
}
CUTAWAY_LANES void pairsBody(double* real, double* imag, const Complex* turns, size_t half, double factor) {
    for (size_t k = 1; 2 * k <= half; ++k) pairBody(real, imag, k, half - k, turns[k], factor);
}

struct LaneFunctions {
    void (*step)(const Step&);
    void (*multiplyAll)(double*, double*, const Complex*, size_t, double);
    void (*pairs)(double*, double*, const Complex*, size_t, double);
};
#define CUTAWAY_LANES_FOR(name, target, most)                                                                         \
    target void step##name(const Step& s) { stepBody<most>(s); }                                                      \
    target void multiplyAll##name(double* r, double* i, const Complex* by, size_t length, double f) {                 \
        multiplyAllBody(r, i, by, length, f);                                                                         \
    }                                                                                                                 \
    target void pairs##name(double* r, double* i, const Complex* t, size_t h, double f) { pairsBody(r, i, t, h, f); } \
    constexpr LaneFunctions k##name = {step##name, multiplyAll##name, pairs##name};

CUTAWAY_LANES_FOR(Plain, , 2)
#if CUTAWAY_HAS_VECTORS
CUTAWAY_LANES_FOR(Avx2, CUTAWAY_FOR_AVX2, 4)
CUTAWAY_LANES_FOR(Avx512, CUTAWAY_FOR_AVX512, 8)
#else
constexpr const LaneFunctions &kAvx2 = kPlain, &kAvx512 = kPlain;
#endif

const LaneFunctions& laneFunctions() { return forThisProcessor(kPlain, kAvx2, kAvx512); }

Complex turn(size_t k, size_t of, bool forward) {
    return std::polar(1.0, (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(k) / static_cast<double>(of));
}

}  // namespace

Transform::Transform(size_t length, bool forward) : m_length(length), m_sign(forward ? 1 : -1) {
    size_t rest = length;
    for (const size_t radix : {size_t{4}, size_t{2}, size_t{3}, size_t{5}, size_t{7}, size_t{11}, size_t{13}})
        for (; rest % radix == 0; rest /= radix) m_radices.push_back(radix);
    if (rest == 1) {
        m_turns.resize(length);
        for (size_t k = 0; k < length; ++k) m_turns[k] = turn(k, length, forward);
        return;
    }
    // Any other length, as the convolution with a chirp (Bluestein).
    m_radices.clear();
    size_t wide = 1;
    while (wide < 2 * length) wide *= 2;
    m_chirp.resize(length);
    for (size_t k = 0; k < length; ++k) m_chirp[k] = turn(k * k % (2 * length), 2 * length, forward);
    m_ways = {Transform(wide, true), Transform(wide, false)};
    Lines filter;
    filter.resize(wide);
    for (size_t k = 0; k < length; ++k)
        for (const size_t at : {k, (wide - k) % wide}) {
            filter.real[at * kLanes] = m_chirp[k].real();
            filter.imag[at * kLanes] = -m_chirp[k].imag();
        }
    Memory memory;
    m_ways[0](filter, memory);
    for (size_t k = 0; k < wide; ++k) m_filter.emplace_back(filter.real[k * kLanes], filter.imag[k * kLanes]);
}

void Transform::operator()(Lines& x, Memory& memory) const {
    if (m_ways.empty()) return byRadices(x, memory.other);
    const LaneFunctions& lanes = laneFunctions();
    const size_t wide = m_filter.size(), given = m_length * kLanes;
    Lines a = std::move(memory.wide);
    a.real.assign(wide * kLanes, 0);
    a.imag.assign(wide * kLanes, 0);
    std::copy_n(x.real.begin(), given, a.real.begin());
    std::copy_n(x.imag.begin(), given, a.imag.begin());
    lanes.multiplyAll(a.real.data(), a.imag.data(), m_chirp.data(), m_length, 1);
    m_ways[0](a, memory);
    lanes.multiplyAll(a.real.data(), a.imag.data(), m_filter.data(), wide, 1);
    m_ways[1](a, memory);
    lanes.multiplyAll(a.real.data(), a.imag.data(), m_chirp.data(), m_length, 1 / static_cast<double>(wide));
    std::copy_n(a.real.begin(), given, x.real.begin());
    std::copy_n(a.imag.begin(), given, x.imag.begin());
    memory.wide = std::move(a);
}

void Transform::byRadices(Lines& x, Lines& y) const {
    if (y.real.size() < x.real.size()) y.resize(x.real.size() / kLanes);
    size_t length = m_length, side = 1;
    for (const size_t radix : m_radices) {
        const size_t rest = length / radix;
        laneFunctions().step({x.real.data(), x.imag.data(), y.real.data(), y.imag.data(), radix, side * kLanes, rest,
                              m_turns.data(), side, m_length / radix, m_sign});
        std::swap(x, y);
        length = rest;
        side *= radix;
    }
}

RealTransform::RealTransform(size_t length, bool forward)
    : m_length(length), m_transform(length % 2 == 0 ? length / 2 : length, forward) {
    // Of -i turn for the way there, of i turn for the way back.
    if (length % 2 == 0)
        for (size_t k = 0; k <= length / 4; ++k)
            m_turns.push_back(turn(k, length, forward) * Complex(0, forward ? -1 : 1));
}

void RealTransform::forward(Lines& x, Transform::Memory& memory) const {
    const auto at = [](size_t k) { return k * kLanes; };
    if (m_length % 2 != 0) {
        std::fill_n(x.imag.begin(), at(m_length), 0.0);
        return m_transform(x, memory);
    }
    const size_t half = m_length / 2;
    for (size_t k = 0; k < half; ++k)
        for (size_t l = 0; l < kLanes; ++l) {
            x.imag[at(k) + l] = x.real[at(2 * k + 1) + l];
            x.real[at(k) + l] = x.real[at(2 * k) + l];
        }
    m_transform(x, memory);
    for (size_t l = 0; l < kLanes; ++l) {
        const double even = x.real[l], odd = x.imag[l];
        x.real[l] = even + odd;
        x.real[at(half) + l] = even - odd;
        x.imag[l] = x.imag[at(half) + l] = 0;
    }
    laneFunctions().pairs(x.real.data(), x.imag.data(), m_turns.data(), half, 0.5);
}

void RealTransform::back(Lines& x, Transform::Memory& memory) const {
    const auto at = [](size_t k) { return k * kLanes; };
    std::fill_n(x.imag.begin(), kLanes, 0.0);
    if (m_length % 2 != 0) {
        for (size_t k = 1; 2 * k < m_length; ++k)
            for (size_t l = 0; l < kLanes; ++l) {
                x.real[at(m_length - k) + l] = x.real[at(k) + l];
                x.imag[at(m_length - k) + l] = -x.imag[at(k) + l];
            }
        return m_transform(x, memory);
    }
    const size_t half = m_length / 2;
    for (size_t l = 0; l < kLanes; ++l) {
        const double first = x.real[l], last = x.real[at(half) + l];
        x.real[l] = first + last;
        x.imag[l] = first - last;
    }
    laneFunctions().pairs(x.real.data(), x.imag.data(), m_turns.data(), half, 1);
    m_transform(x, memory);
    for (size_t k = half; k-- > 0;)
        for (size_t l = 0; l < kLanes; ++l) {
            x.real[at(2 * k) + l] = x.real[at(k) + l];
            x.real[at(2 * k + 1) + l] = x.imag[at(k) + l];
        }
}

}  // namespace cutaway::fourier
