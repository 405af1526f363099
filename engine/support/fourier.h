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

/// Complex numbers, both ways.
void complexToComplex(const Call& call, bool forward, const Load<Complex>& load, const Store<Complex>& store);
/// Real numbers forward; of the last of `dims` the first `kept` elements.
void realToComplex(const Call& call, int64_t kept, const Load<double>& load, const Store<Complex>& store);
/// Back to `size` real numbers along the last of `dims`. What a real signal's transform lacks is the conjugate of what
/// it has.
void complexToReal(const Call& call, int64_t size, const Load<Complex>& load, const Store<double>& store);

}  // namespace cutaway::fourier
