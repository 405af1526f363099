// Elementwise operators of one tensor that need no transcendental function: signs, squares, rounding, predicates.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr Tag kRoundingTags = Tag::Pointwise | Tag::Inplace;

constexpr std::string_view kNumberSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
f16[]
i64[4]
i8[4]
i32[0, 3]
f32[4, 1, 3][3, 1, 4]
)";
/// isnan, isinf: true for a complex number if it is for either part.
Values ofEitherPart(Decomposition& d) {
    const Value x = d.in(0);
    if (!isComplex(x.dtype())) return Values::notHandled();
    const Value parts = d.call(d.op().name(), {unary("aten.view_as_real.default", x)});
    return d.call("aten.any.dim", {parts, int64_t{-1}});
}
constexpr std::string_view kRealSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
i64[4]
u8[3]
)";
constexpr std::string_view kPredicateSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
i64[4]
u8[3]
c64[2, 3]
)";
constexpr std::string_view kIntegerSamples = R"(
i64[4]
i32[2, 3][1, 2]
u8[3]
i8[3]
b8[2, 2]
)";

/// Rounding and sign functions are flat wherever they have a derivative.
void zeroGradient(Derivation& d) { d.input(0) = unary("aten.zeros_like.default", d.dy()); }

Expr compareWith(LowerContext& c, ExprKind kind, double value) {
    const Expr x = c.load(0);
    return compare(kind, x, constantLike(x, value));
}
/// Integers pass through rounding functions unchanged.
Expr roundedBy(LowerContext& c, std::string_view function) {
    const Expr x = c.load(0);
    return isFloating(x->dtype) ? call1(function, x) : x;
}
template <class F>
Tensor roundFloats(const EvalContext& c, F f) {
    if (isFloating(c.resultType().dtype)) return floatMap(c, f);
    return map(c, [](auto x) { return x; });
}
/// PyTorch refuses bool here: negation and absolute value of truth values are mistakes.
template <Result<ValueType> (*rule)(const InferContext&)>
Result<ValueType> refuseBool(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.dtype == DType::Bool) return c.fail("does not take bool; use logical_not or convert first");
    return rule(c);
}
/// For the rounding functions: bool is refused, complex too.
Result<ValueType> inferRounding(const InferContext& c) { return refuseBool<inferRealBroadcast>(c); }

constexpr OpDef kRoundingOps[] = {
    // Negation; integers wrap. bool is refused.
    {.schema = "aten.neg.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = refuseBool<inferBroadcast>,
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         withComplex(computeDType(c, {0}), [&](auto tag) {
             using T = decltype(tag);
             elementwise<T, 1>(out, {c.in(size_t{0})}, [](T x) {
                 if constexpr (std::is_integral_v<T>) return wrapNeg(x);
                 else return -x;
             });
         });
         return out;
     },
     .derive = [](Derivation& d) { d.input(0) = -d.dy(); },
     .lower = [](LowerContext& c) { return -c.load(0); },
     .samples = kNumberSamples},
    {.schema = "aten.square.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.pow.Tensor_Scalar", {d.in(0), 2});
     },
     .samples = kNumberSamples},
    // max(x, 0); NaN stays NaN, and -0.0 stays -0.0. bool is refused.
    {.schema = "aten.relu.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return map(c, [](auto x) { return x < 0 ? decltype(x)(0) : x; }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.threshold_backward.default", {d.dy(), d.out(size_t{0}), 0});
         },
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0), zero = constantLike(x, 0);
             return Expr::where(compare(ExprKind::Lt, x, zero), zero, x);
         },
     .samples = kNumberSamples},
    {.schema = "aten.floor.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::floor(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "floor"); },
     .samples = kNumberSamples},
    {.schema = "aten.ceil.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::ceil(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "ceil"); },
     .samples = kNumberSamples},
    {.schema = "aten.trunc.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::trunc(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "trunc"); },
     .samples = kNumberSamples},
    // Half to even.
    {.schema = "aten.round.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::nearbyint(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "round"); },
     .samples = kNumberSamples},
    // Half to even at a decimal place, through a power of ten: exact only as far as that product is.
    {.schema = "aten.round.decimals(Tensor self, *, int decimals) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRounding,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const double power = std::pow(10.0, static_cast<double>(d.integerOr("decimals", 0)));
         return unary("aten.round.default", d.in(0) * power) * (1.0 / power);
     },
     .derive = zeroGradient,
     .samples = "f32[2, 3], decimals = 1\nf64[4], decimals = -1\nf32[3], decimals = 0"},
    {.schema = "aten.frac.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferFloatLikeFirst,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return x - std::trunc(x); }); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         if (has(d.release(), ReleaseChange::TruncatedFraction))
             return fromOpmath(d, x - unary("aten.trunc.default", x));
         const Value floored = unary("aten.floor.default", unary("aten.abs.default", x));
         return fromOpmath(d, x - floored * unary("aten.sign.default", x));
     },
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },
     .samples = "f32[2, 3]\nf64[4]\nbf16[3]"},
    // -1, 0 or 1; NaN gives 0, as PyTorch's kernel does.
    {.schema = "aten.sign.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return map(c, [](auto x) { return decltype(x)((x > 0) - (x < 0)); }); },
     .derive = zeroGradient,
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0), zero = constantLike(x, 0);
             if (x->dtype == DType::Bool) return x;
             return Expr::where(compare(ExprKind::Gt, x, zero), constantLike(x, 1),
                                Expr::where(compare(ExprKind::Lt, x, zero), constantLike(x, -1), zero));
         },
     .samples = kRealSamples},
    {.schema = "aten.isnan.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferPredicate,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (isComplex(c.in(size_t{0}).dtype())) return evalExpanded(c);
         return map(c, [](auto x) { return isNan(x); });
     },
     .expand = Expand::Decompose,
     .decompose = ofEitherPart,
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             return isFloating(x->dtype) ? Expr::call("isnan", {x}, DType::Bool) : Expr::boolean(false);
         },
     .samples = kPredicateSamples},
    {.schema = "aten.isinf.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferPredicate,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (isComplex(c.in(size_t{0}).dtype())) return evalExpanded(c);
         return map(c, [](auto x) { return std::isinf(static_cast<double>(x)); });
     },
     .expand = Expand::Decompose,
     .decompose = ofEitherPart,
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             if (!isFloating(x->dtype)) return Expr::boolean(false);
             return Expr::call("isinf", {x}, DType::Bool);
         },
     .samples = kPredicateSamples},
    {.schema = "aten.isposinf.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealPredicate,
     .eval =
         [](const EvalContext& c) {
             return map(c, [](auto x) { return static_cast<double>(x) == std::numeric_limits<double>::infinity(); });
         },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.eq.Scalar", {d.in(0), std::numeric_limits<double>::infinity()});
     },
     .samples = "f32[2, 3]\nf64[4]"},
    {.schema = "aten.isneginf.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealPredicate,
     .eval =
         [](const EvalContext& c) {
             return map(c, [](auto x) { return static_cast<double>(x) == -std::numeric_limits<double>::infinity(); });
         },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.eq.Scalar", {d.in(0), -std::numeric_limits<double>::infinity()});
     },
     .samples = "f32[2, 3]\nf64[4]"},
    {.schema = "aten.logical_not.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = inferPredicate,
     .eval =
         [](const EvalContext& c) {
             if (!isComplex(c.in(size_t{0}).dtype())) return map(c, [](auto x) { return x == 0; });
             Tensor out = c.result();
             using Complex = std::complex<double>;
             elementwise<Complex, 1>(out, {c.in(size_t{0})}, [](Complex z) { return Complex(z == 0.0); });
             return out;
         },
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             if (x->dtype == DType::Bool) return Expr::make(ExprKind::Not, {x}, DType::Bool);
             return compareWith(c, ExprKind::Eq, 0);
         },
     .samples = "b8[2, 3]\nf32[4]\ni64[2, 3][1, 2]\nb8[0]"},
    // Bitwise complement of integers, logical complement of bool. Floats are refused.
    {.schema = "aten.bitwise_not.default(Tensor self) -> Tensor",
     .tags = kRoundingTags,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         if (!isIntegral(self.dtype, true))
             return c.fail("needs integers or bool, not " + std::string(info(self.dtype).torchName));
         return inferBroadcast(c);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const bool logical = c.resultType().dtype == DType::Bool;
         Tensor out = c.result();
         elementwise<int64_t, 1>(out, {c.in(size_t{0})},
                                 [logical](int64_t x) -> int64_t { return logical ? x == 0 : ~x; });
         return out;
     },
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             return Expr::make(x->dtype == DType::Bool ? ExprKind::Not : ExprKind::BitNot, {x}, x->dtype);
         },
     .samples = kIntegerSamples},
};

}  // namespace

std::span<const OpDef> roundingOps() { return kRoundingOps; }

}  // namespace cutaway
