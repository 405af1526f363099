// Grouped matrix products, as mixtures of experts need them: a tensor of offsets says how large each group is. They are
// the ends of the groups along the dim that the matrices share: of [rows, k] and [groups, k, n], of [groups, m, k] and
// [k, columns], or of [m, k] and [k, n] along k.
#include "engine/ops/eval.h"
#include "engine/ops/gemm_rules.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/matrix.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// Sizes of the product, checked. Errors: ranks and sizes that do not fit, offsets that are missing or too many.
Result<SymDims> groupedSizes(const InferContext& c, const TensorType& a, const TensorType& b,
                             const TensorType* offsets) {
    if (a.rank() < 2 || a.rank() > 3 || b.rank() < 2 || b.rank() > 3)
        return c.fail("needs matrices or batches of them, not " + a.text() + " and " + b.text());
    if (a.dtype != b.dtype)
        return c.fail("operands of dtypes " + std::string(info(a.dtype).torchName) + " and " +
                      std::string(info(b.dtype).torchName));
    if (a.dtype == DType::Bool || isComplex(a.dtype)) return c.fail("needs matrices of real numbers, not " + a.text());
    const SymInt &inner = a.sizes.back(), &other = b.sizes[b.sizes.size() - 2];
    if (differ(inner, other)) return c.fail("inner sizes " + inner.text() + " and " + other.text() + " differ");
    const bool batches = a.rank() == 3 && b.rank() == 3;
    if (batches != (offsets == nullptr))
        return c.fail(batches ? "batches need no offsets" : "needs offsets, unless both operands are batches");
    if (batches) {
        if (differ(a.sizes[0], b.sizes[0]))
            return c.fail("batches of " + a.sizes[0].text() + " and " + b.sizes[0].text());
        return SymDims{a.sizes[0], a.sizes[1], b.sizes[2]};
    }
    if (offsets->rank() != 1 || (offsets->dtype != DType::I32 && offsets->dtype != DType::I64))
        return c.fail("needs one integer offset per group, not " + offsets->text());
    if (a.rank() == 2 && b.rank() == 2) return SymDims{offsets->sizes[0], a.sizes[0], b.sizes[1]};
    const SymInt& groups = a.rank() == 3 ? a.sizes[0] : b.sizes[0];
    if (differ(groups, offsets->sizes[0]))
        return c.fail(offsets->sizes[0].text() + " offsets for " + groups.text() + " groups");
    return SymDims{a.sizes[a.sizes.size() - 2], b.sizes.back()};
}
/// PyTorch's kernel reads rows (or columns) that start at multiples of 16 bytes.
Result<void> checkAligned(const InferContext& c, const TensorType& type) {
    if (type.dtype != DType::F32 && type.dtype != DType::BF16 && type.dtype != DType::F16)
        return c.fail("needs float32, bfloat16 or float16, not " + type.text());
    const size_t last = type.sizes.size() - 1;
    const auto fits = [&](size_t packed, size_t other) {
        const auto step = type.strides[other].asInt(), length = type.sizes[packed].asInt();
        if (!(type.strides[packed] == SymInt(1))) return false;
        return !step || (*step % (16 / byteSize(type.dtype)) == 0 && *step >= std::max<int64_t>(length.value_or(1), 1));
    };
    if (fits(last, last - 1) || fits(last - 1, last)) return {};
    return c.fail("the rows or columns of " + type.fullText() + " do not start at multiples of 16 bytes");
}
Result<ValueType> inferGrouped(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor(size_t{0}));
    CT_TRY(const TensorType b, c.tensor(1));
    if (c.op().name().starts_with("aten.") && a.rank() >= 2 && b.rank() >= 2) {
        CT_TRY_VOID(checkAligned(c, a));
        CT_TRY_VOID(checkAligned(c, b));
    }
    TensorType offsets;
    if (!c.arg("offs").isNone()) {
        CT_TRY(offsets, c.tensor("offs"));
    }
    CT_TRY(SymDims sizes, groupedSizes(c, a, b, c.arg("offs").isNone() ? nullptr : &offsets));
    if (c.op().schema()->find("bias") >= 0 && !c.arg("bias").isNone()) return c.fail("takes no bias yet, as PyTorch");
    return ValueType(TensorType::contiguous(
        c.op().schema()->find("out_dtype") >= 0 ? c.dtype("out_dtype").value_or(a.dtype) : a.dtype, std::move(sizes),
        a.device));
}

/// The elements from `from` to below `to` of a dim.
Tensor rowsBetween(const Tensor& x, size_t dim, int64_t from, int64_t to) {
    Dims sizes = x.sizes();
    sizes[dim] = to - from;
    return x.view(sizes, x.strides(), x.offset() + from * x.strides()[dim]);
}
Tensor item(const Tensor& x, int64_t index) {
    return x.view(Dims(x.sizes().begin() + 1, x.sizes().end()), Dims(x.strides().begin() + 1, x.strides().end()),
                  x.offset() + index * x.strides()[0]);
}

/// The ends of the groups. Errors: ends that fall, or lie beyond the matrix; the latter are cut off in the operator of
/// transformers, which takes slices in Python.
Result<std::vector<int64_t>> endsOf(const EvalContext& c, const Tensor& offsets, int64_t length) {
    std::vector<int64_t> ends;
    for (int64_t i = 0; i < offsets.numel(); ++i) {
        ends.push_back(toInt(offsets.item(i)));
        if (!c.op().name().starts_with("aten.")) ends.back() = std::min(ends.back(), length);
        if (ends.back() < (i > 0 ? ends[static_cast<size_t>(i) - 1] : 0) || ends.back() > length)
            return c.fail("the offsets must rise from 0 to at most " + std::to_string(length));
    }
    return ends;
}

/// a times b, group by group, into `out`; what belongs to no group is 0.
Result<void> multiplyGroups(const EvalContext& c, const Tensor& a, const Tensor& b, const Tensor& offsets,
                            Tensor& out) {
    copyInto(out, Tensor::full(out.dtype(), out.sizes(), int64_t{0}));
    if (a.sizes().size() == 3 && b.sizes().size() == 3) {
        multiplyMatrices(a, b, out);
        return {};
    }
    const bool rows = a.sizes().size() == 2, columns = b.sizes().size() == 2;
    CT_TRY(const std::vector<int64_t> ends, endsOf(c, offsets, rows ? a.sizes()[columns ? 1 : 0] : b.sizes()[1]));
    int64_t start = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
        const auto group = static_cast<int64_t>(i);
        const Tensor left = rows ? rowsBetween(a, columns ? 1 : 0, start, ends[i]) : item(a, group);
        const Tensor right = columns ? rowsBetween(b, rows ? 0 : 1, start, ends[i]) : item(b, group);
        Tensor part = rows && columns ? item(out, group) : rowsBetween(out, rows ? 0 : 1, start, ends[i]);
        if (part.numel() > 0) multiplyMatrices(left, right, part);
        start = ends[i];
    }
    return {};
}
EvalResult evalGrouped(const EvalContext& c) {
    Tensor out = c.result();
    CT_TRY_VOID(multiplyGroups(c, c.in(size_t{0}), c.in(1), c.arg("offs").isNone() ? Tensor() : c.in("offs"), out));
    return out;
}
Value swapLastDims(Derivation& d, const Value& x) { return d.call("aten.transpose.int", {x, -2, -1}); }
void deriveGrouped(Derivation& d) {
    const Argument offsets = d.arg("offs");
    if (d.needs(0)) d.input(0) = d.call(d.op().name(), {d.dy(), swapLastDims(d, d.in(1)), offsets});
    if (d.needs(1)) d.input(1) = d.call(d.op().name(), {swapLastDims(d, d.in(size_t{0})), d.dy(), offsets});
}

Result<ValueType> inferFallbackBackward(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor(1));
    CT_TRY(const TensorType offsets, c.tensor(2));
    CT_TRY(const TensorType gradient, c.tensor(3));
    CT_TRY(const SymDims sizes, groupedSizes(c, input, weight, &offsets));
    if (!(gradient.sizes == sizes) || gradient.dtype != input.dtype)
        return c.fail("the gradient " + gradient.text() + " is not one of the product");
    TensorType forInput = input, forWeight = weight;
    forInput.strides = preservedStrides(input);
    forWeight.strides = preservedStrides(weight);
    forInput.offset = forWeight.offset = 0;
    return ValueType(TupleType{forInput, forWeight});
}
EvalResult evalFallbackBackward(const EvalContext& c) {
    const Tensor input = c.in(size_t{0}), weight = c.in(1), offsets = c.in(2), gradient = c.in(3);
    const auto turned = [](const Tensor& x) {
        Dims sizes = x.sizes(), strides = x.strides();
        std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
        std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
        return x.view(sizes, strides, x.offset());
    };
    Tensor forInput = c.result(0), forWeight = c.result(1);
    CT_TRY_VOID(multiplyGroups(c, gradient, turned(weight), offsets, forInput));
    CT_TRY_VOID(multiplyGroups(c, turned(input), gradient, offsets, forWeight));
    return TensorList{forInput, forWeight};
}

constexpr OpDef kGroupedGemmOps[] = {
    {.schema = "aten._grouped_mm.default(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
               "out_dtype=None) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferGrouped,
     .eval = evalGrouped,
     .derive = deriveGrouped,
     .samples = "f32[2, 4, 8], f32[2, 8, 4]\nbf16[2, 8, 8], bf16[2, 8, 8]\nf32[4, 8], f32[1, 8, 4], i32[1]<4\nf32[4, "
                "8], f32[2, 8, 4], i32[2]<1\nf32[4, 8], f32[8, 4], i32[1]<8\nf32[1, 4, 8], f32[8, 12], i32[1]<12"},
    // The same under the name that transformers registers for what PyTorch's kernel does not take; gradients are an
    // operator, too.
    {.schema = "transformers.grouped_mm_fallback.default(Tensor input, Tensor weight, Tensor offs) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferGrouped,
     .eval = evalGrouped,
     .derive =
         [](Derivation& d) {
             const Value both = d.call("transformers.grouped_mm_fallback_backward.default",
                                       {d.in(size_t{0}), d.in(1), d.in(2), d.dy()});
             d.input(0) = both[0];
             d.input(1) = both[1];
         },
     .samples = "f32[4, 3], f32[1, 3, 5], i32[1]<4\nf64[4, 3], f64[2, 3, 5], i64[2]<1"},
    {.schema = "transformers.grouped_mm_fallback_backward.default(Tensor input, Tensor weight, Tensor offs, Tensor "
               "grad_output) -> (Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferFallbackBackward,
     .eval = evalFallbackBackward,
     .samples = "f32[4, 3], f32[1, 3, 5], i32[1]<4, f32[4, 5]"},
};

}  // namespace

std::span<const OpDef> groupedGemmOps() { return kGroupedGemmOps; }

}  // namespace cutaway
