// Discrete Fourier transforms: three kernels (real to complex, complex to real, complex to complex), the public names
// written with them, and the windows of short-time transforms.
#include <algorithm>

#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/support/fourier.h"

namespace cutaway {
namespace {

DType complexOf(DType dtype) { return dtype == DType::F64 || dtype == DType::C128 ? DType::C128 : DType::C64; }
DType partOf(DType dtype) { return dtype == DType::F64 || dtype == DType::C128 ? DType::F64 : DType::F32; }

struct SpectralCall {
    TensorType self;
    std::vector<int64_t> dims;
};
Result<SpectralCall> readSpectralCall(const InferContext& c) {
    SpectralCall call;
    CT_TRY(call.self, c.tensor("self"));
    CT_TRY(call.dims, c.dims("dim", call.self.rank(), false));
    CT_TRY_VOID(c.integer("normalization"));
    if (call.dims.empty() || call.self.rank() == 0) return c.fail("needs a dim to transform");
    return call;
}
/// As FFT libraries of the CPU write it: the transformed dims innermost, the largest stride first, and where
/// `lastStays`, the last one given innermost of all.
Result<ValueType> typeWith(const InferContext& c, const SpectralCall& call, DType dtype, std::optional<SymInt> lastSize,
                           bool lastStays) {
    SymDims sizes = call.self.sizes;
    if (lastSize) sizes[static_cast<size_t>(call.dims.back())] = *lastSize;
    TensorType type = TensorType::contiguous(dtype, sizes, call.self.device);
    const auto lacksElements = [](const SymDims& dims) {
        return std::find(dims.begin(), dims.end(), SymInt(0)) != dims.end();
    };
    if (lacksElements(sizes)) return ValueType(std::move(type));
    if (lacksElements(call.self.sizes)) return c.fail(call.self.text() + " has no elements");
    std::vector<int64_t> order, transformed = call.dims;
    for (int64_t dim = 0; dim < call.self.rank(); ++dim)
        if (std::find(call.dims.begin(), call.dims.end(), dim) == call.dims.end()) order.push_back(dim);
    const auto byStride = [&](int64_t i, int64_t k) {
        return call.self.strides[static_cast<size_t>(i)].value() > call.self.strides[static_cast<size_t>(k)].value();
    };
    if (allInts(call.self.strides)) {
        std::stable_sort(order.begin(), order.end(), byStride);
        std::stable_sort(transformed.begin(), transformed.end() - (lastStays ? 1 : 0), byStride);
    }
    order.insert(order.end(), transformed.begin(), transformed.end());
    SymInt step = 1;
    for (size_t i = order.size(); i-- > 0;) {
        type.strides[static_cast<size_t>(order[i])] = step;
        step = step * sizes[static_cast<size_t>(order[i])];
    }
    return ValueType(std::move(type));
}
Result<ValueType> inferRealToComplex(const InferContext& c) {
    CT_TRY(const SpectralCall call, readSpectralCall(c));
    if (!isFloating(call.self.dtype) || isHalf(call.self.dtype))
        return c.fail("needs float32 or float64, not " + std::string(info(call.self.dtype).torchName));
    const SymInt size = call.self.sizes[static_cast<size_t>(call.dims.back())];
    if (!c.flag("onesided")) return typeWith(c, call, complexOf(call.self.dtype), std::nullopt, true);
    return typeWith(c, call, complexOf(call.self.dtype), floorDiv(size, SymInt(2)) + SymInt(1), true);
}
Result<ValueType> inferComplexToReal(const InferContext& c) {
    CT_TRY(const SpectralCall call, readSpectralCall(c));
    CT_TRY(const SymInt size, c.size("last_dim_size"));
    if (!isComplex(call.self.dtype) || call.self.dtype == DType::C32) return c.fail("needs complex64 or complex128");
    if (exceeds(1, size)) return c.fail("a result of " + size.text() + " elements");
    const SymInt half = floorDiv(size, SymInt(2)) + SymInt(1),
                 given = call.self.sizes[static_cast<size_t>(call.dims.back())];
    if (given.isInt() && size.isInt() && given != half && given != size)
        return c.fail(size.text() + " real numbers come from " + half.text() + " complex ones, not from " +
                      given.text());
    return typeWith(c, call, partOf(call.self.dtype), size, true);
}
Result<ValueType> inferComplexToComplex(const InferContext& c) {
    CT_TRY(const SpectralCall call, readSpectralCall(c));
    if (!isComplex(call.self.dtype) || call.self.dtype == DType::C32) return c.fail("needs complex64 or complex128");
    return typeWith(c, call, call.self.dtype, std::nullopt, false);
}
fourier::Call transformOf(const EvalContext& c) {
    const SpectralCall call = *readSpectralCall(c);
    return {c.in("self").sizes(), call.dims, c.integerOr("normalization", 0)};
}
template <class T>
fourier::Rows<T> spectralRows(const Tensor& tensor) {
    return {tensor.sizes(), packElements<T>(tensor)};
}
template <class T>
fourier::Rows<T> rowsFor(const Tensor& tensor) {
    return {tensor.sizes(), std::vector<T>(static_cast<size_t>(tensor.numel()))};
}
EvalResult evalRealToComplex(const EvalContext& c) {
    Tensor out = c.result();
    const fourier::Call call = transformOf(c);
    auto given = spectralRows<double>(c.in("self"));
    auto made = rowsFor<fourier::Complex>(out);
    fourier::realToComplex(call, out.size(call.dims.back()), given.load(), made.store());
    unpackElements(made.elements, out);
    return out;
}
EvalResult evalComplexToReal(const EvalContext& c) {
    Tensor out = c.result();
    const fourier::Call call = transformOf(c);
    auto given = spectralRows<fourier::Complex>(c.in("self"));
    auto made = rowsFor<double>(out);
    fourier::complexToReal(call, out.size(call.dims.back()), given.load(), made.store());
    unpackElements(made.elements, out);
    return out;
}
EvalResult evalComplexToComplex(const EvalContext& c) {
    Tensor out = c.result();
    auto given = spectralRows<fourier::Complex>(c.in("self"));
    auto made = rowsFor<fourier::Complex>(out);
    fourier::complexToComplex(transformOf(c), c.flag("forward"), given.load(), made.store());
    unpackElements(made.elements, out);
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
        const Argument dim(last), start(int64_t{1}), end(doubled + SymInt(1));
        const Value half = d.call("aten.slice.Tensor", {g, dim, start, end});
        const Value twice = d.call("aten.mul.Scalar", {half, int64_t{2}});
        g = d.call("aten.slice_scatter.default", {g, twice, dim, start, end});
    }
    const SymInt have = g.size(last), want = d.in(0).size(last);
    if (!(have == want)) {
        std::vector<Argument> pad(static_cast<size_t>(2 * (g.rank() - last)), Argument(int64_t{0}));
        pad.back() = Argument(want - have);
        g = d.call("aten.constant_pad_nd.default", {g, Argument(pad), 0});
    }
    d.input(0) = g;
}

constexpr OpDef kSpectralOps[] = {
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
         "c64[2, 6], [1], 0, True\nc64[2, 5], [1], 1, False\nc64[3, 4, 5], [0, 2], 2, True\nc64[3, 4], [1, 0], 0, True\nc64[8], [0], 0, False"},
};

}  // namespace

std::span<const OpDef> spectralOps() { return kSpectralOps; }

}  // namespace cutaway
