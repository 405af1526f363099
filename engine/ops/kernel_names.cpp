// Names of ATen's kernels and of copies of views, which logs and decomposed graphs hold where a program calls the
// public operator. All are written with the operators of other files.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Values first(Decomposition& d) { return unary("aten.alias.default", d.in(size_t{0})); }
template <DType dtype>
Values castTo(Decomposition& d) {
    const Value x = d.in(size_t{0});
    return x.dtype() == dtype ? unary("aten.alias.default", x) : convert(x, dtype);
}
/// In memory of its own, row by row.
Value dense(const Value& x) {
    return x.builder().call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
}
Values conjugateCopied(Decomposition& d) {
    const Value x = d.in(size_t{0});
    if (!isComplex(x.dtype())) return refuse(d, "needs complex numbers, not " + x.type().text());
    return dense(unary("aten.conj_physical.default", x));
}
Values reshapeCopied(Decomposition& d) {
    const auto sizes = read(d, d.sizes("size"));
    if (!sizes) return Value(d.builder(), nullptr);
    return unary("aten.clone.default", d.call("aten.reshape.default", {d.in(size_t{0}), Argument(*sizes)}));
}
Values smallestAndLargest(Decomposition& d) {
    const bool along = d.op().schema()->find("dim") >= 0;
    const NamedArguments options =
        along ? NamedArguments{{"dim", d.arg("dim")}, {"keepdim", d.arg("keepdim")}} : NamedArguments();
    const Value both = d.builder().call("aten.aminmax.default", {d.in(size_t{0})}, options);
    return {both[0], both[1]};
}
Values ofTruths(Decomposition& d, std::string_view op) {
    if (d.in(size_t{0}).dtype() != DType::Bool) return refuse(d, "needs a tensor of bool");
    return unary(op, d.in(size_t{0}));
}
Values sizesAsTensor(Decomposition& d) {
    std::vector<Argument> sizes;
    for (const SymInt& size : d.in(size_t{0}).sizes())
        sizes.emplace_back(d.builder().call("aten.scalar_tensor.default", {Argument(size)}, {{"dtype", DType::I64}}));
    if (sizes.empty()) return full(d.builder(), {0}, Scalar(int64_t{0}), DType::I64, Device{});
    return d.call("aten.stack.default", {Argument(sizes)});
}
Values rangeOfDim(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto dim = read(d, d.dim("dim", x.rank()));
    return dim ? iota(d.builder(), x.size(*dim), x.type().device) : Value(d.builder(), nullptr);
}
/// From start to end, which is the last element where a step meets it.
Values rangeWithEnd(Decomposition& d) {
    const double start = d.real("start"), end = d.real("end"),
                 step = d.op().schema()->find("step") >= 0 ? d.real("step", 1) : 1.0;
    if (step == 0 || (end - start) / step < 0) return refuse(d, "the step does not lead from start to end");
    const auto count = static_cast<int64_t>((end - start) / step) + 1;
    const DType dtype = d.dtype("dtype").value_or(DType::F32);
    const Value at = convert(iota(d.builder(), SymInt(count), d.device("device").value_or(Device())), DType::F64);
    return convert(at * step + start, dtype);
}

// -- norms

/// Over all dims but one, which keep the size 1; of all elements for dim -1.
Values normExceptDim(Decomposition& d) {
    const Value v = d.in(size_t{0});
    int64_t given = d.integerOr("dim", 0);
    if (given < -1) given += v.rank();
    std::vector<int64_t> dims;
    for (int64_t dim = 0; dim < v.rank(); ++dim)
        if (given == -1 || dim != given) dims.push_back(dim);
    if (given < -1 || given >= v.rank()) return refuse(d, "has no dim " + std::to_string(given));
    return d.call("aten.linalg_vector_norm.default", {v, d.arg("pow"), Argument(dims), given != -1});
}
Values nativeNorm(Decomposition& d) {
    const bool along = d.op().schema()->find("dim") >= 0;
    const Argument order = d.arg("p").isNone() ? Argument(2.0) : d.arg("p");
    if (!along) return d.call("aten.linalg_vector_norm.default", {d.in(size_t{0}), order});
    return d.builder().call("aten.linalg_vector_norm.default", {d.in(size_t{0}), order, d.arg("dim"), d.arg("keepdim")},
                            {{"dtype", d.arg("dtype")}});
}
Values normalStatistics(Decomposition& d) {
    const Value x = d.in(size_t{0});
    std::vector<int64_t> dims;
    for (int64_t dim = 0; dim < x.rank(); ++dim)
        if (dim != 1) dims.push_back(dim);
    if (x.rank() < 2) return refuse(d, "needs channels, not " + x.type().text());
    const Value both = d.builder().call("aten.var_mean.correction",
                                        {convert(x, x.dtype() == DType::F64 ? DType::F64 : DType::F32), Argument(dims)},
                                        {{"correction", 0}});
    return {both[1], unary("aten.rsqrt.default", both[0] + d.real("eps"))};
}
Values normalized(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto byChannel = [&](Value v) {
        for (int64_t dim = 2; dim < x.rank(); ++dim) v = unsqueeze(v, -1);
        return v;
    };
    Value y = (x - byChannel(d.in("mean"))) * byChannel(d.in("invstd"));
    if (d.has("weight")) y = y * byChannel(d.in("weight"));
    if (d.has("bias")) y = y + byChannel(d.in("bias"));
    return convert(y, x.dtype());
}

// -- convolutions

Values convolvedByMode(Decomposition& d) {
    const Value weight = d.in("weight");
    static constexpr std::string_view kOps[] = {"aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding"};
    if (weight.rank() < 3 || weight.rank() > 5) return refuse(d, "needs a weight of 3 to 5 dims");
    return d.call(kOps[weight.rank() - 3], {d.in("input"), weight, d.arg("bias"), d.arg("stride"), d.arg("padding"),
                                            d.arg("dilation"), d.arg("groups")});
}
/// A weight for each channel.
Values convolvedByChannel(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const std::vector<int64_t> none(x.rank() > 2 ? static_cast<size_t>(x.rank() - 2) : 1, 0);
    if (x.rank() < 3) return refuse(d, "needs channels, not " + x.type().text());
    return d.call("aten.convolution.default", {x, d.in(1), d.arg("bias"), d.arg("stride"), d.arg("padding"),
                                               d.arg("dilation"), false, Argument(none), Argument(x.size(1))});
}

// -- gradients

Values traceBackward(Decomposition& d) {
    const Value gradient = d.in(size_t{0});
    const auto sizes = read(d, d.sizes("sizes"));
    if (!sizes) return Value(d.builder(), nullptr);
    if (sizes->size() != 2) return refuse(d, "needs the sizes of a matrix");
    const Device device = gradient.type().device;
    const Value row = unsqueeze(iota(d.builder(), (*sizes)[0], device), 1),
                column = iota(d.builder(), (*sizes)[1], device);
    return where(d.call("aten.eq.Tensor", {row, column}), gradient,
                 full(d.builder(), {}, Scalar(0.0), gradient.dtype(), device));
}
Values embeddingBackward(Decomposition& d) {
    if (d.flag("sparse")) return refuse(d, "has no sparse gradients here; use sparse=False");
    return d.call("aten.embedding_dense_backward.default",
                  {d.in(size_t{0}), d.in(1), d.arg("num_weights"), d.arg("padding_idx"), d.arg("scale_grad_by_freq")});
}
Values rreluBackward(Decomposition& d) {
    const double lower = d.real("lower"), upper = d.real("upper");
    if (d.flag("training") && upper - lower > 1e-6) return d.in(size_t{0}) * d.in("noise");
    return d.call("aten.leaky_relu_backward.default",
                  {d.in(size_t{0}), d.in(1), (lower + upper) / 2, d.arg("self_is_result")});
}
/// Scores as rows, also of a single example.
Value scoreRows(const Value& x) { return x.rank() == 1 ? unsqueeze(x, 0) : x; }
Value marginShare(Decomposition& d, const Value& scores) {
    const bool mean = d.integerOr("reduction", 1) == 1;
    const Value share =
        scaledByCount(d.in("grad_output"), 1.0, mean ? scores.size(0) * scores.size(1) : scores.size(1));
    return share.rank() == 1 ? unsqueeze(share, -1) : share;
}
Values multiMarginBackward(Decomposition& d) {
    const Value x = d.in("self");
    const Value scores = scoreRows(x), target = reshape(d.in("target"), {scores.size(0), 1});
    if (scores.rank() != 2) return refuse(d, "needs scores of one or two dims, not " + x.type().text());
    if (d.in("grad_output").dtype() != x.dtype()) return refuse(d, "needs a gradient of the scores' dtype");
    const double margin = d.real("margin", 1), p = d.real("p", 1);
    const Value value = d.call("aten.gather.default", {scores, int64_t{1}, target});
    const Value z = scores - value + margin;
    const Value other = d.call("aten.ne.Tensor", {iota(d.builder(), scores.size(1), x.type().device), target});
    const Value counts = d.call("aten.bitwise_and.Tensor", {other, compareScalar("gt", z, 0.0)});
    Value slope = where(counts, p == 1 ? unary("aten.ones_like.default", z) : z * 2.0,
                        full(d.builder(), {}, Scalar(0.0), x.dtype(), x.type().device));
    if (d.has("weight"))
        slope = slope * d.call("aten.index.Tensor", {d.in("weight"), Argument(std::vector<Argument>{target})});
    slope = slope * marginShare(d, scores);
    const Value back = d.call("aten.scatter_add.default", {slope, int64_t{1}, target, -sum(slope, {1}, true)});
    return reshape(back, x.sizes());
}
Values multilabelMarginBackward(Decomposition& d) {
    const Value x = d.in("self");
    const Value scores = scoreRows(x), target = reshape(d.in("target"), scores.sizes());
    if (scores.rank() != 2) return refuse(d, "needs scores of one or two dims, not " + x.type().text());
    if (d.in("grad_output").dtype() != x.dtype()) return refuse(d, "needs a gradient of the scores' dtype");
    if (scores.size(1) == SymInt(0)) return refuse(d, "needs classes");
    const Value isTarget = reshape(d.in("is_target"), scores.sizes());
    // Labels end at the first that is negative.
    const Value ended =
        d.call("aten.cumsum.default", {convert(compareScalar("lt", target, int64_t{0}), DType::I64), int64_t{1}});
    const Value listed = compareScalar("eq", ended, int64_t{0});
    const Value label = d.call("aten.clamp_min.default", {target, int64_t{0}});
    const Value value = d.call("aten.gather.default", {scores, int64_t{1}, label});
    const Value z = unsqueeze(scores, 1) - unsqueeze(value, 2) + 1.0;  // [examples, labels, classes]
    const Value open = compareScalar("eq", unsqueeze(isTarget, 1), 0.0);
    const Value counts =
        d.call("aten.bitwise_and.Tensor",
               {d.call("aten.bitwise_and.Tensor", {open, unsqueeze(listed, 2)}), compareScalar("gt", z, 0.0)});
    const Value slope = convert(counts, x.dtype());
    const Value up = sum(slope, {1}, false);
    const Value both = d.call("aten.scatter_add.default", {up, int64_t{1}, label, -sum(slope, {2}, false)});
    return reshape(both * marginShare(d, scores), x.sizes());
}

#define CT_CAST(name, dtype)                                                                                        \
    shorthand("aten._cast_" #name ".default(Tensor self, bool non_blocking=False) -> Tensor", castTo<DType::dtype>, \
              "f32[2, 3]\ni64[4]")

constexpr OpDef kKernelNamesOps[] = {
    CT_CAST(Byte, U8),
    CT_CAST(Char, I8),
    CT_CAST(Double, F64),
    CT_CAST(Float, F32),
    CT_CAST(Half, F16),
    CT_CAST(Int, I32),
    CT_CAST(Long, I64),
    CT_CAST(Short, I16),
    shorthand("aten._conj_copy.default(Tensor self) -> Tensor", conjugateCopied, "c64[2, 3]"),
    shorthand(
        "aten._neg_view_copy.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return dense(-d.in(size_t{0})); }, "f32[2, 3]"),
    shorthand("aten.lift.default(Tensor self) -> Tensor", first, "f32[2, 3]"),
    shorthand("aten.lift_fresh.default(Tensor self) -> Tensor", first, "f32[2, 3]"),
    shorthand("aten._lazy_clone.default(Tensor self) -> Tensor", first, "f32[2, 3]"),
    shorthand("aten._reshape_copy.default(Tensor self, SymInt[] size) -> Tensor", reshapeCopied, "f32[2, 6], [3, -1]"),
    shorthand("aten._aminmax.default(Tensor self) -> (Tensor, Tensor)", smallestAndLargest, "f32[2, 3]"),
    shorthand("aten._aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", smallestAndLargest,
              "f32[2, 3], 1\nf64[2, 3], 0, True"),
    shorthand(
        "aten._is_all_true.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return ofTruths(d, "aten.all.default"); }, "b8[2, 3]"),
    shorthand(
        "aten._is_any_true.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return ofTruths(d, "aten.any.default"); }, "b8[2, 3]"),
    shorthand("aten._shape_as_tensor.default(Tensor self) -> Tensor", sizesAsTensor, "f32[2, 3]"),
    shorthand("aten._dim_arange.default(Tensor like, int dim) -> Tensor", rangeOfDim, "f32[2, 3], 1"),
    shorthand(
        "aten.range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        rangeWithEnd, "0, 5, 2\n1.5, 4.0, 0.5"),
    shorthand(
        "aten.range.default(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        rangeWithEnd, "0, 5"),
    shorthand("aten.norm_except_dim.default(Tensor v, int pow=2, int dim=0) -> Tensor", normExceptDim,
              "f32[3, 4]\nf64[2, 3, 4], 2, 1\nf32[3, 4], 1, -1"),
    shorthand("aten.native_norm.default(Tensor self, Scalar p=2) -> Tensor", nativeNorm, "f32[2, 3]"),
    shorthand(
        "aten.native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, ScalarType? dtype) -> Tensor",
        nativeNorm, "f32[2, 3], 1, [1], True, None"),
    shorthand("aten.batch_norm_stats.default(Tensor input, float eps) -> (Tensor, Tensor)", normalStatistics,
              "f32[2, 3, 4], 1e-5"),
    shorthand(
        "aten.batch_norm_elemt.default(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) -> Tensor",
        normalized, "f32[2, 3, 4], f32[3], f32[3], f32[3], f32[3], 1e-5\nf32[2, 3], None, None, f32[3], f32[3], 1e-5"),
    shorthand(
        "aten._convolution_mode.default(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor",
        convolvedByMode,
        "f32[1, 2, 6], f32[3, 2, 3], f32[3], [1], 'same', [1], 1\nf32[1, 2, 6, 5], f32[4, 1, 3, 3], None, [2, 2], 'valid', [1, 1], 2",
        Tag::Heavy),
    shorthand(
        "aten._conv_depthwise2d.default(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation) -> Tensor",
        convolvedByChannel, "f32[1, 2, 6, 5], f32[4, 1, 3, 3], [3, 3], f32[4], [1, 1], [1, 1], [1, 1]", Tag::Heavy),
    shorthand(
        "aten.conv_depthwise3d.default(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding, SymInt[3] dilation) -> Tensor",
        convolvedByChannel, "f32[1, 2, 4, 4, 3], f32[2, 1, 3, 3, 1], [3, 3, 1], None, [1, 1, 1], [1, 1, 0], [1, 1, 1]",
        Tag::Heavy),
    shorthand(
        "aten._linalg_eigvals.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values { return unary("aten.linalg_eigvals.default", d.in(size_t{0})); }, "f64[3, 3]"),
    shorthand(
        "aten._logcumsumexp.default(Tensor self, int dim) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.logcumsumexp.default", {d.in(size_t{0}), d.arg("dim")});
        },
        "f32[2, 3], 1"),
    shorthand(
        "aten._cholesky_solve_helper.default(Tensor self, Tensor A, bool upper) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.cholesky_solve.default", {d.in(size_t{0}), d.in(1), d.arg("upper")});
        },
        "f64[3, 2], f64[3, 3]>0, False"),
    shorthand(
        "aten._masked_scale.default(Tensor self, Tensor mask, float scale) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.in(size_t{0}) * convert(d.in(1), d.in(size_t{0}).dtype()) * d.real("scale");
        },
        "f32[2, 3], u8[2, 3]<2, 2.0"),
    shorthand("aten.trace_backward.default(Tensor grad, SymInt[] sizes) -> Tensor", traceBackward, "f32[], [3, 4]"),
    shorthand(
        "aten.embedding_backward.default(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
        embeddingBackward, "f32[2, 3, 4], i64[2, 3]<5, 5, -1, False, False"),
    shorthand(
        "aten.rrelu_with_noise_backward.default(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor",
        rreluBackward,
        "f32[2, 3], f32[2, 3], f32[2, 3], 0.125, 0.25, True, False\nf32[2, 3], f32[2, 3], f32[2, 3], 0.125, 0.25, False, False"),
    shorthand(
        "aten.multi_margin_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor",
        multiMarginBackward,
        "f32[], f32[3, 4], i64[3]<4, 1, 1\nf64[3], f64[3, 4], i64[3]<4, 2, 0.5, f64[4]>0, 0\nf32[], f32[4], i64[]<4, 1, 1, None, 2"),
    shorthand(
        "aten.multilabel_margin_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor",
        multilabelMarginBackward,
        "f32[], f32[3, 4], i64[3, 4]<4, 1, f32[3, 4]<2\nf64[3], f64[3, 4], i64[3, 4]<4, 0, f64[3, 4]<2"),
};
#undef CT_CAST

}  // namespace

std::span<const OpDef> kernelNamesOps() { return kKernelNamesOps; }

}  // namespace cutaway
