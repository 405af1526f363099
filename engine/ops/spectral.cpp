// Discrete Fourier transforms: three kernels (real to complex, complex to real, complex to complex), the public names
// written with them, and the windows of short-time transforms.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

using Complex = std::complex<double>;
enum Norm : int64_t { kNone, kByRoot };

DType complexOf(DType dtype) { return dtype == DType::F64 || dtype == DType::C128 ? DType::C128 : DType::C64; }
DType partOf(DType dtype) { return dtype == DType::F64 || dtype == DType::C128 ? DType::F64 : DType::F32; }

// -- kernels

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
int64_t countOf(const Dims& sizes, int64_t from, int64_t to) {
    int64_t count = 1;
    for (int64_t dim = from; dim < to; ++dim) count *= sizes[static_cast<size_t>(dim)];
    return count;
}
/// Along one dim of a row-major array.
void alongDim(std::vector<Complex>& elements, const Dims& sizes, int64_t dim, bool forward) {
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
std::vector<Complex> resized(const std::vector<Complex>& elements, const Dims& sizes, int64_t dim, int64_t length) {
    const auto d = static_cast<size_t>(dim);
    const int64_t step = countOf(sizes, dim + 1, static_cast<int64_t>(sizes.size())), blocks = countOf(sizes, 0, dim);
    std::vector<Complex> out(static_cast<size_t>(blocks * length * step));
    for (int64_t block = 0; block < blocks; ++block)
        std::copy_n(elements.begin() + block * sizes[d] * step, std::min(length, sizes[d]) * step,
                    out.begin() + block * length * step);
    return out;
}
/// Numbers that PyTorch does not name divide by the length, as in its kernels.
double factorOf(int64_t norm, int64_t length) {
    if (norm == kNone) return 1;
    return 1 / (norm == kByRoot ? std::sqrt(static_cast<double>(length)) : static_cast<double>(length));
}
void scale(std::vector<Complex>& elements, double factor) {
    if (factor != 1)
        for (Complex& x : elements) x *= factor;
}

struct Call {
    TensorType self;
    std::vector<int64_t> dims;
};
Result<Call> readCall(const InferContext& c) {
    Call call;
    CT_TRY(call.self, c.tensor("self"));
    CT_TRY(call.dims, c.dims("dim", call.self.rank(), false));
    CT_TRY_VOID(c.integer("normalization"));
    if (call.dims.empty() || call.self.rank() == 0) return c.fail("needs a dim to transform");
    if (std::find(call.self.sizes.begin(), call.self.sizes.end(), SymInt(0)) != call.self.sizes.end())
        return c.fail(call.self.text() + " has no elements");
    return call;
}
/// `transformedLast`: laid out with the transformed dims innermost, in the order given.
Result<ValueType> typeWith(const Call& call, DType dtype, std::optional<SymInt> lastSize, bool transformedLast) {
    SymDims sizes = call.self.sizes;
    if (lastSize) sizes[static_cast<size_t>(call.dims.back())] = *lastSize;
    TensorType type = TensorType::contiguous(dtype, sizes, call.self.device);
    if (!transformedLast) return ValueType(std::move(type));
    std::vector<int64_t> order;
    for (int64_t dim = 0; dim < call.self.rank(); ++dim)
        if (std::find(call.dims.begin(), call.dims.end(), dim) == call.dims.end()) order.push_back(dim);
    if (allInts(call.self.strides))
        std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t k) {
            return call.self.strides[static_cast<size_t>(i)].value() >
                   call.self.strides[static_cast<size_t>(k)].value();
        });
    order.insert(order.end(), call.dims.begin(), call.dims.end());
    SymInt step = 1;
    for (size_t i = order.size(); i-- > 0;) {
        const SymInt& size = sizes[static_cast<size_t>(order[i])];
        type.strides[static_cast<size_t>(order[i])] = step;
        step = step * (size == SymInt(0) ? SymInt(1) : size);
    }
    return ValueType(std::move(type));
}
Result<ValueType> inferRealToComplex(const InferContext& c) {
    CT_TRY(const Call call, readCall(c));
    if (!isFloating(call.self.dtype) || isHalf(call.self.dtype))
        return c.fail("needs float32 or float64, not " + std::string(info(call.self.dtype).torchName));
    const SymInt size = call.self.sizes[static_cast<size_t>(call.dims.back())];
    if (!c.flag("onesided")) return typeWith(call, complexOf(call.self.dtype), std::nullopt, false);
    return typeWith(call, complexOf(call.self.dtype), floorDiv(size, SymInt(2)) + SymInt(1), false);
}
Result<ValueType> inferComplexToReal(const InferContext& c) {
    CT_TRY(const Call call, readCall(c));
    CT_TRY(const SymInt size, c.size("last_dim_size"));
    if (!isComplex(call.self.dtype) || call.self.dtype == DType::C32) return c.fail("needs complex64 or complex128");
    if (size.isInt() && size.value() < 1) return c.fail("a result of " + size.text() + " elements");
    const SymInt half = floorDiv(size, SymInt(2)) + SymInt(1),
                 given = call.self.sizes[static_cast<size_t>(call.dims.back())];
    if (given.isInt() && size.isInt() && given != half && given != size)
        return c.fail(size.text() + " real numbers come from " + half.text() + " complex ones, not from " +
                      given.text());
    return typeWith(call, partOf(call.self.dtype), size, true);
}
Result<ValueType> inferComplexToComplex(const InferContext& c) {
    CT_TRY(const Call call, readCall(c));
    if (!isComplex(call.self.dtype) || call.self.dtype == DType::C32) return c.fail("needs complex64 or complex128");
    return typeWith(call, call.self.dtype, std::nullopt, true);
}
EvalResult evalRealToComplex(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in("self");
    const Call call = *readCall(c);
    std::vector<Complex> elements = packElements<Complex>(self);
    int64_t length = 1;
    for (size_t i = call.dims.size(); i-- > 0;) {
        alongDim(elements, self.sizes(), call.dims[i], true);
        length *= self.size(call.dims[i]);
    }
    scale(elements, factorOf(c.integerOr("normalization", 0), length));
    const int64_t last = call.dims.back();
    unpackElements(resized(elements, self.sizes(), last, out.size(last)), out);
    return out;
}
/// What a real signal's transform lacks is the conjugate of what it has.
EvalResult evalComplexToReal(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in("self");
    const Call call = *readCall(c);
    Dims sizes = self.sizes();
    std::vector<Complex> elements = packElements<Complex>(self);
    int64_t length = 1;
    for (size_t i = 0; i + 1 < call.dims.size(); ++i) {
        alongDim(elements, sizes, call.dims[i], false);
        length *= sizes[static_cast<size_t>(call.dims[i])];
    }
    const int64_t last = call.dims.back(), size = out.size(last);
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
    scale(elements, factorOf(c.integerOr("normalization", 0), length * size));
    std::vector<double> real;
    for (const Complex& x : elements) real.push_back(x.real());
    unpackElements(real, out);
    return out;
}
EvalResult evalComplexToComplex(const EvalContext& c) {
    Tensor out = c.result();
    const Tensor self = c.in("self");
    const Call call = *readCall(c);
    std::vector<Complex> elements = packElements<Complex>(self);
    int64_t length = 1;
    for (const int64_t dim : call.dims) {
        alongDim(elements, self.sizes(), dim, c.flag("forward"));
        length *= self.size(dim);
    }
    scale(elements, factorOf(c.integerOr("normalization", 0), length));
    unpackElements(elements, out);
    return out;
}

// -- derivatives

Value transformed(Decomposition& d, const Value& x, const Argument& dims, const Argument& norm, bool forward) {
    return d.call("aten._fft_c2c.default", {x, dims, norm, forward});
}
void deriveRealToComplex(Derivation& d) {
    const Value x = d.in(0);
    const int64_t last = d.dimsOf("dim", x.rank(), false).back();
    Value g = d.dy();
    if (d.flag("onesided") && !(g.size(last) == x.size(last))) {
        std::vector<int64_t> padding(static_cast<size_t>(2 * (x.rank() - last)), 0);
        const SymInt missing = x.size(last) - g.size(last);
        std::vector<Argument> pad(padding.begin(), padding.end());
        pad.back() = Argument(missing);
        g = d.call("aten.constant_pad_nd.default", {g, Argument(pad), 0});
    }
    d.input(0) = unary("aten.real.default", transformed(d, g, d.arg("dim"), d.arg("normalization"), false));
}
void deriveComplexToReal(Derivation& d) {
    const int64_t last = d.dimsOf("dim", d.in(0).rank(), false).back();
    Value g = d.call("aten._fft_r2c.default", {d.dy(), d.arg("dim"), d.arg("normalization"), true});
    const SymInt doubled = d.dy().size(last) - g.size(last);
    // Elements that stand for their conjugates too count twice.
    if (!doubled.isInt() || doubled.value() > 0) {
        const Value position = iota(d.builder(), g.size(last), g.type().device);
        const Value twice = d.call(
            "aten.logical_and.default",
            {compareScalar("ge", position, int64_t{1}), d.call("aten.le.Scalar", {position, Argument(doubled)})});
        SymDims shape(static_cast<size_t>(g.rank()), SymInt(1));
        shape[static_cast<size_t>(last)] = g.size(last);
        g = g * view(convert(twice, partOf(g.dtype())) + 1.0, shape);
    }
    const SymInt have = g.size(last), want = d.in(0).size(last);
    if (!(have == want)) {
        std::vector<Argument> pad(static_cast<size_t>(2 * (g.rank() - last)), Argument(int64_t{0}));
        pad.back() = Argument(want - have);
        g = d.call("aten.constant_pad_nd.default", {g, Argument(pad), 0});
    }
    d.input(0) = g;
}

constexpr OpDef kOps[] = {
    {.schema = "aten._fft_r2c.default(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferRealToComplex,
     .eval = evalRealToComplex,
     .derive = deriveRealToComplex,
     .samples =
         "f32[2, 6], [1], 0, True\nf32[2, 5], [1], 1, True\nf32[3, 4, 5], [0, 2], 2, True\nf32[2, 6], [0], 0, False\nf32[7], [0], 0, True\nf32[3, 4], [1, 0], 0, False"},
    {.schema = "aten._fft_c2r.default(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferComplexToReal,
     .eval = evalComplexToReal,
     .derive = deriveComplexToReal,
     .samples = "c64[2, 4], [1], 2, 6\nc64[2, 3], [1], 0, 5\nc64[3, 2, 3], [0, 2], 1, 4"},
    {.schema = "aten._fft_c2c.default(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferComplexToComplex,
     .eval = evalComplexToComplex,
     .derive =
         [](Derivation& d) {
             d.input(0) = transformed(d, d.dy(), d.arg("dim"), d.arg("normalization"), !d.flag("forward"));
         },
     .samples =
         "c64[2, 6], [1], 0, True\nc64[2, 5], [1], 1, False\nc64[3, 4, 5], [0, 2], 2, True\nc64[8], [0], 0, False"},
};

}  // namespace

std::span<const OpDef> spectralOps() { return kOps; }

}  // namespace cutaway
