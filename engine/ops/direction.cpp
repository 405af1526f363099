// Size and direction of numbers, real and complex: abs, sgn and angle.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr Tag kDirectionTags = Tag::Pointwise | Tag::Inplace;
constexpr std::string_view kAbsoluteSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
f16[]
i64[4]
i8[4]
i32[0, 3]
f32[4, 1, 3][3, 1, 4]
c64[2, 3]
)";

DType realDType(DType complex) {
    return complex == DType::C128 ? DType::F64 : complex == DType::C32 ? DType::F16 : DType::F32;
}
/// f of every element of a complex tensor, as a real tensor.
template <class F>
Tensor realPart(const EvalContext& c, F f) {
    Tensor out = c.result();
    const Tensor x = c.in(size_t{0});
    if (x.dtype() == DType::C128) elementwise<std::complex<double>, 1>(out, {x}, f);
    else elementwise<std::complex<float>, 1>(out, {x}, f);
    return out;
}
/// Complex numbers have a real absolute value.
Result<ValueType> inferAbsolute(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.dtype == DType::Bool) return c.fail("does not take bool; use logical_not or convert first");
    CT_TRY(ValueType type, inferBroadcast(c));
    if (isComplex(type.tensor()->dtype)) type.tensor()->dtype = realDType(type.tensor()->dtype);
    return type;
}
void zeroDirectionGradient(Derivation& d) { d.input(0) = unary("aten.zeros_like.default", d.dy()); }

constexpr OpDef kDirectionOps[] = {
    // Absolute value; the most negative integer stays itself. bool is refused.
    {.schema = "aten.abs.default(Tensor self) -> Tensor",
     .tags = kDirectionTags,
     .infer = inferAbsolute,
     .eval =
         [](const EvalContext& c) {
             if (isComplex(c.in(size_t{0}).dtype())) return realPart(c, [](const auto& x) { return std::abs(x); });
             return map(c, [](auto x) { return x < 0 ? wrapNeg(x) : x == 0 ? decltype(x)(0) : x; });
         },
     .derive = [](Derivation& d) { d.input(0) = d.dy() * unary("aten.sgn.default", d.in(0)); },
     .lower = [](LowerContext& c) { return call1("abs", c.load(0)); },
     .samples = kAbsoluteSamples},
    // sign for real tensors; the direction of complex numbers.
    {.schema = "aten.sgn.default(Tensor self) -> Tensor",
     .tags = kDirectionTags,
     .infer = inferBroadcast,
     .eval =
         [](const EvalContext& c) {
             Tensor out = c.result();
             withComplex(out.dtype(), [&](auto tag) {
                 using T = decltype(tag);
                 elementwise<T, 1>(out, {c.in(size_t{0})}, [](T x) {
                     if constexpr (std::is_arithmetic_v<T>) return T((x > 0) - (x < 0));
                     else
                         return std::abs(x) == 0 ? T(0)
                                                 : x / T(std::abs(x));  // NaN in both parts where one is infinite
                 });
             });
             return out;
         },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (!isComplex(d.in(0).dtype())) return fromOpmath(d, unary("aten.sign.default", opmathIn(d, 0)));
         const Value size = unary("aten.abs.default", d.in(0)), zero = compareScalar("eq", size, int64_t{0}),
                     ratio = d.in(0) / size;
         return where(zero, scalarTensor(d, int64_t{0}, ratio), ratio);
     },
     .derive =
         [](Derivation& d) {
             if (!isComplex(d.in(0).dtype())) return zeroDirectionGradient(d);
             const Value size = unary("aten.abs.default", d.in(0)), y = d.out(size_t{0});
             const Value turned = unary("aten.real.default", d.dy() / y) * y;
             d.input(0) = d.call("aten.masked_fill.Scalar",
                                 {(d.dy() - turned) / size, compareScalar("eq", size, int64_t{0}), 0.0});
         },
     .samples = "f32[2, 3]\nf64[2, 3][1, 2]\nbf16[5]\ni64[4]\nu8[3]\nc64[2, 3]"},
    // The angle to the positive real axis: of real numbers 0 or pi.
    {.schema = "aten.angle.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const Operand self, c.operand(0));
         const DType dtype = self.type.dtype;
         CT_TRY(TensorType type, elementwiseType(c, std::span(&self, 1),
                                                 isComplex(dtype)          ? realDType(dtype)
                                                 : isIntegral(dtype, true) ? DType::F32
                                                                           : dtype));
         return ValueType(std::move(type));
     },
     .eval =
         [](const EvalContext& c) {
             if (isComplex(c.in(size_t{0}).dtype())) return realPart(c, [](const auto& x) { return std::arg(x); });
             return floatMap(c, [](auto x) {
                 return std::isnan(x) ? x : x < 0 ? decltype(x)(3.14159265358979323846) : decltype(x)(0);
             });
         },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value x = d.in(0);
         const auto missing = [&](const Value& where, const Value& y) {
             const Value unknown = unary("aten.isnan.default", where);
             return cutaway::where(unknown, scalarTensor(d, std::numeric_limits<double>::quiet_NaN(), y), y);
         };
         if (isComplex(x.dtype())) {
             const Value unknown = unary("aten.isnan.default", unary("aten.real.default", x));
             const Value imaginary = unary("aten.imag.default", x), real = unary("aten.real.default", x);
             const Value angle = d.call("aten.atan2.default", {imaginary, real});
             return where(unknown, scalarTensor(d, std::numeric_limits<double>::quiet_NaN(), angle), angle);
         }
         const Value half = d.call("aten.scalar_tensor.default", {3.141592653589793},
                                   {{"dtype", d.out().dtype}, {"device", d.out().device}, {"pin_memory", false}});
         const Value below = compareScalar("lt", x, int64_t{0});
         return missing(x, where(below, half, scalarTensor(d.builder(), 0.0, d.out().dtype, d.out().device)));
     },
     .derive =
         [](Derivation& d) {
             const Value x = d.in(0);
             if (!isComplex(x.dtype())) return zeroDirectionGradient(d);
             // (-imag + i real) / |x|^2
             const Value size = unary("aten.abs.default", x);
             const Value scale = d.call("aten.masked_fill.Scalar",
                                        {d.dy() / (size * size), compareScalar("eq", size, int64_t{0}), 0.0});
             d.input(0) = d.call("aten.complex.default",
                                 {-unary("aten.imag.default", x) * scale, unary("aten.real.default", x) * scale});
         },
     .samples = "f32[2, 3]\nf64[2, 3][1, 2]\nbf16[5]\ni64[4]\nc64[2, 3]\nf32[]"},
};

}  // namespace

std::span<const OpDef> directionOps() { return kDirectionOps; }

}  // namespace cutaway
