// The fused attention kernels of GPUs: types as PyTorch's kernels give them, values by the arithmetic that all share.
#include "engine/ops/attention_gpu.h"

#include "engine/ops/attention_rules.h"
#include "engine/ops/infer_rules.h"

namespace cutaway {

TensorType likeOperand(const TensorType& operand) {
    TensorType type = TensorType::contiguous(operand.dtype, operand.sizes, operand.device);
    type.strides = preservedStrides(operand);
    return type;
}
AttentionCall callOf(const EvalContext& c, std::string_view maskParam) {
    AttentionCall call{c.in("query"),       c.in("key"),
                       c.in("value"),       c.op().schema()->find(maskParam) < 0 ? Tensor() : c.optional(maskParam),
                       c.flag("is_causal"), {}};
    if (c.has("scale")) call.scale = c.real("scale");
    return call;
}
std::optional<Error> refuseDropout(const EvalContext& c) {
    if (c.real("dropout_p") == 0) return std::nullopt;
    return unsupported(c.op().name() + ": no reference kernel with dropout", {},
                       {"run with dropout_p=0, or use the math form of attention"});
}

EvalResult evalAttentionBackward(const EvalContext& c, std::string_view maskParam, std::string_view gradient,
                                 size_t results) {
    if (auto error = refuseDropout(c)) return *error;
    TensorList out(results);
    for (size_t i = 0; i < 3; ++i) out[i] = c.result(i);
    Tensor sums = c.in("logsumexp");
    const Tensor output = c.in("out");
    // The GPU kernels pad the sums to whole blocks of rows.
    if (sums.size(2) != output.size(2))
        sums = sums.view({sums.size(0), sums.size(1), output.size(2)}, sums.strides(), sums.offset());
    attendBackward(callOf(c, maskParam), c.in(gradient), output, sums, out[0], out[1], out[2]);
    return out;
}

namespace {

/// Row-major in the order in which `like` lies in memory, with these sizes.
TensorType orderedLike(const TensorType& like, const SymDims& sizes) {
    TensorType ordered = like;
    ordered.strides = preservedStrides(like);
    ordered.sizes = sizes;
    const Operand operand{ordered, false};
    TensorType type = TensorType::contiguous(like.dtype, sizes, like.device);
    type.strides = like.sizes == sizes ? ordered.strides : elementwiseStrides(sizes, std::span(&operand, 1));
    return type;
}
/// Types of the flash and cudnn kernels' results: their sums differ in rank, their bookkeeping in dtype.
Result<ValueType> inferGpuKernel(const InferContext& c, bool cudnn) {
    CT_TRY(const AttentionOperands o, readAttention(c));
    const SymDims& q = o.query.sizes;
    SymDims sums{q[0], q[1], q[2]};
    if (cudnn) sums.push_back(1);
    ValueType logarithms = TensorType::contiguous(DType::F32, sums, o.query.device);
    if (cudnn && !c.flag("compute_log_sumexp")) logarithms = ValueType();
    const SymType rows{DType::I64, q[2].expr()}, columns{DType::I64, o.key.sizes[2].expr()};
    const TensorType counter = TensorType::contiguous(cudnn ? DType::I64 : DType::U64, {}, o.query.device);
    TupleType types{orderedLike(o.query, {q[0], q[1], q[2], o.value.sizes[3]}),
                    logarithms,
                    ValueType(),
                    ValueType(),
                    rows,
                    columns};
    if (cudnn) {
        types.insert(types.end(), {ValueType(counter), ValueType(counter), ValueType()});
    } else {
        types.push_back(TensorType::contiguous(DType::U64, {SymInt(2)}, o.query.device));
        types.push_back(counter);
        types.push_back(TensorType::contiguous(o.query.dtype, {SymInt(0)}, o.query.device));
    }
    return ValueType(std::move(types));
}
EvalResult evalGpuKernel(const EvalContext& c, bool cudnn) {
    if (auto error = refuseDropout(c)) return *error;
    Tensor out = c.result(0);
    const Tensor query = c.in("query"), key = c.in("key");
    Tensor sums = Tensor::zeros(DType::F32, {query.size(0), query.size(1), query.size(2)});
    attend(callOf(c, cudnn ? "attn_bias" : ""), out, sums);
    const auto number = [](int64_t value) { return Tensor::full(DType::I64, {}, Scalar(value)); };
    const bool wanted = !cudnn || c.flag("compute_log_sumexp");
    if (cudnn)
        sums = sums.view({sums.size(0), sums.size(1), sums.size(2), 1},
                         {sums.size(1) * sums.size(2), sums.size(2), 1, 1}, 0);
    TensorList results{out, wanted ? sums : Tensor(), {}, {}, number(query.size(2)), number(key.size(2))};
    for (size_t i = results.size(); i < 9; ++i)  // the state of a generator that nothing was drawn from
        results.push_back(cudnn && i == 8 ? Tensor() : Tensor::zeros(c.result(i).dtype(), c.result(i).sizes()));
    return results;
}

}  // namespace

Result<ValueType> inferFlash(const InferContext& c) { return inferGpuKernel(c, false); }
Result<ValueType> inferCudnn(const InferContext& c) { return inferGpuKernel(c, true); }
EvalResult evalFlash(const EvalContext& c) { return evalGpuKernel(c, false); }
EvalResult evalCudnn(const EvalContext& c) { return evalGpuKernel(c, true); }

Result<ValueType> inferGpuBackward(const InferContext& c) {
    CT_TRY(const AttentionOperands o, readAttention(c));
    return ValueType(TupleType{likeOperand(o.query), likeOperand(o.key), likeOperand(o.value)});
}

EvalResult evalGpuBackward(const EvalContext& c) { return evalAttentionBackward(c, "attn_bias", "grad_out", 3); }

}  // namespace cutaway
