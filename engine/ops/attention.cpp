// Attention: the composite op, which chooses between a fused kernel and plain arithmetic as PyTorch does, and the
// fused kernels it chooses from.
#include <cmath>

#include "engine/ops/attention_kernels.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

struct Operands {
    TensorType query, key, value;
};
Result<Operands> readOperands(const InferContext& c) {
    Operands o;
    CT_TRY(o.query, c.tensor("query"));
    CT_TRY(o.key, c.tensor("key"));
    CT_TRY(o.value, c.tensor("value"));
    if (o.query.rank() != 4 || o.key.rank() != 4 || o.value.rank() != 4) return c.fail("needs query, key and value of four dims");
    if (o.query.dtype != o.key.dtype || o.query.dtype != o.value.dtype) return c.fail("query, key and value have different dtypes");
    if (!isFloating(o.query.dtype)) return c.fail("needs floating-point tensors");
    auto differ = [](const SymInt& a, const SymInt& b) { return a.isInt() && b.isInt() && a.value() != b.value(); };
    if (differ(o.query.sizes[3], o.key.sizes[3])) return c.fail("query and key have different last sizes");
    if (differ(o.key.sizes[2], o.value.sizes[2])) return c.fail("key and value have different lengths");
    if (differ(o.query.sizes[0], o.key.sizes[0]) || differ(o.key.sizes[1], o.value.sizes[1])) return c.fail("batch or head counts do not fit");
    const SymInt &heads = o.query.sizes[1], &keyHeads = o.key.sizes[1];
    if (heads.isInt() && keyHeads.isInt() && (keyHeads.value() == 0 || heads.value() % keyHeads.value() != 0))
        return c.fail("the key's " + keyHeads.text() + " heads do not divide the query's " + heads.text());
    return o;
}

/// Row-major over (batch, length, heads, dim), seen as (batch, heads, length, dim).
TensorType lengthMajor(const TensorType& like, const SymDims& sizes) {
    const SymDims order{sizes[0], sizes[2], sizes[1], sizes[3]};
    const SymDims s = contiguousStrides(order);
    TensorType type = TensorType::contiguous(like.dtype, sizes, like.device);
    type.strides = {s[0], s[2], s[1], s[3]};
    return type;
}
TensorType likeOperand(const TensorType& operand) {
    TensorType type = TensorType::contiguous(operand.dtype, operand.sizes, operand.device);
    type.strides = preservedStrides(operand);
    return type;
}
DType sumType(const TensorType& query) { return query.dtype == DType::F64 ? DType::F64 : DType::F32; }

AttentionCall callOf(const EvalContext& c, std::string_view maskParam) {
    AttentionCall call{c.in("query"), c.in("key"), c.in("value"), c.optional(maskParam), c.flag("is_causal"), {}};
    if (c.has("scale")) call.scale = c.real("scale");
    return call;
}
std::optional<Error> refuseDropout(const EvalContext& c) {
    if (c.real("dropout_p") == 0) return std::nullopt;
    return unsupported(c.op().name() + ": no reference kernel with dropout", {}, {"run with dropout_p=0, or use the math form of attention"});
}

Result<ValueType> inferFlashCpu(const InferContext& c) {
    CT_TRY(const Operands o, readOperands(c));
    const SymDims& q = o.query.sizes;
    TensorType sums = TensorType::contiguous(sumType(o.query), {q[0], q[1], q[2]}, o.query.device);
    sums.strides = {q[1] * q[2], SymInt(1), q[1]};
    return ValueType(TupleType{likeOperand(o.query), sums});
}
EvalResult evalFlashCpu(const EvalContext& c) {
    if (auto error = refuseDropout(c)) return *error;
    Tensor out = c.result(0), sums = c.result(1);
    attend(callOf(c, "attn_mask"), out, sums);
    return TensorList{out, sums};
}
Result<ValueType> inferFlashCpuBackward(const InferContext& c) {
    CT_TRY(const Operands o, readOperands(c));
    return ValueType(TupleType{lengthMajor(o.query, o.query.sizes), lengthMajor(o.key, o.key.sizes), lengthMajor(o.value, o.value.sizes)});
}
EvalResult evalBackward(const EvalContext& c, std::string_view maskParam, std::string_view gradient, size_t results) {
    if (auto error = refuseDropout(c)) return *error;
    TensorList out(results);
    for (size_t i = 0; i < 3; ++i) out[i] = c.result(i);
    Tensor sums = c.in("logsumexp");
    const Tensor output = c.in("out");
    // The GPU kernels pad the sums to whole blocks of rows.
    if (sums.size(2) != output.size(2)) sums = sums.view({sums.size(0), sums.size(1), output.size(2)}, sums.strides(), sums.offset());
    attendBackward(callOf(c, maskParam), c.in(gradient), output, sums, out[0], out[1], out[2]);
    return out;
}

Result<ValueType> inferEfficient(const InferContext& c) {
    CT_TRY(const Operands o, readOperands(c));
    const SymDims& q = o.query.sizes;
    const SymInt rows = c.flag("compute_log_sumexp") ? floorDiv(q[2] + SymInt(31), SymInt(32)) * SymInt(32) : SymInt(0);
    const TensorType counter = TensorType::contiguous(DType::I64, {}, o.query.device);
    return ValueType(TupleType{lengthMajor(o.query, {q[0], q[1], q[2], o.value.sizes[3]}),
                               TensorType::contiguous(DType::F32, {q[0], q[1], rows}, o.query.device), counter, counter});
}
EvalResult evalEfficient(const EvalContext& c) {
    if (auto error = refuseDropout(c)) return *error;
    Tensor out = c.result(0), padded = c.result(1);
    const Tensor query = c.in("query");
    Tensor sums = Tensor::zeros(DType::F32, {query.size(0), query.size(1), query.size(2)});
    attend(callOf(c, "attn_bias"), out, sums);
    if (padded.numel() > 0) {
        padded = Tensor::full(DType::F32, padded.sizes(), Scalar(std::numeric_limits<double>::infinity()));
        Tensor head = padded.view(sums.sizes(), padded.strides(), padded.offset());
        copyInto(head, sums);
    }
    return TensorList{out, padded, Tensor::zeros(DType::I64, {}), Tensor::zeros(DType::I64, {})};
}
Result<ValueType> inferEfficientBackward(const InferContext& c) {
    CT_TRY(const Operands o, readOperands(c));
    CT_TRY(const std::vector<int64_t> mask, c.integers("grad_input_mask"));
    TupleType types{lengthMajor(o.query, o.query.sizes), lengthMajor(o.key, o.key.sizes), lengthMajor(o.value, o.value.sizes), ValueType()};
    if (mask.size() == 4 && mask[3] && c.has("attn_bias")) {
        CT_TRY(TensorType bias, c.tensor("attn_bias"));
        // Rows are padded to 16 elements in memory.
        SymDims padded = bias.sizes;
        padded.back() = floorDiv(padded.back() + SymInt(15), SymInt(16)) * SymInt(16);
        bias.strides = contiguousStrides(padded);
        types[3] = bias;
    }
    return ValueType(std::move(types));
}

/// Types of the flash and cudnn kernels' results: their sums differ in rank, their bookkeeping not.
Result<ValueType> inferGpuKernel(const InferContext& c, bool cudnn) {
    CT_TRY(const Operands o, readOperands(c));
    const SymDims& q = o.query.sizes;
    TensorType out = likeOperand(o.query);
    if (cudnn) {
        TensorType shape = o.query;
        shape.sizes = {q[0], q[1], q[2], o.value.sizes[3]};
        if (!(shape.sizes == o.query.sizes)) out = TensorType::contiguous(o.query.dtype, shape.sizes, o.query.device);
    }
    SymDims sums{q[0], q[1], q[2]};
    if (cudnn) sums.push_back(1);
    const SymType rows{DType::I64, q[2].expr()}, columns{DType::I64, o.key.sizes[2].expr()};
    const TensorType counter = TensorType::contiguous(cudnn ? DType::I64 : DType::U64, {}, o.query.device);
    TupleType types{out, TensorType::contiguous(DType::F32, sums, o.query.device), ValueType(), ValueType(), rows, columns};
    if (cudnn) {
        types.insert(types.end(), {ValueType(counter), ValueType(counter), ValueType()});
    } else {
        types.push_back(TensorType::contiguous(DType::U64, {SymInt(2)}, o.query.device));
        types.push_back(counter);
        types.push_back(TensorType::contiguous(o.query.dtype, {SymInt(0)}, o.query.device));
    }
    return ValueType(std::move(types));
}
Result<ValueType> inferGpuBackward(const InferContext& c) {
    CT_TRY(const Operands o, readOperands(c));
    return ValueType(TupleType{likeOperand(o.query), likeOperand(o.key), likeOperand(o.value)});
}

enum class Kernel { Math, FlashCpu, Efficient, Cudnn };

/// PyTorch's choice. On the CPU: four dims, equal last sizes, nothing empty, last stride 1, no dropout. On the GPU the
/// fused kernels differ in dtypes and masks; cudnn is preferred for half precision where the device has it.
Kernel chooseKernel(const Decomposition& d, const Value& query, const Value& key, const Value& value) {
    const bool four = query.rank() == 4 && key.rank() == 4 && value.rank() == 4;
    if (!four || d.real("dropout_p") > 1) return Kernel::Math;
    auto empty = [](const Value& x, int64_t dim) { return x.size(dim) == SymInt(0); };
    if (empty(query, 2) || empty(key, 2)) return Kernel::Math;
    const bool sameDim = query.size(3) == key.size(3) && query.size(3) == value.size(3);
    bool dense = true;
    for (const Value* x : {&query, &key, &value}) dense &= x->type().strides[3] == SymInt(1) || x->size(3) == SymInt(1);
    const bool gqa = !(query.size(1) == key.size(1));
    if (gqa && !d.flag("enable_gqa")) return Kernel::Math;
    if (query.type().device.type == DeviceType::Cpu)
        return sameDim && dense && d.real("dropout_p") == 0 && isFloating(query.dtype()) ? Kernel::FlashCpu : Kernel::Math;
    if (query.type().device.type != DeviceType::Cuda || !dense) return Kernel::Math;
    const SymInt dim = query.size(3);
    if (isHalf(query.dtype()) && dim.isInt() && dim.value() % 8 == 0 && dim.value() <= 128 && sameDim) return Kernel::Cudnn;
    if (query.dtype() == DType::F64 || gqa) return Kernel::Math;
    return Kernel::Efficient;
}

/// A bool mask becomes one that is added: 0 where it holds, -inf elsewhere.
Value additiveMask(Decomposition& d, const Value& mask, DType dtype) {
    if (!mask || mask.dtype() != DType::Bool) return mask;
    const Device device = mask.type().device;
    const Value low = d.call("aten.scalar_tensor.default", {-std::numeric_limits<double>::infinity()}, {{"dtype", dtype}, {"device", device}});
    const Value zero = d.call("aten.scalar_tensor.default", {0.0}, {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}});
    return where(mask, zero, low);
}

/// The arithmetic form: scores with the scale split over both operands, a softmax that gives 0 for rows that see
/// nothing, dropout. Half precision computes in f32.
Value mathForm(Decomposition& d, Value query, Value key, Value value, Value mask) {
    const DType dtype = query.dtype();
    const bool half = isHalf(dtype);
    if (half) {
        query = convert(query, DType::F32);
        key = convert(key, DType::F32);
        value = convert(value, DType::F32);
    }
    const SymInt dim = query.size(-1);
    const double given = d.has("scale") ? d.real("scale") : 1.0 / std::sqrt(static_cast<double>(dim.asInt().value_or(1)));
    const double scale = std::sqrt(std::fabs(given));
    const Value scaledQuery = d.call("aten.mul.Scalar", {query, given < 0 ? -scale : scale});
    if (d.flag("is_causal")) {
        const Value ones = d.call("aten.ones.default", {Argument(SymDims{query.size(-2), key.size(-2)})},
                                  {{"dtype", DType::Bool}, {"layout", Layout::Strided}, {"device", query.type().device}});
        mask = additiveMask(d, d.call("aten.tril.default", {ones}), query.dtype());
    }
    if (d.flag("enable_gqa") && query.rank() >= 3 && query.size(-3).isInt() && key.size(-3).isInt() && key.size(-3).value() > 0) {
        const int64_t keyShare = query.size(-3).value() / key.size(-3).value(), valueShare = query.size(-3).value() / value.size(-3).value();
        if (keyShare > 1) key = d.call("aten.repeat_interleave.self_int", {key, keyShare, -3});
        if (valueShare > 1) value = d.call("aten.repeat_interleave.self_int", {value, valueShare, -3});
    }
    const Value keyT = d.call("aten.transpose.int", {key, -2, -1});
    Value scores = d.call("aten.matmul.default", {scaledQuery, d.call("aten.mul.Scalar", {keyT, scale})});
    if (mask) scores = scores + mask;
    Value weights = d.call("aten._safe_softmax.default", {scores, -1});
    if (d.real("dropout_p") > 0) weights = d.call("aten.dropout.default", {weights, d.real("dropout_p"), true});
    const Value out = d.call("aten.matmul.default", {weights, value});
    return half ? convert(out, dtype) : out;
}

Values decomposeAttention(Decomposition& d) {
    const Value query = d.in(0), key = d.in(1), value = d.in(2);
    const bool causal = d.flag("is_causal");
    if (causal && d.has("attn_mask")) d.builder().fail(d.fail("takes a mask or is_causal, not both"));
    if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2) d.builder().fail(d.fail("needs query, key and value of at least two dims"));
    if (!d.has("scale") && !query.size(-1).isInt()) d.builder().fail(unsupported(d.op().name() + ": the scale depends on a symbolic size", {}, {"give scale"}));
    const Value mask = d.has("attn_mask") ? additiveMask(d, d.in("attn_mask"), query.dtype()) : Value();
    const Argument maskArgument = mask ? Argument(mask) : Argument();
    const Argument dropout = d.arg("dropout_p"), scale = d.arg("scale");
    switch (chooseKernel(d, query, key, value)) {
        case Kernel::FlashCpu:
            return d.call("aten._scaled_dot_product_flash_attention_for_cpu.default", {query, key, value, dropout, causal},
                          {{"attn_mask", maskArgument}, {"scale", scale}})[0];
        case Kernel::Efficient:
        case Kernel::Cudnn: {
            const bool cudnn = chooseKernel(d, query, key, value) == Kernel::Cudnn;
            const bool gradient = query.type().requiresGrad || key.type().requiresGrad || value.type().requiresGrad;
            Argument bias = maskArgument;
            if (mask) bias = expand(mask, {query.size(0), query.size(1), query.size(2), key.size(2)});
            if (cudnn)
                return d.call("aten._scaled_dot_product_cudnn_attention.default", {query, key, value, bias, gradient, dropout, causal, false}, {{"scale", scale}})[0];
            return d.call("aten._scaled_dot_product_efficient_attention.default", {query, key, value, bias, gradient, dropout, causal}, {{"scale", scale}})[0];
        }
        case Kernel::Math: break;
    }
    return mathForm(d, query, key, value, mask);
}

constexpr OpDef kOps[] = {
    // softmax(query keyᵀ scale + mask) value, with a kernel chosen by device, dtype and shapes.
    {.schema = "aten.scaled_dot_product_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
               "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = decomposeAttention,
     .samples = R"(
f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8]
f32[2, 3, 4, 8], f32[2, 3, 6, 8], f32[2, 3, 6, 8], f32[4, 6]
f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8], None, 0.0, True
f32[2, 4, 4, 8], f32[2, 2, 4, 8], f32[2, 2, 4, 8], enable_gqa=True
f32[3, 4, 8], f32[3, 4, 8], f32[3, 4, 8], None, 0.0, True
f32[3, 4, 8], f32[3, 4, 8], f32[3, 4, 8], b8[4, 4], scale=0.5
f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 5]
)"},
    // The fused CPU kernel: the output in the query's layout, and the logarithms of the sums of exponentials.
    {.schema = "aten._scaled_dot_product_flash_attention_for_cpu.default(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, *, "
               "Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
     .tags = Tag::Heavy,
     .infer = inferFlashCpu,
     .eval = evalFlashCpu,
     .derive = [](Derivation& d) {
         const Value gradients = d.call("aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
                                        {d.dy(0), d.in(0), d.in(1), d.in(2), d.out(0), d.out(1), d.arg("dropout_p"), d.arg("is_causal")},
                                        {{"attn_mask", d.arg("attn_mask")}, {"scale", d.arg("scale")}});
         for (size_t i = 0; i < 3; ++i) d.input(i) = gradients[static_cast<int64_t>(i)];
     },
     .samples = R"(
f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8]
f32[2, 3, 4, 8][96, 8, 24, 1], f32[2, 3, 4, 8][96, 8, 24, 1], f32[2, 3, 4, 8]
f32[2, 3, 4, 8], f32[2, 3, 6, 8], f32[2, 3, 6, 8], attn_mask=f32[4, 6], scale=0.5
f64[1, 2, 5, 4], f64[1, 2, 5, 4], f64[1, 2, 5, 4], 0.0, True
bf16[1, 2, 4, 8], bf16[1, 2, 4, 8], bf16[1, 2, 4, 8]
f32[1, 4, 3, 8], f32[1, 2, 3, 8], f32[1, 2, 3, 8]
)"},
    {.schema = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
               "float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .tags = Tag::Heavy,
     .infer = inferFlashCpuBackward,
     .eval = [](const EvalContext& c) { return evalBackward(c, "attn_mask", "grad_out", 3); }},
    // The GPU kernels. Their eval is the same attention without dropout; random state comes back as zeros.
    {.schema = "aten._scaled_dot_product_efficient_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, "
               "float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
     .tags = Tag::Heavy | Tag::Random,
     .infer = inferEfficient,
     .eval = evalEfficient,
     .derive = [](Derivation& d) {
         const Value gradients = d.call("aten._scaled_dot_product_efficient_attention_backward.default",
                                        {d.dy(0), d.in(0), d.in(1), d.in(2), d.arg("attn_bias"), d.out(0), d.out(1), d.out(2), d.out(3), d.arg("dropout_p"),
                                         Argument(std::vector<Argument>{d.needs(0), d.needs(1), d.needs(2), d.has("attn_bias") && d.needs(3)}), d.arg("is_causal")},
                                        {{"scale", d.arg("scale")}});
         for (size_t i = 0; i < 3; ++i)
             if (d.needs(i)) d.input(i) = gradients[static_cast<int64_t>(i)];
         if (d.has("attn_bias") && d.needs(3)) d.input(3) = gradients[3];
     }},
    // attn_bias may be None here although PyTorch's schema does not say so.
    {.schema = "aten._scaled_dot_product_efficient_attention_backward.default(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor? attn_bias, Tensor out, "
               "Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) "
               "-> (Tensor, Tensor, Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferEfficientBackward,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (c.integersOf("grad_input_mask")[3])
             return unsupported(c.op().name() + ": no reference kernel for the gradient of the bias", {}, {"use the math form of attention"});
         return evalBackward(c, "attn_bias", "grad_out_", 4);
     }},
    {.schema = "aten._scaled_dot_product_flash_attention.default(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, "
               "bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
               "Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
     .tags = Tag::Heavy | Tag::Random,
     .infer = [](const InferContext& c) { return inferGpuKernel(c, false); }},
    {.schema = "aten._scaled_dot_product_flash_attention_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
               "Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, "
               "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .tags = Tag::Heavy,
     .infer = inferGpuBackward},
    {.schema = "aten._scaled_dot_product_cudnn_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., "
               "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, "
               "SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
     .tags = Tag::Heavy | Tag::Random,
     .infer = [](const InferContext& c) { return inferGpuKernel(c, true); }},
    {.schema = "aten._scaled_dot_product_cudnn_attention_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
               "Tensor philox_seed, Tensor philox_offset, Tensor? attn_bias, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, "
               "bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferGpuBackward},
};

}  // namespace

std::span<const OpDef> attentionOps() { return kOps; }

}  // namespace cutaway
