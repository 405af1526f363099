// Elementwise operators with special cases: bounds, fills, products of three. Powers stand in powers.cpp, logarithms
// in logarithms.cpp.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr Tag kPointwiseSpecialTags = Tag::Pointwise | Tag::Inplace;

Scalar specialNumber(const Decomposition& d, std::string_view param) {
    return d.scalar(param).value_or(Scalar(int64_t{0}));
}
/// The same as PyTorch's kernel takes it, which has cut it to a whole number where all operands are integers.
Scalar ownNumber(const Decomposition& d, std::string_view param, std::initializer_list<Value> operands) {
    const Scalar number = specialNumber(d, param);
    const bool whole = std::all_of(operands.begin(), operands.end(),
                                   [](const Value& operand) { return isIntegral(operand.dtype(), true); });
    return whole ? Scalar(toInt(number)) : number;
}
std::optional<Scalar> optionalNumber(const Decomposition& d, std::string_view param) {
    return d.has(param) ? d.scalar(param) : std::nullopt;
}
Value zeroOf(Decomposition& d, const Value& like) { return scalarTensor(d, 0.0, like); }

// -- bounds

template <bool lower>
EvalResult boundedSpecial(const EvalContext& c) {
    return zip(c, [](auto a, auto b) { return lower ? maximumOf(a, b) : minimumOf(a, b); });
}
template <ExprKind kind>
Expr lowerBounded(LowerContext& c) {
    const Expr a = c.load(0);
    return Expr::make(kind, {a, c.load(1)}, a->dtype);
}
Result<ValueType> inferClamp(const InferContext& c) {
    std::vector<Operand> operands;
    for (size_t i = 0; i < 3; ++i) {
        if (!c.has(i)) continue;
        CT_TRY(Operand one, c.operand(i));
        if (isComplex(one.type.dtype)) return c.fail("complex numbers have no order");
        operands.push_back(std::move(one));
    }
    if (operands.size() == 1) return c.fail("needs min or max");
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
void deriveClampNumber(Derivation& d) {
    const Value x = d.in(size_t{0});
    const auto low = optionalNumber(d, "min"), high = optionalNumber(d, "max");
    const Value none = zeroOf(d, d.dy());
    const bool atBounds = !has(d.release(), ReleaseChange::GradientAtBounds);
    const Value above = low ? compareScalar(atBounds ? "ge" : "gt", x, *low) : Value();
    const Value below = high ? compareScalar(atBounds ? "le" : "lt", x, *high) : Value();
    const Value inside = above && below ? d.call("aten.logical_and.default", {above, below}) : above ? above : below;
    d.input(0) = where(inside, d.dy(), none);
}
/// `inside`: the comparison that holds within the bound, "gt" or "lt".
void deriveBound(Derivation& d, const std::string& inside, std::string_view param) {
    const Value x = d.in(size_t{0});
    const Value none = zeroOf(d, d.dy());
    const std::string keeps = has(d.release(), ReleaseChange::GradientAtBounds) ? inside : inside.substr(0, 1) + "e";
    d.input(0) = where(compareScalar(keeps, x, specialNumber(d, param)), d.dy(), none);
}
/// The gradient, one half of it where two are equal, 0 where another one is the result.
template <class Tie>
Value sharedGradient(Derivation& d, const Value& lost, const Tie& tie) {
    const Value half = d.call("aten.div.Scalar", {d.dy(), 2});
    const Value equal = tie();
    return d.call("aten.masked_fill.Scalar", {where(equal, half, d.dy()), lost, 0});
}
/// By self and the one bound that is argument `bound`. `inside`, `outside`: the comparisons of self with it that choose
/// self and the bound.
void shareBoundGradient(Derivation& d, size_t bound, const std::string& inside, const std::string& outside) {
    for (const size_t i : {bound, size_t{0}}) {
        if (!d.needs(i)) continue;
        const Value lost = d.call("aten." + (i == 0 ? outside : inside) + ".Tensor", {d.arg(0), d.arg(bound)});
        d.input(i) = sharedGradient(d, lost, [&] { return d.call("aten.eq.Tensor", {d.arg(0), d.arg(bound)}); });
    }
}
void deriveBoundTensor(Derivation& d, const std::string& inside, const std::string& outside) {
    if (has(d.release(), ReleaseChange::GradientAtBounds)) return shareBoundGradient(d, 1, inside, outside);
    const std::string keeps = "aten." + inside.substr(0, 1) + "e.Tensor", loses = "aten." + outside + ".Tensor";
    if (d.needs(1)) {
        const Value none = zeroOf(d, d.dy());
        d.input(1) = where(d.call(loses, {d.arg(0), d.arg(1)}), d.dy(), none);
    }
    const Value none = zeroOf(d, d.dy());
    d.input(0) = where(d.call(keeps, {d.arg(0), d.arg(1)}), d.dy(), none);
}
/// fmax and fmin: a NaN loses.
Values decomposeNanLoses(Decomposition& d, std::string_view comparison) {
    const Value x = d.in(size_t{0}), y = d.in(1);
    const Value missing = unary("aten.isnan.default", y);
    const Value wins = d.call("aten.bitwise_or.Tensor", {missing, d.call(comparison, {y, x})});
    return where(wins, x, y);
}
void deriveNanLoses(Derivation& d, std::string_view comparison) {
    auto selfWins = [&] {
        const Value wins = d.call(comparison, {d.arg(0), d.arg(1)});
        return d.call("aten.logical_or.default", {wins, unary("aten.isnan.default", d.in(1))});
    };
    if (d.needs(1)) d.input(1) = d.call("aten.masked_fill.Scalar", {d.dy(), selfWins(), 0});
    if (d.needs(0))
        d.input(0) = d.call("aten.masked_fill.Scalar", {d.dy(), unary("aten.logical_not.default", selfWins()), 0});
}

double largestFinite(DType dtype) {
    switch (dtype) {
        case DType::F16: return 65504;
        case DType::BF16: return 3.3895313892515355e+38;
        case DType::F64: return std::numeric_limits<double>::max();
        default: return 3.4028234663852886e+38;
    }
}
Values decomposeNanToNum(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (isComplex(x.dtype())) {
        const auto replacedPart = [&](int64_t part) {
            const Value parts = unary("aten.view_as_real.default", x);
            const Value one = d.call("aten.select.int", {parts, parts.rank() - 1, part});
            return d.call("aten.nan_to_num.default", {one, d.arg("nan"), d.arg("posinf"), d.arg("neginf")});
        };
        const Value real = replacedPart(0);
        return d.call("aten.complex.default", {real, replacedPart(1)});
    }
    if (!isFloating(x.dtype())) return unary("aten.clone.default", x);
    const double infinity = std::numeric_limits<double>::infinity(), largest = largestFinite(x.dtype());
    auto replace = [&](const Value& condition, double value, const Value& rest) {
        return where(condition, scalarTensor(d, value, x), rest);
    };
    Value y = replace(unary("aten.isnan.default", x), d.real("nan", 0.0), x);
    y = replace(compareScalar("eq", toOpmath(x), -infinity), d.real("neginf", -largest), y);
    return replace(compareScalar("eq", toOpmath(x), infinity), d.real("posinf", largest), y);
}
Values finiteMask(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (isComplex(x.dtype())) {
        const Value parts = unary("aten.isfinite.default", unary("aten.view_as_real.default", x));
        return d.call("aten.all.dim", {parts, int64_t{-1}});
    }
    if (!isFloating(x.dtype())) return d.call("aten.ones_like.default", {x}, {{"dtype", DType::Bool}});
    const Value bounded = compareScalar("ne", unary("aten.abs.default", x), std::numeric_limits<double>::infinity());
    return d.call("aten.eq.Tensor", {x, x}) * bounded;
}

/// By both bounds, as releases that share the gradient at a bound do: max wins where the bounds cross.
void shareClampGradient(Derivation& d) {
    const Value x = d.in(size_t{0}), low = d.in(1), high = d.in(2);
    const auto compared = [&](std::string_view how, const Value& a, const Value& b) {
        return d.call("aten." + std::string(how) + ".Tensor", {a, b});
    };
    const auto both = [&](const Value& a, const Value& b) { return d.call("aten.logical_and.default", {a, b}); };
    const auto either = [&](const Value& a, const Value& b) { return d.call("aten.logical_or.default", {a, b}); };
    const auto lost = [&](const Value& wins) { return unary("aten.logical_not.default", wins); };
    const Value ordered = compared("lt", low, high), equal = compared("eq", low, high);
    if (d.needs(1)) {
        const Value wins = either(both(ordered, compared("le", x, low)), both(equal, compared("lt", x, low)));
        d.input(1) = sharedGradient(d, lost(wins), [&] { return compared("eq", x, low); });
    }
    if (d.needs(2)) {
        const Value crossed = either(compared("lt", high, low), both(ordered, compared("ge", x, high)));
        const Value wins = either(crossed, both(equal, compared("gt", x, high)));
        d.input(2) = sharedGradient(d, lost(wins), [&] { return both(compared("eq", x, high), ordered); });
    }
    if (d.needs(0)) {
        const Value tie = both(either(compared("eq", x, low), compared("eq", x, high)), ordered);
        const Value below = compared("lt", x, low);
        d.input(0) = sharedGradient(d, either(below, compared("gt", x, high)), [&] { return tie; });
    }
}
/// The gradient goes to the operand that the result is equal to; with min above max that is max.
void deriveClampTensor(Derivation& d) {
    if (has(d.release(), ReleaseChange::GradientAtBounds)) {
        if (d.has("min") && d.has("max")) return shareClampGradient(d);
        return d.has("min") ? shareBoundGradient(d, 1, "gt", "lt") : shareBoundGradient(d, 2, "lt", "gt");
    }
    const Value x = d.in(size_t{0});
    const bool low = d.has("min"), high = d.has("max");
    const auto less = [&](const Value& a, const Value& b) { return d.call("aten.lt.Tensor", {a, b}); };
    const auto kept = [&](const Value& condition) {
        const Value none = zeroOf(d, d.dy());
        return where(condition, d.dy(), none);
    };
    if (d.needs(2) && high) {
        const Value above = d.call("aten.gt.Tensor", {x, d.in(2)});
        d.input(2) = kept(low ? d.call("aten.logical_or.default", {above, less(d.in(2), d.in(1))}) : above);
    }
    if (d.needs(1) && low) {
        const Value below = less(x, d.in(1));
        d.input(1) = kept(high ? d.call("aten.logical_and.default", {below, less(d.in(1), d.in(2))}) : below);
    }
    if (!d.needs(0)) return;
    Value within;
    if (low) within = d.call("aten.ge.Tensor", {x, d.in(1)});
    if (high) {
        const Value under = d.call("aten.le.Tensor", {x, d.in(2)});
        within = within ? d.call("aten.logical_and.default", {within, under}) : under;
    }
    d.input(0) = kept(within);
}

Result<ValueType> inferMaskedFill(const InferContext& c) {
    CT_TRY(const Operand self, c.operand(0));
    CT_TRY(const Operand mask, c.operand(1));
    if (mask.type.dtype != DType::Bool)
        return c.fail("the mask is " + std::string(info(mask.type.dtype).torchName) + ", not bool");
    const Operand operands[] = {self, mask};
    CT_TRY(const TensorType type, elementwiseType(c, operands, self.type.dtype));
    if (c.op().schema()->params[2].kind == ParamKind::Number)
        CT_TRY_VOID(checkNumber(c, c.op().schema()->params[2].name, type.dtype));
    return ValueType(TensorType::contiguous(type.dtype, type.sizes, type.device));
}

// -- a + v*b*c, a + v*b/c

Result<ValueType> inferAddc(const InferContext& c) {
    std::vector<Operand> operands;
    for (size_t i = 0; i < 3; ++i) {
        CT_TRY(Operand one, c.operand(i));
        operands.push_back(std::move(one));
    }
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
Value timesNumber(Derivation& d, const Value& x) { return d.call("aten.mul.Scalar", {x, specialNumber(d, "value")}); }

constexpr OpDef kPointwiseSpecialOps[] = {
    // Bounds; NaN stays NaN.
    {.schema = "aten.clamp_min.default(Tensor self, Scalar min) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferRealBroadcast,
     .eval = boundedSpecial<true>,
     .derive = [](Derivation& d) { deriveBound(d, "gt", "min"); },
     .lower = lowerBounded<ExprKind::Max>,
     .samples = "f32[2, 3], 0.5\ni64[4], 1\ni64[4], 0.5\nbf16[4], 0\nf64[2, 3][1, 2], -1"},
    {.schema = "aten.clamp_max.default(Tensor self, Scalar max) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferRealBroadcast,
     .eval = boundedSpecial<false>,
     .derive = [](Derivation& d) { deriveBound(d, "lt", "max"); },
     .lower = lowerBounded<ExprKind::Min>,
     .samples = "f32[2, 3], 0.5\ni64[4], 1\nbf16[4], 0\nf64[2, 3][1, 2], -1"},
    {.schema = "aten.clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferRealBroadcast,
     .eval = boundedSpecial<true>,
     .derive = [](Derivation& d) { deriveBoundTensor(d, "gt", "lt"); },
     .lower = lowerBounded<ExprKind::Max>,
     .samples = "f32[2, 3], f32[3]\ni64[4], i64[4]"},
    {.schema = "aten.clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferRealBroadcast,
     .eval = boundedSpecial<false>,
     .derive = [](Derivation& d) { deriveBoundTensor(d, "lt", "gt"); },
     .lower = lowerBounded<ExprKind::Min>,
     .samples = "f32[2, 3], f32[3]\ni64[4], i64[4]"},
    {.schema = "aten.clamp.default(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferClamp,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         Value x = opmathIn(d, 0);
         if (d.has("min")) x = d.call("aten.clamp_min.default", {x, d.arg("min")});
         if (d.has("max")) x = d.call("aten.clamp_max.default", {x, d.arg("max")});
         return fromOpmath(d, x);
     },
     .derive = deriveClampNumber,
     .samples = "f32[2, 3], -1, 1\nf32[2, 3], 0\nf32[2, 3], None, 0.5\nbf16[4], -1, 1\ni64[4], 0, 2"},
    {.schema = "aten.clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferClamp,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         Value x = opmathIn(d, 0);
         if (d.has("min")) x = d.call("aten.clamp_min.Tensor", {x, opmathIn(d, 1)});
         if (d.has("max")) x = d.call("aten.clamp_max.Tensor", {x, opmathIn(d, 2)});
         return fromOpmath(d, x);
     },
     .derive = deriveClampTensor,
     .samples = "f32[2, 3], f32[3], f32[3]\nf32[2, 3], None, f32[3]"},
    // The other operand where one is NaN.
    {.schema = "aten.fmax.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealBroadcast,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeNanLoses(d, "aten.lt.Tensor"); },
     .derive = [](Derivation& d) { deriveNanLoses(d, "aten.ge.Tensor"); },
     .samples = "f32[2, 3], f32[3]\nbf16[4], bf16[4]\ni64[3], i64[3]"},
    {.schema = "aten.fmin.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealBroadcast,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeNanLoses(d, "aten.gt.Tensor"); },
     .derive = [](Derivation& d) { deriveNanLoses(d, "aten.le.Tensor"); },
     .samples = "f32[2, 3], f32[3]\nbf16[4], bf16[4]\ni64[3], i64[3]"},
    // NaN and infinities replaced by numbers: 0 and the dtype's largest and smallest unless given.
    {.schema =
         "aten.nan_to_num.default(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferBroadcast,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNanToNum,
     .derive = [](Derivation& d) { d.input(0) = d.dy() * unary("aten.isfinite.default", d.in(size_t{0})); },
     .samples = "f32[2, 3]\nf32[2, 3], 0.0, 1.0, -1.0\nbf16[4]\ni64[3]\nc64[2, 3]"},
    {.schema = "aten.isfinite.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferPredicate,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = finiteMask,
     .samples = "f32[2, 3]\ni64[3]\nc64[2, 3]"},
    // `value` where the mask holds.
    {.schema = "aten.masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferMaskedFill,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         const Scalar value =
             isFloating(x.dtype()) ? Scalar(toDouble(specialNumber(d, "value"))) : specialNumber(d, "value");
         return where(d.in(1), scalarTensor(d, value, x), x);
     },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.masked_fill.Scalar", {d.dy(), d.arg(1), 0.0});
         },
     .samples = "f32[2, 3], b8[3], -1e9\nf32[2, 3], b8[2, 3], -inf\ni64[4], b8[4], 7\nbf16[2, 2], b8[2, 1], 0"},
    {.schema = "aten.masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferMaskedFill,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(size_t{0});
         return where(d.in(1), convert(d.in(2), x.dtype()), x);
     },
     .derive =
         [](Derivation& d) {
             const Value none = zeroOf(d, d.dy());
             if (d.needs(2)) d.input(2) = where(d.in(1), d.dy(), none);
             d.input(0) = d.call("aten.masked_fill.Scalar", {d.dy(), d.arg(1), 0});
         },
     .samples = "f32[2, 3], b8[3], f32[]"},
    // self + value * tensor1 * tensor2.
    {.schema = "aten.addcmul.default(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferAddc,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0), a = opmathIn(d, 1), b = opmathIn(d, 2);
         return fromOpmath(d, x + a * ownNumber(d, "value", {x, a, b}) * b);
     },
     .decomposedIn = untilRelease(Release::V2_12),  // PyTorch has kernels for it since
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.dy() * conjugated(timesNumber(d, d.in(2)));
             if (d.needs(2)) d.input(2) = d.dy() * conjugated(timesNumber(d, d.in(1)));
             d.input(0) = d.dy();
         },
     .samples =
         "f32[2, 3], f32[3], f32[2, 3], value = 2\nbf16[4], bf16[4], bf16[4]\nf64[2], f64[2], f64[2]\nc64[2], c64[2], c64[2], value = 2"},
    {.schema = "aten.addcdiv.default(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(ValueType type, inferAddc(c));
         if (isIntegral(type.tensor()->dtype, true))
             return c.fail("does not divide integers; convert them to floats first");
         return type;
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = opmathIn(d, 0), a = opmathIn(d, 1), b = opmathIn(d, 2);
         return fromOpmath(d, x + a * specialNumber(d, "value") / b);
     },
     .decomposedIn = untilRelease(Release::V2_12),  // PyTorch has kernels for it since
     .derive =
         [](Derivation& d) {
             const Value a = d.in(1), b = d.in(2);
             if (d.needs(1)) {
                 const Value share =
                     full(d.builder(), b.sizes(), specialNumber(d, "value"), b.dtype(), b.type().device) / b;
                 d.input(1) = d.dy() * conjugated(share);
             }
             if (d.needs(2)) {
                 const Value square = b * b;
                 const Value ratio = timesNumber(d, a) / square;
                 d.input(2) = -d.dy() * conjugated(ratio);
             }
             d.input(0) = d.dy();
         },
     .samples =
         "f32[2, 3], f32[3], f32[2, 3]>0, value = 2\nbf16[4], bf16[4], bf16[4]>0\nf64[2], f64[2], f64[2]>0\nc64[2], c64[2], c64[2], value = 2"},
    // self + weight * (end - self), from the nearer side so that weight 1 gives end exactly.
    {.schema = "aten.lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType start, c.tensor(size_t{0}));
         CT_TRY(const TensorType end, c.tensor(1));
         if (start.dtype != end.dtype || (!isFloating(start.dtype) && !isComplex(start.dtype)))
             return c.fail("wants two floating-point or complex tensors of one dtype");
         return inferBroadcast(c);
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (has(d.release(), ReleaseChange::LerpOfSums) && !isComplex(d.out().dtype)) {
             const Value from = d.in(0), to = d.in(1);
             const double way = d.real("weight");
             const bool nearEnd = way >= 0.5 || way <= -0.5;
             return d.call("aten.add.Tensor", {nearEnd ? to : from, to - from},
                           {{"alpha", nearEnd ? -(1.0 - way) : way}});
         }
         const Value x = opmathIn(d, 0), end = opmathIn(d, 1);
         const Scalar way = isComplex(x.dtype()) ? specialNumber(d, "weight") : Scalar(d.real("weight"));
         const Value weight = full(d.builder(), {}, way, x.dtype(), x.type().device);
         const Value near = compareScalar("ge", unary("aten.abs.default", weight), 0.5);
         const Value factor = where(near, weight - 1, weight);
         const Value base = where(near, end, x);
         return fromOpmath(d, factor * (end - x) + base);
     },
     .derive =
         [](Derivation& d) {
             const Scalar given = specialNumber(d, "weight");
             if (const auto* complex = std::get_if<std::complex<double>>(&given)) {
                 const std::complex<double> turned = std::conj(*complex);
                 if (d.needs(1)) d.input(1) = d.call("aten.mul.Scalar", {d.dy(), Argument(turned)});
                 d.input(0) = d.call("aten.mul.Scalar", {d.dy(), Argument(1.0 - turned)});
                 return;
             }
             const double weight = toDouble(given);
             if (d.needs(1)) d.input(1) = d.call("aten.mul.Scalar", {d.dy(), weight});
             d.input(0) = d.call("aten.mul.Scalar", {d.dy(), 1 - weight});
         },
     .samples =
         "f32[2, 3], f32[3], 0.25\nf32[2, 3][1, 2], f32[2, 3], 0.75\nf64[2, 1], f64[3], -2\nbf16[4], bf16[4], 0.5\nf16[0, 3], f16[3], 1\nc64[2, 3], c64[3], 0.25\nc64[3], c64[3], 0.75"},
    // The angle of (other, self) in (-pi, pi].
    {.schema = "aten.atan2.default(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseSpecialTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return zipFloat(c, [](auto a, auto b) { return std::atan2(a, b); }); },
     .derive =
         [](Derivation& d) {
             const Value y = d.in(size_t{0}), x = d.in(1);
             const Value xx = x * x;
             const Value squares = y * y + xx;
             const Value inverse = unary("aten.reciprocal.default", squares);
             const Value safe =
                 d.call("aten.masked_fill.Scalar", {inverse, compareScalar("eq", squares, int64_t{0}), 0.0});
             if (d.needs(0)) d.input(0) = d.dy() * x * safe;
             if (d.needs(1)) d.input(1) = d.dy() * -y * safe;
         },
     .lower =
         [](LowerContext& c) {
             const Expr a = c.load(0);
             return Expr::call("atan2", {a, c.load(1)}, a->dtype);
         },
     .samples = "f32[2, 3], f32[3]\nf64[4], f64[4]\ni64[3]>0, i64[3]>0\nbf16[4], bf16[4]"},
};

}  // namespace

std::span<const OpDef> pointwiseSpecialOps() { return kPointwiseSpecialOps; }

}  // namespace cutaway
