// Special functions as operators: Bessel functions of imaginary argument, the normal distribution, entropy, zeta.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"
#include "engine/support/special.h"

namespace cutaway {
namespace {

constexpr double kRootHalf = 0.7071067811865476, kRootTwoPi = 2.5066282746310002;
constexpr double kPi = 3.141592653589793;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr OpDef unaryRow(std::string_view schema, Fn<EvalResult(const EvalContext&)> eval, Fn<void(Derivation&)> derive,
                         std::string_view samples, Tag tags = Tag::Pointwise) {
    return {
        .schema = schema, .tags = tags, .infer = inferRealFloat, .eval = eval, .derive = derive, .samples = samples};
}
template <double (*f)(double)>
EvalResult mapped(const EvalContext& c) {
    return floatMap(c, [](auto x) { return f(static_cast<double>(x)); });
}
template <int64_t order, bool scaled>
EvalResult bessel(const EvalContext& c) {
    return floatMap(c, [](auto x) { return modifiedBessel(order, static_cast<double>(x), scaled); });
}
Values renamed(Decomposition& d, std::string_view op) {
    std::vector<Argument> all;
    for (size_t i = 0; i < d.op().schema()->params.size(); ++i) all.push_back(d.arg(i));
    return d.call(op, std::move(all));
}
Value numberLike(Decomposition& d, double value, const Value& like) { return scalarTensor(d, value, like); }
/// An operand in the dtype it is computed in: integers and half floats as f32.
Value floatIn(Decomposition& d, size_t position) {
    const Value x = d.in(position);
    return isIntegral(x.dtype(), true) ? convert(x, opmathType(d.out().dtype)) : toOpmath(x);
}

/// log of the normal distribution function: by erfcx where the function itself would vanish.
Values logNormal(Decomposition& d) {
    // As a release computes a negative sign, so it computes in the operand's own dtype.
    const bool negative = has(d.release(), ReleaseChange::SignOfLogNormal);
    const Value x = negative ? d.in(0) : floatIn(d, 0), t = x * kRootHalf;
    const Value low = compareScalar("lt", x, 1.0);
    const Value scaled = unary("aten.log.default", unary("aten.special_erfcx.default", -t) / 2);
    const Value tail = scaled - t * t;
    const Value rest = unary("aten.log1p.default", -unary("aten.erfc.default", t) / 2);
    const Value result = where(low, tail, rest);
    // It is never positive: its zeros are -0, which a compiler may lose.
    return negative ? d.call("aten.copysign.Scalar", {result, -1.0}) : fromOpmath(d, result);
}
/// -x log x; 0 at 0, -inf below.
Values entropy(Decomposition& d) {
    const Value x = floatIn(d, 0);
    const Value missing = unary("aten.isnan.default", x), positive = compareScalar("gt", x, int64_t{0});
    const Value minus = -x;
    const Value inside = minus * unary("aten.log.default", x);
    const Value zero = compareScalar("eq", x, int64_t{0});
    const Device device = x.type().device;
    const Value below = scalarTensor(d.builder(), -kInfinity, DType::F32, device);
    const Value outside = where(zero, scalarTensor(d.builder(), int64_t{0}, DType::F32, device), below);
    return fromOpmath(d, where(missing, x, where(positive, inside, outside)));
}
/// x log(1 + y); 0 where x is 0, NaN where y is.
Values productWithLog1p(Decomposition& d) {
    const Value x = floatIn(d, 0), y = floatIn(d, 1);
    const Value zero = compareScalar("eq", x, int64_t{0}), product = x * unary("aten.log1p.default", y);
    const Value rest = where(zero, scalarTensor(d, int64_t{0}, product), product);
    const Value missing = unary("aten.isnan.default", y);
    return fromOpmath(d, where(missing, numberLike(d, std::numeric_limits<double>::quiet_NaN(), rest), rest));
}
/// The logarithm of the multivariate gamma function: a sum over lgamma of x, x - 1/2, ...
Values logGammas(Decomposition& d) {
    const auto p = read(d, d.integer("p"));
    if (!p) return Value(d.builder(), nullptr);
    if (*p < 1) return refuse(d, "p must be at least 1, not " + std::to_string(*p));
    const Value x = isIntegral(d.in(0).dtype(), true) ? convert(d.in(0), DType::F32) : d.in(0);
    const double count = static_cast<double>(*p),
                 constant = 0.25 * count * (count - 1) * std::log(3.14159265358979323846);
    const Value steps =
        d.call("aten.arange.start_step", {1 - *p, 1, 1},
               {{"dtype", x.dtype()}, {"layout", Layout::Strided}, {"device", x.type().device}, {"pin_memory", false}});
    const Value halves = d.call("aten.mul.Tensor", {steps, 0.5});
    const Value spread = unary("aten.lgamma.default", unsqueeze(x, -1) + halves);
    return sum(spread, {-1}, false) + constant;
}

Value bessel(Derivation& d, std::string_view op) { return unary(op, d.in(0)); }
/// The derivatives of i1 and i1e have the limit 1/2 at x = 0, where their formulas divide by x.
Value halfAtZero(Derivation& d, const Fn<Value(Derivation&, const Value&)>& slope) {
    const Value x = d.in(0);
    const Value near = compareScalar("le", unary("aten.abs.default", x), x.dtype() == DType::F64 ? 0x1p-52 : 0x1p-23);
    const Value safe = d.call("aten.masked_fill.Scalar", {x, near, 1});
    return d.dy() * d.call("aten.masked_fill.Scalar", {slope(d, safe), near, 0.5});
}

constexpr std::string_view kSpecialSamples = "f32[2, 3]\nf64[5]\nbf16[4]\ni64[3]",
                           kPositive = "f32[2, 3]>0\nf64[5]>0\nbf16[4]>0";

constexpr OpDef kSpecialFunctionsOps[] = {
    // Modified Bessel functions of the first kind; the e forms times exp(-|x|).
    unaryRow(
        "aten.i0.default(Tensor self) -> Tensor", bessel<0, false>,
        [](Derivation& d) { d.input(0) = d.dy() * bessel(d, "aten.special_i1.default"); }, kSpecialSamples,
        Tag::Pointwise | Tag::Inplace),
    unaryRow(
        "aten.special_i0e.default(Tensor self) -> Tensor", bessel<0, true>,
        [](Derivation& d) {
            d.input(0) =
                d.dy() * (bessel(d, "aten.special_i1e.default") - unary("aten.sgn.default", d.in(0)) * d.out());
        },
        kSpecialSamples),
    unaryRow(
        "aten.special_i1.default(Tensor self) -> Tensor", bessel<1, false>,
        [](Derivation& d) {
            d.input(0) =
                halfAtZero(d, [](Derivation& r, const Value& x) { return unary("aten.i0.default", x) - r.out() / x; });
        },
        kSpecialSamples),
    unaryRow(
        "aten.special_i1e.default(Tensor self) -> Tensor", bessel<1, true>,
        [](Derivation& d) {
            d.input(0) = halfAtZero(d, [](Derivation& r, const Value& x) {
                const Value fall = unary("aten.sgn.default", x) + unary("aten.reciprocal.default", x);
                return unary("aten.special_i0e.default", x) - r.out() * fall;
            });
        },
        kSpecialSamples),
    shorthand(
        "aten.special_i0.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.i0.default"); }, "f32[3]"),
    // exp(x^2) erfc(x).
    unaryRow(
        "aten.special_erfcx.default(Tensor self) -> Tensor", mapped<scaledErfc>,
        [](Derivation& d) {
            const Value steep = d.call("aten.mul.Scalar", {d.in(0), 2}) * d.out();
            d.input(0) = d.dy() * d.call("aten.sub.Scalar", {steep, 1.1283791670955126});
        },
        kSpecialSamples),
    // The normal distribution: its function, the logarithm and the inverse of that.
    shorthand(
        "aten.special_ndtr.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values {
            const Value x = isIntegral(d.in(0).dtype(), true) ? convert(d.in(0), DType::F32) : d.in(0);
            const Value share = unary("aten.erf.default", d.call("aten.mul.Scalar", {x, kRootHalf}));
            return d.call("aten.mul.Scalar", {d.call("aten.add.Scalar", {share, 1}), 0.5});
        },
        "f32[2, 3]\nf64[5]"),
    {.schema = "aten.special_log_ndtr.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = logNormal,
     .derive =
         [](Derivation& d) {
             const Value square = d.call("aten.pow.Tensor_Scalar", {d.in(0), 2});
             d.input(0) = d.dy() / kRootTwoPi * unary("aten.exp.default", -(d.out() + square / 2));
         },
     .samples = kSpecialSamples},
    unaryRow(
        "aten.special_ndtri.default(Tensor self) -> Tensor", mapped<inverseNormal>,
        [](Derivation& d) {
            const Value again = d.out();
            d.input(0) = d.dy() * kRootTwoPi * unary("aten.exp.default", again * again / 2);
        },
        "f32[2, 3]<1\nf64[4]\nbf16[4]<1"),
    {.schema = "aten.special_entr.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = entropy,
     .derive = [](Derivation& d) { d.input(0) = d.dy() * -(unary("aten.log.default", d.in(0)) + 1); },
     .samples = kPositive},
    {.schema = "aten.special_xlog1py.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = productWithLog1p,
     .derive =
         [](Derivation& d) {
             const Value x = d.in(0), y = d.in(1);
             if (d.needs(1)) d.input(1) = d.dy() * x / (y + 1);
             if (!d.needs(0)) return;
             const Value plain = d.call("aten.special_xlog1py.default", {d.dy(), y});
             const Value flat =
                 d.call("aten.bitwise_and.Tensor", {compareScalar("eq", x, 0.0), compareScalar("le", y, -1.0)});
             d.input(0) = d.call("aten.masked_fill.Scalar", {plain, flat, 0.0});
         },
     .samples = "f32[2, 3], f32[3]>0\nbf16[4], bf16[4]>0\nf64[3], f64[3]>0"},
    shorthand(
        "aten.special_xlogy.default(Tensor self, Tensor other) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.xlogy.Tensor"); }, "f32[3], f32[3]>0"),
    shorthand(
        "aten.special_polygamma.default(int n, Tensor self) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.polygamma.default"); }, "1, f32[3]>0"),
    shorthand(
        "aten.special_digamma.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.digamma.default"); }, "f32[3]>0"),
    shorthand(
        "aten.special_erfc.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.erfc.default"); }, "f32[3]"),
    shorthand(
        "aten.special_erfinv.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.erfinv.default"); }, "f32[3]<1"),
    // sin(pi x) / (pi x), 1 at 0.
    {.schema = "aten.sinc.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise | Tag::Inplace,
     .infer = inferBroadcastFloat,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = floatIn(d, 0) * kPi;
         const Value zero = compareScalar("eq", x, int64_t{0}), ratio = unary("aten.sin.default", x) / x;
         return fromOpmath(d, where(zero, scalarTensor(d, int64_t{1}, ratio), ratio));
     },
     .derive =
         [](Derivation& d) {
             const Value x = d.in(0), turned = x * kPi, square = x * x * kPi;
             const Value slope =
                 (turned * unary("aten.cos.default", turned) - unary("aten.sin.default", turned)) / square;
             d.input(0) =
                 d.call("aten.masked_fill.Scalar", {d.dy() * conjugated(slope), compareScalar("eq", square, 0.0), 0.0});
         },
     .samples = "f32[2, 3]\nf64[5]\nbf16[4]\ni64[3]\nc64[2, 3]"},
    shorthand(
        "aten.special_sinc.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return renamed(d, "aten.sinc.default"); }, "f32[3]"),
    // The zeta function of Hurwitz. PyTorch differentiates by `other` only.
    {.schema = "aten.special_zeta.default(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferRealFloat,
     .eval =
         [](const EvalContext& c) {
             return zipFloat(c, [](auto s, auto q) {
                 return static_cast<decltype(s)>(zeta(static_cast<double>(s), static_cast<double>(q)));
             });
         },
     .derive =
         [](Derivation& d) {
             if (d.needs(0))
                 d.builder().fail(unsupported(d.op().name() + ": the first operand has no derivative here"));
             if (d.needs(1))
                 d.input(1) = d.dy() * -d.in(0) * d.call("aten.special_zeta.default", {d.in(0) + 1, d.in(1)});
         },
     .samples = "f32[4]>0, f32[4]>0\nf64[2, 3]>0, f64[3]>0"},
    shorthand("aten.mvlgamma.default(Tensor self, int p) -> Tensor", logGammas, "f32[2, 3]>0, 1\nf64[4]>0, 2",
              Tag::Pointwise | Tag::Inplace),
};

}  // namespace

std::span<const OpDef> specialFunctionOps() { return kSpecialFunctionsOps; }

}  // namespace cutaway
