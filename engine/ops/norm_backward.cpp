// Gradients of the normalisations. All expand; their kernels are their expansions.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

bool wants(const InferContext& c, size_t result) {
    const auto* mask = c.arg("output_mask").list();
    return mask && result < mask->size() && (*mask)[result].asInt().value_or(0) != 0;
}
/// Gradients of input, weight and bias, those that the mask asks for.
Result<ValueType> inferGradients(const InferContext& c, size_t input, SymDims affine) {
    CT_TRY(const TensorType x, c.tensor(input));
    DType dtype = x.dtype;
    if (c.has("weight")) {
        CT_TRY(const TensorType weight, c.tensor("weight"));
        dtype = weight.dtype;
    }
    const TensorType parameter = TensorType::contiguous(dtype, std::move(affine), x.device);
    TupleType types(3);
    if (wants(c, 0)) types[0] = TensorType::contiguous(x.dtype, x.sizes, x.device);
    for (size_t i : {size_t{1}, size_t{2}})
        if (wants(c, i)) types[i] = parameter;
    return ValueType(std::move(types));
}
/// In the compute dtype and row-major, as PyTorch's `to` makes it: only half floats and channels-last tensors change.
Value packedOpmath(Decomposition& d, const Value& x) {
    if (!isHalf(x.dtype()) && !isChannelsLast(x.type())) return x;
    const Value converted = d.call("prims.convert_element_type.default", {x, opmathType(x.dtype())});
    return d.call("aten.clone.default", {converted}, {{"memory_format", MemoryFormat::Contiguous}});
}

Result<ValueType> inferLayerNormBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const TensorType x, c.tensor(1));
    CT_TRY(SymDims shape, c.sizes("normalized_shape"));
    if (!(gradient.sizes == x.sizes))
        return c.fail("gradient " + gradient.text() + " and input " + x.text() + " differ in shape");
    if (shape.empty() || shape.size() > x.sizes.size())
        return c.fail("normalized_shape does not fit the input " + x.text());
    for (size_t i = 0; i < shape.size(); ++i) {
        const SymInt& own = x.sizes[x.sizes.size() - shape.size() + i];
        if (differ(own, shape[i]))
            return c.fail("normalized_shape has " + shape[i].text() + " where the input " + x.text() + " has " +
                          own.text());
    }
    CT_TRY(ValueType types, inferGradients(c, 1, std::move(shape)));
    TupleType all = *types.tuple();
    if (!c.has("weight")) all[1] = ValueType();
    if (!c.has("bias")) all[2] = ValueType();
    // The strides of the input's gradient are those that the decomposition gives it, which readers are traced on.
    if (!all[0].tensor() || (gradient.isContiguous() && x.isContiguous())) return ValueType(std::move(all));
    CT_TRY(const ValueType expanded, inferExpanded(c));
    all[0] = (*expanded.tuple())[0];
    return ValueType(std::move(all));
}
Values decomposeLayerNormBackward(Decomposition& d) {
    const DType inputType = d.in(1).dtype();
    const Value g = packedOpmath(d, d.in(size_t{0})), x = packedOpmath(d, d.in(1));
    const Value mean = d.in("mean"), rstd = d.in("rstd");
    const Value weight = d.has("weight") ? packedOpmath(d, d.in("weight")) : Value();
    const int64_t rank = x.rank(), lead = rank - static_cast<int64_t>(d.sizesOf("normalized_shape").size());
    std::vector<int64_t> outer, inner;
    SymInt count = 1;
    for (int64_t i = 0; i < rank; ++i) {
        (i < lead ? outer : inner).push_back(i);
        if (i >= lead) count = count * x.size(i);
    }
    const Value centred = x - mean;
    const Value xHat = centred * rstd;
    const Value h = weight ? g * weight : g;
    const Value n = d.call("aten.mul.Tensor", {h, count});
    const Value total = sum(h, inner, true);
    const Value projected = sum(h * xHat, inner, true);
    const Value shift = xHat * projected;
    const Value rest = n - total - shift;
    std::vector<Value> results(3);
    if (wants(d, 0)) {
        const Value scale = d.call("aten.div.Tensor", {rstd, count});
        results[0] = scale * rest;
    }
    if (wants(d, 1) && weight) results[1] = outer.empty() ? g * xHat : sum(g * xHat, outer, false);
    if (wants(d, 2) && d.has("bias"))
        results[2] = outer.empty() ? unary("aten.clone.default", g) : sum(g, outer, false);
    if (results[0]) results[0] = convert(results[0], inputType);
    if (results[1]) results[1] = convert(results[1], d.in("weight").dtype());
    if (results[2]) results[2] = convert(results[2], d.in("bias").dtype());
    return results;
}

/// A per-channel vector beside the input: [1, C, 1, ...].
Value perChannel(Value x, const Value& like) {
    for (int64_t axis = 0; axis < like.rank(); ++axis)
        if (axis != 1) x = unsqueeze(x, axis);
    return x;
}
Values decomposeBatchNormBackward(Decomposition& d) {
    const Value input = d.in(1);
    const Value g = opmathIn(d, 0), x = toOpmath(input);
    const Value weight = d.has("weight") ? toOpmath(d.in("weight")) : Value();
    const bool train = d.flag("train");
    auto given = [&](std::string_view param) { return d.has(param) ? toOpmath(d.in(param)) : Value(); };
    const Value runningMean = given("running_mean"), runningVar = given("running_var");
    const Value savedMean = train ? given("save_mean") : Value(), savedInvstd = train ? given("save_invstd") : Value();
    if ((train && !(savedMean && savedInvstd)) || (!train && !(runningMean && runningVar))) {
        d.builder().fail(d.fail(train ? "needs save_mean and save_invstd" : "needs running_mean and running_var"));
        return Value();
    }
    const Value mean = train ? savedMean : runningMean;
    const Value invstd = train ? savedInvstd : unary("aten.rsqrt.default", runningVar + d.real("eps"));
    std::vector<int64_t> axes = {0};
    SymInt count = x.size(0);
    for (int64_t i = 2; i < x.rank(); ++i) {
        axes.push_back(i);
        count = count * x.size(i);
    }
    const Value wideMean = perChannel(mean, x);
    const Value total = sum(g, axes, false);
    const Value dot = sum(g * (x - wideMean), axes, false);
    const Value meanGradient = perChannel(scaledByCount(total, 1, count), x);
    const Value dotMean = scaledByCount(dot, 1, count);
    const Value projection = perChannel(dotMean * (invstd * invstd), x);
    const Value scale = weight ? perChannel(invstd * weight, x) : perChannel(invstd, x) * 1.0;
    std::vector<Value> results(3);
    Value dx;
    if (train) {
        const Value part = (x - wideMean) * projection;
        dx = (g - part - meanGradient) * scale;
    } else {
        dx = g * scale;
    }
    if (wants(d, 1)) results[1] = dot * invstd;
    if (wants(d, 2)) results[2] = total;
    const DType parameter = weight ? d.in("weight").dtype() : input.dtype();
    if (wants(d, 0)) results[0] = convert(dx, input.dtype());
    for (size_t i : {size_t{1}, size_t{2}})
        if (results[i]) results[i] = convert(results[i], parameter);
    return results;
}

Result<ValueType> inferBatchNormBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const TensorType x, c.tensor(1));
    if (x.rank() < 2) return c.fail("needs an input of at least 2 dims, not " + x.text());
    if (differ(gradient.sizes, x.sizes))
        return c.fail("gradient " + gradient.text() + " and input " + x.text() + " differ in shape");
    // Of the statistics those that are read: the others may be left empty.
    const bool train = c.flag("train");
    const SymDims channels = {x.sizes[1]};
    for (const char* param : {"weight", train ? "save_mean" : "running_mean", train ? "save_invstd" : "running_var"}) {
        if (!c.has(param)) continue;
        CT_TRY(const TensorType each, c.tensor(param));
        if (differ(each.sizes, channels))
            return c.fail(std::string(param) + " " + each.text() + " does not have one element for each of the " +
                          x.sizes[1].text() + " channels");
    }
    return inferGradients(c, 1, channels);
}

constexpr OpDef kNormBackwardOps[] = {
    {.schema =
         "aten.native_layer_norm_backward.default(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferLayerNormBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeLayerNormBackward,
     .samples =
         "f32[2, 3, 4], f32[2, 3, 4], [4], f32[2, 3, 1], f32[2, 3, 1]>0, f32[4], f32[4], [True, True, True]\nf64[2, 4], f64[2, 4], [4], f64[2, 1], f64[2, 1]>0, f64[4], f64[4], [True, True, True]"},
    {.schema =
         "aten.native_batch_norm_backward.default(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferBatchNormBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeBatchNormBackward,
     .samples =
         "f32[2, 3, 4], f32[2, 3, 4], f32[3], None, None, f32[3], f32[3]>0, True, 1e-5, [True, True, True]\nf32[4, 3], f32[4, 3], f32[3], f32[3], f32[3]>0, None, None, False, 1e-5, [True, True, True]"},
};

}  // namespace

std::span<const OpDef> normBackwardOps() { return kNormBackwardOps; }

}  // namespace cutaway
