// Elementwise operators of one tensor.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/special.h"

namespace cutaway {

Tensor floatMapWith(const EvalContext& c, float (*narrow)(float), double (*wide)(double)) {
    Tensor out = c.result();
    if (computeDType(c, {0}) == DType::F64) elementwise<double, 1>(out, {c.in(size_t{0})}, wide);
    else elementwise<float, 1>(out, {c.in(size_t{0})}, narrow);
    return out;
}

namespace {

constexpr Tag kTags = Tag::Pointwise | Tag::Inplace;

constexpr std::string_view kFloatSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
f16[]
i64[4]
b8[3]
f32[0, 3]
f32[2, 3, 2, 2][12, 1, 6, 3]
)";
constexpr std::string_view kPositiveSamples = R"(
f32[2, 3]>0
f64[2, 3][1, 2]>0
bf16[5]>0
f16[]>0
i64[4]<10
f32[2, 3]
)";
// The same with complex numbers, for functions that those have.
constexpr std::string_view kComplexSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
f16[]
i64[4]
b8[3]
f32[0, 3]
f32[2, 3, 2, 2][12, 1, 6, 3]
c64[2, 3]
)";
constexpr std::string_view kComplexPositiveSamples = R"(
f32[2, 3]>0
f64[2, 3][1, 2]>0
bf16[5]>0
f16[]>0
i64[4]<10
f32[2, 3]
c64[2, 3]
)";
/// For functions on [-1, 1].
constexpr std::string_view kUnitSamples = R"(
f32[2, 3]<1
f64[2, 3][1, 2]<1
bf16[5]<1
f16[]<1
b8[3]
)";
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
constexpr std::string_view kRealSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
i64[4]
u8[3]
)";
constexpr std::string_view kIntegerSamples = R"(
i64[4]
i32[2, 3][1, 2]
u8[3]
i8[3]
b8[2, 2]
)";

Value scaled(const Value& x, const Scalar& factor) { return x ? x.builder().call("aten.mul.Scalar", {x, factor}) : x; }
Value squared(const Value& x) { return x ? x.builder().call("aten.pow.Tensor_Scalar", {x, 2}) : x; }
Value plusOne(const Value& x) { return x ? x.builder().call("aten.add.Scalar", {x, 1}) : x; }

/// Rounding and sign functions are flat wherever they have a derivative.
void zeroGradient(Derivation& d) { d.input(0) = unary("aten.zeros_like.default", d.dy()); }

constexpr double kTwoOverSqrtPi = 1.1283791670955126;
constexpr double kLn2 = 0.6931471805599453, kLn10 = 2.3025850929940455;

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

constexpr OpDef kOps[] = {
    // Negation; integers wrap. bool is refused.
    {.schema = "aten.neg.default(Tensor self) -> Tensor",
     .tags = kTags,
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
    {.schema = "aten.exp.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::exp(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(d.out(size_t{0})); },
     .lower = [](LowerContext& c) { return call1("exp", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.exp2.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::exp2(x); }); },
     .derive = [](Derivation& d) { d.input(0) = scaled(d.dy() * d.out(size_t{0}), kLn2); },
     .lower = [](LowerContext& c) { return call1("exp2", c.load(0)); },
     .samples = kFloatSamples},
    {.schema = "aten.expm1.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::expm1(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * plusOne(d.out(size_t{0})); },
     .lower = [](LowerContext& c) { return call1("expm1", c.load(0)); },
     .samples = kFloatSamples},
    // Natural logarithm; -inf at 0, NaN below.
    {.schema = "aten.log.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::log(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(d.in(0)); },
     .lower = [](LowerContext& c) { return call1("log", c.load(0)); },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.log2.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::log2(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / scaled(d.in(0), kLn2); },
     .lower = [](LowerContext& c) { return call1("log2", c.load(0)); },
     .samples = kPositiveSamples},
    {.schema = "aten.log10.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::log10(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / scaled(d.in(0), kLn10); },
     .lower = [](LowerContext& c) { return call1("log10", c.load(0)); },
     .samples = kPositiveSamples},
    {.schema = "aten.log1p.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::log1p(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / plusOne(d.in(0)); },
     .lower = [](LowerContext& c) { return call1("log1p", c.load(0)); },
     .samples = kPositiveSamples},
    // NaN below 0; sqrt(-0) is -0.
    {.schema = "aten.sqrt.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::sqrt(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(scaled(d.out(size_t{0}), int64_t{2})); },
     .lower = [](LowerContext& c) { return call1("sqrt", c.load(0)); },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.rsqrt.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return 1 / std::sqrt(x); }); },
     .derive =
         [](Derivation& d) {
             const Value cube = d.call("aten.pow.Tensor_Scalar", {d.out(size_t{0}), 3});
             d.input(0) = scaled(d.dy(), -0.5) * cube;
         },
     .lower = [](LowerContext& c) { return call1("rsqrt", c.load(0)); },
     .samples = kPositiveSamples},
    // 1/x; inf at 0 with its sign.
    {.schema = "aten.reciprocal.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return decltype(x)(1) / x; }); },
     .derive =
         [](Derivation& d) {
             const Value square = d.out(size_t{0}) * d.out(size_t{0});
             d.input(0) = -d.dy() * conjugated(square);
         },
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             return constantLike(x, 1) / x;
         },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.square.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values { return squared(d.in(0)); },
     .samples = kNumberSamples},
    {.schema = "aten.sin.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::sin(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(unary("aten.cos.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("sin", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.cos.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::cos(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(-unary("aten.sin.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("cos", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.tan.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::tan(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * plusOne(squared(d.out(size_t{0}))); },
     .lower = [](LowerContext& c) { return call1("tan", c.load(0)); },
     .samples = kUnitSamples},
    {.schema = "aten.asin.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::asin(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * unary("aten.rsqrt.default", plusOne(-d.in(0) * d.in(0))); },
     .lower = [](LowerContext& c) { return call1("asin", c.load(0)); },
     .samples = kUnitSamples},
    {.schema = "aten.acos.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::acos(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * -unary("aten.rsqrt.default", plusOne(-d.in(0) * d.in(0))); },
     .lower = [](LowerContext& c) { return call1("acos", c.load(0)); },
     .samples = kUnitSamples},
    {.schema = "aten.atan.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::atan(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / plusOne(d.in(0) * d.in(0)); },
     .lower = [](LowerContext& c) { return call1("atan", c.load(0)); },
     .samples = kFloatSamples},
    {.schema = "aten.sinh.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::sinh(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(unary("aten.cosh.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("sinh", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.cosh.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::cosh(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(unary("aten.sinh.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("cosh", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.tanh.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::tanh(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.tanh_backward.default", {d.dy(), d.out(size_t{0})});
         },
     .lower = [](LowerContext& c) { return call1("tanh", c.load(0)); },
     .samples = kFloatSamples},
    {.schema = "aten.asinh.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::asinh(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * unary("aten.rsqrt.default", plusOne(squared(d.in(0)))); },
     .lower = [](LowerContext& c) { return call1("asinh", c.load(0)); },
     .samples = kFloatSamples},
    // NaN below 1.
    {.schema = "aten.acosh.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::acosh(x); }); },
     .derive =
         [](Derivation& d) {
             const Value inside = d.call("aten.sub.Scalar", {d.in(0) * d.in(0), 1});
             d.input(0) = d.dy() * unary("aten.rsqrt.default", inside);
         },
     .lower = [](LowerContext& c) { return call1("acosh", c.load(0)); },
     .samples = "f32[2, 3]\nf64[3]>0\ni64[4]<10"},
    {.schema = "aten.atanh.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::atanh(x); }); },
     .derive =
         [](Derivation& d) {
             const Value one = d.call("aten.full_like.default", {d.in(0), 1});
             d.input(0) = d.dy() / (one - squared(d.in(0)));
         },
     .lower = [](LowerContext& c) { return call1("atanh", c.load(0)); },
     .samples = kUnitSamples},
    {.schema = "aten.erf.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::erf(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = scaled(unary("aten.exp.default", -squared(d.in(0))), kTwoOverSqrtPi) * d.dy();
         },
     .lower = [](LowerContext& c) { return call1("erf", c.load(0)); },
     .samples = kFloatSamples},
    {.schema = "aten.erfc.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::erfc(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = scaled(unary("aten.exp.default", -squared(d.in(0))), -kTwoOverSqrtPi) * d.dy();
         },
     .lower = [](LowerContext& c) { return call1("erfc", c.load(0)); },
     .samples = kFloatSamples},
    // Inverse of erf: +-inf at +-1, NaN outside.
    {.schema = "aten.erfinv.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval =
         [](const EvalContext& c) { return floatMap(c, [](auto x) { return inverseErf(static_cast<double>(x)); }); },
     .derive =
         [](Derivation& d) {
             const Value again = unary("aten.erfinv.default", d.in(0));
             d.input(0) = scaled(unary("aten.exp.default", squared(again)), 0.8862269254527579) * d.dy();
         },
     .lower = [](LowerContext& c) { return call1("erfinv", c.load(0)); },
     .samples = kUnitSamples},
    // Logarithm of the absolute value of the gamma function; inf at its poles.
    {.schema = "aten.lgamma.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::lgamma(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * unary("aten.digamma.default", d.in(0)); },
     .lower = [](LowerContext& c) { return call1("lgamma", c.load(0)); },
     .samples = kPositiveSamples},
    // Derivative of lgamma. NaN at the negative integers, -inf or inf at 0 by its sign.
    {.schema = "aten.digamma.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return digamma(static_cast<double>(x)); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.dy() * d.call("aten.polygamma.default", {1, d.in(0)});
         },
     .lower = [](LowerContext& c) { return call1("digamma", c.load(0)); },
     .samples = kPositiveSamples},
    // Its n-th derivative.
    {.schema = "aten.polygamma.default(int n, Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const int64_t n, c.integer("n"));
         CT_TRY(const Operand self, c.operand(1));
         if (n < 0) return c.fail("has no derivative of order " + std::to_string(n));
         if (isComplex(self.type.dtype)) return unsupported(c.op().name() + ": no complex kernel");
         CT_TRY(TensorType type, elementwiseType(c, std::span(&self, 1),
                                                 isIntegral(self.type.dtype, true) ? DType::F32 : self.type.dtype));
         return ValueType(std::move(type));
     },
     .eval =
         [](const EvalContext& c) {
             Tensor out = c.result();
             const int64_t n = c.integerOr("n", 0);
             withFloat(out.dtype(), [&](auto tag) {
                 using T = decltype(tag);
                 elementwise<T, 1>(out, {c.in(1)},
                                   [n](T x) { return static_cast<T>(polygamma(n, static_cast<double>(x))); });
             });
             return out;
         },
     .derive =
         [](Derivation& d) {
             const Argument next(SymInt(d.integerOr("n", 0)) + SymInt(1));
             d.input(1) = d.dy() * d.call("aten.polygamma.default", {next, d.in(1)});
         },
     .samples =
         "1, f32[2, 3]>0\n0, f64[2, 3][1, 2]>0\n2, f32[4]>0\n3, f64[5]\n1, bf16[5]>0\n1, i64[3]>0\n1, f32[0]\n1, f32[]>0"},
    {.schema = "aten.sigmoid.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return 1 / (1 + std::exp(-x)); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.sigmoid_backward.default", {d.dy(), d.out(size_t{0})});
         },
     .lower = [](LowerContext& c) { return call1("sigmoid", c.load(0)); },
     .samples = kFloatSamples},
    // max(x, 0); NaN stays NaN, and -0.0 stays -0.0. bool is refused.
    {.schema = "aten.relu.default(Tensor self) -> Tensor",
     .tags = kTags,
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
     .tags = kTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::floor(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "floor"); },
     .samples = kNumberSamples},
    {.schema = "aten.ceil.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::ceil(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "ceil"); },
     .samples = kNumberSamples},
    {.schema = "aten.trunc.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::trunc(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "trunc"); },
     .samples = kNumberSamples},
    // Half to even.
    {.schema = "aten.round.default(Tensor self) -> Tensor",
     .tags = kTags,
     .infer = inferRounding,
     .eval = [](const EvalContext& c) { return roundFloats(c, [](auto x) { return std::nearbyint(x); }); },
     .derive = zeroGradient,
     .lower = [](LowerContext& c) { return roundedBy(c, "round"); },
     .samples = kNumberSamples},
    // Half to even at a decimal place, through a power of ten: exact only as far as that product is.
    {.schema = "aten.round.decimals(Tensor self, *, int decimals) -> Tensor",
     .tags = kTags,
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
     .tags = kTags,
     .infer = inferFloatLikeFirst,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return x - std::trunc(x); }); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0);
         const Value floored = unary("aten.floor.default", unary("aten.abs.default", x));
         return fromOpmath(d, x - floored * unary("aten.sign.default", x));
     },
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },
     .samples = "f32[2, 3]\nf64[4]\nbf16[3]"},
    // -1, 0 or 1; NaN gives 0, as PyTorch's kernel does.
    {.schema = "aten.sign.default(Tensor self) -> Tensor",
     .tags = kTags,
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
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return map(c, [](auto x) { return isNan(x); }); },
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             return isFloating(x->dtype) ? Expr::call("isnan", {x}, DType::Bool) : Expr::boolean(false);
         },
     .samples = kRealSamples},
    {.schema = "aten.isinf.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return map(c, [](auto x) { return std::isinf(static_cast<double>(x)); }); },
     .lower =
         [](LowerContext& c) {
             const Expr x = c.load(0);
             if (!isFloating(x->dtype)) return Expr::boolean(false);
             return Expr::call("isinf", {x}, DType::Bool);
         },
     .samples = kRealSamples},
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
     .tags = kTags,
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
     .tags = kTags,
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

std::span<const OpDef> pointwiseUnaryOps() { return kOps; }

}  // namespace cutaway
