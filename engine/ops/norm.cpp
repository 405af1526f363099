// Normalisations. The expansions follow PyTorch's, op by op; statistics of f16 and bf16 are taken in f32.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

Argument valueOrNone(const Decomposition& d, std::string_view param) { return d.arg(param); }

// -- layer norm

/// The normalised shape must be the tail of the operand's; returns how many leading dims stay.
Result<int64_t> leadingDims(const InferContext& c, const TensorType& input) {
    CT_TRY(const SymDims shape, c.sizes("normalized_shape"));
    const int64_t lead = input.rank() - static_cast<int64_t>(shape.size());
    if (shape.empty() || lead < 0)
        return c.fail("normalized_shape has " + std::to_string(shape.size()) + " dims, the input " +
                      std::to_string(input.rank()));
    for (size_t i = 0; i < shape.size(); ++i) {
        const SymInt& size = input.sizes[static_cast<size_t>(lead) + i];
        if (differ(size, shape[i]))
            return c.fail("normalized_shape does not match the last dims of the input " + input.text());
    }
    for (const char* param : {"weight", "bias"})
        if (c.op().schema()->find(param) >= 0 && c.has(param)) {
            CT_TRY(const TensorType affine, c.tensor(param));
            if (allInts(affine.sizes) && allInts(shape) && !(affine.sizes == shape))
                return c.fail(std::string(param) + " " + affine.text() + " is not of the normalised shape");
        }
    return lead;
}
SymDims statisticsShape(const SymDims& sizes, int64_t lead) {
    SymDims shape = sizes;
    for (size_t i = static_cast<size_t>(lead); i < shape.size(); ++i) shape[i] = 1;
    return shape;
}
/// Means and reciprocal deviations: in the input's dtype on the CPU, in the compute dtype elsewhere.
DType statisticsType(const TensorType& input) {
    return input.device.type == DeviceType::Cpu ? input.dtype : opmathType(input.dtype);
}
Result<ValueType> inferNativeLayerNorm(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    if (!isFloating(input.dtype))
        return c.fail("needs a floating-point input, not " + std::string(info(input.dtype).torchName));
    CT_TRY(const int64_t lead, leadingDims(c, input));
    const TensorType statistics =
        TensorType::contiguous(statisticsType(input), statisticsShape(input.sizes, lead), input.device);
    return ValueType(TupleType{TensorType::contiguous(input.dtype, input.sizes, input.device), statistics, statistics});
}
std::vector<int64_t> dimRange(int64_t from, int64_t to) {
    std::vector<int64_t> dims;
    for (int64_t i = from; i < to; ++i) dims.push_back(i);
    return dims;
}
Values decomposeNativeLayerNorm(Decomposition& d) {
    Value input = d.in(size_t{0});
    const auto lead = leadingDims(d, input.type());
    if (!input.type().isContiguous())
        input = d.call("aten.clone.default", {input}, {{"memory_format", MemoryFormat::Contiguous}});
    const Value x = toOpmath(input);
    const Value moments = d.call("aten.var_mean.correction", {x, Argument(dimRange(*lead, x.rank()))},
                                 {{"correction", 0}, {"keepdim", true}});
    const Value variance = moments[0], mean = moments[1];
    const Value rstd = unary("aten.rsqrt.default", variance + d.real("eps"));
    Value y = (x - mean) * rstd;
    if (d.has("weight")) y = y * d.in("weight");
    if (d.has("bias")) y = y + d.in("bias");
    const DType statistics = statisticsType(input.type());
    y = convert(y, input.dtype());
    const Value meanOut = convert(mean, statistics);
    return {y, meanOut, convert(rstd, statistics)};
}

// -- batch norm

/// Fresh like the input, channels last if the input is.
TensorType batchNormType(const TensorType& input) {
    TensorType type = TensorType::contiguous(input.dtype, input.sizes, input.device);
    if (input.isContiguous()) return type;
    for (const MemoryFormat format : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
        if (const auto strides = formatStrides(format, input.sizes); strides && *strides == input.strides)
            type.strides = *strides;
    return type;
}
Result<TensorType> checkedBatchNormInput(const InferContext& c) {
    CT_TRY(TensorType input, c.tensor(size_t{0}));
    if (input.rank() < 2) return c.fail("needs an input of at least 2 dims, not " + input.text());
    if (!isFloating(input.dtype))
        return c.fail("needs a floating-point input, not " + std::string(info(input.dtype).torchName));
    for (const char* param : {"weight", "bias", "running_mean", "running_var"}) {
        if (c.op().schema()->find(param) < 0 || !c.has(param)) continue;
        CT_TRY(const TensorType one, c.tensor(param));
        if (one.rank() != 1 || differ(one.sizes[0], input.sizes[1]))
            return c.fail(std::string(param) + " " + one.text() + " does not have one element per channel of " +
                          input.text());
    }
    return input;
}
Value unsqueezeToRank(Value x, int64_t rank) {
    while (x && x.rank() < rank) x = unsqueeze(x, -1);
    return x;
}
Value affine(Decomposition& d, Value y, int64_t rank) {
    if (d.has("weight")) y = y * unsqueezeToRank(d.in("weight"), rank);
    if (d.has("bias")) y = y + unsqueezeToRank(d.in("bias"), rank);
    return y;
}
Values decomposeNoTraining(Decomposition& d) {
    const Value input = d.in(size_t{0});
    const DType compute = opmathType(input.dtype());
    // Copies of the statistics, even where the dtype is right already: PyTorch's `.to(copy=True)`.
    const Value mean = d.call("prims.convert_element_type.default", {d.in("running_mean"), compute});
    const Value variance = d.call("prims.convert_element_type.default", {d.in("running_var"), compute});
    const Value raised = variance + d.real("eps");
    const Value invstd = has(d.release(), ReleaseChange::ReciprocalRoot)
                             ? unary("aten.rsqrt.default", raised)
                             : unary("aten.reciprocal.default", unary("aten.sqrt.default", raised)) * 1;
    Value saveMean = mean, saveInvstd = invstd;
    if (input.type().device.type == DeviceType::Cpu) {
        saveMean = full(d.builder(), {0}, int64_t{0}, input.dtype(), input.type().device);
        saveInvstd = full(d.builder(), {0}, int64_t{0}, input.dtype(), input.type().device);
    }
    const int64_t rank = input.rank() - 1;
    const Value m = unsqueezeToRank(mean, rank), r = unsqueezeToRank(invstd, rank);
    return {convert(affine(d, (input - m) * r, rank), input.dtype()), saveMean, saveInvstd};
}
/// The functional form asked not to train: the running statistics come back as they are.
Values decomposeEvaluation(Decomposition& d) {
    std::vector<Value> values = decomposeNoTraining(d).values();
    for (const char* param : {"running_mean", "running_var"})
        values.push_back(d.call("aten.clone.default", {d.in(param)}, {{"memory_format", MemoryFormat::Contiguous}}));
    return values;
}
/// Batch statistics, and the running ones moved towards them when there are any.
Values decomposeTraining(Decomposition& d, bool running) {
    const Value input = d.in(size_t{0});
    const Value x = toOpmath(input);
    std::vector<int64_t> dims = dimRange(2, input.rank());
    dims.insert(dims.begin(), 0);
    const Value moments =
        d.call("aten.var_mean.correction", {x, Argument(dims)}, {{"correction", 0}, {"keepdim", true}});
    const Value variance = moments[0], mean = moments[1];
    const Value rstd = unary("aten.rsqrt.default", variance + d.real("eps"));
    const Value normalised = (input - mean) * rstd;
    Value saveMean = squeezeDims(mean, dims), saveRstd = squeezeDims(rstd, dims);
    Value newMean, newVar;
    if (running) {
        const double momentum = d.real("momentum");
        const Value shareOfMean = saveMean * momentum;
        newMean = shareOfMean + d.in("running_mean") * (1 - momentum);
        SymInt count = 1;
        for (int64_t dim : dims) count = count * input.size(dim);
        Value unbiased = squeezeDims(variance, dims);
        if (count.isInt()) {
            const double n = static_cast<double>(count.value());
            unbiased = unbiased * (n / (n - 1));
        } else {
            unbiased = d.call("aten.div.Scalar",
                              {d.call("aten.mul.Scalar", {unbiased, Argument(count)}), Argument(count - SymInt(1))});
        }
        const Value shareOfVar = unbiased * momentum;
        newVar = shareOfVar + d.in("running_var") * (1 - momentum);
    }
    Value y = affine(d, normalised, input.rank() - 1);
    if (input.type().device.type == DeviceType::Cpu) {
        saveMean = convert(saveMean, input.dtype());
        saveRstd = convert(saveRstd, input.dtype());
    }
    y = convert(y, input.dtype());
    if (!running) return {y, saveMean, saveRstd};
    return {y, saveMean, saveRstd, newMean, newVar};
}
Result<ValueType> inferNoTraining(const InferContext& c) {
    CT_TRY(const TensorType input, checkedBatchNormInput(c));
    const bool cpu = input.device.type == DeviceType::Cpu;
    const TensorType saved =
        TensorType::contiguous(statisticsType(input), {cpu ? SymInt(0) : input.sizes[1]}, input.device);
    return ValueType(TupleType{batchNormType(input), saved, saved});
}
Result<ValueType> inferTraining(const InferContext& c, bool running) {
    CT_TRY(const TensorType input, checkedBatchNormInput(c));
    if (running && c.flag("training") && input.sizes[1] == SymInt(0))
        return c.fail("the input " + input.text() + " has no channels");
    const bool empty = !c.flag("training") && input.device.type == DeviceType::Cpu;
    const TensorType saved =
        TensorType::contiguous(statisticsType(input), {empty ? SymInt(0) : input.sizes[1]}, input.device);
    TupleType types = {batchNormType(input), saved, saved};
    if (running)
        for (const char* param : {"running_mean", "running_var"}) {
            CT_TRY(const TensorType one, c.tensor(param));
            types.push_back(TensorType::contiguous(promote(one.dtype, opmathType(input.dtype)), one.sizes, one.device));
        }
    return ValueType(std::move(types));
}
Values decomposeBatchNorm(Decomposition& d) {
    const bool running = d.has("running_mean") && d.has("running_var");
    const Argument input = d.arg(0), weight = d.arg(1), bias = d.arg(2), momentum = d.arg("momentum"),
                   eps = d.arg("eps");
    if (!d.flag("training")) {
        if (!running) {
            d.builder().fail(d.fail("evaluation needs running_mean and running_var"));
            return Value();
        }
        return d.call("aten._native_batch_norm_legit_no_training.default",
                      {input, weight, bias, d.arg("running_mean"), d.arg("running_var"), momentum, eps})[0];
    }
    if (!running)
        return d.call("aten._native_batch_norm_legit.no_stats", {input, weight, bias, true, momentum, eps})[0];
    const Value all = d.call("aten._native_batch_norm_legit_functional.default",
                             {input, weight, bias, d.arg("running_mean"), d.arg("running_var"), true, momentum, eps});
    const Value y = all[0];
    d.call("aten.copy_.default", {d.in("running_mean"), all[3]});
    d.call("aten.copy_.default", {d.in("running_var"), all[4]});
    return y;
}

/// Gradients of input, weight and bias by the backward op, which skips what nobody asks for.
void takeGradients(Derivation& d, const Value& all, std::initializer_list<size_t> positions) {
    int64_t result = 0;
    for (size_t position : positions) {
        if (d.needs(position)) d.input(position) = all[result];
        ++result;
    }
}
Argument neededMask(const Derivation& d, std::initializer_list<size_t> positions) {
    std::vector<Argument> mask;
    for (size_t position : positions) mask.emplace_back(d.needs(position));
    return Argument(std::move(mask));
}
void deriveLayerNorm(Derivation& d) {
    const Value all = d.call("aten.native_layer_norm_backward.default", {d.dy(), d.arg(0), d.arg(1), d.out(1), d.out(2),
                                                                         d.arg(2), d.arg(3), neededMask(d, {0, 2, 3})});
    takeGradients(d, all, {0, 2, 3});
}
void deriveBatchNorm(Derivation& d, bool running, bool train) {
    const Argument mean = running ? d.arg("running_mean") : Argument(),
                   variance = running ? d.arg("running_var") : Argument();
    const Value all =
        d.call("aten.native_batch_norm_backward.default", {d.dy(), d.arg(0), d.arg(1), mean, variance, d.out(1),
                                                           d.out(2), train, d.arg("eps"), neededMask(d, {0, 1, 2})});
    takeGradients(d, all, {0, 1, 2});
}

constexpr OpDef kNormOps[] = {
    {.schema =
         "aten.layer_norm.default(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.native_layer_norm.default",
                       {d.arg(0), d.arg(1), valueOrNone(d, "weight"), valueOrNone(d, "bias"), d.arg("eps")})[0];
     },
     .samples = "f32[2, 3, 4], [4], f32[4], f32[4]\nf32[2, 3, 4], [3, 4]\nbf16[2, 4], [4], bf16[4], bf16[4], 1e-3"},
    // (x - mean) / sqrt(var + eps), scaled and shifted; also returns the mean and the reciprocal deviation.
    {.schema =
         "aten.native_layer_norm.default(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferNativeLayerNorm,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNativeLayerNorm,
     .derive = deriveLayerNorm,
     .samples =
         "f32[2, 3, 4], [4], f32[4], f32[4], 1e-5\nf32[2, 3, 4], [3, 4], None, None, 1e-5\nf64[2, 4], [4], f64[4], None, 1e-5\nbf16[2, 4], [4], bf16[4], bf16[4], 1e-5\nf32[3, 4][1, 3], [4], f32[4], f32[4], 1e-5"},
    {.schema =
         "aten.batch_norm.default(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeBatchNorm,
     .samples =
         "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, False, 0.1, 1e-5, True\nf32[2, 3, 4, 4], None, None, None, None, True, 0.1, 1e-5, True\nbf16[2, 3], bf16[3], bf16[3], bf16[3], bf16[3]>0, False, 0.1, 1e-5, True"},
    // Normalises with the running statistics.
    {.schema =
         "aten._native_batch_norm_legit_no_training.default(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .infer = inferNoTraining,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNoTraining,
     .derive = [](Derivation& d) { deriveBatchNorm(d, true, false); },
     .samples =
         "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, 0.1, 1e-5\nf32[2, 3, 4, 4][48, 1, 12, 3], f32[3], f32[3], f32[3], f32[3]>0, 0.1, 1e-5\nf64[4, 3], None, None, f64[3], f64[3]>0, 0.1, 1e-5"},
    // Normalises with the batch's statistics and returns moved running ones (variance over n - 1).
    {.schema =
         "aten._native_batch_norm_legit_functional.default(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
     .tags = Tag::Reduction,
     .infer = [](const InferContext& c) { return inferTraining(c, true); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose =
         [](Decomposition& d) { return d.flag("training") ? decomposeTraining(d, true) : decomposeEvaluation(d); },
     .derive = [](Derivation& d) { deriveBatchNorm(d, true, d.flag("training")); },
     .samples =
         "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, True, 0.1, 1e-5\nf32[4, 3], None, None, f32[3], f32[3]>0, True, 0.3, 1e-5"},
    {.schema =
         "aten._native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = [](const InferContext& c) { return inferTraining(c, false); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeTraining(d, false); },
     .derive = [](Derivation& d) { deriveBatchNorm(d, false, d.flag("training")); },
     .samples = "f32[2, 3, 4, 4], f32[3], f32[3], True, 0.1, 1e-5\nf64[2, 3, 5], None, None, True, 0.1, 1e-5"},
};

}  // namespace

std::span<const OpDef> normOps() { return kNormOps; }

}  // namespace cutaway
