// Variances over dims; standard deviations and other corrections' names stand in reduce_composite.cpp.
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

Result<ValueType> inferVariance(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (!isFloating(self.dtype) && !isComplex(self.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(self.dtype).torchName));
    const DType real = self.dtype == DType::C128 ? DType::F64 : isComplex(self.dtype) ? DType::F32 : self.dtype;
    CT_TRY(TensorType type, reducedType(c, real));
    return ValueType(std::move(type));
}
Result<ValueType> inferVarMean(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(ValueType type, inferVariance(c));
    ValueType mean = type;
    mean.tensor()->dtype = self.dtype;
    return ValueType(TupleType{type, mean});
}

namespace {
double correctionOf(const InferContext& c) {
    const auto given = c.scalar("correction");
    return given ? toDouble(*given) : 1;
}
/// Of complex numbers the variance is the sum of those of their parts.
Values decomposeComplexVariance(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (!isComplex(x.dtype())) return Values::notHandled();
    const NamedArguments keywords = {{"correction", d.arg("correction")}, {"keepdim", d.flag("keepdim")}};
    const auto variance = [&](std::string_view part) {
        return d.call("aten.var.correction", {unary(part, x), d.arg("dim")}, keywords);
    };
    const Value total = variance("aten.real.default") + variance("aten.imag.default");
    if (d.op().name().starts_with("aten.var.")) return total;
    return {total, d.call("aten.mean.dim", {x, d.arg("dim"), d.flag("keepdim")})};
}
struct Moments {
    std::vector<double> variance, mean;
};
Moments momentsOf(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    const double correction = correctionOf(c);
    Moments moments;
    forEachReduced<double>(self, reducedDims(c, self.rank()), [&](int64_t, const ReducedElements<double>& elements) {
        const double count = static_cast<double>(elements.count());
        double sum = 0, squares = 0;
        elements.forEachRun([&](const double* run, int64_t n) {
            for (int64_t i = 0; i < n; ++i) sum += run[i];
        });
        const double mean = sum / count;
        elements.forEachRun([&](const double* run, int64_t n) {
            for (int64_t i = 0; i < n; ++i) squares += (run[i] - mean) * (run[i] - mean);
        });
        moments.mean.push_back(mean);
        moments.variance.push_back(squares / std::max(0.0, count - correction));
    });
    return moments;
}
}  // namespace

Value varianceGradient(Derivation& d, Value gradient) {
    const Value self = d.in(size_t{0});
    const SymInt count = reducedCount(d, self.type());
    const bool all = !d.arg("dim").list() || d.arg("dim").list()->empty();
    gradient = withReducedDims(d, gradient);
    const Value mean =
        all ? unary("aten.mean.default", self) : d.call("aten.mean.dim", {self, Argument(d.integersOf("dim")), true});
    const Value centred = self - mean;
    const double correction = correctionOf(d);
    if (count.isInt())
        return d.call("aten.mul.Scalar",
                      {gradient, 2.0 / std::max(0.0, static_cast<double>(count.value()) - correction)}) *
               centred;
    const auto whole = static_cast<int64_t>(correction);
    if (static_cast<double>(whole) != correction) {
        d.builder().fail(
            unsupported(d.op().name() + ": a correction that is not an integer needs a fixed number of elements", {},
                        {"set the sizes of the inputs"}));
        return {};
    }
    return scaledByCount(gradient, 2, count - SymInt(whole)) * centred;
}

namespace {
void deriveVarMean(Derivation& d) {
    Value total;
    if (d.dy(0)) total = varianceGradient(d, d.dy(0));
    if (d.dy(1)) {
        const Value part = meanGradient(d, d.dy(1));
        total = total ? total + part : part;
    }
    d.input(0) = total;
}
Expr lowerVarianceOrMean(LowerContext& c, bool variance) {
    const DType dtype = computeTypeOf(c.out(c.resultNumber()).dtype);
    const SymDims box = reducedBox(c);
    auto element = [&](const std::vector<Expr>& r) { return reducedElement(c, r, dtype); };
    if (!variance) return reduceMean(c, box, element);
    const Expr count = Expr::cast(numel(box).expr(), dtype);
    const Expr left = count - constantLike(count, correctionOf(c)), none = constantLike(count, 0);
    const Expr degrees = Expr::where(compare(ExprKind::Gt, left, none), left, none);  // of NaN none are left
    return reduceSquaredDeviations(c, box, element) / degrees;
}

constexpr OpDef kVarianceOps[] = {
    // Squared deviations over N - correction (1 when not given), and the mean. NaN when nothing is left to divide by.
    {.schema =
         "aten.var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferVarMean,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (isComplex(c.in(size_t{0}).dtype())) return evalExpanded(c);
         const Moments moments = momentsOf(c);
         return TensorList{storeReduced(c, moments.variance, 0), storeReduced(c, moments.mean, 1)};
     },
     .expand = Expand::Decompose,
     .decompose = decomposeComplexVariance,
     .derive = deriveVarMean,
     .lower = [](LowerContext& c) { return lowerVarianceOrMean(c, c.resultNumber() == 0); },
     .samples = R"(
f32[2, 3, 4], [2], correction = 0, keepdim = True
f32[2, 3, 4], [0, 2]
f32[2, 3, 2, 2][12, 1, 6, 3], [0, 2, 3], correction = 0, keepdim = True
bf16[4, 5], [1], correction = 1
f64[6]
f32[3, 1], [1]
c64[3, 4], [1]
)"},
    {.schema =
         "aten.var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
     .tags = Tag::Reduction,
     .infer = inferVariance,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (isComplex(c.in(size_t{0}).dtype())) return evalExpanded(c);
         return storeReduced(c, momentsOf(c).variance);
     },
     .expand = Expand::Decompose,
     .decompose = decomposeComplexVariance,
     .derive = [](Derivation& d) { d.input(0) = varianceGradient(d, d.dy()); },
     .lower = [](LowerContext& c) { return lowerVarianceOrMean(c, true); },
     .samples =
         "f32[2, 3, 4], [2], correction = 0, keepdim = True\nf32[2, 3, 4], [0, 2]\nf64[6]\nbf16[4, 5], [1]\nf32[2, 3], [1], correction = 0.5\nc64[3, 4], [0], keepdim = True"},
};

}  // namespace

std::span<const OpDef> varianceOps() { return kVarianceOps; }

}  // namespace cutaway
