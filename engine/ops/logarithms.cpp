// Logarithms that respect zeros and infinities: logit, xlogy, logaddexp.
#include "engine/ops/build.h"
#include "engine/ops/complex_functions.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr Tag kLogarithmsTags = Tag::Pointwise | Tag::Inplace;

constexpr OpDef kLogarithmsOps[] = {
    // log(x / (1 - x)), x clamped to [eps, 1 - eps] when eps is given.
    {.schema = "aten.logit.default(Tensor self, float? eps=None) -> Tensor",
     .tags = kLogarithmsTags,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         Value x = opmathIn(d, 0);
         if (isIntegral(x.dtype(), true)) x = convert(x, DType::F32);
         const double low = d.has("eps") ? d.real("eps") : -1.0, high = 1 - low;
         const Value under = compareScalar("lt", x, low), over = compareScalar("gt", x, high);
         x = where(over, scalarTensor(d, high, x), x);
         x = where(under, scalarTensor(d, low, x), x);
         return fromOpmath(d, unary("aten.log.default", x / subtractFrom(int64_t{1}, x)));
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.logit_backward.default", {d.dy(), d.in(size_t{0}), d.arg(1)});
         },
     .samples = "f32[2, 3]<1, 0.1\nf32[2, 3]<1\nbf16[4]<1, 0.2"},
    // x * log(y), 0 where x is 0, NaN where y is.
    {.schema = "aten.xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kLogarithmsTags,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         Value x = opmathIn(d, 0), y = opmathIn(d, 1);
         const DType dtype = opmathType(d.out().dtype);
         if (isIntegral(x.dtype(), true)) x = convert(x, dtype);
         if (isIntegral(y.dtype(), true)) y = convert(y, dtype);
         const Value zero = compareScalar("eq", x, int64_t{0});
         const Value product = x * unary("aten.log.default", y);
         const Value rest = where(zero, scalarTensor(d, int64_t{0}, product), product);
         const Value missing = unary("aten.isnan.default", y);
         return fromOpmath(d, where(missing, scalarTensor(d, std::numeric_limits<double>::quiet_NaN(), rest), rest));
     },
     .derive =
         [](Derivation& d) {
             const Value x = d.in(size_t{0}), y = d.in(1);
             if (d.needs(1)) d.input(1) = d.dy() * x / y;
             if (d.needs(0)) {
                 const Value plain = d.call("aten.xlogy.Tensor", {d.dy(), y});
                 const Value low = compareScalar("le", y, 0.0);
                 const Value flat = d.call("aten.bitwise_and.Tensor", {compareScalar("eq", x, 0.0), low});
                 d.input(0) = d.call("aten.masked_fill.Scalar", {plain, flat, 0.0});
             }
         },
     .samples = "f32[2, 3], f32[3]>0\nbf16[4], bf16[4]>0\nf64[3], f64[3]>0"},
    // log(exp(x) + exp(y)) without overflow.
    {.schema = "aten.logaddexp.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise | Tag::Commutative,
     .infer = inferBroadcast,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (!isComplex(c.resultType().dtype)) return evalExpanded(c);
         Tensor out = c.result();
         elementwise<std::complex<double>, 2>(out, {c.in(size_t{0}), c.in(1)},
                                              [](auto a, auto b) { return logAddExpOf(a, b); });
         return out;
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (isComplex(d.out().dtype)) return Values::notHandled();
         const auto spread = [&](const Value& v) { return v.sizes() == d.out().sizes ? v : expand(v, d.out().sizes); };
         const Value x = spread(opmathIn(d, 0)), y = spread(opmathIn(d, 1));
         const Value larger = d.call("aten.ge.Tensor", {x, y});
         const Value most = where(larger, x, y), least = where(larger, y, x);
         const Value infinite = unary("aten.logical_not.default", unary("aten.isfinite.default", x));
         const Value same = d.call("aten.logical_and.default", {infinite, d.call("aten.eq.Tensor", {x, y})});
         const Value sum = most + unary("aten.log1p.default", unary("aten.exp.default", least - most));
         return fromOpmath(d, where(same, x, sum));
     },
     .derive =
         [](Derivation& d) {
             auto share = [&](const Value& mine, const Value& theirs) {
                 return d.dy() / conjugated(d.call("aten.add.Scalar", {unary("aten.exp.default", theirs - mine), 1}));
             };
             if (d.needs(1)) d.input(1) = share(d.in(1), d.in(size_t{0}));
             if (d.needs(0)) d.input(0) = share(d.in(size_t{0}), d.in(1));
         },
     .samples = "f32[2, 3], f32[3]\nbf16[4], bf16[4]\nf64[3], f64[3]\nc64[2, 3], c64[3]"},
};

}  // namespace

std::span<const OpDef> logarithmOps() { return kLogarithmsOps; }

}  // namespace cutaway
