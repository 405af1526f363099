// Elementwise operators that are written with others, and a few small ones: degrees, tolerances, membership, common
// divisors.
#include <cmath>
#include <numeric>

#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/renamed.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr Tag kPointwiseNamesTags = Tag::Pointwise | Tag::Inplace;

/// Number times x, integers as floats.
Values scaledBy(Decomposition& d, double factor) {
    const Value x = d.in(0);
    return fromOpmath(d, toOpmath(isIntegral(x.dtype(), true) ? convert(x, DType::F32) : x) * factor);
}
Values close(Decomposition& d) {
    const Value x = d.in(0), y = d.in(1);
    if (x.dtype() != y.dtype()) return refuse(d, "needs tensors of one dtype");
    if (d.real("rtol") < 0 || d.real("atol") < 0) return refuse(d, "tolerances must not be negative");
    const bool exact = !isFloating(x.dtype()) && !isComplex(x.dtype());
    Value result = d.call("aten.eq.Tensor", {x, y});
    if (d.flag("equal_nan") && !exact) {
        const Value mine = unary("aten.isnan.default", x), theirs = unary("aten.isnan.default", y);
        result = d.call("aten.bitwise_or.Tensor", {result, d.call("aten.bitwise_and.Tensor", {mine, theirs})});
    }
    if (d.real("rtol") == 0 && d.real("atol") == 0) return result;
    const Value from = exact ? convert(y, DType::F32) : y;
    const Value relative = unary("aten.abs.default", d.call("aten.mul.Scalar", {from, d.real("rtol")}));
    const Value allowed = d.call("aten.add.Scalar", {relative, d.real("atol")});
    const Value actual = unary("aten.abs.default", (x.dtype() == DType::Bool ? convert(x, DType::F32) : x) - from),
                finite = unary("aten.isfinite.default", actual);
    const Value within = d.call("aten.le.Tensor", {actual, allowed});
    return d.call("aten.bitwise_or.Tensor", {result, d.call("aten.bitwise_and.Tensor", {finite, within})});
}
Values memberOf(Decomposition& d) {
    const Value x = d.in(0), set = d.in(1);
    SymDims spread = x.sizes();
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < set.rank(); ++i) {
        spread.emplace_back(1);
        dims.push_back(-1 - i);
    }
    if (x.dtype() == DType::Bool || set.dtype() == DType::Bool) return refuse(d, "has no kernel for bool");
    if (dims.empty()) {
        const Value same = d.call("aten.eq.Tensor", {x, set});
        return d.flag("invert") ? unary("aten.bitwise_not.default", same) : same;
    }
    std::reverse(dims.begin(), dims.end());
    const Value found = d.call("aten.any.dims", {d.call("aten.eq.Tensor", {view(x, spread), set}), Argument(dims)});
    return d.flag("invert") ? unary("aten.bitwise_not.default", found) : found;
}
Result<ValueType> inferIntegerOperands(const InferContext& c) {
    CT_TRY(ValueType type, inferRealBroadcast(c));
    if (!isIntegral(type.tensor()->dtype, false))
        return c.fail("needs integers, not " + std::string(info(type.tensor()->dtype).torchName));
    return type;
}
int64_t commonDivisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = b == -1 ? 0 : a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a;
}
template <class F>
EvalResult integerOperands(const EvalContext& c, F f) {
    Tensor out = c.result();
    elementwise<int64_t, 2>(out, {c.in(size_t{0}), c.in(1)}, f);
    return out;
}
Result<ValueType> inferSameFloats(const InferContext& c) {
    CT_TRY(ValueType type, inferRealBroadcast(c));
    if (!isFloating(type.tensor()->dtype)) return c.fail("needs floating-point tensors");
    if (c.op().schema()->find("weight") < 0) return type;
    for (const char* param : {"self", "end", "weight"}) {
        CT_TRY(const TensorType one, c.tensor(param));
        if (one.dtype != type.tensor()->dtype) return c.fail("needs tensors of one dtype");
    }
    return type;
}
/// The same for an op that complex numbers have, too.
Result<ValueType> inferSameFloatsOrComplex(const InferContext& c) {
    CT_TRY(const TensorType first, c.tensor(size_t{0}));
    if (!isComplex(first.dtype)) return inferSameFloats(c);
    for (size_t i = 1; i < c.count(); ++i) {
        CT_TRY(const TensorType one, c.tensor(i));
        if (one.dtype != first.dtype) return c.fail("needs tensors of one dtype");
    }
    return inferBroadcast(c);
}
Values decomposeLogAddExp2(Decomposition& d) {
    const Value x = opmathIn(d, 0), y = opmathIn(d, 1);
    const Value larger = d.call("aten.ge.Tensor", {x, y});
    const Value most = where(larger, x, y), least = where(larger, y, x);
    const Value infinite = unary("aten.isinf.default", x),
                same = d.call("aten.logical_and.default", {infinite, d.call("aten.eq.Tensor", {x, y})});
    const Value rest = unary("aten.log1p.default", unary("aten.exp2.default", least - most)) * 1.4426950408889634;
    return fromOpmath(d, where(same, x, most + rest));
}
Values decomposeHeaviside(Decomposition& d) {
    const auto spread = [&](const Value& v) { return v.sizes() == d.out().sizes ? v : expand(v, d.out().sizes); };
    const Value x = spread(d.in(0)), values = spread(d.in(1));
    const Value zero = compareScalar("eq", x, int64_t{0}), below = compareScalar("lt", x, int64_t{0});
    const Value off = d.call("aten.logical_or.default", {below, unary("aten.isnan.default", x)});
    const auto number = [&](int64_t value) { return scalarTensor(d.builder(), value, DType::I64, x.type().device); };
    const Value one = number(1), none = number(0);
    return convert(where(zero, values, where(off, none, one)), d.out().dtype);
}
Values decomposeLerp(Decomposition& d) {
    if (has(d.release(), ReleaseChange::LerpOfSums) && !isComplex(d.out().dtype)) {
        const Value from = d.in(0), to = d.in(1), way = d.in(2);
        const Value step = to - from;
        const Value nearEnd = compareScalar("ge", unary("aten.abs.default", way), 0.5);
        const Value back = -subtractFrom(1.0, way);
        const Value factor = where(nearEnd, back, way);
        return d.call("aten.addcmul.default", {where(nearEnd, to, from), factor, step});
    }
    const Value x = opmathIn(d, 0), end = opmathIn(d, 1), weight = opmathIn(d, 2);
    const Value near = compareScalar("ge", unary("aten.abs.default", weight), 0.5);
    const Value factor = where(near, weight - 1, weight), base = where(near, end, x);
    return fromOpmath(d, factor * (end - x) + base);
}

/// nanmean: the mean of the elements that are not NaN.
Values meanOfNumbers(Decomposition& d) {
    const Value x = d.in(0);
    if (!isFloating(x.dtype())) return refuse(d, "needs floating-point numbers");
    const Value fixed = unary("aten.detach.default", x);
    const Value given = unary("aten.logical_not.default", d.call("aten.ne.Tensor", {fixed, fixed}));
    const Value count = d.call("aten.sum.dim_IntList", {given, d.arg("dim"), d.flag("keepdim")});
    return d.call("aten.nansum.default", {x, d.arg("dim"), d.flag("keepdim")}, {{"dtype", d.arg("dtype")}}) / count;
}

constexpr OpDef kPointwiseNamesOps[] = {
    shorthand(
        "aten.nanmean.default(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        meanOfNumbers, "f32[2, 3]\nf64[2, 3], [1], True"),
    shorthand(
        "aten.positive.default(Tensor(a) self) -> Tensor(a)",
        [](Decomposition& d) -> Values {
            return d.in(0).dtype() == DType::Bool ? refuse(d, "does not take bool") : Values(d.in(0));
        },
        "f32[2, 3]"),
    shorthand(
        "aten.float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        [](Decomposition& d) -> Values {
            if (isComplex(d.in(0).dtype())) return refuse(d, "has no expansion for complex numbers");
            return d.call("aten.pow.Tensor_Scalar", {convert(d.in(0), DType::F64), toDouble(*d.scalar("exponent"))});
        },
        "f32[2, 3]>0, 2\ni64[3]>0, 0.5", kPointwiseNamesTags),
    shorthand(
        "aten.float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        [](Decomposition& d) -> Values {
            if (isComplex(d.in(0).dtype()) || isComplex(d.in(1).dtype()))
                return refuse(d, "has no expansion for complex numbers");
            const Value exponent = convert(d.in(1), DType::F64);
            return d.call("aten.pow.Tensor_Tensor", {convert(d.in(0), DType::F64), exponent});
        },
        "f32[2, 3]>0, f32[3]\ni64[3]>0, f64[3]", kPointwiseNamesTags),
    shorthand(
        "aten.float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
        [](Decomposition& d) -> Values {
            const auto base = d.scalar("self");
            if (!base) return refuse(d, "needs a number that is known before the run");
            if (isComplex(d.in(1).dtype())) return refuse(d, "has no expansion for complex numbers");
            return d.call("aten.pow.Scalar", {toDouble(*base), convert(d.in(1), DType::F64)});
        },
        "2.5, f32[3]\n2, i64[3]>0"),
    // The size of self with the sign of other.
    {.schema = "aten.copysign.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferRealFloat,
     .eval = [](const EvalContext& c) { return zipFloat(c, [](auto a, auto b) { return std::copysign(a, b); }); },
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = unary("aten.zeros_like.default", d.in(1));
             if (!d.needs(0)) return;
             const Value ratio = d.out() / d.in(0);
             d.input(0) =
                 d.dy() * d.call("aten.masked_fill.Scalar", {ratio, compareScalar("eq", d.in(0), int64_t{0}), 0});
         },
     .lower =
         [](LowerContext& c) {
             const Expr a = c.load(0);
             return Expr::call("copysign", {a, c.load(1)}, a->dtype);
         },
     .samples = "f32[2, 3], f32[3]\nf64[4], f64[4]\nbf16[4], bf16[4]\ni64[4], i64[4]"},
    // The next number towards other.
    {.schema = "aten.nextafter.default(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferSameFloats,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (isHalf(c.resultType().dtype))
             return unsupported(c.op().name() + ": has no kernel for half floats", {}, {"convert to float32"});
         return zipFloat(c, [](auto a, auto b) { return std::nextafter(a, b); });
     },
     .derive =
         [](Derivation& d) {
             const Value same = d.call("aten.eq.Tensor", {d.in(0), d.in(1)});
             if (d.needs(1)) d.input(1) = unary("aten.zeros_like.default", d.in(1));
             if (d.needs(0)) d.input(0) = d.call("aten.masked_fill.Scalar", {d.dy(), same, 0});
         },
     .lower =
         [](LowerContext& c) {
             const Expr a = c.load(0);
             return isHalf(a->dtype) || isHalf(c.in(0).dtype) ? Expr()
                                                              : Expr::call("nextafter", {a, c.load(1)}, a->dtype);
         },
     .samples = "f32[2, 3], f32[3]\nf64[4], f64[4]"},
    shorthand(
        "aten.isreal.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values {
            if (!isComplex(d.in(0).dtype()))
                return d.call("aten.ones_like.default", {d.in(0)},
                              {{"dtype", DType::Bool}, {"memory_format", MemoryFormat::Preserve}});
            return compareScalar("eq", unary("aten.imag.default", d.in(0)), int64_t{0});
        },
        "f32[2, 3]\nc64[2, 3]\ni64[3]"),
    // The sign bit, of -0.0 and NaN too.
    {.schema = "aten.signbit.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise | Tag::NoGradient,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return map(c, [](auto x) { return std::signbit(static_cast<double>(x)); }); },
     .lower = [](LowerContext& c) -> Expr {
         const Expr x = c.load(0);
         if (isFloating(x->dtype)) return Expr::call("signbit", {x}, DType::Bool);
         if (x->dtype != DType::Bool && !isUnsigned(x->dtype))
             return compare(ExprKind::Lt, x, Expr::integer(0, x->dtype));
         return Expr::boolean(false);
     },
     .samples = "f32[2, 3]\ni64[4]\nbf16[4]\nu8[3]"},
    shorthand(
        "aten.clip.default(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.clamp.default"); }, "f32[2, 3], -1\ni64[4], 0, 2",
        kPointwiseNamesTags),
    shorthand(
        "aten.clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.clamp.Tensor"); }, "f32[2, 3], f32[3], f32[3]",
        kPointwiseNamesTags),
    shorthand(
        "aten._add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        [](Decomposition& d) -> Values { return unary("aten.relu.default", sameCall(d, "aten.add.Tensor")); },
        "f32[2, 3], f32[3]\nf32[4], f32[4], alpha = -2", kPointwiseNamesTags),
    shorthand(
        "aten._add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        [](Decomposition& d) -> Values { return unary("aten.relu.default", sameCall(d, "aten.add.Scalar")); },
        "f32[2, 3], 0.5\nf32[4], 1, -2", kPointwiseNamesTags),
    shorthand(
        "aten.true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.div.Tensor"); }, "f32[2, 3], f32[3]>0",
        kPointwiseNamesTags),
    shorthand(
        "aten.true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.div.Scalar"); }, "i64[4], 2", kPointwiseNamesTags),
    shorthand(
        "aten.absolute.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.abs.default"); }, "f32[2, 3]", kPointwiseNamesTags),
    shorthand(
        "aten.negative.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.neg.default"); }, "f32[2, 3]", kPointwiseNamesTags),
    shorthand(
        "aten.arctan2.default(Tensor self, Tensor other) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.atan2.default"); }, "f32[2, 3], f32[3]",
        kPointwiseNamesTags),
    shorthand(
        "aten.multiply.Tensor(Tensor self, Tensor other) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.mul.Tensor"); }, "f32[2, 3], f32[3]",
        kPointwiseNamesTags),
    shorthand(
        "aten.subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.sub.Tensor"); }, "f32[2, 3], f32[3], alpha = 2",
        kPointwiseNamesTags),
    shorthand(
        "aten.divide.Tensor(Tensor self, Tensor other) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.div.Tensor"); }, "f32[2, 3], f32[3]>0",
        kPointwiseNamesTags),
    shorthand(
        "aten.special_erf.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.erf.default"); }, "f32[3]"),
    shorthand(
        "aten.special_expit.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.sigmoid.default"); }, "f32[3]"),
    shorthand(
        "aten.special_log1p.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.log1p.default"); }, "f32[3]>0"),
    shorthand(
        "aten.special_expm1.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.expm1.default"); }, "f32[3]"),
    shorthand(
        "aten.special_softmax.default(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.softmax.int"); }, "f32[2, 3], 1"),
    shorthand(
        "aten.special_log_softmax.default(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.log_softmax.int", {d.in(0), d.arg(1), d.arg(2)});
        },
        "f32[2, 3], 1"),
    shorthand(
        "aten.special_gammaln.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return sameCall(d, "aten.lgamma.default"); }, "f32[3]>0"),
    shorthand(
        "aten.isclose.default(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
        close,
        "f32[2, 3], f32[3]\nf64[3], f64[3], 0.5\ni64[4], i64[4]\nf32[3], f32[3], equal_nan = True\nc64[4], c64[4], 1.5"),
    {.schema =
         "aten.isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = memberOf,
     .samples = "i64[2, 3], i64[4]\nf32[3], f32[2], invert = True"},
    {.schema = "aten.deg2rad.default(Tensor self) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return scaledBy(d, 0.017453292519943295); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.mul.Scalar", {d.dy(), 0.017453292519943295});
         },
     .samples = "f32[2, 3]\nbf16[4]\ni64[3]"},
    {.schema = "aten.rad2deg.default(Tensor self) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return scaledBy(d, 57.29577951308232); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.mul.Scalar", {d.dy(), 57.29577951308232});
         },
     .samples = "f32[2, 3]\nbf16[4]\ni64[3]"},
    {.schema = "aten.logaddexp2.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise | Tag::Commutative,
     .infer = inferSameFloats,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeLogAddExp2,
     .derive =
         [](Derivation& d) {
             const auto share = [&](const Value& mine, const Value& theirs) {
                 return d.dy() / d.call("aten.add.Scalar", {unary("aten.exp2.default", theirs - mine), 1});
             };
             if (d.needs(1)) d.input(1) = share(d.in(1), d.in(0));
             if (d.needs(0)) d.input(0) = share(d.in(0), d.in(1));
         },
     .samples = "f32[2, 3], f32[2, 3]\nbf16[4], bf16[4]"},
    {.schema = "aten.heaviside.default(Tensor self, Tensor values) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferRealBroadcast,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeHeaviside,
     .samples = "f32[2, 3], f32[3]\ni64[4], i64[4]"},
    {.schema = "aten.lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferSameFloatsOrComplex,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeLerp,
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.dy() * conjugated(d.in(2));
             if (d.needs(2)) d.input(2) = d.dy() * conjugated(d.in(1) - d.in(0));
             if (d.needs(0)) d.input(0) = d.dy() * conjugated(subtractFrom(int64_t{1}, d.in(2)));
         },
     .samples =
         "f32[2, 3], f32[3], f32[2, 3]\nf64[2], f64[2], f64[]\nbf16[4], bf16[4], bf16[4]\nc64[2, 3], c64[3], c64[2, 3]"},
    // The length of the vector (self, other).
    {.schema = "aten.hypot.default(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseNamesTags | Tag::Commutative,
     .infer = inferSameFloats,
     .eval = [](const EvalContext& c) { return zipFloat(c, [](auto a, auto b) { return std::hypot(a, b); }); },
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.dy() * (d.in(1) / d.out());
             if (d.needs(0)) d.input(0) = d.dy() * (d.in(0) / d.out());
         },
     .lower =
         [](LowerContext& c) {
             const Expr a = c.load(0);
             return Expr::call("hypot", {a, c.load(1)}, a->dtype);
         },
     .samples = "f32[2, 3], f32[3]\nf64[4], f64[4]\nbf16[4], bf16[4]"},
    {.schema = "aten.gcd.default(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseNamesTags | Tag::Commutative,
     .infer = inferIntegerOperands,
     .eval = [](const EvalContext& c) { return integerOperands(c, commonDivisor); },
     .samples = "i64[2, 3], i64[3]\ni32[4], i32[4]"},
    {.schema = "aten.lcm.default(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseNamesTags | Tag::Commutative,
     .infer = inferIntegerOperands,
     .eval =
         [](const EvalContext& c) {
             return integerOperands(c, [](int64_t a, int64_t b) {
                 const int64_t divisor = commonDivisor(a, b);
                 const int64_t multiple = divisor == 0 ? 0 : wrapMul(a / divisor, b);
                 return multiple < 0 ? wrapNeg(multiple) : multiple;  // the least number stays itself
             });
         },
     .samples = "i64[2, 3], i64[3]\ni32[4], i32[4]"},
    // self * 2^other
    {.schema = "aten.ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kPointwiseNamesTags,
     .infer = inferBroadcastFloat,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (isComplex(c.resultType().dtype)) return evalExpanded(c);
         return zipFloat(c, [](auto a, auto b) { return a * std::exp2(b); });
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (!isComplex(d.out().dtype)) return Values::notHandled();
         return d.in(0) * d.call("aten.pow.Scalar", {2.0, d.in(1)});
     },
     .derive =
         [](Derivation& d) {
             const Value power = d.call("aten.pow.Scalar", {2.0, d.in(1)});
             if (d.needs(1)) d.input(1) = d.dy() * conjugated(d.out()) * 0.6931471805599453;
             if (d.needs(0)) d.input(0) = d.dy() * conjugated(power);
         },
     .samples = "f32[2, 3], i64[3]\nf64[4], f64[4]\nc64[2, 3], f32[3]\nc64[3], c64[3]"},
};

}  // namespace

std::span<const OpDef> pointwiseNameOps() { return kPointwiseNamesOps; }

}  // namespace cutaway
