#pragma once
// Discrete Fourier transforms of row-major arrays along some dims, in complex<double>. Exported programs carry this
// file.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <vector>

namespace cutaway::fourier {

using Complex = std::complex<double>;
enum Norm : int64_t { kNone, kByRoot };

/// A complex product without std::complex's care for infinities and NaN, which costs a branch each time.
inline Complex product(const Complex& a, const Complex& b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// All lines of one length in one direction: what does not depend on the line is computed once.
class Transform {
  public:
    /// Of one line at a time: a thread needs its own.
    struct Memory {
        std::vector<Complex> other, wide;
    };

    Transform(size_t length, bool forward) : m_length(length), m_sign(forward ? 1 : -1) {
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
        m_filter.resize(wide);
        for (size_t k = 0; k < length; ++k) m_filter[k] = m_filter[(wide - k) % wide] = std::conj(m_chirp[k]);
        Memory memory;
        m_ways[0](m_filter, memory);
    }

    void operator()(std::vector<Complex>& x, Memory& memory) const {
        if (m_ways.empty()) return byRadices(x, memory.other);
        std::vector<Complex>& a = memory.wide;
        a.assign(m_filter.size(), {});
        for (size_t k = 0; k < m_length; ++k) a[k] = product(x[k], m_chirp[k]);
        m_ways[0](a, memory);
        for (size_t k = 0; k < a.size(); ++k) a[k] = product(a[k], m_filter[k]);
        m_ways[1](a, memory);
        for (size_t k = 0; k < m_length; ++k) x[k] = product(a[k] / static_cast<double>(a.size()), m_chirp[k]);
    }

  private:
    static Complex turn(size_t k, size_t of, bool forward) {
        return std::polar(1.0,
                          (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(k) / static_cast<double>(of));
    }
    /// Stockham's order: each step reads `radix` numbers `rest` apart and writes them side by side, so that nothing is
    /// put in order afterwards. `side` lines are transformed at once, which lie side by side.
    void byRadices(std::vector<Complex>& x, std::vector<Complex>& y) const {
        y.resize(m_length);
        size_t length = m_length, side = 1;
        for (const size_t radix : m_radices) {
            const size_t rest = length / radix;
            for (size_t k = 0; k < rest; ++k) {
                const Complex* const from = x.data() + side * k;
                Complex* const to = y.data() + side * radix * k;
                if (radix == 2) halves(from, to, side, rest, m_turns[k * side]);
                else if (radix == 4) quarters(from, to, side, rest, k);
                else parts(from, to, side, rest, k, radix);
            }
            std::swap(x, y);
            length = rest;
            side *= radix;
        }
    }
    static void halves(const Complex* from, Complex* to, size_t side, size_t rest, const Complex& by) {
        for (size_t q = 0; q < side; ++q) {
            const Complex a = from[q], b = from[q + side * rest];
            to[q] = a + b;
            to[q + side] = product(a - b, by);
        }
    }
    void quarters(const Complex* from, Complex* to, size_t side, size_t rest, size_t k) const {
        const Complex by1 = m_turns[k * side], by2 = m_turns[2 * k * side], by3 = m_turns[3 * k * side];
        for (size_t q = 0; q < side; ++q) {
            const Complex a = from[q], b = from[q + side * rest], c = from[q + 2 * side * rest],
                          d = from[q + 3 * side * rest];
            const Complex ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
            const Complex turned(m_sign * b_d.imag(), -m_sign * b_d.real());
            to[q] = ac + bd;
            to[q + side] = product(a_c + turned, by1);
            to[q + 2 * side] = product(ac - bd, by2);
            to[q + 3 * side] = product(a_c - turned, by3);
        }
    }
    void parts(const Complex* from, Complex* to, size_t side, size_t rest, size_t k, size_t radix) const {
        const size_t apart = m_length / radix;  // from one radix-th root of unity to the next, in m_turns
        for (size_t j = 0; j < radix; ++j) {
            const Complex by = m_turns[j * k * side];
            for (size_t q = 0; q < side; ++q) {
                Complex sum = from[q];
                for (size_t i = 1; i < radix; ++i)
                    sum += product(from[q + i * side * rest], m_turns[i * j % radix * apart]);
                to[q + j * side] = product(sum, by);
            }
        }
    }

    size_t m_length;
    double m_sign;  // 1 forward, -1 back: the direction of a quarter turn
    std::vector<size_t> m_radices;
    std::vector<Complex> m_turns, m_chirp, m_filter;
    std::vector<Transform> m_ways;  // of the convolution, forward and back
};

/// Runs a body for the numbers 0 to count - 1 in parts [begin, end), on as many threads as it likes.
using Parts = std::function<void(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body)>;

/// Elements of dims from..to-1.
inline int64_t countOf(const std::vector<int64_t>& sizes, int64_t from, int64_t to) {
    int64_t count = 1;
    for (int64_t dim = from; dim < to; ++dim) count *= sizes[static_cast<size_t>(dim)];
    return count;
}
/// Along one dim of a row-major array.
inline void alongDim(std::vector<Complex>& elements, const std::vector<int64_t>& sizes, int64_t dim, bool forward,
                     const Parts& inParts) {
    const auto d = static_cast<size_t>(dim);
    const int64_t length = sizes[d], step = countOf(sizes, dim + 1, static_cast<int64_t>(sizes.size())),
                  blocks = countOf(sizes, 0, dim);
    if (length == 0) return;
    const Transform transform(static_cast<size_t>(length), forward);
    const auto run = [&](int64_t begin, int64_t end) {
        Transform::Memory memory;
        std::vector<Complex> line(static_cast<size_t>(length));
        for (int64_t number = begin; number < end; ++number) {
            Complex* first = elements.data() + number / step * length * step + number % step;
            for (int64_t i = 0; i < length; ++i) line[static_cast<size_t>(i)] = first[i * step];
            transform(line, memory);
            for (int64_t i = 0; i < length; ++i) first[i * step] = line[static_cast<size_t>(i)];
        }
    };
    if (inParts) inParts(blocks * step, run);
    else run(0, blocks * step);
}
/// The first elements of a dim, zeros behind where it grows.
inline std::vector<Complex> resized(const std::vector<Complex>& elements, const std::vector<int64_t>& sizes,
                                    int64_t dim, int64_t length) {
    const auto d = static_cast<size_t>(dim);
    const int64_t step = countOf(sizes, dim + 1, static_cast<int64_t>(sizes.size())), blocks = countOf(sizes, 0, dim);
    std::vector<Complex> out(static_cast<size_t>(blocks * length * step));
    for (int64_t block = 0; block < blocks; ++block)
        std::copy_n(elements.begin() + block * sizes[d] * step, std::min(length, sizes[d]) * step,
                    out.begin() + block * length * step);
    return out;
}
/// The factor by PyTorch's number of a norm: any but "none" and "by root" divides by the length, as in its kernels.
inline double factorOf(int64_t norm, int64_t length) {
    if (norm == kNone) return 1;
    return 1 / (norm == kByRoot ? std::sqrt(static_cast<double>(length)) : static_cast<double>(length));
}
inline void scale(std::vector<Complex>& elements, double factor) {
    if (factor != 1)
        for (Complex& x : elements) x *= factor;
}

/// What the three transforms take: the operand's sizes, the dims in PyTorch's order, and its number of a norm.
struct Call {
    std::vector<int64_t> sizes, dims;
    int64_t normalization = 0;
    Parts inParts = {};  // of the lines; none: one after the other
};
/// Complex numbers, both ways.
inline std::vector<Complex> complexToComplex(const Call& call, std::vector<Complex> elements, bool forward) {
    int64_t length = 1;
    for (const int64_t dim : call.dims) {
        alongDim(elements, call.sizes, dim, forward, call.inParts);
        length *= call.sizes[static_cast<size_t>(dim)];
    }
    scale(elements, factorOf(call.normalization, length));
    return elements;
}
/// Real numbers forward; of the last dim the first `kept` elements.
inline std::vector<Complex> realToComplex(const Call& call, std::vector<Complex> elements, int64_t kept) {
    int64_t length = 1;
    for (size_t i = call.dims.size(); i-- > 0;) {
        alongDim(elements, call.sizes, call.dims[i], true, call.inParts);
        length *= call.sizes[static_cast<size_t>(call.dims[i])];
    }
    scale(elements, factorOf(call.normalization, length));
    return resized(elements, call.sizes, call.dims.back(), kept);
}
/// Back to `size` real numbers along the last dim. What a real signal's transform lacks is the conjugate of what it
/// has.
inline std::vector<double> complexToReal(const Call& call, std::vector<Complex> elements, int64_t size) {
    std::vector<int64_t> sizes = call.sizes;
    int64_t length = 1;
    for (size_t i = 0; i + 1 < call.dims.size(); ++i) {
        alongDim(elements, sizes, call.dims[i], false, call.inParts);
        length *= sizes[static_cast<size_t>(call.dims[i])];
    }
    const int64_t last = call.dims.back();
    elements = resized(elements, sizes, last, size);
    sizes[static_cast<size_t>(last)] = size;
    const int64_t step = countOf(sizes, last + 1, static_cast<int64_t>(sizes.size())), blocks = countOf(sizes, 0, last);
    for (int64_t block = 0; block < blocks; ++block)
        for (int64_t offset = 0; offset < step; ++offset) {
            Complex* first = elements.data() + block * size * step + offset;
            first[0] = first[0].real();
            for (int64_t i = 1; i <= size / 2; ++i) {
                if (2 * i == size) first[i * step] = first[i * step].real();
                else first[(size - i) * step] = std::conj(first[i * step]);
            }
        }
    alongDim(elements, sizes, last, false, call.inParts);
    scale(elements, factorOf(call.normalization, length * size));
    std::vector<double> real;
    for (const Complex& x : elements) real.push_back(x.real());
    return real;
}

}  // namespace cutaway::fourier
