#include "engine/support/fourier_lines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "engine/support/processor.h"

namespace cutaway::fourier {
namespace {

typedef double Doubles __attribute__((vector_size(8 * kLanes)));

/// One number of each line.
struct Numbers {
    Doubles real, imag;
};

// Inlined into functions that are compiled for one processor each, and passed by reference, since how vectors are
// passed by value depends on the processor.
#define CUTAWAY_LANES static inline __attribute__((always_inline))

CUTAWAY_LANES void load(Numbers& to, const double* real, const double* imag, size_t at) {
    std::memcpy(&to.real, real + at, sizeof to.real);
    std::memcpy(&to.imag, imag + at, sizeof to.imag);
}
CUTAWAY_LANES void store(double* real, double* imag, size_t at, const Numbers& from) {
    std::memcpy(real + at, &from.real, sizeof from.real);
    std::memcpy(imag + at, &from.imag, sizeof from.imag);
}
CUTAWAY_LANES void add(Numbers& to, const Numbers& a, const Numbers& b) {
    to.real = a.real + b.real;
    to.imag = a.imag + b.imag;
}
CUTAWAY_LANES void subtract(Numbers& to, const Numbers& a, const Numbers& b) {
    to.real = a.real - b.real;
    to.imag = a.imag - b.imag;
}
/// Without std::complex's care for infinities and NaN.
CUTAWAY_LANES void multiply(Numbers& to, const Numbers& a, const Complex& by) {
    const Doubles real = a.real * by.real() - a.imag * by.imag();
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

CUTAWAY_LANES void halves(const Step& s, size_t from, size_t to, const Complex& by) {
    for (size_t q = 0; q < s.side; q += kLanes) {
        Numbers a, b, sum, difference;
        load(a, s.real, s.imag, from + q);
        load(b, s.real, s.imag, from + q + s.side * s.rest);
        add(sum, a, b);
        subtract(difference, a, b);
        multiply(difference, difference, by);
        store(s.toReal, s.toImag, to + q, sum);
        store(s.toReal, s.toImag, to + q + s.side, difference);
    }
}
CUTAWAY_LANES void quarters(const Step& s, size_t from, size_t to, const Complex* by) {
    const size_t apart = s.side * s.rest;
    for (size_t q = 0; q < s.side; q += kLanes) {
        Numbers a, b, c, d, ac, bd, a_c, b_d, made;
        load(a, s.real, s.imag, from + q);
        load(b, s.real, s.imag, from + q + apart);
        load(c, s.real, s.imag, from + q + 2 * apart);
        load(d, s.real, s.imag, from + q + 3 * apart);
        add(ac, a, c);
        add(bd, b, d);
        subtract(a_c, a, c);
        subtract(b_d, b, d);
        const Numbers turned{s.sign * b_d.imag, -s.sign * b_d.real};
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
CUTAWAY_LANES void parts(const Step& s, size_t from, size_t to, size_t k) {
    for (size_t j = 0; j < s.radix; ++j) {
        const Complex by = s.turns[j * k * s.turn];
        for (size_t q = 0; q < s.side; q += kLanes) {
            Numbers sum, x;
            load(sum, s.real, s.imag, from + q);
            for (size_t i = 1; i < s.radix; ++i) {
                load(x, s.real, s.imag, from + q + i * s.side * s.rest);
                multiply(x, x, s.turns[i * j % s.radix * s.root]);
                add(sum, sum, x);
            }
            multiply(sum, sum, by);
            store(s.toReal, s.toImag, to + q + j * s.side, sum);
        }
    }
}
CUTAWAY_LANES void stepBody(const Step& s) {
    for (size_t k = 0; k < s.rest; ++k) {
        const size_t from = s.side * k, to = s.side * s.radix * k;
        if (s.radix == 2) halves(s, from, to, s.turns[k * s.turn]);
        else if (s.radix == 4) {
            const Complex by[] = {s.turns[k * s.turn], s.turns[2 * k * s.turn], s.turns[3 * k * s.turn]};
            quarters(s, from, to, by);
        } else parts(s, from, to, k);
    }
}
/// x[k] *= by[k], and by a number.
CUTAWAY_LANES void multiplyAllBody(double* real, double* imag, const Complex* by, size_t length, double factor) {
    for (size_t k = 0; k < length; ++k) {
        Numbers x;
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
    Numbers a, b, even, odd, made;
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
#define CUTAWAY_LANES_FOR(name, target)                                                                               \
    target void step##name(const Step& s) { stepBody(s); }                                                            \
    target void multiplyAll##name(double* r, double* i, const Complex* by, size_t length, double f) {                 \
        multiplyAllBody(r, i, by, length, f);                                                                         \
    }                                                                                                                 \
    target void pairs##name(double* r, double* i, const Complex* t, size_t h, double f) { pairsBody(r, i, t, h, f); } \
    constexpr LaneFunctions k##name = {step##name, multiplyAll##name, pairs##name};

CUTAWAY_LANES_FOR(Plain, )
#if CUTAWAY_HAS_VECTORS
CUTAWAY_LANES_FOR(Avx2, CUTAWAY_FOR_AVX2)
CUTAWAY_LANES_FOR(Avx512, CUTAWAY_FOR_AVX512)
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
