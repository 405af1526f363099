// Elementwise operators of two or three tensors: arithmetic. Unary ones stand in pointwise_unary.cpp, comparisons in
// compare.cpp, casts in cast.cpp, where in where.cpp.
#include "engine/expr/polynomial.h"
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr Tag kPointwiseTags = Tag::Pointwise | Tag::Inplace;

/// Pairs that broadcast, promote and stride in every way that matters to a binary elementwise op.
constexpr std::string_view kProductSamples = R"(
f32[2, 3], f32[2, 3]
f32[2, 3], f32[3]
f32[4, 1], f32[1, 5]
f32[2, 3][1, 2], f32[2, 3]
f32[2, 3][1, 2], f32[2, 3][1, 2]
f32[2, 3, 2, 2][12, 1, 6, 3], f32[1, 3, 1, 1]
f32[], f32[3]
f32[0, 3], f32[3]
f64[3], f32[3]
bf16[2, 3], bf16[3]
f16[5], f32[]
i64[4], i32[4]
i32[3], f32[3]
u8[4], i8[4]
b8[4], i64[4]
f32[2, 3], 2
i64[3], 2
i64[3], 2.5
c64[2, 3], c64[3]
f32[2, 3], c64[2, 3]
)";
constexpr std::string_view kDivideSamples = R"(
c64[2, 3], c64[3]
f32[2, 3], c64[2, 3]
f32[2, 3], f32[2, 3]>0
f32[2, 3], f32[3]>0
f32[4, 1], f32[1, 5]>0
f32[2, 3][1, 2], f32[2, 3]>0
f32[], f32[3]>0
f32[0, 3], f32[3]>0
f64[3], f32[3]>0
bf16[2, 3], bf16[3]>0
i64[4], i32[4]>0
i32[3], f32[3]>0
f32[2, 3], 2
i64[3], 3
f32[3], f32[3]
)";
constexpr std::string_view kScalarSamples = R"(
f32[2, 3], 2.5
f64[2, 3][1, 2], 3
bf16[4], 0.5
i64[4], 2
i32[3], 2.5
f32[0, 2], 1
)";
constexpr std::string_view kExtremeSamples = R"(
f32[2, 3], f32[2, 3]
f32[2, 3], f32[3]
f64[2, 3][1, 2], f64[2, 3]
bf16[4], bf16[]
i64[4], i32[4]
b8[3], b8[3]
)";

/// a + alpha * b in the compute type.
template <int sign>
EvalResult sumScaled(const EvalContext& c) {
    const Scalar alpha = c.number("alpha");
    Tensor out = c.result();
    const DType dtype = computeDType(c, {0, 1});
    withComplex(dtype, [&](auto tag) {
        using T = decltype(tag);
        const auto scaled = [factor = scalarAs<T>(alpha)](T a, T b) {
            const T term = wrapMul(b, factor);
            return sign > 0 ? wrapAdd(a, term) : wrapSub(a, term);
        };
        elementwise<T, 2>(out, {wrappedOperand(c, 0, dtype), wrappedOperand(c, 1, dtype)}, scaled);
    });
    return out;
}
template <ExprKind kind>
Expr lowerSumScaled(LowerContext& c) {
    const Expr a = c.load(0), b = c.load(1);
    const auto alpha = c.scalar("alpha");
    const Expr term = alpha && isOne(alpha) ? b : b * c.numberAt("alpha", b->dtype);
    return Expr::make(kind, {a, term}, a->dtype);
}
/// alpha * x, or x when alpha is 1.
Value timesAlpha(Derivation& d, const Value& x) {
    const auto alpha = d.scalar("alpha");
    return isOne(alpha) ? x : d.call("aten.mul.Scalar", {x, Argument(conjugated(*alpha))});
}
/// PyTorch refuses to subtract truth values.
Result<ValueType> inferSubtract(const InferContext& c) {
    CT_TRY(const Operand a, c.operand(0));
    CT_TRY(const Operand b, c.operand(1));
    for (const Operand* one : {&a, &b})
        if (one->type.dtype == DType::Bool) return c.fail("does not subtract bool; use logical_xor or bitwise_xor");
    return inferBroadcast(c);
}
void deriveSubtract(Derivation& d) {
    if (d.needs(1)) d.input(1) = timesAlpha(d, -d.dy());
    d.input(0) = d.dy();
}

Expr lowerDivide(LowerContext& c) { return c.load(0) / c.load(1); }
EvalResult divide(const EvalContext& c) {
    Tensor out = c.result();
    withComplex(c.resultType().dtype, [&](auto tag) {
        elementwise<decltype(tag), 2>(out, {c.in(size_t{0}), c.in(1)}, [](auto a, auto b) {
            if constexpr (std::is_integral_v<decltype(a)>) return a;  // not reached: the result is floating
            else return a / b;
        });
    });
    return out;
}

Result<ValueType> inferRoundedDivision(const InferContext& c) {
    const std::string mode = c.text("rounding_mode");
    if (c.has("rounding_mode") && mode != "floor" && mode != "trunc")
        return c.fail("rounding_mode is None, 'floor' or 'trunc', not '" + mode + "'");
    return c.has("rounding_mode") ? inferRealBroadcast(c) : inferBroadcastFloat(c);
}
/// f on uint64 elements, which kernels hold as int64, the compute type of all integers.
template <class F>
Tensor zipUnsigned(const EvalContext& c, F f) {
    return zip(c, [f](auto a, auto b) {
        return static_cast<decltype(a)>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    });
}
EvalResult roundedDivision(const EvalContext& c) {
    if (!c.has("rounding_mode")) return divide(c);
    const bool floor = c.text("rounding_mode") == "floor";
    if (isIntegral(c.resultType().dtype, true)) {
        const Tensor divisor = wrappedOperand(c, 1, c.resultType().dtype);
        for (int64_t i = 0, n = c.result().numel() == 0 ? 0 : divisor.numel(); i < n; ++i)
            if (toInt(divisor.item(i)) == 0) return c.fail("integer division by zero");
    }
    if (c.resultType().dtype == DType::U64) return zipUnsigned(c, [](uint64_t a, uint64_t b) { return a / b; });
    return zip(c, [floor](auto a, auto b) { return floor ? floorDivide(a, b) : truncDivide(a, b); });
}
void deriveRoundedDivision(Derivation& d) {
    if (d.has("rounding_mode")) {
        if (d.needs(1)) d.input(1) = unary("aten.zeros_like.default", d.dy());
        d.input(0) = unary("aten.zeros_like.default", d.dy());
        return;
    }
    if (d.needs(1)) d.input(1) = -d.dy() * conjugated((d.in(size_t{0}) / d.any(1)) / d.any(1));
    d.input(0) = d.dy() / conjugated(d.any(1));
}
EvalResult modulo(const EvalContext& c, bool python) {
    if (isIntegral(c.resultType().dtype, true)) {
        const Tensor divisor = wrappedOperand(c, 1, c.resultType().dtype);
        for (int64_t i = 0, n = c.result().numel() == 0 ? 0 : divisor.numel(); i < n; ++i)
            if (toInt(divisor.item(i)) == 0) return c.fail("integer modulo by zero");
    }
    if (c.resultType().dtype == DType::U64) return zipUnsigned(c, [](uint64_t a, uint64_t b) { return a % b; });
    Tensor out = c.result();
    const DType dtype = out.dtype();
    withCompute(dtype, [&](auto tag) {
        elementwise<decltype(tag), 2>(out, {roundedOperand(c, 0, dtype), roundedOperand(c, 1, dtype)},
                                      [python](auto a, auto b) { return python ? remainderOf(a, b) : fmodOf(a, b); });
    });
    return out;
}
/// A quotient or remainder of integers whose divisor may be zero: the run has to fail where it is. A null Expr where
/// simplification has removed the division (a size by itself), so that no kernel computes the call.
Expr wholeDivision(LowerContext& c, ExprKind kind, const Expr& a, const Expr& divisor) {
    const Expr b = c.divisorWhereRead(divisor), result = Expr::make(kind, {a, b}, a->dtype);
    if (b.asInt().value_or(0) != 0 || alwaysPositive(b)) return result;
    return (result->kind == kind && result->operands[1] == b) ? result : Expr();
}
Expr lowerFmod(LowerContext& c) {
    const Expr a = c.loadRounded(0), b = c.loadRounded(1);
    if (isFloating(a->dtype)) return Expr::call("fmod", {a, b}, a->dtype);
    const Expr quotient = wholeDivision(c, ExprKind::Div, a, b);
    if (!quotient || b.asInt() == 0) return quotient;  // b * quotient would simplify to 0, which fails no run
    return a - b * quotient;
}
/// Python's // for floats, from fmod, as floorDivide() computes it.
Expr floorQuotient(const Expr& a, const Expr& b) {
    const Expr zero = constantLike(a, 0), one = constantLike(a, 1), plain = a / b;
    const Expr modulus = Expr::call("fmod", {a, b}, a->dtype), whole = (a - modulus) / b;
    const Expr apart = compare(ExprKind::Ne, compare(ExprKind::Lt, b, zero), compare(ExprKind::Lt, modulus, zero));
    const Expr less = compare(ExprKind::Ne, modulus, zero) && apart;
    const Expr quotient = Expr::where(less, whole - one, whole), floored = call1("floor", quotient);
    const Expr rounded =
        Expr::where(compare(ExprKind::Gt, quotient - floored, constantLike(a, 0.5)), floored + one, floored);
    const Expr signedZero = Expr::call("copysign", {zero, plain}, a->dtype);
    const Expr result = Expr::where(compare(ExprKind::Eq, quotient, zero), signedZero, rounded);
    return Expr::where(compare(ExprKind::Eq, b, zero), plain, result);
}
Expr lowerRoundedDivision(LowerContext& c) {
    const Expr a = c.load(0), b = c.load(1);
    if (!c.has("rounding_mode")) return a / b;
    const bool floor = c.text("rounding_mode") == "floor";
    if (isFloating(a->dtype)) return floor ? floorQuotient(a, b) : call1("trunc", a / b);
    return wholeDivision(c, floor ? ExprKind::FloorDiv : ExprKind::Div, a, b);
}
/// The product of two f32 is exact in f64.
Expr lowerFma(LowerContext& c) {
    const Expr a = c.load(0), b = c.load(1), added = c.load(2);
    if (a->dtype != DType::F32) return a * b + added;
    const auto wide = [](const Expr& x) { return Expr::cast(x, DType::F64); };
    return wide(a) * wide(b) + wide(added);
}
Expr lowerRemainder(LowerContext& c) {
    const Expr a = c.loadRounded(0), b = c.loadRounded(1);
    if (isFloating(a->dtype)) return Expr::make(ExprKind::Mod, {a, b}, a->dtype);
    return wholeDivision(c, ExprKind::Mod, a, b);
}

/// Ties split the gradient in half; the loser gets none.
void deriveExtreme(Derivation& d, std::string_view otherLoses, std::string_view selfLoses) {
    const bool first = has(d.release(), ReleaseChange::GradientAtBounds);  // the order in which PyTorch computes
    auto share = [&](std::string_view loses) {
        Value lost = first ? d.call(loses, {d.arg(0), d.arg(1)}) : Value();
        const Value half = d.call("aten.div.Scalar", {d.dy(), 2});
        const Value tied = d.call("aten.eq.Tensor", {d.arg(0), d.arg(1)});
        const Value split = where(tied, half, d.dy());
        if (!first) lost = d.call(loses, {d.arg(0), d.arg(1)});
        return d.call("aten.masked_fill.Scalar", {split, lost, 0.0});
    };
    if (d.needs(1)) d.input(1) = share(otherLoses);
    if (d.needs(0)) d.input(0) = share(selfLoses);
}

template <ExprKind kind>
Expr lowerExtreme(LowerContext& c) {
    const Expr a = c.load(0);
    return Expr::make(kind, {a, c.load(1)}, a->dtype);
}

Result<ValueType> inferThree(const InferContext& c) {
    std::vector<Operand> operands;
    for (size_t i = 0; i < 3; ++i) {
        CT_TRY(Operand one, c.operand(i));
        if (isComplex(one.type.dtype)) return unsupported(c.op().name() + ": no complex kernel");
        operands.push_back(std::move(one));
    }
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}

constexpr OpDef kPointwiseOps[] = {
    // self + alpha * other with broadcasting. Integers wrap; bool is "or".
    {.schema = "aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     .tags = kPointwiseTags | Tag::Commutative,
     .infer = inferBroadcast,
     .eval = sumScaled<1>,
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = timesAlpha(d, d.dy());
             d.input(0) = d.dy();
         },
     .lower = lowerSumScaled<ExprKind::Add>,
     .samples = R"(
f32[2, 3], f32[2, 3]
f32[2, 3], f32[3]
f32[4, 1], f32[1, 5]
f32[2, 3][1, 2], f32[2, 3]
f32[2, 3, 2, 2][12, 1, 6, 3], f32[1, 3, 1, 1]
f32[2, 3, 2, 2][12, 1, 6, 3], f32[2, 3, 2, 2]
f32[], f32[3]
f32[0, 3], f32[3]
f64[3], f32[3]
bf16[2, 3], bf16[3]
i64[4], i32[4]
u8[4], i8[4]
b8[4], b8[4]
f32[2, 3], 2
i64[3], 2.5
f32[2, 3], f32[3], alpha = 2
i64[3], i64[3], alpha = 3
f32[3, 1, 2][2, 2, 1], f32[3, 4, 2]
)"},
    {.schema = "aten.add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferBroadcast,
     .eval = sumScaled<1>,
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },
     .lower = lowerSumScaled<ExprKind::Add>,
     .samples = kScalarSamples},
    // self - alpha * other. bool is refused.
    {.schema = "aten.sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferSubtract,
     .eval = sumScaled<-1>,
     .derive = deriveSubtract,
     .lower = lowerSumScaled<ExprKind::Sub>,
     .samples = R"(
f32[2, 3], f32[2, 3]
f32[4, 1], f32[1, 5]
f32[2, 3][1, 2], f32[2, 3]
f64[3], f32[3]
bf16[2, 3], bf16[3]
i64[4], i32[4]
u8[4], u8[4]
f32[2, 3], 2
1, f32[2, 3]
f32[2, 3], f32[3], alpha = 2
)"},
    {.schema = "aten.sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferSubtract,
     .eval = sumScaled<-1>,
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },
     .lower = lowerSumScaled<ExprKind::Sub>,
     .samples = kScalarSamples},
    // other - alpha * self.
    {.schema = "aten.rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferSubtract,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value self = d.in(size_t{0});
         const auto alpha = d.scalar("alpha");
         if (!isOne(alpha)) return d.call("aten.sub.Tensor", {d.arg(1), self}, {{"alpha", *alpha}});
         return d.call("aten.sub.Tensor", {d.arg(1), self});
     },
     .derive = [](Derivation& d) { d.input(0) = timesAlpha(d, -d.dy()); },
     .samples = kScalarSamples},
    // Elementwise product with broadcasting. Integers wrap; NaN and infinity follow IEEE; bool is "and".
    {.schema = "aten.mul.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseTags | Tag::Commutative,
     .infer = inferBroadcast,
     .eval = [](const EvalContext& c) { return zipComplex(c, [](auto a, auto b) { return wrapMul(a, b); }); },
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.dy() * conjugated(d.any(0));
             if (d.needs(0)) d.input(0) = d.dy() * conjugated(d.any(1));
         },
     .lower = [](LowerContext& c) { return c.load(0) * c.load(1); },
     .samples = kProductSamples},
    {.schema = "aten.mul.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferBroadcast,
     .eval = [](const EvalContext& c) { return zipComplex(c, [](auto a, auto b) { return wrapMul(a, b); }); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.mul.Scalar", {d.dy(), conjugated(d.any(1)).argument()});
         },
     .lower = [](LowerContext& c) { return c.load(0) * c.load(1); },
     .samples = kScalarSamples},
    // True division: integers become floats. IEEE at zero.
    {.schema = "aten.div.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferBroadcastFloat,
     .eval = divide,
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) {
                 const Value ratio =
                     d.call("aten.div.Tensor", {d.call("aten.div.Tensor", {d.arg(0), d.arg(1)}), d.arg(1)});
                 d.input(1) = -d.dy() * conjugated(ratio);
             }
             if (d.needs(0)) d.input(0) = d.dy() / conjugated(d.any(1));
         },
     .lower = lowerDivide,
     .samples = kDivideSamples},
    {.schema = "aten.div.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferBroadcastFloat,
     .eval = divide,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.div.Scalar", {d.dy(), conjugated(d.any(1)).argument()});
         },
     .lower = lowerDivide,
     .samples = kScalarSamples},
    // Division rounded down or towards zero; integers stay integers, and dividing them by zero is an error.
    {.schema = "aten.div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRoundedDivision,
     .eval = roundedDivision,
     .derive = deriveRoundedDivision,
     .lower = lowerRoundedDivision,
     .samples = R"(
f32[2, 3], f32[3]>0, rounding_mode = 'floor'
f32[4], f32[4], rounding_mode = 'trunc'
f32[4], f32[4]>0, rounding_mode = None
c64[4], c64[4], rounding_mode = None
i64[6], i64[6]>0, rounding_mode = 'floor'
i64[6], 3, rounding_mode = 'trunc'
i32[6], 4, rounding_mode = 'floor'
bf16[4], bf16[4]>0, rounding_mode = 'floor'
i64[4], i64[4]>0, rounding_mode = None
)"},
    {.schema = "aten.div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRoundedDivision,
     .eval = roundedDivision,
     .derive = deriveRoundedDivision,
     .lower = lowerRoundedDivision,
     .samples =
         "f32[5], 0.75, rounding_mode = 'floor'\ni64[5], 3, rounding_mode = 'floor'\ni64[5], 3, rounding_mode = 'trunc'"},
    {.schema = "aten.floor_divide.default(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRealBroadcast,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.div.Tensor_mode", {d.arg(0), d.arg(1)}, {{"rounding_mode", "floor"}});
     },
     .samples = "f32[2, 3], f32[3]>0\ni64[6], i64[6]>0\ni64[6], 4"},
    // Python's remainder: the sign of the divisor. Integer modulo by zero is an error.
    {.schema = "aten.remainder.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return modulo(c, true); },
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },
     .lower = lowerRemainder,
     .samples = "f32[6], 1.5\ni64[6], 3\ni64[6], -3\nf64[2, 3][1, 2], 2\nbf16[4], 2"},
    {.schema = "aten.remainder.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return modulo(c, true); },
     .derive =
         [](Derivation& d) {
             if (d.needs(1))
                 d.input(1) =
                     -d.dy() * d.call("aten.div.Tensor_mode", {d.arg(0), d.arg(1)}, {{"rounding_mode", "floor"}});
             d.input(0) = d.dy();
         },
     .lower = lowerRemainder,
     .samples = "f32[2, 3], f32[3]>0\nf32[6], f32[6]\ni64[6], i64[6]>0"},
    // C's remainder: the sign of the dividend.
    {.schema = "aten.fmod.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return modulo(c, false); },
     .derive = [](Derivation& d) { d.input(0) = d.dy(); },
     .lower = lowerFmod,
     .samples = "f32[6], 1.5\ni64[6], 3\nf64[2, 3][1, 2], 2"},
    {.schema = "aten.fmod.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseTags,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return modulo(c, false); },
     .derive =
         [](Derivation& d) {
             if (d.needs(1))
                 d.input(1) =
                     -d.dy() * d.call("aten.div.Tensor_mode", {d.arg(0), d.arg(1)}, {{"rounding_mode", "trunc"}});
             d.input(0) = d.dy();
         },
     .lower = lowerFmod,
     .samples = "f32[2, 3], f32[3]>0\nf32[6], f32[6]\ni64[6], i64[6]>0"},
    // The larger element; NaN wins.
    {.schema = "aten.maximum.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise | Tag::Commutative,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return zip(c, [](auto a, auto b) { return maximumOf(a, b); }); },
     .derive = [](Derivation& d) { deriveExtreme(d, "aten.gt.Tensor", "aten.lt.Tensor"); },
     .lower = lowerExtreme<ExprKind::Max>,
     .samples = kExtremeSamples},
    {.schema = "aten.minimum.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise | Tag::Commutative,
     .infer = inferRealBroadcast,
     .eval = [](const EvalContext& c) { return zip(c, [](auto a, auto b) { return minimumOf(a, b); }); },
     .derive = [](Derivation& d) { deriveExtreme(d, "aten.lt.Tensor", "aten.gt.Tensor"); },
     .lower = lowerExtreme<ExprKind::Min>,
     .samples = kExtremeSamples},
    // a * b + c rounded once.
    {.schema = "prims.fma.default(Tensor a, Tensor b, Tensor c) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferThree,
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         withCompute(c.resultType().dtype, [&](auto tag) {
             using T = decltype(tag);
             elementwise<T, 3>(out, {c.in(size_t{0}), c.in(1), c.in(2)}, [](T x, T y, T z) {
                 if constexpr (std::is_floating_point_v<T>) return std::fma(x, y, z);
                 else
                     return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) +
                                           static_cast<uint64_t>(z));
             });
         });
         return out;
     },
     .lower = lowerFma,
     .samples = "f32[2, 3], f32[2, 3], f32[2, 3]\nf64[4], f64[4], f64[4]"},
};

}  // namespace

std::span<const OpDef> pointwiseOps() { return kPointwiseOps; }

}  // namespace cutaway
