#pragma once
// Discrete Fourier transforms of row-major arrays along some dims, in complex<double>. Exported programs carry this
// file.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

namespace cutaway::fourier {

using Complex = std::complex<double>;
enum Norm : int64_t { kNone, kByRoot };

/// All lines of one length in one direction: what does not depend on the line is computed once.
class Transform {
  public:
    Transform(size_t length, bool forward) : m_length(length), m_forward(forward) {
        while (m_wide < (isPowerOfTwo() ? length : 2 * length)) m_wide *= 2;
        m_turns = turnsOf(m_wide / 2, m_wide);
        if (isPowerOfTwo()) return;
        m_chirp.resize(length);
        for (size_t k = 0; k < length; ++k) m_chirp[k] = turn(k * k % (2 * length), 2 * length, forward);
        m_filter.resize(m_wide);
        for (size_t k = 0; k < length; ++k) m_filter[k] = m_filter[(m_wide - k) % m_wide] = std::conj(m_chirp[k]);
        byHalves(m_filter, true);
    }

    /// Powers of two by halves, other lengths by Bluestein's convolution, so that every length takes n log n.
    void operator()(std::vector<Complex>& x) const {
        if (isPowerOfTwo()) return byHalves(x, m_forward);
        std::vector<Complex> a(m_wide);
        for (size_t k = 0; k < m_length; ++k) a[k] = x[k] * m_chirp[k];
        byHalves(a, true);
        for (size_t k = 0; k < m_wide; ++k) a[k] *= m_filter[k];
        byHalves(a, false);
        for (size_t k = 0; k < m_length; ++k) x[k] = a[k] / static_cast<double>(m_wide) * m_chirp[k];
    }

  private:
    bool isPowerOfTwo() const { return (m_length & (m_length - 1)) == 0; }
    static Complex turn(size_t k, size_t of, bool forward) {
        return std::polar(1.0,
                          (forward ? -2 : 2) * std::numbers::pi * static_cast<double>(k) / static_cast<double>(of));
    }
    static std::vector<Complex> turnsOf(size_t count, size_t of) {
        std::vector<Complex> turns(count);
        for (size_t k = 0; k < count; ++k) turns[k] = turn(k, of, true);
        return turns;
    }
    void byHalves(std::vector<Complex>& x, bool forward) const {
        const size_t n = x.size();
        for (size_t i = 1, k = 0; i < n; ++i) {
            size_t bit = n >> 1;
            for (; k & bit; bit >>= 1) k ^= bit;
            k ^= bit;
            if (i < k) std::swap(x[i], x[k]);
        }
        for (size_t length = 2; length <= n; length *= 2)
            for (size_t from = 0; from < n; from += length)
                for (size_t k = 0; k < length / 2; ++k) {
                    const Complex by = m_turns[k * (n / length)];
                    const Complex a = x[from + k], b = x[from + k + length / 2] * (forward ? by : std::conj(by));
                    x[from + k] = a + b;
                    x[from + k + length / 2] = a - b;
                }
    }

    size_t m_length, m_wide = 1;
    bool m_forward;
    std::vector<Complex> m_turns, m_chirp, m_filter;
};

/// Elements of dims from..to-1.
inline int64_t countOf(const std::vector<int64_t>& sizes, int64_t from, int64_t to) {
    int64_t count = 1;
    for (int64_t dim = from; dim < to; ++dim) count *= sizes[static_cast<size_t>(dim)];
    return count;
}
/// Along one dim of a row-major array.
inline void alongDim(std::vector<Complex>& elements, const std::vector<int64_t>& sizes, int64_t dim, bool forward) {
    const auto d = static_cast<size_t>(dim);
    const int64_t length = sizes[d], step = countOf(sizes, dim + 1, static_cast<int64_t>(sizes.size())),
                  blocks = countOf(sizes, 0, dim);
    const Transform transform(static_cast<size_t>(length), forward);
    std::vector<Complex> line(static_cast<size_t>(length));
    for (int64_t block = 0; block < blocks; ++block)
        for (int64_t offset = 0; offset < step; ++offset) {
            Complex* first = elements.data() + block * length * step + offset;
            for (int64_t i = 0; i < length; ++i) line[static_cast<size_t>(i)] = first[i * step];
            transform(line);
            for (int64_t i = 0; i < length; ++i) first[i * step] = line[static_cast<size_t>(i)];
        }
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
/// Numbers that PyTorch does not name divide by the length, as in its kernels.
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
};
/// Complex numbers, both ways.
inline std::vector<Complex> complexToComplex(const Call& call, std::vector<Complex> elements, bool forward) {
    int64_t length = 1;
    for (const int64_t dim : call.dims) {
        alongDim(elements, call.sizes, dim, forward);
        length *= call.sizes[static_cast<size_t>(dim)];
    }
    scale(elements, factorOf(call.normalization, length));
    return elements;
}
/// Real numbers forward; of the last dim the first `kept` elements.
inline std::vector<Complex> realToComplex(const Call& call, std::vector<Complex> elements, int64_t kept) {
    int64_t length = 1;
    for (size_t i = call.dims.size(); i-- > 0;) {
        alongDim(elements, call.sizes, call.dims[i], true);
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
        alongDim(elements, sizes, call.dims[i], false);
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
    alongDim(elements, sizes, last, false);
    scale(elements, factorOf(call.normalization, length * size));
    std::vector<double> real;
    for (const Complex& x : elements) real.push_back(x.real());
    return real;
}

}  // namespace cutaway::fourier
