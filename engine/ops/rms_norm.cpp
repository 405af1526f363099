// Root-mean-square normalisation.
#include <limits>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

/// How many last dims are normalised. Errors name a shape that is not the input's tail.
Result<int64_t> normalisedDims(const InferContext& c, const TensorType& x) {
    CT_TRY(const SymDims shape, c.sizes("normalized_shape"));
    const auto count = static_cast<int64_t>(shape.size());
    if (count == 0 || count > x.rank())
        return c.fail("normalized_shape has " + std::to_string(count) + " dims, the input " + std::to_string(x.rank()));
    for (int64_t i = 0; i < count; ++i)
        if (!(shape[static_cast<size_t>(i)] == x.sizes[static_cast<size_t>(x.rank() - count + i)]))
            return c.fail("normalized_shape does not match the last dims of the input " + x.text());
    if (!isFloating(x.dtype))
        return c.fail("needs a floating-point input, not " + std::string(info(x.dtype).torchName));
    if (c.has("weight")) {
        CT_TRY(const TensorType weight, c.tensor("weight"));
        if (!(weight.sizes == shape))
            return c.fail("the weight " + weight.text() + " does not have the normalized shape");
    }
    return count;
}
double epsilonOf(const CallView& c, DType compute) {
    const double given = c.real(
        "eps", compute == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon());
    return compute == DType::F64 ? given : static_cast<double>(static_cast<float>(given));
}
/// The normalised and scaled input in the compute dtype, and 1/rms. The mean is taken over the last dim first.
std::pair<Value, Value> rmsNormalised(Decomposition& d, const Value& x, int64_t count) {
    std::vector<int64_t> dims;
    for (int64_t i = 1; i <= count; ++i) dims.push_back(x.rank() - i);
    const Value mean = d.call("aten.mean.dim", {d.call("aten.pow.Tensor_Scalar", {x, 2}), Argument(dims), true});
    const Value rstd = unary("aten.rsqrt.default", d.call("aten.add.Scalar", {mean, epsilonOf(d, x.dtype())}));
    Value y = x * rstd;
    if (d.has("weight")) y = y * d.in("weight");
    return {y, rstd};
}
Values decomposeRmsNorm(Decomposition& d) {
    const Value input = d.in(size_t{0});
    const auto count = normalisedDims(d, input.type());
    if (!count) {
        d.builder().fail(count.error());
        return Value();
    }
    const auto packed = [&](const Value& y) {
        return !y || y.type().isContiguous()
                   ? y
                   : d.call("aten.clone.default", {y}, {{"memory_format", MemoryFormat::Contiguous}});
    };
    if (!isHalf(input.dtype())) return packed(rmsNormalised(d, input, *count).first);
    const Value x = d.call("aten._to_copy.default", {input}, {{"dtype", DType::F32}});
    return packed(d.call("aten._to_copy.default", {rmsNormalised(d, x, *count).first}, {{"dtype", input.dtype()}}));
}
Result<ValueType> inferFused(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const int64_t count, normalisedDims(c, x));
    SymDims sizes = x.sizes;
    for (int64_t i = 1; i <= count; ++i) sizes[static_cast<size_t>(x.rank() - i)] = 1;
    return ValueType(TupleType{TensorType::contiguous(x.dtype, x.sizes, x.device),
                               TensorType::contiguous(opmathType(x.dtype), sizes, x.device)});
}
bool wantedRmsResult(const InferContext& c, size_t result) {
    const auto* mask = c.arg("output_mask").list();
    return mask && result < mask->size() && (*mask)[result].asInt().value_or(0) != 0;
}
Result<ValueType> inferFusedBackward(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor("input"));
    CT_TRY(const int64_t count, normalisedDims(c, x));
    CT_TRY(const TensorType gradient, c.tensor("grad_out"));
    CT_TRY(const TensorType rstd, c.tensor("rstd"));
    if (differ(gradient.sizes, x.sizes))
        return c.fail("gradient " + gradient.text() + " and input " + x.text() + " differ in shape");
    SymDims rows = x.sizes;
    std::fill(rows.end() - count, rows.end(), SymInt(1));
    if (differ(rstd.sizes, rows)) return c.fail("rstd " + rstd.text() + " does not have one element for each row");
    const SymDims tail(x.sizes.end() - count, x.sizes.end());
    TupleType types = {ValueType(TensorType::contiguous(x.dtype, x.sizes, x.device)), ValueType()};
    if (!wantedRmsResult(c, 0)) types[0] = ValueType();
    if (wantedRmsResult(c, 1) && c.has("weight")) {
        CT_TRY(const TensorType weight, c.tensor("weight"));
        types[1] = ValueType(TensorType::contiguous(weight.dtype, tail, x.device));
    }
    return ValueType(std::move(types));
}
Values decomposeFusedBackward(Decomposition& d) {
    const Value input = d.in("input");
    const int64_t count = *normalisedDims(d, input.type());
    auto packed = [&](const Value& x) {
        return isHalf(x.dtype())
                   ? d.call("aten.clone.default", {toOpmath(x)}, {{"memory_format", MemoryFormat::Contiguous}})
                   : x;
    };
    const Value g = packed(d.in("grad_out")), x = packed(input), rstd = d.in("rstd");
    const Value weight = d.has("weight") ? packed(d.in("weight")) : Value();
    std::vector<int64_t> inner, outer;
    SymInt elements = 1;
    for (int64_t i = 0; i < x.rank(); ++i) {
        (i < x.rank() - count ? outer : inner).push_back(i);
        if (i >= x.rank() - count) elements = elements * x.size(i);
    }
    const Value h = weight ? g * weight : g;
    const Value xHat = x * rstd;
    std::vector<Value> results(2);
    if (wantedRmsResult(d, 0)) {
        const Value projected = sum(xHat * h, inner, true);
        const Value share = d.call("aten.div.Tensor", {xHat, Argument(elements)});
        results[0] = (h - share * projected) * rstd;
    }
    if (wantedRmsResult(d, 1) && weight) results[1] = outer.empty() ? g * xHat : sum(g * xHat, outer, false);
    if (results[0]) results[0] = convert(results[0], input.dtype());
    if (results[1]) results[1] = convert(results[1], d.in("weight").dtype());
    return results;
}
/// The gradient of 1/rms pulled back to the input: d(1/rms)/dx is -rms^-3 x/n.
Value throughRms(Derivation& d) {
    const Value input = d.in(size_t{0}), rstd = d.out(1);
    SymInt elements = 1;
    const auto dims = normalisedDims(d, input.type());
    for (int64_t i = 1; dims && i <= *dims; ++i) elements = elements * input.size(-i);
    const Value slope = d.dy(1) * -(rstd * rstd * rstd);
    return convert(d.call("aten.div.Tensor", {toOpmath(input) * slope, Argument(elements)}), input.dtype());
}

constexpr OpDef kRmsNormOps[] = {
    // x / sqrt(mean(x^2) + eps), scaled; eps is the compute dtype's epsilon when not given.
    {.schema =
         "aten.rms_norm.default(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeRmsNorm,
     .samples =
         "f32[2, 3, 4], [4], f32[4]\nf32[2, 3, 4], [3, 4]\nf64[2, 4], [4], f64[4], 1e-5\nbf16[2, 3, 4], [4], bf16[4]\nf32[2, 4], [4], f32[4], 1e-5\nf16[3, 4], [4]"},
    {.schema =
         "aten._fused_rms_norm.default(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferFused,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         const Value input = d.in(size_t{0});
         const auto [y, rstd] = rmsNormalised(d, toOpmath(input), *normalisedDims(d, input.type()));
         return {convert(y, input.dtype()), rstd};
     },
     .derive =
         [](Derivation& d) {
             if (d.dy(0)) {
                 const std::vector<Argument> mask = {Argument(d.needs(0)), Argument(d.needs(2))};
                 const Value all = d.call("aten._fused_rms_norm_backward.default",
                                          {d.dy(), d.arg(0), d.arg(1), d.out(1), d.arg(2), Argument(mask)});
                 if (d.needs(0)) d.input(0) = all[0];
                 if (d.needs(2)) d.input(2) = all[1];
             }
             if (d.needs(0) && d.dy(1)) d.input(0) = d.input(0) ? d.input(0) + throughRms(d) : throughRms(d);
         },
     .samples =
         "f32[2, 3, 4], [4], f32[4], 1e-5\nf32[2, 3, 4], [3, 4], None, None\nf64[2, 4], [4], f64[4], 1e-5\nbf16[2, 3, 4], [4], bf16[4], None"},
    {.schema =
         "aten._fused_rms_norm_backward.default(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferFusedBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeFusedBackward,
     .samples =
         "f32[2, 3, 4], f32[2, 3, 4], [4], f32[2, 3, 1]>0, f32[4], [True, True]\nf64[2, 4], f64[2, 4], [4], f64[2, 1]>0, None, [True, False]\nbf16[2, 3, 4], bf16[2, 3, 4], [4], f32[2, 3, 1]>0, bf16[4], [True, True]"},
};

}  // namespace

std::span<const OpDef> rmsNormOps() { return kRmsNormOps; }

}  // namespace cutaway
