// Elements of one of two tensors, chosen by a mask.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Value zeroTensor(Derivation& d, const Value& like) {
    return d.call("aten.scalar_tensor.default", {0},
                  {{"dtype", like.dtype()}, {"layout", Layout::Strided}, {"device", like.type().device}});
}

Result<ValueType> inferWhere(const InferContext& c) {
    CT_TRY(const Operand condition, c.operand(0));
    if (condition.type.dtype != DType::Bool && condition.type.dtype != DType::U8)
        return c.fail("the condition is " + std::string(info(condition.type.dtype).torchName) + ", not bool");
    CT_TRY(Operand yes, c.operand(1));
    CT_TRY(Operand no, c.operand(2));
    const Operand values[] = {yes, no};
    const Operand all[] = {condition, yes, no};
    CT_TRY(TensorType type, elementwiseType(c, all, resultType(values)));
    return ValueType(std::move(type));
}
EvalResult evalWhere(const EvalContext& c) {
    Tensor out = c.result();
    withComplex(c.resultType().dtype, [&](auto tag) {
        using T = decltype(tag);
        elementwise<T, 3>(out, {c.in(size_t{0}), c.in(1), c.in(2)},
                          [](T condition, T yes, T no) { return condition != T(0) ? yes : no; });
    });
    return out;
}
Expr lowerWhere(LowerContext& c) {
    Expr condition = c.loadOwn(0);
    if (condition->dtype != DType::Bool) condition = compare(ExprKind::Ne, condition, constantLike(condition, 0));
    return Expr::where(condition, c.load(1), c.load(2));
}
/// A number where aten.where.self wants a tensor: 0-d of the dtype that the other branch promotes it to.
Value branchTensor(Decomposition& d, size_t position, DType dtype, Device device) {
    return d.call("aten.scalar_tensor.default", {d.arg(position)},
                  {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}});
}
Values whereWithNumbers(Decomposition& d) {
    auto yes = d.operand(1), no = d.operand(2), condition = d.operand(0);
    if (!yes || !no || !condition) {
        d.builder().fail(!yes ? yes.error() : !no ? no.error() : condition.error());
        return Value();
    }
    const Operand operands[] = {*yes, *no};
    const DType dtype = resultType(operands);
    const Device device = condition->type.device;
    const Value second = no->literal ? branchTensor(d, 2, dtype, device) : convert(d.in(2), dtype);
    const Value first = yes->literal ? branchTensor(d, 1, dtype, device) : convert(d.in(1), dtype);
    return where(d.in(size_t{0}), first, second);
}

constexpr OpDef kWhereOps[] = {
    // condition ? self : other, all three broadcast. Both branches are computed.
    {.schema = "aten.where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferWhere,
     .eval = evalWhere,
     .derive =
         [](Derivation& d) {
             if (d.needs(2)) d.input(2) = where(d.in(size_t{0}), zeroTensor(d, d.dy()), d.dy());
             if (d.needs(1)) {
                 const Value zero = zeroTensor(d, d.dy());
                 d.input(1) = where(d.in(size_t{0}), d.dy(), zero);
             }
         },
     .lower = lowerWhere,
     .samples = R"(
b8[2, 3], f32[2, 3], f32[2, 3]
b8[3], f32[2, 1], f32[2, 3]
b8[2, 3], f32[], f64[2, 3]
b8[2, 3][1, 2], f32[2, 3][1, 2], f32[]
b8[4], i64[4], i32[4]
b8[2, 1], bf16[3], bf16[]
b8[], b8[3], b8[3]
b8[0], f32[0], f32[]
)"},
    {.schema = "aten.where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = whereWithNumbers,
     .samples = "b8[2, 3], f32[2, 3], 1.5\nb8[3], i64[3], 2\nb8[3], i64[3], 2.5"},
    {.schema = "aten.where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = whereWithNumbers,
     .samples = "b8[2, 3], 1.5, f32[2, 3]\nb8[3], 2, bf16[3]"},
    {.schema = "aten.where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = whereWithNumbers,
     .samples = "b8[2, 3], 1.5, 0.0\nb8[3], 1, 0"},
};

}  // namespace

std::span<const OpDef> whereOps() { return kWhereOps; }

}  // namespace cutaway
