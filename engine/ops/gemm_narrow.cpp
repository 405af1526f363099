// Products whose result has another dtype than the operands: int8 summed in int32, 8-bit floats with scales, and what a
// call asks for by out_dtype.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/gemm_rules.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/matrix.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Result<ValueType> inferIntMm(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor(size_t{0}));
    CT_TRY(const TensorType b, c.tensor(1));
    if (a.dtype != DType::I8 || b.dtype != DType::I8) return c.fail("needs int8 matrices");
    CT_TRY(TensorType type, productType(c, a, b, 2));
    type.dtype = DType::I32;
    return ValueType(std::move(type));
}
Result<ValueType> inferInt8PackMm(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor(1));
    CT_TRY(const TensorType scales, c.tensor(2));
    if (x.rank() != 2 || (x.dtype != DType::F32 && !isHalf(x.dtype)))
        return c.fail("needs a matrix of float32, float16 or bfloat16, not " + x.text());
    if (weight.rank() != 2 || weight.dtype != DType::I8 || differ(x.sizes[1], weight.sizes[1]))
        return c.fail("needs an int8 matrix of as many columns as " + x.text() + ", not " + weight.text());
    if (weight.strides != contiguousStrides(weight.sizes)) return c.fail("needs a row-major weight");
    if (!(x.strides[1] == SymInt(1)) && !(x.sizes[1] == SymInt(1)))
        return c.fail("needs row-major rows of " + x.text());
    if (scales.rank() != 1 || differ(scales.sizes[0], weight.sizes[0]) || scales.dtype != x.dtype)
        return c.fail("needs a scale of the same dtype for each row of the weight, not " + scales.text());
    return ValueType(TensorType::contiguous(x.dtype, {x.sizes[0], weight.sizes[0]}, x.device));
}
EvalResult evalInt8PackMm(const EvalContext& c) {
    const Tensor weight = c.in(1).to(DType::F32), scales = c.in(2).to(DType::F32);
    Tensor product = Tensor::empty(DType::F32, c.resultSizes()), out = c.result();
    multiplyMatrices(c.in(size_t{0}).to(DType::F32),
                     weight.view({weight.size(1), weight.size(0)}, {weight.stride(1), weight.stride(0)}, 0), product);
    elementwise<float, 2>(out, {product, scales}, [](float y, float scale) { return y * scale; });
    return out;
}
bool isNarrowFloat(DType dtype) { return isFloating(dtype) && byteSize(dtype) == 1; }
Result<ValueType> inferScaledMm(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor(size_t{0}));
    CT_TRY(const TensorType b, c.tensor(1));
    if (!isNarrowFloat(a.dtype) || !isNarrowFloat(b.dtype)) return c.fail("needs matrices of 8-bit floats");
    if (a.rank() != 2 || b.rank() != 2 || differ(a.sizes[1], b.sizes[0]))
        return c.fail("needs two matrices whose inner sizes agree");
    for (const auto& [param, rows, columns] :
         {std::tuple("scale_a", a.sizes[0], SymInt(1)), std::tuple("scale_b", SymInt(1), b.sizes[1])}) {
        CT_TRY(const TensorType scale, c.tensor(param));
        const bool one = numel(scale.sizes) == SymInt(1),
                   perLine = scale.rank() == 2 && scale.sizes[0] == rows && scale.sizes[1] == columns;
        if (scale.dtype != DType::F32 || !(one || perLine))
            return c.fail("'" + std::string(param) + "' must be float32, one number or one per row (column)");
    }
    if (c.has("bias")) {
        CT_TRY(const TensorType bias, c.tensor("bias"));
        if (numel(bias.sizes).isInt() && differ(numel(bias.sizes), b.sizes[1]))
            return c.fail("the bias must have one element per column");
    }
    return ValueType(
        TensorType::contiguous(c.dtype("out_dtype").value_or(a.dtype), {a.sizes[0], b.sizes[1]}, a.device));
}
/// A scale against the rows or columns of the product, as a matrix.
Tensor scaleMatrix(const Tensor& scale) {
    return scale.rank() == 2 ? scale : scale.view({1, 1}, {0, 0}, scale.offset());
}
EvalResult evalScaledMm(const EvalContext& c) {
    const Tensor a = c.in(size_t{0}).to(DType::F32), b = c.in(1).to(DType::F32);
    Tensor product = Tensor::empty(DType::F32, {a.size(0), b.size(1)});
    multiplyMatrices(a, b, product);
    const Tensor rows = broadcastTo(scaleMatrix(c.in("scale_a")), product.sizes()),
                 columns = broadcastTo(scaleMatrix(c.in("scale_b")), product.sizes());
    const Tensor bias = c.optional("bias").defined() ? c.optional("bias").to(DType::F32) : Tensor();
    const double whole = c.optional("scale_result").defined() ? toDouble(c.optional("scale_result").item()) : 1;
    for (int64_t i = 0; i < product.numel(); ++i) {
        const double scaledElement = toDouble(product.item(i)) * toDouble(rows.item(i)) * toDouble(columns.item(i));
        const double added = bias.defined() ? toDouble(bias.item(i % product.size(1))) : 0;
        product.as<float>()[i] = static_cast<float>((scaledElement + added) * whole);
    }
    Tensor out = c.result();
    copyInto(out, product);
    return out;
}

/// Products by out_dtype. With float32 for half floats the operands are converted first, so no sum is rounded.
Values widened(Decomposition& d) {
    const auto dtype = d.dtype("out_dtype");
    if (!dtype) return refuse(d, "needs out_dtype");
    const bool added = d.op().schema()->find("self") == 0 && d.op().schema()->find("beta") >= 0;
    const Value first = d.in(added ? 1 : 0), second = d.in(added ? 2 : 1);
    if (first.dtype() != second.dtype()) return refuse(d, "operands of different dtypes");
    if (*dtype != first.dtype() && !(*dtype == DType::F32 && isHalf(first.dtype())))
        return refuse(d, "out_dtype is the operands' own dtype, or float32 for float16 and bfloat16");
    const std::string op = d.op().name().substr(0, d.op().name().rfind('.')) + ".default";
    if (!added) return d.call(op, {convert(first, *dtype), convert(second, *dtype)});
    if (d.in(0).dtype() != *dtype && d.in(0).dtype() != first.dtype())
        return refuse(d, "the added tensor has neither out_dtype nor the operands' dtype");
    return d.call(op, {convert(d.in(0), *dtype), convert(first, *dtype), convert(second, *dtype)},
                  {{"beta", d.arg("beta")}, {"alpha", d.arg("alpha")}});
}
/// PyTorch does not differentiate these.
constexpr OpDef withOutDtype(std::string_view schema, std::string_view samples) {
    OpDef row = shorthand(schema, widened, samples, Tag::Heavy);
    row.expand = Expand::Decompose;
    return row;
}

constexpr OpDef kGemmNarrowOps[] = {
    withOutDtype("aten.mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
                 "bf16[2, 3], bf16[3, 4], torch.float32\nf16[2, 3], f16[3, 4], torch.float16"),
    withOutDtype("aten.bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
                 "bf16[2, 2, 3], bf16[2, 3, 4], torch.float32\nf32[2, 2, 3], f32[2, 3, 4], torch.float32"),
    withOutDtype(
        "aten.addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "f32[4], bf16[2, 3], bf16[3, 4], torch.float32\nbf16[4], bf16[2, 3], bf16[3, 4], torch.float32, beta=2, alpha=0.5"),
    withOutDtype(
        "aten.baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        "f32[2, 2, 4], f16[2, 2, 3], f16[2, 3, 4], torch.float32"),
    // int8 matrices, summed in int32.
    {.schema = "aten._int_mm.default(Tensor self, Tensor mat2) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferIntMm,
     .eval =
         [](const EvalContext& c) {
             Tensor out = c.result();
             multiplyMatrices(c.in(size_t{0}).to(DType::I32), c.in(1).to(DType::I32), out);
             return out;
         },
     .samples = "i8[32, 16], i8[16, 8]\ni8[17, 8], i8[8, 8][1, 8]\ni8[20, 0], i8[0, 8]"},
    // Floats with the transpose of int8 weights, a scale per column of the result.
    {.schema = "aten._weight_int8pack_mm.default(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferInt8PackMm,
     .eval = evalInt8PackMm,
     .samples = "f32[4, 6], i8[8, 6]!, f32[8]\nbf16[4, 64], i8[32, 64]!, bf16[32]>0\nf32[0, 6], i8[8, 6]!, f32[8]"},
    // 8-bit floats with a scale per matrix, or per row and column.
    {.schema =
         "aten._scaled_mm.default(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, "
         "bool use_fast_accum=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferScaledMm,
     .eval = evalScaledMm,
     .samples =
         "f8e4m3fn[16, 32], f8e4m3fn[32, 16][1, 32], f32[]>0, f32[]>0, None, None, torch.float32\nf8e4m3fn[16, 32], f8e4m3fn[32, 16][1, 32], f32[]>0, f32[]>0, None, None, torch.bfloat16"},
};

}  // namespace

std::span<const OpDef> gemmNarrowOps() { return kGemmNarrowOps; }

}  // namespace cutaway
