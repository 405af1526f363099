// Elementwise functions of one tensor: exponentials, logarithms, roots, trigonometry, error and gamma functions.
// Signs, rounding and predicates stand in rounding.cpp.
#include "engine/ops/build.h"
#include "engine/ops/complex_functions.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/special.h"

namespace cutaway {

Tensor floatMapWith(const EvalContext& c, float (*narrow)(float), double (*wide)(double)) {
    Tensor out = c.result();
    if (computeDType(c, {0}) == DType::F64) elementwise<double, 1>(out, {c.in(size_t{0})}, wide);
    else elementwise<float, 1>(out, {c.in(size_t{0})}, narrow);
    return out;
}

namespace {

constexpr Tag kPointwiseUnaryTags = Tag::Pointwise | Tag::Inplace;

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

constexpr std::string_view kComplexUnitSamples = R"(
f32[2, 3]<1
f64[2, 3][1, 2]<1
bf16[5]<1
f16[]<1
b8[3]
c64[2, 3]<1
)";

Value scaled(const Value& x, const Scalar& factor) { return x ? x.builder().call("aten.mul.Scalar", {x, factor}) : x; }
Value squared(const Value& x) { return x ? x.builder().call("aten.pow.Tensor_Scalar", {x, 2}) : x; }
Value plusOne(const Value& x) { return x ? x.builder().call("aten.add.Scalar", {x, 1}) : x; }

constexpr double kTwoOverSqrtPi = 1.1283791670955126;
constexpr double kLn2 = 0.6931471805599453, kLn10 = 2.3025850929940455;

constexpr OpDef kPointwiseUnaryOps[] = {
    {.schema = "aten.exp.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::exp(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(d.out(size_t{0})); },
     .lower = [](LowerContext& c) { return call1("exp", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.exp2.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return exp2Of(x); }); },
     .derive = [](Derivation& d) { d.input(0) = scaled(d.dy() * conjugated(d.out(size_t{0})), kLn2); },
     .lower = [](LowerContext& c) { return call1("exp2", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.expm1.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return expm1Of(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * plusOne(conjugated(d.out(size_t{0}))); },
     .lower = [](LowerContext& c) { return call1("expm1", c.load(0)); },
     .samples = kComplexSamples},
    // Natural logarithm; -inf at 0, NaN below.
    {.schema = "aten.log.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::log(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(d.in(0)); },
     .lower = [](LowerContext& c) { return call1("log", c.load(0)); },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.log2.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return log2Of(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(scaled(d.in(0), kLn2)); },
     .lower = [](LowerContext& c) { return call1("log2", c.load(0)); },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.log10.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::log10(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(scaled(d.in(0), kLn10)); },
     .lower = [](LowerContext& c) { return call1("log10", c.load(0)); },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.log1p.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return log1pOf(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(plusOne(d.in(0))); },
     .lower = [](LowerContext& c) { return call1("log1p", c.load(0)); },
     .samples = kComplexPositiveSamples},
    // NaN below 0; sqrt(-0) is -0.
    {.schema = "aten.sqrt.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::sqrt(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(scaled(d.out(size_t{0}), int64_t{2})); },
     .lower = [](LowerContext& c) { return call1("sqrt", c.load(0)); },
     .samples = kComplexPositiveSamples},
    {.schema = "aten.rsqrt.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return decltype(x)(1) / std::sqrt(x); }); },
     .derive =
         [](Derivation& d) {
             const Value cube = d.call("aten.pow.Tensor_Scalar", {d.out(size_t{0}), 3});
             d.input(0) = scaled(d.dy(), -0.5) * conjugated(cube);
         },
     .lower = [](LowerContext& c) { return call1("rsqrt", c.load(0)); },
     .samples = kComplexPositiveSamples},
    // 1/x; inf at 0 with its sign.
    {.schema = "aten.reciprocal.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
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
    {.schema = "aten.sin.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::sin(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(unary("aten.cos.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("sin", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.cos.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::cos(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(-unary("aten.sin.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("cos", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.tan.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::tan(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(plusOne(squared(d.out(size_t{0})))); },
     .lower = [](LowerContext& c) { return call1("tan", c.load(0)); },
     .samples = kComplexUnitSamples},
    {.schema = "aten.asin.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::asin(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.dy() * conjugated(unary("aten.rsqrt.default", plusOne(-d.in(0) * d.in(0))));
         },
     .lower = [](LowerContext& c) { return call1("asin", c.load(0)); },
     .samples = kComplexUnitSamples},
    {.schema = "aten.acos.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::acos(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.dy() * conjugated(-unary("aten.rsqrt.default", plusOne(-d.in(0) * d.in(0))));
         },
     .lower = [](LowerContext& c) { return call1("acos", c.load(0)); },
     .samples = kComplexUnitSamples},
    {.schema = "aten.atan.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::atan(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() / conjugated(plusOne(d.in(0) * d.in(0))); },
     .lower = [](LowerContext& c) { return call1("atan", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.sinh.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::sinh(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(unary("aten.cosh.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("sinh", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.cosh.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::cosh(x); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * conjugated(unary("aten.sinh.default", d.in(0))); },
     .lower = [](LowerContext& c) { return call1("cosh", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.tanh.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::tanh(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.tanh_backward.default", {d.dy(), d.out(size_t{0})});
         },
     .lower = [](LowerContext& c) { return call1("tanh", c.load(0)); },
     .samples = kComplexSamples},
    {.schema = "aten.asinh.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::asinh(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.dy() * conjugated(unary("aten.rsqrt.default", plusOne(squared(d.in(0)))));
         },
     .lower = [](LowerContext& c) { return call1("asinh", c.load(0)); },
     .samples = kComplexSamples},
    // NaN below 1.
    {.schema = "aten.acosh.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::acosh(x); }); },
     .derive =
         [](Derivation& d) {
             const auto rootOf = [](const Value& x) { return unary("aten.rsqrt.default", x); };
             if (isComplex(d.in(0).dtype())) {
                 // Two roots, since the root of (x - 1)(x + 1) may lie on the other side of the branch cut.
                 const Value below = d.call("aten.sub.Scalar", {d.in(0), 1});
                 d.input(0) = d.dy() * conjugated(rootOf(below) * rootOf(plusOne(d.in(0))));
                 return;
             }
             d.input(0) = d.dy() * rootOf(d.call("aten.sub.Scalar", {d.in(0) * d.in(0), 1}));
         },
     .lower = [](LowerContext& c) { return call1("acosh", c.load(0)); },
     .samples = "f32[2, 3]\nf64[3]>0\ni64[4]<10\nc64[2, 3]"},
    {.schema = "aten.atanh.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return std::atanh(x); }); },
     .derive =
         [](Derivation& d) {
             const Value one = d.call("aten.full_like.default", {d.in(0), 1});
             d.input(0) = d.dy() / conjugated(one - squared(d.in(0)));
         },
     .lower = [](LowerContext& c) { return call1("atanh", c.load(0)); },
     .samples = kComplexUnitSamples},
    {.schema = "aten.erf.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::erf(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = scaled(unary("aten.exp.default", -squared(d.in(0))), kTwoOverSqrtPi) * d.dy();
         },
     .lower = [](LowerContext& c) { return call1("erf", c.load(0)); },
     .samples = kFloatSamples},
    {.schema = "aten.erfc.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
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
     .tags = kPointwiseUnaryTags,
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
     .tags = kPointwiseUnaryTags,
     .infer = inferRealFloat,
     // In f64, as compiled lanes are: the C library's f32 function is two units off at times.
     .eval =
         [](const EvalContext& c) { return floatMap(c, [](auto x) { return std::lgamma(static_cast<double>(x)); }); },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * unary("aten.digamma.default", d.in(0)); },
     .lower = [](LowerContext& c) { return call1("lgamma", c.load(0)); },
     .samples = kPositiveSamples},
    // Derivative of lgamma. NaN at the negative integers, -inf or inf at 0 by its sign.
    {.schema = "aten.digamma.default(Tensor self) -> Tensor",
     .tags = kPointwiseUnaryTags,
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
     .tags = kPointwiseUnaryTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) { return complexMap(c, [](auto x) { return sigmoidOf(x); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.sigmoid_backward.default", {d.dy(), d.out(size_t{0})});
         },
     .lower = [](LowerContext& c) { return call1("sigmoid", c.load(0)); },
     .samples = kComplexSamples},
};

}  // namespace

std::span<const OpDef> pointwiseUnaryOps() { return kPointwiseUnaryOps; }

}  // namespace cutaway
