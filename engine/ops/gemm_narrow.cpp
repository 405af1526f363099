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

/// How the elements of a matrix share scales, by the number that _scaled_mm_v2 has for it (PyTorch's ScalingType).
enum class Recipe : int64_t { Tensor, Row, Block1x16, Block1x32, Block1x128, Block128x128 };

/// The elements that share a scale: of the rows of the first matrix, or the columns of the second, and along the inner
/// dim; 0 = all.
struct ScaleBlock {
    int64_t lines, inner;
};
std::optional<ScaleBlock> scaleBlock(Recipe recipe) {
    switch (recipe) {
        case Recipe::Tensor: return ScaleBlock{0, 0};
        case Recipe::Row: return ScaleBlock{1, 0};
        case Recipe::Block1x128: return ScaleBlock{1, 128};
        case Recipe::Block128x128: return ScaleBlock{128, 128};
        default: return std::nullopt;
    }
}
SymInt blocksOf(const SymInt& size, int64_t block) {
    return block == 0 ? SymInt(1) : floorDiv(size + SymInt(block - 1), SymInt(block));
}
Result<void> checkScale(const InferContext& c, const TensorType& matrix, bool first) {
    const std::string suffix = first ? "a" : "b", param = "scale_" + suffix;
    CT_TRY(const std::vector<TensorType> scales, c.tensors(param));
    CT_TRY(const std::vector<int64_t> recipes, c.integers("recipe_" + suffix));
    CT_TRY(const std::vector<int64_t> swizzles, c.integers("swizzle_" + suffix));
    if (scales.size() != 1 || recipes.size() != 1)
        return c.fail("takes one scale and one recipe per matrix here; products of two levels of scales are GPU code");
    const auto block = scaleBlock(static_cast<Recipe>(recipes[0]));
    if (!block || std::any_of(swizzles.begin(), swizzles.end(), [](int64_t swizzle) { return swizzle != 0; }))
        return c.fail(
            "recipe " + std::to_string(recipes[0]) + " of '" + param +
            "' has swizzled scales, which only GPUs read; there are 0 (tensor), 1 (row), 4 (1x128) and 5 (128x128)");
    const SymInt lines = blocksOf(matrix.sizes[first ? 0 : 1], block->lines),
                 inner = blocksOf(matrix.sizes[first ? 1 : 0], block->inner);
    const bool one = block->lines == 0 && numel(scales[0].sizes) == SymInt(1);
    const SymDims wanted = first ? SymDims{lines, inner} : SymDims{inner, lines};
    if (scales[0].dtype != DType::F32 || !(one || (scales[0].rank() == 2 && !differ(scales[0].sizes, wanted))))
        return c.fail("'" + param + "' of recipe " + std::to_string(recipes[0]) + " must be " +
                      (block->lines == 0 ? "one float32 number"
                                         : TensorType::contiguous(DType::F32, wanted, matrix.device).text()) +
                      ", not " + scales[0].text());
    return {};
}
Result<ValueType> inferScaledMmV2(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor(size_t{0}));
    CT_TRY(const TensorType b, c.tensor(1));
    if (!isNarrowFloat(a.dtype) || !isNarrowFloat(b.dtype)) return c.fail("needs matrices of 8-bit floats");
    if (a.rank() != 2 || b.rank() != 2 || differ(a.sizes[1], b.sizes[0]))
        return c.fail("needs two matrices whose inner sizes agree");
    CT_TRY_VOID(checkScale(c, a, true));
    CT_TRY_VOID(checkScale(c, b, false));
    if (c.has("bias")) {
        CT_TRY(const TensorType bias, c.tensor("bias"));
        if (bias.rank() != 1 || differ(bias.sizes[0], b.sizes[1]))
            return c.fail("the bias must have one dim, with an element per column, not " + bias.text());
    }
    return ValueType(
        TensorType::contiguous(c.dtype("out_dtype").value_or(a.dtype), {a.sizes[0], b.sizes[1]}, a.device));
}
/// The matrix times the scales of its blocks.
Tensor scaledMatrix(const EvalContext& c, bool first) {
    Tensor matrix = c.in(first ? size_t{0} : size_t{1}).to(DType::F32).contiguous();
    const Tensor scale = c.list(first ? "scale_a" : "scale_b")[0];
    const ScaleBlock block = *scaleBlock(static_cast<Recipe>(c.integersOf(first ? "recipe_a" : "recipe_b")[0]));
    const int64_t rowBlock = first ? block.lines : block.inner, columnBlock = first ? block.inner : block.lines;
    const auto of = [](int64_t position, int64_t size) { return size == 0 ? 0 : position / size; };
    if (matrix.storage() == c.in(first ? size_t{0} : size_t{1}).storage()) matrix = matrix.clone();
    for (int64_t row = 0; row < matrix.size(0); ++row)
        for (int64_t column = 0; column < matrix.size(1); ++column) {
            const int64_t at =
                scale.rank() < 2 ? 0 : of(row, rowBlock) * scale.stride(0) + of(column, columnBlock) * scale.stride(1);
            matrix.as<float>()[row * matrix.size(1) + column] *= scale.as<float>()[at];
        }
    return matrix;
}
EvalResult evalScaledMmV2(const EvalContext& c) {
    Tensor product = Tensor::empty(DType::F32, c.resultSizes()), out = c.result();
    multiplyMatrices(scaledMatrix(c, true), scaledMatrix(c, false), product);
    if (const Tensor bias = c.optional("bias"); bias.defined())
        elementwise<float, 2>(product, {product, bias.to(DType::F32)}, [](float y, float added) { return y + added; });
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
    // The same with a recipe that says which elements share a scale.
    {.schema =
         "aten._scaled_mm_v2.default(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, "
         "Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], bool use_fast_accum=False) -> Tensor",
     .tags = Tag::Heavy | Tag::NoGradient,
     .infer = inferScaledMmV2,
     .eval = evalScaledMmV2,
     .samples =
         "f8e4m3fn[16, 32], f8e4m3fn[32, 16][1, 32], [f32[]>0], [0], [], [f32[1]>0], [0], [], None, torch.float32\n"
         "f8e4m3fn[4, 6], f8e5m2[6, 3], [f32[4, 1]>0], [1], [], [f32[1, 3]>0], [1], [], f32[3], torch.bfloat16\n"
         "f8e4m3fn[4, 200], f8e4m3fn[200, 3], [f32[4, 2]>0], [4], [], [f32[2, 1]>0], [5], [], None, torch.float32"},
};

}  // namespace

std::span<const OpDef> gemmNarrowOps() { return kGemmNarrowOps; }

}  // namespace cutaway
