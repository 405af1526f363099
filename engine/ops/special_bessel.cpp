// Bessel functions, the Airy function, the incomplete gamma functions, and numbers taken apart into fraction and
// exponent.
#include "engine/ops/build.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/op_registry.h"
#include "engine/support/special.h"

namespace cutaway {
namespace {

template <double (*f)(double)>
EvalResult mappedBessel(const EvalContext& c) {
    return floatMap(c, [](auto x) { return f(static_cast<double>(x)); });
}
template <int64_t order>
EvalResult firstKind(const EvalContext& c) {
    return floatMap(c, [](auto x) { return modifiedBessel(order, static_cast<double>(x), false); });
}
template <int64_t order, bool scaled>
EvalResult secondKind(const EvalContext& c) {
    return floatMap(c, [](auto x) { return modifiedBesselK(order, static_cast<double>(x), scaled); });
}
constexpr OpDef besselRow(std::string_view schema, Fn<EvalResult(const EvalContext&)> eval, std::string_view samples) {
    return {.schema = schema, .tags = Tag::Pointwise, .infer = inferRealFloat, .eval = eval, .samples = samples};
}

template <bool upper>
EvalResult evalIncompleteGamma(const EvalContext& c) {
    return zipFloat(c, [](auto a, auto x) {
        return static_cast<decltype(a)>(incompleteGamma(static_cast<double>(a), static_cast<double>(x), upper));
    });
}
/// PyTorch differentiates by the second operand only.
template <bool upper>
void deriveIncompleteGamma(Derivation& d) {
    if (d.needs(0)) d.builder().fail(unsupported(d.op().name() + ": the first operand has no derivative here"));
    if (!d.needs(1)) return;
    const Value a = d.in(0), x = d.in(1);
    const Value slope =
        unary("aten.exp.default", (a - 1) * unary("aten.log.default", x) - x - unary("aten.lgamma.default", a));
    d.input(1) = upper ? -d.dy() * slope : d.dy() * slope;
}
template <bool upper>
constexpr OpDef incompleteGammaRow(std::string_view schema) {
    return {.schema = schema,
            .tags = Tag::Pointwise | Tag::Inplace,
            .infer = inferRealFloat,
            .eval = evalIncompleteGamma<upper>,
            .derive = deriveIncompleteGamma<upper>,
            .samples = "f32[2, 3]>0, f32[3]>0\nf64[5]>0, f64[5]>0\nbf16[4]>0, bf16[4]>0\nf64[4], f64[4]"};
}

Result<ValueType> inferFrexp(const InferContext& c) {
    CT_TRY(const ValueType mantissa, inferLikeFirst(c));
    TensorType exponent = *mantissa.tensor();
    if (!isFloating(exponent.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(exponent.dtype).torchName));
    exponent.dtype = DType::I32;
    return ValueType(TupleType{*mantissa.tensor(), std::move(exponent)});
}
EvalResult evalFrexp(const EvalContext& c) {
    const Tensor x = c.in(size_t{0});
    Tensor mantissa = c.result(0), exponent = c.result(1);
    withFloat(computeDType(c, {0}), [&](auto tag) {
        using T = decltype(tag);
        elementwise<T, 1>(mantissa, {x}, [](T value) {
            int power = 0;
            return std::frexp(value, &power);
        });
        elementwise<T, 1>(exponent, {x}, [](T value) {
            int power = 0;
            std::frexp(value, &power);
            return static_cast<T>(power);
        });
    });
    return TensorList{mantissa, exponent};
}

constexpr std::string_view kAny = "f32[2, 3]\nf64[5]\ni64[3]",
                           kBesselPositive = "f32[2, 3]>0\nf64[5]>0\nf64[4]\ni64[3]";

constexpr OpDef kSpecialBesselOps[] = {
    besselRow("aten.special_bessel_j0.default(Tensor self) -> Tensor", mappedBessel<besselJ0>, kAny),
    besselRow("aten.special_bessel_j1.default(Tensor self) -> Tensor", mappedBessel<besselJ1>, kAny),
    besselRow("aten.special_bessel_y0.default(Tensor self) -> Tensor", mappedBessel<besselY0>, kBesselPositive),
    besselRow("aten.special_bessel_y1.default(Tensor self) -> Tensor", mappedBessel<besselY1>, kBesselPositive),
    besselRow("aten.special_modified_bessel_i0.default(Tensor self) -> Tensor", firstKind<0>, kAny),
    besselRow("aten.special_modified_bessel_i1.default(Tensor self) -> Tensor", firstKind<1>, kAny),
    besselRow("aten.special_modified_bessel_k0.default(Tensor self) -> Tensor", secondKind<0, false>, kBesselPositive),
    besselRow("aten.special_modified_bessel_k1.default(Tensor self) -> Tensor", secondKind<1, false>, kBesselPositive),
    besselRow("aten.special_scaled_modified_bessel_k0.default(Tensor x) -> Tensor", secondKind<0, true>,
              kBesselPositive),
    besselRow("aten.special_scaled_modified_bessel_k1.default(Tensor x) -> Tensor", secondKind<1, true>,
              kBesselPositive),
    besselRow("aten.special_spherical_bessel_j0.default(Tensor x) -> Tensor", mappedBessel<sphericalBesselJ0>, kAny),
    besselRow("aten.special_airy_ai.default(Tensor x) -> Tensor", mappedBessel<airy>, kAny),
    // The share of gamma(self) below other, and the one above.
    incompleteGammaRow<false>("aten.igamma.default(Tensor self, Tensor other) -> Tensor"),
    incompleteGammaRow<true>("aten.igammac.default(Tensor self, Tensor other) -> Tensor"),
    // mantissa * 2^exponent, 1/2 <= |mantissa| < 1; both 0 at 0.
    {.schema = "aten.frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
     .tags = Tag::Pointwise,
     .infer = inferFrexp,
     .eval = evalFrexp,
     .derive =
         [](Derivation& d) {
             if (d.dy(0)) d.input(0) = d.dy(0) / unary("aten.exp2.default", d.out(1));
         },
     .samples = "f32[2, 3]\nf64[5]\nbf16[4]\nf32[2, 3][1, 2]"},
};

}  // namespace

std::span<const OpDef> specialBesselOps() { return kSpecialBesselOps; }

}  // namespace cutaway
