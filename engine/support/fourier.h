#pragma once
// Discrete Fourier transforms of arrays along some dims, computed in f64. Exported programs carry this.
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

namespace cutaway::fourier {

using Complex = std::complex<double>;
enum Norm : int64_t { kNone, kByRoot };

/// Runs a body for the numbers 0 to count - 1 in parts [begin, end), on as many threads as it likes.
using Parts = std::function<void(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body)>;

/// What the three transforms take: the operand's sizes, none of them 0, the dims in PyTorch's order, and its number of
/// a norm.
struct Call {
    std::vector<int64_t> sizes, dims;
    int64_t normalization = 0;
    Parts inParts = {};  // of the lines; none: one after the other
};
/// How operands are read and results written: one line along `dim`, where lines are counted row by row over the other
/// dims. Several threads call at once, for different lines.
template <class T>
using Load = std::function<void(int64_t dim, int64_t line, T* to)>;
template <class T>
using Store = std::function<void(int64_t dim, int64_t line, const T* from)>;

/// Numbers row by row, as lines along any dim.
template <class T>
struct Rows {
    std::vector<int64_t> sizes;
    std::vector<T> elements;

    /// From an element of a line to the next one.
    int64_t step(int64_t dim) const {
        int64_t step = 1;
        for (size_t d = static_cast<size_t>(dim) + 1; d < sizes.size(); ++d) step *= sizes[d];
        return step;
    }
    T* begin(int64_t dim, int64_t line) {
        const int64_t apart = step(dim);
        return elements.data() + line / apart * sizes[static_cast<size_t>(dim)] * apart + line % apart;
    }
    // Both for as long as it lives.
    Load<T> load() {
        return [this](int64_t dim, int64_t line, T* to) {
            const T* const from = begin(dim, line);
            const int64_t length = sizes[static_cast<size_t>(dim)], apart = step(dim);
            for (int64_t k = 0; k < length; ++k) to[k] = from[k * apart];
        };
    }
    Store<T> store() {
        return [this](int64_t dim, int64_t line, const T* from) {
            T* const to = begin(dim, line);
            const int64_t length = sizes[static_cast<size_t>(dim)], apart = step(dim);
            for (int64_t k = 0; k < length; ++k) to[k * apart] = from[k];
        };
    }
};

/// Complex numbers, both ways.
void complexToComplex(const Call& call, bool forward, const Load<Complex>& load, const Store<Complex>& store);
/// Real numbers forward; of the last of `dims` the first `kept` elements.
void realToComplex(const Call& call, int64_t kept, const Load<double>& load, const Store<Complex>& store);
/// Back to `size` real numbers along the last of `dims`. What a real signal's transform lacks is the conjugate of what
/// it has.
void complexToReal(const Call& call, int64_t size, const Load<Complex>& load, const Store<double>& store);

}  // namespace cutaway::fourier
