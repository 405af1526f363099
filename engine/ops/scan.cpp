// Prefix sums, products and extremes along a dim; and the product of all, whose derivative is made of them.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/complex_functions.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels_reduce.h"
#include "engine/ops/lower_reduce.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/ops/reduce_rules.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

/// As asked, int64 for integers, else the operand's.
DType accumulated(const InferContext& c, DType self) {
    if (const auto dtype = c.dtype("dtype")) return *dtype;
    return isIntegral(self, true) ? DType::I64 : self;
}
Result<ValueType> inferScan(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY_VOID(c.dim("dim", self.rank()));
    return ValueType(TensorType::contiguous(accumulated(c, self.dtype), self.sizes, self.device));
}
Result<ValueType> inferFloatScan(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (!isFloating(self.dtype) && !isComplex(self.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(self.dtype).torchName));
    CT_TRY_VOID(c.dim("dim", self.rank()));
    return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
}
Result<ValueType> inferExtremeScan(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (isComplex(self.dtype)) return c.fail("complex numbers have no order");
    CT_TRY_VOID(c.dim("dim", self.rank()));
    return ValueType(TupleType{TensorType::contiguous(self.dtype, self.sizes, self.device),
                               TensorType::contiguous(DType::I64, self.sizes, self.device)});
}

/// body(previous, at, position in the line) for every element in row-major order, `previous` being the row-major
/// position of the one before it along the dim, -1 for the first.
template <class Body>
void forEachAlong(const Dims& sizes, int64_t dim, Body&& body) {
    const int64_t count = numel(sizes);
    int64_t inner = 1;
    for (size_t i = static_cast<size_t>(dim) + 1; i < sizes.size(); ++i) inner *= sizes[i];
    const int64_t length = sizes.empty() ? 1 : sizes[static_cast<size_t>(dim)];
    for (int64_t at = 0; at < count; ++at) {
        const int64_t position = at / inner % length;
        body(position == 0 ? -1 : at - inner, at, position);
    }
}
/// Folds along the dim: step(accumulated before, element).
template <class T, class Step>
void scanWith(const EvalContext& c, Tensor& out, Step step) {
    const Tensor self = c.in(size_t{0}).to(out.dtype());
    std::vector<T> values = packElements<T>(self);
    forEachAlong(self.sizes(), c.dimOf("dim", self.rank()), [&](int64_t previous, int64_t at, int64_t) {
        if (previous >= 0)
            values[static_cast<size_t>(at)] =
                step(values[static_cast<size_t>(previous)], values[static_cast<size_t>(at)]);
    });
    unpackElements(values, out);
}
template <bool sums>
EvalResult evalScan(const EvalContext& c) {
    Tensor out = c.result();
    withAccumulator(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        scanWith<T>(c, out, [](T a, T b) -> T {
            if constexpr (sums) return wrapAdd(a, b);
            else return wrapMul(a, b);
        });
    });
    return out;
}
/// The extreme so far and its position; of equals the last, and a NaN stays.
template <bool largest>
EvalResult evalExtremeScan(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    Tensor values = c.result(0), positions = c.result(1);
    withCompute(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> best = packElements<T>(self);
        std::vector<int64_t> where(best.size());
        forEachAlong(self.sizes(), c.dimOf("dim", self.rank()), [&](int64_t previous, int64_t at, int64_t position) {
            const auto i = static_cast<size_t>(at);
            where[i] = position;
            if (previous < 0) return;
            const auto p = static_cast<size_t>(previous);
            const T a = best[p], b = best[i];
            if (isNan(b) || (!isNan(a) && (largest ? b >= a : b <= a))) return;
            best[i] = a;
            where[i] = where[p];
        });
        unpackElements(best, values);
        unpackElements(where, positions);
    });
    return TensorList{values, positions};
}

bool trivialAlong(const Value& x, int64_t dim) {
    return x.rank() == 0 || x.size(dim) == SymInt(1) || numel(x.sizes()) == SymInt(0) || numel(x.sizes()) == SymInt(1);
}
void deriveCumsum(Derivation& d) {
    const int64_t dim = d.dimOf("dim", d.in(size_t{0}).rank());
    if (trivialAlong(d.dy(), dim)) {
        d.input(0) = d.dy();
        return;
    }
    const Argument dims(std::vector<int64_t>{dim});
    const Value backwards = d.call("aten.flip.default", {d.dy(), dims});
    d.input(0) = d.call("aten.flip.default", {d.call("aten.cumsum.default", {backwards, dim}), dims});
}
Value onesLike(Decomposition& d, const Value& x, const SymDims& sizes) {
    return d.call("aten.ones.default", {Argument(sizes)},
                  {{"dtype", x.dtype()}, {"layout", Layout::Strided}, {"device", x.type().device}});
}
Value slicedFrom(Decomposition& d, const Value& x, int64_t dim, int64_t from, const Argument& to = Argument()) {
    return d.call("aten.slice.Tensor", {x, dim, from, to});
}
/// For each k, the gradients from k on times what the products hold besides element k: no division, so that zeros are
/// no special case.
void deriveCumprod(Derivation& d) {
    const Value x = conjugated(d.in(size_t{0}));
    const int64_t dim = d.dimOf("dim", x.rank());
    if (trivialAlong(x, dim)) {
        d.input(0) = d.dy();
        return;
    }
    const SymInt size = x.size(dim);
    if (!size.isInt()) {
        d.builder().fail(unsupported(d.op().name() + ": the derivative needs a fixed size of the dim", {},
                                     {"set the sizes of the inputs"}));
        return;
    }
    if (const auto few = checkPieces(d, size.value()); !few) return static_cast<void>(d.builder().fail(few.error()));
    SymDims unit = x.sizes();
    unit[static_cast<size_t>(dim)] = 1;
    const Value ones = expand(onesLike(d, x, {1}), unit);
    std::vector<Argument> slices;
    for (int64_t k = 0; k < size.value(); ++k) {
        const bool last = k + 1 == size.value();
        Value before = ones, others;
        if (k > 0) before = d.call("aten.prod.dim_int", {slicedFrom(d, x, dim, 0, k), dim, true});
        if (last) {
            others = before;
        } else {
            Value after = d.call("aten.cumprod.default", {slicedFrom(d, x, dim, k + 1), dim});
            if (k > 0) after = expand(before, after.sizes()) * after;
            others = d.call("aten.cat.default", {Argument(std::vector<Argument>{before, after}), dim});
        }
        slices.emplace_back(sum(slicedFrom(d, d.dy(), dim, k) * others, {dim}, false));
    }
    d.input(0) = d.call("aten.stack.default", {Argument(std::move(slices)), dim});
}
/// Positive and negative gradients apart, each as a log-sum-exp from the end.
void deriveLogCumsumExp(Derivation& d) {
    const Value x = d.in(size_t{0}), g = d.dy();
    const int64_t dim = d.dimOf("dim", x.rank());
    if (trivialAlong(x, dim)) {
        d.input(0) = g;
        return;
    }
    const Argument dims(std::vector<int64_t>{dim});
    if (isComplex(x.dtype())) {
        // Every result's share of each element before it: sums from the end of g / exp(y), times exp(x).
        const Value shares = d.call("aten.flip.default", {g * conjugated(unary("aten.exp.default", -d.out())), dims});
        const Value sums = d.call("aten.flip.default", {d.call("aten.cumsum.default", {shares, dim}), dims});
        d.input(0) = sums * conjugated(unary("aten.exp.default", x));
        return;
    }
    const Value lowest = d.call("aten.scalar_tensor.default", {-largestOf(g.dtype())},
                                {{"dtype", g.dtype()}, {"layout", Layout::Strided}, {"device", g.type().device}});
    const Value logs = unary("aten.log.default", unary("aten.abs.default", g));
    const Value positive = where(d.call("aten.gt.Scalar", {g, 0}), logs, lowest);
    const Value negative = where(d.call("aten.lt.Scalar", {g, 0}), logs, lowest);
    auto part = [&](const Value& log) {
        const Value backwards = d.call("aten.flip.default", {log - d.out(), dims});
        const Value sums = d.call("aten.flip.default", {d.call("aten.logcumsumexp.default", {backwards, dim}), dims});
        return unary("aten.exp.default", sums + x);
    };
    const Value up = part(positive);
    d.input(0) = up - part(negative);
}
void deriveExtremeScan(Derivation& d) {
    const Value x = d.in(size_t{0});
    const Value zeros = d.call("aten.zeros.default", {Argument(x.sizes())},
                               {{"dtype", x.dtype()}, {"layout", Layout::Strided}, {"device", x.type().device}});
    d.input(0) = d.call("aten.scatter_add.default", {zeros, d.dimOf("dim", x.rank()), d.out(1), d.dy(0)});
}

// -- products

Result<ValueType> inferProd(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(TensorType type, reducedType(c, accumulated(c, self.dtype)));
    return ValueType(std::move(type));
}
EvalResult evalProd(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}).to(c.resultType().dtype);
    const Dims dims = reducedDims(c, self.rank());
    if (isComplex(self.dtype()))
        return foldReduced<std::complex<double>>(c, self, dims, {1, 0}, wrapMul<std::complex<double>>);
    if (isIntegral(self.dtype(), true))
        return foldReduced<int64_t>(c, self, dims, 1, [](int64_t a, int64_t b) { return wrapMul(a, b); });
    return foldReduced<double>(c, self, dims, 1, [](double a, double b) { return a * b; });
}
Expr lowerProd(LowerContext& c) {
    const DType dtype = computeTypeOf(c.out().dtype);
    return lowerReduction(c, ReduceKind::Prod, dtype == DType::F32 ? DType::F64 : dtype);  // as the reference kernel
}
/// The product of the others: those before times those after.
Value productOfOthers(Derivation& d, const Value& x, int64_t dim, const Value& gradient) {
    if (!x || x.size(dim) == SymInt(1)) return gradient;
    SymDims unit = x.sizes();
    unit[static_cast<size_t>(dim)] = 1;
    const SymInt size = x.size(dim);
    const Argument dims(std::vector<int64_t>{dim}), end = Argument(size);
    const Value ones = onesLike(d, x, unit);
    auto joined = [&](const Value& part) {
        return d.call("aten.cat.default", {Argument(std::vector<Argument>{ones, part}), dim});
    };
    const Value front = joined(d.call("aten.slice.Tensor", {x, dim, 0, Argument(size - SymInt(1))}));
    const Value before = d.call("aten.cumprod.default", {front, dim});
    const Value back = joined(d.call("aten.flip.default", {d.call("aten.slice.Tensor", {x, dim, 1, end}), dims}));
    const Value after = d.call("aten.flip.default", {d.call("aten.cumprod.default", {back, dim}), dims});
    return gradient * conjugated(before * after);
}
void deriveProd(Derivation& d) {
    const Value x = d.in(size_t{0});
    if (x.rank() == 0) {
        d.input(0) = d.dy();
        return;
    }
    if (numel(x.sizes()) == SymInt(0)) {
        d.input(0) = expand(d.dy(), x.sizes());
        return;
    }
    const Value flat = reshape(x, {SymInt(-1)});
    d.input(0) = view(productOfOthers(d, flat, 0, d.dy()), x.sizes());
}
void deriveProdDim(Derivation& d) {
    const Value x = d.in(size_t{0});
    if (x.rank() == 0) {
        d.input(0) = d.dy();
        return;
    }
    const int64_t dim = d.dimOf("dim", x.rank());
    if (x.size(dim) == SymInt(0)) {
        d.input(0) = unary("aten.zeros_like.default", x);
        return;
    }
    const Value gradient = keepsDims(d) ? d.dy() : unsqueeze(d.dy(), dim);
    d.input(0) = productOfOthers(d, x, dim, gradient);
}

constexpr std::string_view kScanSamples = R"(
f32[2, 3, 4], 1
f32[2, 3, 4], -1
f32[2, 3][1, 2], 0
f64[5], 0
f32[], 0
f32[], -1
bf16[4, 5], 1
f16[4, 5], 0
i64[3, 4], 0
i32[3, 4], -1
u8[6], 0
b8[5], 0
f32[0, 3], 1
f32[2, 0], 1
f32[2, 1, 3], 1
f32[2, 3, 4, 5][60, 1, 15, 3], 1
bf16[4], 0, dtype = torch.float32
i32[4], 0, dtype = torch.int32
c64[3, 4], 1
)";
constexpr std::string_view kExtremeScanSamples =
    "f32[2, 3, 4]!, 1\nf32[2, 3, 4]!, -1\nf32[2, 3][1, 2]!, 0\nf64[5]!, 0\nf32[], 0\ni64[8], 0\nb8[5], 0\nbf16[4, 5]!, 1\nf32[0, 3], 1";

constexpr OpDef kScanOps[] = {
    {.schema = "aten.cumsum.default(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferScan,
     .eval = evalScan<true>,
     .derive = deriveCumsum,
     .samples = kScanSamples},
    {.schema = "aten.cumprod.default(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferScan,
     .eval = evalScan<false>,
     .derive = deriveCumprod,
     .samples = kScanSamples},
    {.schema = "aten.logcumsumexp.default(Tensor self, int dim) -> Tensor",
     .infer = inferFloatScan,
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         if (isComplex(out.dtype()))
             scanWith<std::complex<double>>(c, out, [](auto a, auto b) { return logAddExpOf(a, b); });
         else scanWith<double>(c, out, [](double a, double b) { return logAddExpOf(a, b); });
         return out;
     },
     .derive = deriveLogCumsumExp,
     .samples = "f32[2, 3, 4], 1\nf32[2, 3][1, 2], 0\nf64[5], -1\nf32[], 0\nbf16[4, 5], 1\nf32[0, 3], 1\nc64[3, 4], 1"},
    {.schema = "aten.cummax.default(Tensor self, int dim) -> (Tensor values, Tensor indices)",
     .infer = inferExtremeScan,
     .eval = evalExtremeScan<true>,
     .derive = deriveExtremeScan,
     .samples = kExtremeScanSamples},
    {.schema = "aten.cummin.default(Tensor self, int dim) -> (Tensor values, Tensor indices)",
     .infer = inferExtremeScan,
     .eval = evalExtremeScan<false>,
     .derive = deriveExtremeScan,
     .samples = kExtremeScanSamples},
    // Integers and bool multiply in int64. The product of nothing is 1.
    {.schema = "aten.prod.default(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferProd,
     .eval = evalProd,
     .derive = deriveProd,
     .lower = lowerProd,
     .samples =
         "f32[2, 3]\nf32[2, 3][1, 2]\nf64[4]\nf32[]\nf32[0]\nbf16[5]\nf16[2, 2]\ni64[4]\ni32[3]\nb8[3]\nu8[3]\nbf16[5], dtype = torch.float32\nf32[1]"},
    {.schema = "aten.prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferProd,
     .eval = evalProd,
     .derive = deriveProdDim,
     .lower = lowerProd,
     .samples =
         "f32[2, 3, 4], 1\nf32[2, 3, 4], -1, True\nf32[2, 3][1, 2], 0\nf64[5], 0\nf32[], 0\nf32[0, 3], 0\nf32[0, 3], 1\nbf16[4, 5], 1\ni64[3, 4], 0\nb8[2, 3], 1\nf32[2, 1, 3], 1\ni32[4], 0, dtype = torch.float32"},
};

}  // namespace

std::span<const OpDef> scanOps() { return kScanOps; }

}  // namespace cutaway
