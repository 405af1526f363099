// Normalisation over groups of channels, and over each sample's channels by themselves.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/window_rules.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// N, C, H*W and the number of groups of a native call.
struct Groups {
    SymInt samples, channels, plane;
    int64_t groups = 1, perGroup = 1;
};
Result<Groups> readGroups(const InferContext& c, const TensorType& x) {
    Groups g;
    CT_TRY(g.samples, c.size("N"));
    CT_TRY(g.channels, c.size("C"));
    CT_TRY(g.plane, c.size("HxW"));
    CT_TRY(g.groups, c.integer("group"));
    if (!isFloating(x.dtype))
        return c.fail("needs a floating-point input, not " + std::string(info(x.dtype).torchName));
    if (x.rank() < 2) return c.fail("needs an input of at least 2 dims, not " + x.text());
    if (!g.channels.isInt() || g.groups < 1 || g.channels.value() % g.groups != 0)
        return c.fail(g.channels.text() + " channels do not divide into " + std::to_string(g.groups) + " groups");
    const SymInt elements = numel(x.sizes), counted = g.samples * g.channels * g.plane;
    if (differ(elements, counted))
        return c.fail("N, C and HxW stand for " + counted.text() + " elements, the input " + x.text() + " has " +
                      elements.text());
    if (!(x.sizes[1] == g.channels))
        return c.fail("the input " + x.text() + " does not have " + g.channels.text() + " channels");
    for (const char* param : {"weight", "bias"}) {
        if (c.op().schema()->find(param) < 0 || !c.has(param)) continue;
        CT_TRY(const TensorType one, c.tensor(param));
        if (one.rank() != 1 || !(one.sizes[0] == g.channels))
            return c.fail(std::string(param) + " " + one.text() + " does not have one element per channel");
    }
    g.perGroup = g.channels.value() / g.groups;
    return g;
}
/// Fresh like x, channels last if x is.
TensorType likeInput(const TensorType& x) {
    TensorType type = TensorType::contiguous(x.dtype, x.sizes, x.device);
    type.strides = pooledStrides(x, x.sizes);
    return type;
}
Result<ValueType> inferNative(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor(size_t{0}));
    CT_TRY(const Groups g, readGroups(c, x));
    const DType dtype = x.device.type == DeviceType::Cpu ? x.dtype : opmathType(x.dtype);
    const TensorType statistics = TensorType::contiguous(dtype, {g.samples, SymInt(g.groups)}, x.device);
    return ValueType(TupleType{likeInput(x), statistics, statistics});
}
Value alongChannels(Value x, int64_t rank, bool batch) {
    if (batch) x = unsqueeze(x, 0);
    for (int64_t i = 2; i < rank; ++i) x = unsqueeze(x, i);
    return x;
}
/// On the CPU with a weight, scale and shift are folded with the statistics first, so that the input is read once.
Values decomposeNative(Decomposition& d) {
    const Value input = d.in(size_t{0});
    const Value x = toOpmath(input);
    const Groups g = *readGroups(d, input.type());
    const Value grouped = reshape(x, {g.samples, g.groups, g.perGroup, g.plane});
    const Value moments =
        d.call("aten.var_mean.correction", {grouped, Argument(Dims{2, 3})}, {{"correction", 0}, {"keepdim", true}});
    const Value variance = moments[0], mean = moments[1];
    const Value rstd = unary("aten.rsqrt.default", variance + d.real("eps"));
    Value y;
    if (input.type().device.type == DeviceType::Cpu && d.has("weight")) {
        const SymDims perChannel = {1, g.groups, g.perGroup, 1}, flat = {g.samples, g.channels},
                      strides = {g.channels, 1};
        Value scale = rstd * view(d.in("weight"), perChannel);
        Value shift = -mean * scale;
        if (d.has("bias")) shift = shift + view(d.in("bias"), perChannel);
        scale = d.call("aten.as_strided.default", {scale, Argument(flat), Argument(strides)});
        shift = d.call("aten.as_strided.default", {shift, Argument(flat), Argument(strides)});
        scale = alongChannels(scale, input.rank(), false);
        shift = alongChannels(shift, input.rank(), false);
        y = x * scale + shift;
    } else {
        y = view((grouped - mean) * rstd, input.sizes());
        if (d.has("weight")) y = y * alongChannels(d.in("weight"), input.rank(), true);
        if (d.has("bias")) y = y + alongChannels(d.in("bias"), input.rank(), true);
    }
    y = convert(y, input.dtype());
    const DType statistics = d.outType().tuple()->at(1).tensor()->dtype;
    const Value meanOut = convert(mean, statistics), rstdOut = convert(rstd, statistics);
    const Value flatMean = squeezeDims(meanOut, {2, 3});
    return {y, flatMean, squeezeDims(rstdOut, {2, 3})};
}
bool wantedGroupResult(const InferContext& c, size_t result) {
    const auto* mask = c.arg("output_mask").list();
    return mask && result < mask->size() && (*mask)[result].asInt().value_or(0) != 0;
}
Result<ValueType> inferNativeBackward(const InferContext& c) {
    CT_TRY(const TensorType x, c.tensor("input"));
    CT_TRY(const TensorType gradient, c.tensor("grad_out"));
    CT_TRY(const Groups g, readGroups(c, x));
    if (promote(gradient.dtype, x.dtype) != x.dtype)
        return c.fail("the gradient " + gradient.text() + " does not fit the dtype of " + x.text());
    const TensorType parameter = TensorType::contiguous(x.dtype, {g.channels}, x.device);
    TupleType types = {ValueType(likeInput(x)), ValueType(parameter), ValueType(parameter)};
    for (size_t i = 0; i < 3; ++i)
        if (!wantedGroupResult(c, i)) types[i] = ValueType();
    return ValueType(std::move(types));
}
Values decomposeNativeBackward(Decomposition& d) {
    const Groups n = *readGroups(d, d.in("input").type());
    const DType dtype = d.in("input").dtype();
    const Value g = opmathIn(d, 0), x = opmathIn(d, 1), mean = opmathIn(d, 2), rstd = opmathIn(d, 3);
    const Value weight = d.has("weight") ? toOpmath(d.in("weight")) : Value();
    const SymDims planes = {n.samples, n.channels, n.plane}, channels = {n.samples, n.groups, n.perGroup},
                  whole = {n.samples, n.groups, n.perGroup, n.plane};
    const Value ds = sum(reshape(g * x, planes), {2}, false);
    const Value db = sum(reshape(g, planes), {2}, false);
    std::vector<Value> results(3);
    if (wantedGroupResult(d, 0)) {
        const SymInt each = n.plane * n.perGroup;
        auto perGroup = [&](Value v) {
            if (weight) v = v * unsqueeze(weight, 0);
            return sum(view(v, channels), {2}, false);
        };
        const Value dsGroup = perGroup(ds), dbGroup = perGroup(db);
        const Value wide = unsqueeze(rstd, -1);
        const SymDims one = {1, n.groups, n.perGroup};
        Value c1 =
            wide * (weight ? view(weight, one) : full(d.builder(), one, int64_t{1}, rstd.dtype(), rstd.type().device));
        const Value terms = has(d.release(), ReleaseChange::GroupNormTerms)
                                ? d.call("aten.addcmul.default", {-dsGroup, dbGroup, mean})
                                : dbGroup * mean - dsGroup;
        Value c2 = scaledByCount(terms * rstd * rstd * rstd, 1, each);
        const Value negative = -c2 * mean;
        Value c3 = negative - scaledByCount(dbGroup * rstd, 1, each);
        c1 = unsqueeze(c1, -1);
        c2 = unsqueeze(unsqueeze(c2, -1), -1);
        c3 = unsqueeze(unsqueeze(c3, -1), -1);
        const Value fromGradient = reshape(g, whole) * c1;
        const Value fromInput = reshape(x, whole) * c2;
        results[0] = reshape(fromGradient + fromInput + c3, x.sizes());
    }
    if (wantedGroupResult(d, 1)) {
        const Value dsGroup = view(ds, channels), dbGroup = view(db, channels);
        const Value centred = dsGroup - dbGroup * unsqueeze(mean, -1);
        results[1] = view(sum(centred * unsqueeze(rstd, -1), {0}, false), {n.channels});
    }
    if (wantedGroupResult(d, 2)) results[2] = sum(db, {0}, false);
    for (Value& result : results)
        if (result) result = convert(result, dtype);
    return results;
}

/// Gradients of the statistics pulled back to the input: d mean/dx is 1/n, d rstd/dx is -rstd^3 (x - mean)/n.
Value throughStatistics(Derivation& d) {
    const Groups g = *readGroups(d, d.in(0).type());
    const SymDims whole = {g.samples, g.groups, g.perGroup, g.plane}, one = {g.samples, g.groups, 1, 1};
    const Value mean = view(toOpmath(d.out(1)), one), rstd = view(toOpmath(d.out(2)), one);
    const Argument count(SymInt(g.perGroup) * g.plane);
    Value total;
    if (d.dy(1)) total = d.call("aten.div.Tensor", {expand(view(toOpmath(d.dy(1)), one), whole), count});
    if (d.dy(2)) {
        const Value slope = view(toOpmath(d.dy(2)), one) * -(rstd * rstd * rstd);
        const Value term = d.call("aten.div.Tensor", {(reshape(toOpmath(d.in(0)), whole) - mean) * slope, count});
        total = total ? total + term : term;
    }
    return convert(reshape(total, d.in(0).sizes()), d.in(0).dtype());
}
/// The layout that the kernel of the backward takes: on the CPU that of the operand.
Value inFormat(Derivation& d, const Value& x, bool channelsLast) {
    if (channelsLast ? isChannelsLast(x.type()) : x.type().isContiguous()) return x;
    return d.call("aten.clone.default", {x},
                  {{"memory_format", channelsLast ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous}});
}
void deriveNative(Derivation& d) {
    if (d.dy(0)) {
        const std::vector<Argument> mask = {Argument(d.needs(0)), Argument(d.needs(1)), Argument(d.needs(2))};
        const TensorType& input = d.in(0).type();
        const bool channelsLast = input.device.type == DeviceType::Cpu && input.rank() == 4 && isChannelsLast(input);
        const Value gradient = inFormat(d, d.dy(), channelsLast), x = inFormat(d, d.in(0), channelsLast);
        const Value all = d.call("aten.native_group_norm_backward.default",
                                 {gradient, x, d.out(1), d.out(2), d.arg(1), d.arg("N"), d.arg("C"), d.arg("HxW"),
                                  d.arg("group"), Argument(mask)});
        for (size_t i = 0; i < 3; ++i)
            if (d.needs(i)) d.input(i) = all[static_cast<int64_t>(i)];
    }
    if (!d.needs(0) || (!d.dy(1) && !d.dy(2))) return;
    const Value further = throughStatistics(d);
    d.input(0) = d.input(0) ? d.input(0) + further : further;
}

Values decomposeGroupNorm(Decomposition& d) {
    const Value x = d.in("input");
    const auto groups = d.integer("num_groups");
    if (!groups || *groups < 1 || x.rank() < 2) {
        d.builder().fail(!groups ? groups.error() : d.fail("needs an input of at least 2 dims and at least one group"));
        return Value();
    }
    SymInt plane = 1;
    for (int64_t i = 2; i < x.rank(); ++i) plane = plane * x.size(i);
    return d.call("aten.native_group_norm.default", {x, d.arg("weight"), d.arg("bias"), Argument(x.size(0)),
                                                     Argument(x.size(1)), Argument(plane), *groups, d.arg("eps")})[0];
}
/// A batch norm over a batch of one with N*C channels; moved statistics are averaged over the samples.
Values decomposeInstanceNorm(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (x.rank() < 2) {
        d.builder().fail(d.fail("needs an input of at least 2 dims"));
        return Value();
    }
    const SymInt samples = x.size(0), channels = x.size(1);
    auto repeated = [&](const char* param) {
        return d.has(param) ? d.call("aten.repeat.default", {d.arg(param), Argument(SymDims{samples})}) : Value();
    };
    auto argument = [](const Value& value) { return value ? Argument(value) : Argument(); };
    const Value weight = repeated("weight"), bias = repeated("bias"), mean = repeated("running_mean"),
                variance = repeated("running_var");
    SymDims sizes = {1, samples * channels};
    sizes.insert(sizes.end(), x.sizes().begin() + 2, x.sizes().end());
    const Value y = d.call("aten.batch_norm.default",
                           {reshape(x, sizes), argument(weight), argument(bias), argument(mean), argument(variance),
                            d.arg("use_input_stats"), d.arg("momentum"), d.arg("eps"), d.arg("cudnn_enabled")});
    if (d.flag("use_input_stats"))
        for (const auto& [moved, param] : {std::pair{mean, "running_mean"}, std::pair{variance, "running_var"}})
            if (moved)
                d.call("aten.copy_.default",
                       {d.arg(param), d.call("aten.mean.dim", {view(moved, {samples, channels}), Argument(Dims{0})})});
    return view(y, x.sizes());
}

constexpr OpDef kGroupNormOps[] = {
    {.schema =
         "aten.group_norm.default(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeGroupNorm,
     .samples =
         "f32[2, 6, 3, 4], 3, f32[6], f32[6]\nf32[2, 6, 3], 2\nbf16[2, 4], 2, bf16[4], bf16[4]\nf32[1, 4, 2, 2, 2], 4, f32[4], None, 1e-3"},
    // (x - mean) / sqrt(var + eps) within each sample and group, scaled and shifted per channel; also mean and
    // 1/deviation.
    {.schema =
         "aten.native_group_norm.default(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferNative,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNative,
     .derive = deriveNative,
     .samples =
         "f32[2, 6, 3, 4], f32[6], f32[6], 2, 6, 12, 3, 1e-5\nf32[2, 6, 3, 4], None, None, 2, 6, 12, 2, 1e-5\nf64[2, 4, 5], f64[4], None, 2, 4, 5, 4, 1e-5\nf32[2, 4, 3], None, f32[4], 2, 4, 3, 2, 1e-5\nbf16[2, 4, 2, 2], bf16[4], bf16[4], 2, 4, 4, 2, 1e-5\nf32[2, 6, 3, 4][72, 1, 24, 6], f32[6], f32[6], 2, 6, 12, 3, 1e-5\nf64[3, 4], f64[4], f64[4], 3, 4, 1, 2, 1e-3"},
    {.schema =
         "aten.native_group_norm_backward.default(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferNativeBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeNativeBackward,
     .samples =
         "f32[2, 6, 3, 4], f32[2, 6, 3, 4], f32[2, 3], f32[2, 3]>0, f32[6], 2, 6, 12, 3, [True, True, True]\nf32[2, 6, 3, 4], f32[2, 6, 3, 4], f32[2, 2], f32[2, 2]>0, None, 2, 6, 12, 2, [True, False, False]\nf64[2, 4, 5], f64[2, 4, 5], f64[2, 4], f64[2, 4]>0, f64[4], 2, 4, 5, 4, [True, True, True]"},
    {.schema =
         "aten.instance_norm.default(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeInstanceNorm,
     .samples =
         "f32[2, 3, 4, 4], f32[3], f32[3], None, None, True, 0.1, 1e-5, True\nf32[2, 3, 5], None, None, None, None, True, 0.1, 1e-5, False\nf32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, False, 0.1, 1e-5, True"},
};

}  // namespace

std::span<const OpDef> groupNormOps() { return kGroupNormOps; }

}  // namespace cutaway
