// Comparisons, logical and bitwise operators.
#include <algorithm>
#include <cstring>

#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

constexpr Tag kCompareTags = Tag::Pointwise | Tag::Inplace;

constexpr std::string_view kCompareSamples = R"(
f32[2, 3], f32[2, 3]
f32[2, 3], f32[3]
f32[4, 1], f32[1, 5]
f32[2, 3][1, 2], f32[2, 3]
f32[], f32[3]
f32[0, 3], f32[3]
bf16[2, 3], bf16[3]
i64[4]<3, i32[4]<3
i32[3]<3, f32[3]
b8[4], b8[4]
)";
constexpr std::string_view kCompareScalarSamples = R"(
f32[2, 3], 0.5
f32[2, 3][1, 2], 0
bf16[4], 1
i64[4]<3, 1
i64[4]<3, 1.5
b8[3], True
f32[0], 0
f64[], 0.25
f32[2], -inf
)";
constexpr std::string_view kLogicalSamples = R"(
b8[2, 3], b8[3]
f32[2, 3]<2, i64[3]<2
c64[2, 3]<2, i64[3]<2
i64[4]<2, i64[4]<2
b8[0], b8[1]
b8[2, 3][1, 2], b8[2, 3][1, 2]
)";
constexpr std::string_view kBitSamples = R"(
b8[2, 3], b8[3]
i64[4], i64[4]
i32[2, 3][1, 2], i32[2, 3]
u8[4], u8[1]
i8[3], i32[3]
b8[], b8[2, 2]
b8[3], i64[3]
)";
constexpr std::string_view kBitScalarSamples = R"(
i64[4], 3
i32[2, 3], 1
u8[4], 5
b8[3], True
)";
constexpr std::string_view kShiftSamples = R"(
i64[4], i64[4]<6
i32[2, 3], i32[3]<5
u8[4], u8[4]<8
)";

Tensor comparison(const EvalContext& c, bool (*whole)(int64_t, int64_t), bool (*narrow)(float, float),
                  bool (*wide)(double, double)) {
    Tensor out = c.result();
    const DType dtype = c.promoted({0, 1});
    const std::array<Tensor, 2> operands = {roundedOperand(c, 0, dtype), roundedOperand(c, 1, dtype)};
    if (dtype == DType::F64) elementwise<double, 2>(out, operands, wide);
    else if (isFloating(dtype)) elementwise<float, 2>(out, operands, narrow);
    else elementwise<int64_t, 2>(out, operands, whole);
    return out;
}
template <class F>
Tensor comparisonOf(const EvalContext& c, F) {
    return comparison(
        c, [](int64_t a, int64_t b) { return F{}(a, b); }, [](float a, float b) { return F{}(a, b); },
        [](double a, double b) { return F{}(a, b); });
}
/// eq and ne take complex numbers, too, which have no order.
template <class F>
Tensor equalityOf(const EvalContext& c, F f) {
    if (!isComplex(c.promoted({0, 1}))) return comparisonOf(c, f);
    Tensor out = c.result();
    elementwise<std::complex<double>, 2>(out, {c.in(size_t{0}), c.in(1)},
                                         [f](auto a, auto b) { return std::complex<double>(f(a, b)); });
    return out;
}

/// Operand 0 and the second one, tensor or number, compared in their common dtype, as bf16(0.7) and 0.7 are equal.
template <ExprKind kind>
Expr lowerCompare(LowerContext& c) {
    return compare(kind, c.loadRounded(0), c.loadRounded(1));
}
Expr truth(LowerContext& c, size_t operand) {
    const Expr x = c.load(operand);
    return x->dtype == DType::Bool ? x : compare(ExprKind::Ne, x, constantLike(x, 0));
}

Result<ValueType> inferBits(const InferContext& c) {
    for (size_t i = 0; i < 2; ++i) {
        CT_TRY(const TensorType type, c.tensor(i));
        if (!isIntegral(type.dtype, true))
            return c.fail("needs integers or bool, not " + std::string(info(type.dtype).torchName));
    }
    return inferBroadcast(c);
}
Result<ValueType> inferShift(const InferContext& c) {
    CT_TRY(ValueType type, inferBits(c));
    if (type.tensor()->dtype == DType::Bool) return c.fail("does not take bool");
    return type;
}
Tensor bits(const EvalContext& c, int64_t (*f)(int64_t, int64_t)) {
    Tensor out = c.result();
    elementwise<int64_t, 2>(out, {c.in(size_t{0}), c.in(1)}, f);
    return out;
}
/// `truthKind` (And, Or, ...) for bool operands, the bitwise `wide` for integers.
Expr lowerBits(LowerContext& c, ExprKind wide, ExprKind truthKind) {
    const Expr a = c.load(0), b = c.load(1);
    return Expr::make(a->dtype == DType::Bool ? truthKind : wide, {a, b}, a->dtype);
}
EvalResult bitAnd(const EvalContext& c) {
    return bits(c, [](int64_t a, int64_t b) { return a & b; });
}
EvalResult bitOr(const EvalContext& c) {
    return bits(c, [](int64_t a, int64_t b) { return a | b; });
}
EvalResult bitXor(const EvalContext& c) {
    return bits(c, [](int64_t a, int64_t b) { return a ^ b; });
}
Expr lowerAnd(LowerContext& c) { return lowerBits(c, ExprKind::BitAnd, ExprKind::And); }
Expr lowerOr(LowerContext& c) { return lowerBits(c, ExprKind::BitOr, ExprKind::Or); }
Expr lowerXor(LowerContext& c) { return lowerBits(c, ExprKind::BitXor, ExprKind::Ne); }

/// The exponent of a number in f32, biased by 127 and rounded up: the scale of block formats (e8m0). What has none
/// saturates at 254.
int64_t ceilingExponent(double value) {
    const auto narrow = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    const int64_t exponent = ((bits >> 23) & 0xFF) + ((bits & 0x7FFFFF) != 0 ? 1 : 0);
    return std::min<int64_t>(exponent, 254);
}
Result<ValueType> inferCeilingExponent(const InferContext& c) {
    CT_TRY(TensorType type, c.tensor(size_t{0}));
    if (type.dtype != DType::F32 && !isHalf(type.dtype))
        return c.fail("needs f32, f16 or bf16, not " + std::string(info(type.dtype).torchName));
    return ValueType(TensorType::contiguous(DType::U8, type.sizes, type.device));
}

/// Shifts by the width or more, or by a negative amount, give 0 (or -1 for a negative number shifted right).
EvalResult shift(const EvalContext& c, bool left) {
    const int64_t width = byteSize(c.resultType().dtype) * 8;
    const bool isSigned = !isUnsigned(c.resultType().dtype);
    Tensor out = c.result();
    elementwise<int64_t, 2>(out, {c.in(size_t{0}), c.in(1)}, [=](int64_t a, int64_t by) -> int64_t {
        if (by < 0 || by >= width) return left || !isSigned || a >= 0 ? 0 : -1;
        return left ? static_cast<int64_t>(static_cast<uint64_t>(a) << by) : a >> by;
    });
    return out;
}
/// The amount is compared with the width as it was given, before its conversion to the dtype of the result.
Expr lowerShift(LowerContext& c, bool left) {
    const Expr a = c.load(0), by = Expr::cast(c.loadOwn(1), DType::I64), zero = constantLike(a, 0);
    const Expr beyond =
        compare(ExprKind::Lt, by, Expr::integer(0)) || compare(ExprKind::Ge, by, Expr::integer(byteSize(a->dtype) * 8));
    const Expr amount = Expr::cast(Expr::where(beyond, Expr::integer(0), by), a->dtype);
    const Expr shifted = Expr::make(left ? ExprKind::ShiftLeft : ExprKind::ShiftRight, {a, amount}, a->dtype);
    if (left || isUnsigned(a->dtype)) return Expr::where(beyond, zero, shifted);
    const Expr sign = Expr::where(compare(ExprKind::Lt, a, zero), constantLike(a, -1), zero);
    return Expr::where(beyond, sign, shifted);
}

/// Python's operator spellings: the same call under the op's real name.
template <class Name>
Values respell(Decomposition& d, Name name) {
    return d.call(name(), {d.arg(0), d.arg(1)});
}

constexpr OpDef kCompareOps[] = {
    // NaN equals nothing, itself included.
    {.schema = "aten.eq.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferPredicate,
     .eval = [](const EvalContext& c) { return equalityOf(c, [](auto a, auto b) { return a == b; }); },
     .lower = lowerCompare<ExprKind::Eq>,
     .samples = kCompareSamples},
    {.schema = "aten.eq.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferPredicate,
     .eval = [](const EvalContext& c) { return equalityOf(c, [](auto a, auto b) { return a == b; }); },
     .lower = lowerCompare<ExprKind::Eq>,
     .samples = kCompareScalarSamples},
    {.schema = "aten.ne.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferPredicate,
     .eval = [](const EvalContext& c) { return equalityOf(c, [](auto a, auto b) { return a != b; }); },
     .lower = lowerCompare<ExprKind::Ne>,
     .samples = kCompareSamples},
    {.schema = "aten.ne.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferPredicate,
     .eval = [](const EvalContext& c) { return equalityOf(c, [](auto a, auto b) { return a != b; }); },
     .lower = lowerCompare<ExprKind::Ne>,
     .samples = kCompareScalarSamples},
    {.schema = "aten.lt.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a < b; }); },
     .lower = lowerCompare<ExprKind::Lt>,
     .samples = kCompareSamples},
    {.schema = "aten.lt.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a < b; }); },
     .lower = lowerCompare<ExprKind::Lt>,
     .samples = kCompareScalarSamples},
    {.schema = "aten.le.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a <= b; }); },
     .lower = lowerCompare<ExprKind::Le>,
     .samples = kCompareSamples},
    {.schema = "aten.le.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a <= b; }); },
     .lower = lowerCompare<ExprKind::Le>,
     .samples = kCompareScalarSamples},
    {.schema = "aten.gt.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a > b; }); },
     .lower = lowerCompare<ExprKind::Gt>,
     .samples = kCompareSamples},
    {.schema = "aten.gt.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a > b; }); },
     .lower = lowerCompare<ExprKind::Gt>,
     .samples = kCompareScalarSamples},
    {.schema = "aten.ge.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a >= b; }); },
     .lower = lowerCompare<ExprKind::Ge>,
     .samples = kCompareSamples},
    {.schema = "aten.ge.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferRealPredicate,
     .eval = [](const EvalContext& c) { return comparisonOf(c, [](auto a, auto b) { return a >= b; }); },
     .lower = lowerCompare<ExprKind::Ge>,
     .samples = kCompareScalarSamples},

    // Zero is false, everything else (NaN too) true.
    {.schema = "aten.logical_and.default(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferPredicate,
     .eval =
         [](const EvalContext& c) {
             return equalityOf(c, [](auto a, auto b) { return a != decltype(a)(0) && b != decltype(b)(0); });
         },
     .lower =
         [](LowerContext& c) {
             return Expr::make(ExprKind::And, {truth(c, 0), truth(c, 1)}, DType::Bool);
         },
     .samples = kLogicalSamples},
    {.schema = "aten.logical_or.default(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferPredicate,
     .eval =
         [](const EvalContext& c) {
             return equalityOf(c, [](auto a, auto b) { return a != decltype(a)(0) || b != decltype(b)(0); });
         },
     .lower =
         [](LowerContext& c) {
             return Expr::make(ExprKind::Or, {truth(c, 0), truth(c, 1)}, DType::Bool);
         },
     .samples = kLogicalSamples},
    {.schema = "aten.logical_xor.default(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferPredicate,
     .eval =
         [](const EvalContext& c) {
             return equalityOf(c, [](auto a, auto b) { return (a != decltype(a)(0)) != (b != decltype(b)(0)); });
         },
     .lower = [](LowerContext& c) { return compare(ExprKind::Ne, truth(c, 0), truth(c, 1)); },
     .samples = kLogicalSamples},

    // Two's complement on integers, logical on bool.
    {.schema = "aten.bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferBits,
     .eval = bitAnd,
     .lower = lowerAnd,
     .samples = kBitSamples},
    {.schema = "aten.bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferBits,
     .eval = bitAnd,
     .lower = lowerAnd,
     .samples = kBitScalarSamples},
    {.schema = "aten.bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferBits,
     .eval = bitOr,
     .lower = lowerOr,
     .samples = kBitSamples},
    {.schema = "aten.bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferBits,
     .eval = bitOr,
     .lower = lowerOr,
     .samples = kBitScalarSamples},
    {.schema = "aten.bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags | Tag::Commutative,
     .infer = inferBits,
     .eval = bitXor,
     .lower = lowerXor,
     .samples = kBitSamples},
    {.schema = "aten.bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferBits,
     .eval = bitXor,
     .lower = lowerXor,
     .samples = kBitScalarSamples},
    {.schema = "aten.bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, true); },
     .lower = [](LowerContext& c) { return lowerShift(c, true); },
     .samples = kShiftSamples},
    {.schema = "aten.bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, true); },
     .lower = [](LowerContext& c) { return lowerShift(c, true); },
     .samples = "i64[4], 3\nu8[4], 7"},
    {.schema = "aten.bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, false); },
     .lower = [](LowerContext& c) { return lowerShift(c, false); },
     .samples = kShiftSamples},
    {.schema = "aten.bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = kCompareTags,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, false); },
     .lower = [](LowerContext& c) { return lowerShift(c, false); },
     .samples = "i64[4], 3\ni32[4], 1"},
    // Python's << and >>, which tracing keeps.
    {.schema = "aten.__lshift__.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, true); },
     .lower = [](LowerContext& c) { return lowerShift(c, true); },
     .samples = "i64[4], i64[4]<4"},
    {.schema = "aten.__lshift__.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, true); },
     .lower = [](LowerContext& c) { return lowerShift(c, true); },
     .samples = "i64[4], 2"},
    {.schema = "aten.__rshift__.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, false); },
     .lower = [](LowerContext& c) { return lowerShift(c, false); },
     .samples = "i64[4], i64[4]<4"},
    {.schema = "aten.__rshift__.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferShift,
     .eval = [](const EvalContext& c) { return shift(c, false); },
     .lower = [](LowerContext& c) { return lowerShift(c, false); },
     .samples = "i64[4], 2"},

    {.schema = "prims.inductor_cvt_e8m0_rceil.default(Tensor input) -> Tensor",
     .tags = Tag::Pointwise | Tag::NoGradient,
     .infer = inferCeilingExponent,
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         const Tensor in = c.in(size_t{0});
         for (int64_t i = 0; i < out.numel(); ++i)
             static_cast<uint8_t*>(out.data())[i] = static_cast<uint8_t>(ceilingExponent(toDouble(in.item(i))));
         return out;
     }},

    // Python's &, | and ^.
    {.schema = "aten.__and__.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferBits,
     .eval = bitAnd,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return respell(d, [] { return "aten.bitwise_and.Tensor"; }); },
     .samples = kBitSamples},
    {.schema = "aten.__and__.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferBits,
     .eval = bitAnd,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return respell(d, [] { return "aten.bitwise_and.Scalar"; }); },
     .samples = kBitScalarSamples},
    {.schema = "aten.__or__.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferBits,
     .eval = bitOr,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return respell(d, [] { return "aten.bitwise_or.Tensor"; }); },
     .samples = kBitSamples},
    {.schema = "aten.__or__.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferBits,
     .eval = bitOr,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return respell(d, [] { return "aten.bitwise_or.Scalar"; }); },
     .samples = kBitScalarSamples},
    {.schema = "aten.__xor__.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferBits,
     .eval = bitXor,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return respell(d, [] { return "aten.bitwise_xor.Tensor"; }); },
     .samples = kBitSamples},
    {.schema = "aten.__xor__.Scalar(Tensor self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferBits,
     .eval = bitXor,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return respell(d, [] { return "aten.bitwise_xor.Scalar"; }); },
     .samples = kBitScalarSamples},
};

}  // namespace

std::span<const OpDef> compareOps() { return kCompareOps; }

}  // namespace cutaway
