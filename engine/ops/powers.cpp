// Powers of real and complex numbers.
#include "engine/support/powers.h"

#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr Tag kPowersTags = Tag::Pointwise | Tag::Inplace;

Scalar powerNumber(const Decomposition& d, std::string_view param) {
    return d.scalar(param).value_or(Scalar(int64_t{0}));
}
Value zeroLike(Decomposition& d, const Value& like) { return scalarTensor(d, 0.0, like); }

/// Promotes both operands, whichever of them is the number.
Result<ValueType> inferPow(const InferContext& c) {
    CT_TRY(const Operand base, c.operand(0));
    CT_TRY(const Operand exponent, c.operand(1));
    const Operand operands[] = {base, exponent};
    if (isIntegral(base.type.dtype, true))
        if (const auto literal = exponent.literal ? c.scalar("exponent") : std::nullopt;
            literal && std::holds_alternative<int64_t>(*literal) && toInt(*literal) < 0)
            return c.fail("integers to negative integer powers are not integers; convert to a float first");
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
EvalResult evalPow(const EvalContext& c) {
    if (isComplex(c.resultType().dtype)) {
        const auto given = c.op().schema()->find("exponent") == 1 ? c.scalar("exponent") : std::nullopt;
        const bool square = given && scalarAs<std::complex<double>>(*given) == 2.0;
        return zipComplex(c, [&](auto a, auto b) { return square ? a * a : powerOf(a, b); });
    }
    const auto literal = c.op().schema()->find("exponent") == 1 ? c.scalar("exponent") : std::nullopt;
    const double exponent = literal ? toDouble(*literal) : 0;
    return zip(c, [&](auto a, auto b) {
        if constexpr (std::is_floating_point_v<decltype(a)>)
            if (literal) return knownPower(a, exponent);
        return powerOf(a, b);
    });
}
/// Small integer exponents multiply, as PyTorch's kernels do; the general case calls pow.
Expr lowerPow(LowerContext& c) {
    const Expr a = c.load(0);
    if (!isFloating(a->dtype)) return {};
    if (const auto exponent = c.scalar("exponent")) {
        const double e = toDouble(*exponent);
        if (e == 0.5) return call1("sqrt", a);
        if (e == -0.5) return call1("rsqrt", a);
        if (e == -2) return constantLike(a, 1) / (a * a);
        if (e == 1) return a;
        if (e == 2) return a * a;
        if (e == 3) return a * a * a;
    }
    return Expr::call("pow", {a, c.load(1)}, a->dtype);
}
void derivePowNumber(Derivation& d) {
    const Scalar exponent = powerNumber(d, "exponent");
    if (const auto* complex = std::get_if<std::complex<double>>(&exponent)) {
        const Value lower = d.call("aten.pow.Tensor_Scalar", {d.in(size_t{0}), Argument(*complex - 1.0)});
        d.input(0) = d.dy() * conjugated(d.call("aten.mul.Scalar", {lower, Argument(*complex)}));
        return;
    }
    if (toDouble(exponent) == 0) {
        d.input(0) =
            d.call("aten.zeros_like.default", {d.in(size_t{0})}, {{"memory_format", MemoryFormat::Contiguous}});
        return;
    }
    const Value lower = d.call("aten.pow.Tensor_Scalar", {d.in(size_t{0}), toDouble(exponent) - 1});
    d.input(0) = d.dy() * conjugated(d.call("aten.mul.Scalar", {lower, toDouble(exponent)}));
}
void derivePowTensor(Derivation& d) {
    const Value x = d.in(size_t{0}), e = d.in(1);
    if (d.needs(1)) {
        const Value real = isComplex(e.dtype()) ? unary("aten.real.default", e) : e;
        const Value grows = compareScalar("ge", real, int64_t{0}), zero = compareScalar("eq", x, int64_t{0});
        const Value flat = d.call("aten.logical_and.default", {zero, grows});
        const Value slope = d.out() * unary("aten.log.default", x);
        const Value none = zeroLike(d, slope);
        d.input(1) = d.dy() * conjugated(where(flat, none, slope));
    }
    if (d.needs(0)) {
        const Value lower = d.call("aten.pow.Tensor_Tensor", {x, d.call("aten.sub.Scalar", {e, 1})});
        const Value slope = e * lower;
        const Value product = d.dy() * conjugated(slope);
        const Value none = zeroLike(d, product);
        d.input(0) = where(compareScalar("eq", e, 0.0), none, product);
    }
}

constexpr OpDef kPowersOps[] = {
    // IEEE pow; integer bases wrap, and negative integer powers of integers are refused when literal.
    {.schema = "aten.pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
     .tags = kPowersTags,
     .infer = inferPow,
     .eval = evalPow,
     .derive = derivePowNumber,
     .lower = lowerPow,
     .samples =
         "f32[2, 3], 2\nf32[2, 3]>0, 0.5\nf64[2, 3][1, 2], 3\nbf16[4]>0, 1.5\ni64[4], 2\ni64[4]>0, 0.5\nf32[3], 0\nf32[3]>0, -1\nf16[3], 2\nc64[3], 2\nc64[3], 1.5\nc64[3], -1"},
    {.schema = "aten.pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
     .tags = kPowersTags,
     .infer = inferPow,
     .eval = evalPow,
     .derive = derivePowTensor,
     .lower = lowerPow,
     .samples =
         "f32[2, 3]>0, f32[2, 3]\nf64[2, 3]>0, f64[3]\ni64[4], i64[4]<4\nbf16[4]>0, bf16[4]\nc64[2, 3], c64[3]\nc64[3], f32[3]"},
    {.schema = "aten.pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferPow,
     .eval = evalPow,
     .derive =
         [](Derivation& d) {
             const Scalar base = powerNumber(d, "self");
             const auto* complex = std::get_if<std::complex<double>>(&base);
             // A negative base has a complex logarithm, which counts where the powers are complex.
             const bool turned = !complex && toDouble(base) < 0 && isComplex(d.out().dtype());
             const Argument logarithm = complex  ? Argument(std::log(*complex))
                                        : turned ? Argument(std::log(std::complex<double>(toDouble(base))))
                                                 : Argument(std::log(toDouble(base)));
             const Value slope = d.call("aten.mul.Scalar", {d.out(), logarithm});
             d.input(1) = d.dy() * conjugated(slope);
         },
     .lower = lowerPow,
     .samples = "2, f32[2, 3]\n0.5, f64[4]\n2, i64[4]<5\n3, bf16[3]\n2, c64[3]\n-0.5, c64[3]"},
};

}  // namespace

std::span<const OpDef> powerOps() { return kPowersOps; }

}  // namespace cutaway
