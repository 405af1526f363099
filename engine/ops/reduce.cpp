// Reductions over dims. Results are row-major whatever the operand's layout.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels_reduce.h"
#include "engine/ops/lower.h"
#include "engine/ops/lower_reduce.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/reduce_rules.h"

namespace cutaway {

std::vector<int64_t> reducedDims(const InferContext& c, int64_t rank) {
    auto dims = reductionDims(c, rank);
    return dims ? std::move(*dims) : std::vector<int64_t>{};
}
Result<std::vector<int64_t>> reductionDims(const InferContext& c, int64_t rank) {
    if (c.op().schema()->find("dim") < 0 || c.arg("dim").isNone()) {
        std::vector<int64_t> all(static_cast<size_t>(rank));
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
    if (!c.arg("dim").list()) {
        CT_TRY(const int64_t dim, c.dim("dim", rank));
        return rank == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{dim};
    }
    return c.dims("dim", rank, true);
}
bool keepsDims(const InferContext& c) { return c.op().schema()->find("keepdim") >= 0 && c.flag("keepdim"); }

Result<TensorType> reducedType(const InferContext& c, DType dtype) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const std::vector<int64_t> dims, reductionDims(c, self.rank()));
    return TensorType::contiguous(dtype, reducedSizes(self.sizes, dims, keepsDims(c)), self.device);
}

SymInt reducedCount(const InferContext& c, const TensorType& self) {
    SymInt count = 1;
    for (int64_t dim : reducedDims(c, self.rank())) count = count * self.sizes[static_cast<size_t>(dim)];
    return count;
}
Value withReducedDims(Derivation& d, Value gradient) {
    const Value self = d.in(size_t{0});
    if (keepsDims(d) || self.rank() == 0) return gradient;
    std::vector<int64_t> dims = reducedDims(d, self.rank());
    if (dims.size() == static_cast<size_t>(self.rank())) return gradient;  // a scalar broadcasts by itself
    std::sort(dims.begin(), dims.end());
    for (int64_t dim : dims) gradient = unsqueeze(gradient, dim);
    return gradient;
}

Expr reducedElement(LowerContext& c, const std::vector<Expr>& r, DType dtype) {
    const int64_t rank = c.in(size_t{0}).rank();
    const std::vector<int64_t> dims = reducedDims(c, rank);
    std::vector<Expr> at;
    size_t kept = 0, inner = 0;
    for (int64_t i = 0; i < rank; ++i) {
        if (std::find(dims.begin(), dims.end(), i) == dims.end()) {
            at.push_back(c.index()[kept++]);
            continue;
        }
        at.push_back(r[inner++]);
        if (keepsDims(c)) ++kept;
    }
    return Expr::cast(c.loadAt(0, at), dtype);
}
SymDims reducedBox(const LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    std::vector<int64_t> dims = reducedDims(c, self.rank());
    std::sort(dims.begin(), dims.end());
    SymDims box;
    for (int64_t dim : dims) box.push_back(self.sizes[static_cast<size_t>(dim)]);
    return box;
}

Value meanGradient(Derivation& d, const Value& gradient) {
    const Value self = d.in(size_t{0});
    return d.call("aten.div.Scalar",
                  {expand(withReducedDims(d, gradient), self.sizes()), reducedCount(d, self.type())});
}

Expr lowerReduction(LowerContext& c, ReduceKind kind, DType dtype) {
    return c.reduce(kind, reducedBox(c), [&](const std::vector<Expr>& r) { return reducedElement(c, r, dtype); });
}

namespace {

constexpr std::string_view kDimSamples = R"(
f32[2, 3, 4], [1]
f32[2, 3, 4], [0, 2], True
f32[2, 3, 4], [-1]
f32[2, 3][1, 2], [0]
f32[2, 3, 2, 2][12, 1, 6, 3], [2, 3], True
bf16[4, 5], [1]
f16[4, 5], [0]
f64[3, 2], [0, 1]
f32[4, 3][6, 2], [1]
)";

DType computeType(const Tensor& tensor) {
    return isIntegral(tensor.dtype(), true) ? DType::I64 : isComplex(tensor.dtype()) ? DType::C128 : DType::F64;
}
/// dtype of sums and products: as asked, int64 for integers, else the operand's.
DType accumulatedType(const InferContext& c, DType self) {
    if (const auto dtype = c.dtype("dtype")) return *dtype;
    return isIntegral(self, true) ? DType::I64 : self;
}
Result<ValueType> inferSum(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(TensorType type, reducedType(c, accumulatedType(c, self.dtype)));
    return ValueType(std::move(type));
}
EvalResult evalSum(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}).to(accumulatedType(c, c.in(size_t{0}).dtype()));
    const Dims dims = reducedDims(c, self.rank());
    const DType compute = computeType(self);
    if (compute == DType::C128)
        return foldReduced<std::complex<double>>(c, self, dims, {}, [](auto a, auto b) { return a + b; });
    if (compute == DType::I64)
        return foldReduced<int64_t>(c, self, dims, 0, [](int64_t a, int64_t b) { return wrapAdd(a, b); });
    return foldReduced<double>(c, self, dims, 0, [](double a, double b) { return a + b; });
}
Expr lowerSum(LowerContext& c) { return lowerReduction(c, ReduceKind::Sum, computeTypeOf(c.out().dtype)); }
void deriveSum(Derivation& d) { d.input(0) = expand(withReducedDims(d, d.dy()), d.in(size_t{0}).sizes()); }

Result<ValueType> inferMean(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    const DType dtype = c.dtype("dtype").value_or(self.dtype);
    if (!isFloating(dtype) && !isComplex(dtype))
        return c.fail("has no result dtype for " + std::string(info(dtype).torchName) + "; pass a floating dtype");
    CT_TRY(TensorType type, reducedType(c, dtype));
    return ValueType(std::move(type));
}
EvalResult evalMean(const EvalContext& c) {
    if (isComplex(c.resultType().dtype)) return evalExpanded(c);
    const Tensor self = c.in(size_t{0}).to(c.resultType().dtype);
    std::vector<double> values(static_cast<size_t>(numel(c.resultSizes())));
    forEachReduced<double>(self, reducedDims(c, self.rank()),
                           [&](int64_t position, const ReducedElements<double>& elements) {
                               double sum = 0;
                               elements.forEachRun([&](const double* run, int64_t n) {
                                   for (int64_t i = 0; i < n; ++i) sum += run[i];
                               });
                               values[static_cast<size_t>(position)] = sum / static_cast<double>(elements.count());
                           });
    return storeReduced(c, values);
}
Expr lowerMean(LowerContext& c) {
    const DType dtype = computeTypeOf(c.out().dtype);
    return reduceMean(c, reducedBox(c), [&](const std::vector<Expr>& r) { return reducedElement(c, r, dtype); });
}
/// Kernels have no complex numbers: of these the sum is divided.
Values decomposeComplexMean(Decomposition& d) {
    if (!isComplex(d.out().dtype)) return Values::notHandled();
    const Value x = convert(d.in(size_t{0}), d.out().dtype);
    const bool dims = d.op().schema()->find("dim") >= 0;
    const Value total =
        d.call("aten.sum.dim_IntList", {x, dims ? d.arg("dim") : Argument(), dims && d.flag("keepdim")});
    return d.call("aten.div.Scalar", {total, Argument(reducedCount(d, x.type()))});
}
void deriveMean(Derivation& d) { d.input(0) = meanGradient(d, d.dy()); }

// -- extremes

Result<ValueType> inferExtreme(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (isComplex(self.dtype)) return c.fail("complex numbers have no order");
    CT_TRY(const std::vector<int64_t> dims, reductionDims(c, self.rank()));
    for (int64_t dim : dims)
        if (self.sizes[static_cast<size_t>(dim)] == SymInt(0))
            return c.fail("dim " + std::to_string(dim) +
                          " has no elements, and there is no smallest number to start from");
    CT_TRY(TensorType type, reducedType(c, self.dtype));
    return ValueType(std::move(type));
}
template <bool largest>
EvalResult evalExtreme(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    const Dims dims = reducedDims(c, self.rank());
    if (isFloating(self.dtype())) {
        const double worst =
            largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
        return foldReduced<double>(c, self, dims, worst,
                                   [](double a, double b) { return largest ? maximumOf(a, b) : minimumOf(a, b); });
    }
    // Unsigned numbers of 64 bits are held as signed ones; without their first bit these have the same order.
    const int64_t least = std::numeric_limits<int64_t>::min(), flip = self.dtype() == DType::U64 ? least : 0;
    const int64_t worst = (largest ? least : std::numeric_limits<int64_t>::max()) ^ flip;
    return foldReduced<int64_t>(c, self, dims, worst,
                                [flip](int64_t a, int64_t b) { return ((a ^ flip) < (b ^ flip)) == largest ? b : a; });
}
template <ReduceKind kind>
Expr lowerReducedExtreme(LowerContext& c) {
    const DType dtype = computeTypeOf(c.out().dtype);
    const ReduceKind real = dtype != DType::Bool ? kind : kind == ReduceKind::Max ? ReduceKind::Any : ReduceKind::All;
    return lowerReduction(c, real, dtype);
}
/// The gradient is shared evenly among the elements that equal the result.
void deriveReducedExtreme(Derivation& d) {
    const Value self = d.in(size_t{0});
    Value result = d.out(), gradient = d.dy();
    const std::vector<int64_t> dims = reducedDims(d, self.rank());
    if (!keepsDims(d)) {
        const SymDims kept = reducedSizes(self.sizes(), dims, true);
        result = view(result, kept);
        const Value mask = d.call("aten.eq.Tensor", {result, self});
        gradient = view(gradient, kept);
        d.input(0) = gradient / sum(mask, dims, true) * mask;
        return;
    }
    const Value mask = d.call("aten.eq.Tensor", {result, self});
    d.input(0) = gradient / sum(mask, dims, true) * mask;
}

// -- any, all

Result<ValueType> inferTruth(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(TensorType type, reducedType(c, self.dtype == DType::U8 ? DType::U8 : DType::Bool));
    return ValueType(std::move(type));
}
/// Of uint8 the answer is uint8.
Value asTruthOf(Decomposition& d, const Value& truth) {
    return convert(truth, d.in(size_t{0}).dtype() == DType::U8 ? DType::U8 : DType::Bool);
}
template <bool any>
EvalResult evalTruth(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}).to(DType::Bool);
    return foldReduced<int64_t>(c, self, reducedDims(c, self.rank()), any ? 0 : 1,
                                [](int64_t a, int64_t b) -> int64_t { return any ? a || b : a && b; });
}
template <ReduceKind kind>
Expr lowerTruth(LowerContext& c) {
    return Expr::cast(lowerReduction(c, kind, DType::Bool), c.out().dtype);
}

constexpr OpDef kReduceOps[] = {
    // Integers and bool sum in int64; f16 and bf16 accumulate wider. Empty sums are 0.
    {.schema =
         "aten.sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferSum,
     .eval = evalSum,
     .derive = deriveSum,
     .lower = lowerSum,
     .samples = R"(
f32[2, 3, 4], [1]
f32[2, 3, 4], [0, 2], True
f32[2, 3, 4], [-1]
f32[2, 3][1, 2], [0]
f32[2, 3, 2, 2][12, 1, 6, 3], [2, 3], True
bf16[4, 5], [1]
f64[3, 2], []
f64[3, 2], None
i32[2, 3], [1]
b8[2, 3], [0]
f32[0, 3], [0]
f32[2, 0], [0]
bf16[4], [0], dtype = torch.float32
f32[], [0]
f32[3], 0
)"},
    {.schema = "aten.sum.default(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferSum,
     .eval = evalSum,
     .derive = deriveSum,
     .lower = lowerSum,
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]\ni64[4]\nb8[3]\nf32[0]\nf16[4], dtype = torch.float32\nf32[]"},
    // Floats only. The mean of nothing is NaN.
    {.schema = "aten.mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferMean,
     .eval = evalMean,
     .expand = Expand::Decompose,
     .decompose = decomposeComplexMean,
     .derive = deriveMean,
     .lower = lowerMean,
     .samples =
         "f32[2, 3, 4], [1]\nf32[2, 3, 4], [-1, -2], True\nf32[2, 3][1, 2], [0]\nbf16[4, 5], [1]\nf64[3, 2], None\nf32[0, 3], [0]\ni64[2, 3], [1], dtype = torch.float32\nc64[2, 3], [1], True"},
    {.schema = "aten.mean.default(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferMean,
     .eval = evalMean,
     .expand = Expand::Decompose,
     .decompose = decomposeComplexMean,
     .derive = deriveMean,
     .lower = lowerMean,
     .samples = "f32[2, 3]\nf64[4]\nbf16[2, 2]\nf32[]\nc64[2, 3]"},
    // The largest element; NaN wins. Reducing no elements is an error.
    {.schema = "aten.amax.default(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferExtreme,
     .eval = evalExtreme<true>,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (d.in(size_t{0}).dtype() != DType::Bool) return Values::notHandled();
         return d.call("aten.any.dims", {d.arg(0), d.arg(1), d.flag("keepdim")});
     },
     .derive = deriveReducedExtreme,
     .lower = lowerReducedExtreme<ReduceKind::Max>,
     .samples = kDimSamples},
    {.schema = "aten.amin.default(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferExtreme,
     .eval = evalExtreme<false>,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (d.in(size_t{0}).dtype() != DType::Bool) return Values::notHandled();
         return d.call("aten.all.dims", {d.arg(0), d.arg(1), d.flag("keepdim")});
     },
     .derive = deriveReducedExtreme,
     .lower = lowerReducedExtreme<ReduceKind::Min>,
     .samples = kDimSamples},
    // True if any element is not zero; NaN counts. uint8 gives uint8.
    {.schema = "aten.any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferTruth,
     .eval = evalTruth<true>,
     .lower = lowerTruth<ReduceKind::Any>,
     .samples = "b8[2, 3], 1\nf32[2, 3]<2, -1, True\nb8[0, 3], 0\nu8[2, 2]<2, 0\nb8[2, 3][1, 2], 0"},
    {.schema = "aten.any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferTruth,
     .eval = evalTruth<true>,
     .lower = lowerTruth<ReduceKind::Any>,
     .samples = "b8[2, 3], [0, 1]\nb8[2, 3, 2], [0, 2], True\nb8[2, 3]"},
    {.schema = "aten.any.default(Tensor self) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferTruth,
     .eval = evalTruth<true>,
     .lower = lowerTruth<ReduceKind::Any>,
     .samples = "b8[2, 3]\nf32[0]\ni64[3]<2"},
    {.schema = "aten.all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferTruth,
     .eval = evalTruth<false>,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value flipped = unary("aten.logical_not.default", d.in(size_t{0}));
         return asTruthOf(
             d, unary("aten.logical_not.default", d.call("aten.any.dim", {flipped, d.arg(1), d.flag("keepdim")})));
     },
     .samples = "b8[2, 3], 1\nf32[2, 3]<2, -1, True\nb8[0, 3], 0"},
    {.schema = "aten.all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferTruth,
     .eval = evalTruth<false>,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value flipped = unary("aten.logical_not.default", d.in(size_t{0}));
         return asTruthOf(
             d, unary("aten.logical_not.default", d.call("aten.any.dims", {flipped, d.arg(1), d.flag("keepdim")})));
     },
     .samples = "b8[2, 3], [0, 1]\nb8[2, 3, 2], [0, 2], True"},
    {.schema = "aten.all.default(Tensor self) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferTruth,
     .eval = evalTruth<false>,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value flipped = unary("aten.logical_not.default", d.in(size_t{0}));
         return asTruthOf(d, unary("aten.logical_not.default", unary("aten.any.dims", flipped)));
     },
     .samples = "b8[2, 3]\nf32[0]\ni64[3]"},
};

}  // namespace

std::span<const OpDef> reduceOps() { return kReduceOps; }

}  // namespace cutaway
