// Attention: the composite op, which chooses between a fused kernel and plain arithmetic as PyTorch does, and the
// fused kernels it chooses from.
#include <cmath>

#include "engine/ops/attention_arithmetic.h"
#include "engine/ops/attention_gpu.h"
#include "engine/ops/attention_kernels.h"
#include "engine/ops/attention_rules.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// Row-major over (batch, length, heads, dim), seen as (batch, heads, length, dim).
TensorType lengthMajor(const TensorType& like, const SymDims& sizes) {
    const SymDims order{sizes[0], sizes[2], sizes[1], sizes[3]};
    const SymDims s = contiguousStrides(order);
    TensorType type = TensorType::contiguous(like.dtype, sizes, like.device);
    type.strides = {s[0], s[2], s[1], s[3]};
    return type;
}
DType sumType(const TensorType& query) { return query.dtype == DType::F64 ? DType::F64 : DType::F32; }

/// The operands of the fused CPU kernel, which takes heads of one size only.
Result<AttentionOperands> readFlashCpu(const InferContext& c) {
    CT_TRY(AttentionOperands o, readAttention(c));
    const SymInt &size = o.query.sizes[3], &other = o.value.sizes[3];
    if (differ(size, other)) return c.fail("query and value have heads of different sizes");
    CT_TRY_VOID(checkAttentionMask(c, "attn_mask", o, true));
    return o;
}
Result<ValueType> inferFlashCpu(const InferContext& c) {
    CT_TRY(const AttentionOperands o, readFlashCpu(c));
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
    CT_TRY(const AttentionOperands o, readFlashCpu(c));
    CT_TRY_VOID(checkAttended(c, "grad_out", o.query.sizes));
    return ValueType(TupleType{lengthMajor(o.query, o.query.sizes), lengthMajor(o.key, o.key.sizes),
                               lengthMajor(o.value, o.value.sizes)});
}
Result<ValueType> inferEfficient(const InferContext& c) {
    CT_TRY(const AttentionOperands o, readAttention(c));
    CT_TRY_VOID(checkAttentionMask(c, "attn_bias", o, false));
    const SymDims& q = o.query.sizes;
    const SymInt rows = c.flag("compute_log_sumexp") ? floorDiv(q[2] + SymInt(31), SymInt(32)) * SymInt(32) : SymInt(0);
    const TensorType counter = TensorType::contiguous(DType::I64, {}, o.query.device);
    return ValueType(TupleType{lengthMajor(o.query, {q[0], q[1], q[2], o.value.sizes[3]}),
                               TensorType::contiguous(DType::F32, {q[0], q[1], rows}, o.query.device), counter,
                               counter});
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
    CT_TRY(const AttentionOperands o, readAttention(c));
    CT_TRY(const std::vector<int64_t> mask, c.integers("grad_input_mask"));
    if (mask.size() != 4) return c.fail("grad_input_mask needs four flags");
    CT_TRY_VOID(checkAttentionMask(c, "attn_bias", o, false));
    CT_TRY_VOID(
        checkAttended(c, "grad_out_", {o.query.sizes[0], o.query.sizes[1], o.query.sizes[2], o.value.sizes[3]}));
    TupleType types{lengthMajor(o.query, o.query.sizes), lengthMajor(o.key, o.key.sizes),
                    lengthMajor(o.value, o.value.sizes), ValueType()};
    if (mask[3] && c.has("attn_bias")) {
        CT_TRY(TensorType bias, c.tensor("attn_bias"));
        if (bias.rank() == 0) return c.fail("needs an attn_bias of at least one dim");
        // Rows are padded to 16 elements in memory.
        SymDims padded = bias.sizes;
        padded.back() = floorDiv(padded.back() + SymInt(15), SymInt(16)) * SymInt(16);
        bias.strides = contiguousStrides(padded);
        types[3] = bias;
    }
    return ValueType(std::move(types));
}

enum class Kernel { Math, FlashCpu, Flash, Efficient, Cudnn };

/// The call, as chooseKernel() looks at it. `oneHead`: one head of keys and values may serve all of the query's.
struct Choice {
    Value query, key, value, mask;
    bool dropout, grouped, oneHead;
    bool sizesEqual(int64_t dim) const {
        return query.size(dim) == key.size(dim) && query.size(dim) == value.size(dim);
    }
    /// What every fused kernel asks: four dims, equal batches, at least one query and key, elements of a row side by
    /// side, and numbers of heads that are equal or (with enable_gqa) divide the query's, or (oneHead) are 1.
    bool fused() const {
        for (const Value* x : {&query, &key, &value})
            if (x->rank() != 4 || !(x->type().strides[3] == SymInt(1))) return false;
        if (!sizesEqual(0) || query.size(2) == SymInt(0) || key.size(2) == SymInt(0)) return false;
        if (sizesEqual(1)) return true;
        if (oneHead && key.size(1) == SymInt(1) && value.size(1) == SymInt(1)) return true;
        const auto divides = [&](const SymInt& heads) {
            return heads.isInt() && query.size(1).isInt() && heads.value() > 0 &&
                   query.size(1).value() % heads.value() == 0;
        };
        return grouped && divides(key.size(1)) && divides(value.size(1));
    }
    bool maskTakesGradient() const { return mask && mask.type().requiresGrad; }
    /// A mask over (rows, columns), or over all four dims, each of full size or 1.
    bool maskFits() const {
        if (!mask) return true;
        if (mask.rank() != 2 && mask.rank() != 4) return false;
        const SymInt full[] = {query.size(0), query.size(1), query.size(2), key.size(2)};
        for (int64_t dim = 1; dim <= mask.rank(); ++dim) {
            const SymInt size = mask.size(-dim), &wanted = full[4 - dim];
            if (size.isInt() && wanted.isInt() && size.value() != 1 && size.value() != wanted.value()) return false;
        }
        return true;
    }
    /// The last sizes of query (and key) and of value are multiples of a number, and within a limit if there is one.
    bool lastSizes(int64_t multiple, int64_t limit) const {
        for (const Value* x : {&query, &value}) {
            const SymInt size = x->size(3);
            if (!size.isInt() || size.value() % multiple != 0 || (limit > 0 ? size.value() > limit : size.value() == 0))
                return false;
        }
        return true;
    }
};

/// PyTorch's choice: on the CPU one fused kernel, on the GPU (of the Hopper generation, with cuDNN 9.15 or newer) the
/// first of cudnn, flash and efficient that takes the call.
Kernel chooseKernel(const Choice& c) {
    const DType dtype = c.query.dtype();
    if (!c.fused() || !isFloating(dtype)) return Kernel::Math;
    const bool oneKeyValue = c.key.size(1) == c.value.size(1), oneSize = c.sizesEqual(3);
    if (c.query.type().device.type == DeviceType::Cpu)
        return oneSize && oneKeyValue && !c.dropout && !c.maskTakesGradient() && c.maskFits() ? Kernel::FlashCpu
                                                                                              : Kernel::Math;
    if (c.query.type().device.type != DeviceType::Cuda) return Kernel::Math;
    const bool single = c.query.size(2) == SymInt(1) && c.key.size(2) == SymInt(1);
    if (isHalf(dtype) && !c.maskTakesGradient() && !single && c.lastSizes(8, 256)) return Kernel::Cudnn;
    if (isHalf(dtype) && !c.mask && oneSize && oneKeyValue && c.lastSizes(1, 256)) return Kernel::Flash;
    if (dtype == DType::F64 || !c.sizesEqual(1)) return Kernel::Math;
    return c.lastSizes(isHalf(dtype) ? 8 : 4, 0) ? Kernel::Efficient : Kernel::Math;
}

/// A bool mask becomes one that is added: 0 where it holds, -inf elsewhere.
Value additiveMask(Decomposition& d, const Value& mask, DType dtype) {
    if (!mask || mask.dtype() != DType::Bool) return mask;
    const Device device = mask.type().device;
    const Value low = d.call("aten.scalar_tensor.default", {-std::numeric_limits<double>::infinity()},
                             {{"dtype", dtype}, {"device", device}});
    const Value zero = d.call("aten.scalar_tensor.default", {0.0},
                              {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}});
    return where(mask, zero, low);
}

double attentionScale(const Decomposition& d, const Value& query) {
    return d.has("scale") ? d.real("scale") : 1.0 / std::sqrt(static_cast<double>(query.size(-1).asInt().value_or(1)));
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
    const Argument scale = halfScale(d, query.size(-1));
    const Value scaledQuery = d.call(
        "aten.mul.Scalar", {query, attentionScale(d, query) < 0 ? Argument(-scale.asReal().value_or(0)) : scale});
    if (d.flag("is_causal")) {
        const Value ones =
            d.call("aten.ones.default", {Argument(SymDims{query.size(-2), key.size(-2)})},
                   {{"dtype", DType::Bool}, {"layout", Layout::Strided}, {"device", query.type().device}});
        mask = additiveMask(d, d.call("aten.tril.default", {ones}), query.dtype());
    }
    if (d.flag("enable_gqa") && query.rank() >= 3 && query.size(-3).isInt() && key.size(-3).isInt() &&
        key.size(-3).value() > 0 && value.size(-3).isInt() && value.size(-3).value() > 0) {
        const int64_t keyShare = query.size(-3).value() / key.size(-3).value(),
                      valueShare = query.size(-3).value() / value.size(-3).value();
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

/// The flash kernel takes rows in multiples of 8 elements: zeros are added and cut off again, the scale staying that of
/// the rows as they were.
Value flashForm(Decomposition& d, const Value& query, const Value& key, const Value& value) {
    const int64_t size = query.size(3).value();
    const auto padded = [&](const Value& x) {
        return size % 8 == 0
                   ? x
                   : d.call("aten.constant_pad_nd.default", {x, Argument(std::vector<int64_t>{0, 8 - size % 8}), 0.0});
    };
    const Value q = padded(query), k = padded(key), v = padded(value);
    const Value out =
        d.call("aten._scaled_dot_product_flash_attention.default",
               {q, k, v, d.arg("dropout_p"), d.arg("is_causal"), false}, {{"scale", attentionScale(d, query)}})[0];
    return size % 8 == 0 ? out : d.call("aten.slice.Tensor", {out, -1, 0, size});
}
/// The efficient kernel reads the mask in rows that start at multiples of 8 elements, for all heads.
Value alignedBias(Decomposition& d, Value mask, const Value& query, const Value& key) {
    const SymDims& strides = mask.type().strides;
    bool aligned = strides.back() == SymInt(1);
    for (size_t i = 0; i + 1 < strides.size(); ++i) aligned &= !strides[i].isInt() || strides[i].value() % 8 == 0;
    if (const SymInt size = mask.size(-1); !aligned && size.isInt()) {
        mask = d.call("aten.constant_pad_nd.default",
                      {mask, Argument(std::vector<int64_t>{0, 8 - size.value() % 8}), 0.0});
        mask = d.call("aten.slice.Tensor", {mask, -1, 0, Argument(size)});
    }
    return expand(mask, {query.size(0), query.size(1), query.size(2), key.size(2)});
}

/// Operands of three dims have no batch: they get one, and the result loses it.
bool lacksBatch(const Decomposition& d) {
    if (!has(d.release(), ReleaseChange::AttentionOfThreeDims)) return false;
    for (size_t i = 0; i < 3; ++i)
        if (d.in(i).rank() != 3 || d.in(i).type().device.type != DeviceType::Cpu) return false;
    return !d.has("attn_mask") || d.in("attn_mask").rank() <= 3;
}
Values withBatch(Decomposition& d) {
    std::vector<Argument> operands;
    for (size_t i = 0; i < 3; ++i) operands.emplace_back(unsqueeze(d.in(i), 0));
    Value mask = d.has("attn_mask") ? d.in("attn_mask") : Value();
    while (mask && mask.rank() < 4) mask = unsqueeze(mask, 0);
    operands.push_back(mask ? Argument(mask) : Argument());
    const Value result =
        d.call("aten.scaled_dot_product_attention.default",
               {operands[0], operands[1], operands[2], operands[3], d.arg("dropout_p"), d.arg("is_causal")},
               {{"scale", d.arg("scale")}, {"enable_gqa", d.arg("enable_gqa")}});
    return d.call("aten.squeeze.dim", {result, int64_t{0}});
}

Values decomposeAttention(Decomposition& d) {
    const Value query = d.in(0), key = d.in(1), value = d.in(2);
    const bool causal = d.flag("is_causal");
    if (causal && d.has("attn_mask")) d.builder().fail(d.fail("takes a mask or is_causal, not both"));
    if (query.dtype() != key.dtype() || query.dtype() != value.dtype())
        d.builder().fail(d.fail("query, key and value have different dtypes"));
    if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2)
        d.builder().fail(d.fail("needs query, key and value of at least two dims"));
    const Value given = d.has("attn_mask") ? d.in("attn_mask") : Value();
    if (given && given.dtype() != DType::Bool)
        if (const std::string wrong = wrongMaskType(given.type(), query.type(), true); !wrong.empty())
            return refuse(d, wrong + ", or bool");
    if (lacksBatch(d)) return withBatch(d);
    const bool oneHead =
        has(d.release(), ReleaseChange::AttentionOfThreeDims) && query.type().device.type == DeviceType::Cpu;
    const Choice choice{query, key, value, given, d.real("dropout_p") > 0, d.flag("enable_gqa"), oneHead};
    const Value mask = given ? additiveMask(d, given, query.dtype()) : Value();
    const Argument maskArgument = mask ? Argument(mask) : Argument();
    const Argument dropout = d.arg("dropout_p"), scale = d.arg("scale");
    const bool gradient = query.type().requiresGrad || key.type().requiresGrad || value.type().requiresGrad;
    switch (chooseKernel(choice)) {
        case Kernel::FlashCpu:
            return d.call("aten._scaled_dot_product_flash_attention_for_cpu.default",
                          {query, key, value, dropout, causal}, {{"attn_mask", maskArgument}, {"scale", scale}})[0];
        case Kernel::Flash: return flashForm(d, query, key, value);
        case Kernel::Efficient: {
            const Argument bias = mask ? Argument(alignedBias(d, mask, query, key)) : Argument();
            return d.call("aten._scaled_dot_product_efficient_attention.default",
                          {query, key, value, bias, gradient, dropout, causal}, {{"scale", scale}})[0];
        }
        case Kernel::Cudnn:
            return d.call("aten._scaled_dot_product_cudnn_attention.default",
                          {query, key, value, maskArgument, gradient, dropout, causal, false}, {{"scale", scale}})[0];
        case Kernel::Math: break;
    }
    return mathForm(d, query, key, value, mask);
}

constexpr OpDef kAttentionOps[] = {
    // softmax(query keyᵀ scale + mask) value, with a kernel chosen by device, dtype and shapes.
    {.schema =
         "aten.scaled_dot_product_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
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
f32[3, 4, 8], f32[3, 4, 8], f32[3, 4, 8], f32[3, 4, 4]
f32[1, 4, 4, 8], f32[1, 1, 4, 8], f32[1, 1, 4, 8]
f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 5]
)"},
    // The fused CPU kernel: the output in the query's layout, and the logarithms of the sums of exponentials.
    {.schema =
         "aten._scaled_dot_product_flash_attention_for_cpu.default(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, *, "
         "Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
     .tags = Tag::Heavy,
     .infer = inferFlashCpu,
     .eval = evalFlashCpu,
     .expand = Expand::Never,
     .decompose = attentionArithmetic,
     .derive =
         [](Derivation& d) {
             const Value gradients = d.call(
                 "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
                 {d.dy(0), d.in(0), d.in(1), d.in(2), d.out(0), d.out(1), d.arg("dropout_p"), d.arg("is_causal")},
                 {{"attn_mask", d.arg("attn_mask")}, {"scale", d.arg("scale")}});
             for (size_t i = 0; i < 3; ++i) d.input(i) = gradients[static_cast<int64_t>(i)];
         },
     .samples = R"(
f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8]
f32[2, 3, 4, 8][96, 8, 24, 1], f32[2, 3, 4, 8][96, 8, 24, 1], f32[2, 3, 4, 8]
f32[2, 3, 4, 8], f32[2, 3, 6, 8], f32[2, 3, 6, 8], attn_mask=f32[4, 6], scale=0.5
f64[1, 2, 5, 4], f64[1, 2, 5, 4], f64[1, 2, 5, 4], 0.0, True
bf16[1, 2, 4, 8]<1, bf16[1, 2, 4, 8]<1, bf16[1, 2, 4, 8]<1
f32[1, 4, 3, 8], f32[1, 2, 3, 8], f32[1, 2, 3, 8]
)"},
    {.schema =
         "aten._scaled_dot_product_flash_attention_for_cpu_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
         "float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .tags = Tag::Heavy,
     .infer = inferFlashCpuBackward,
     .eval = [](const EvalContext& c) { return evalAttentionBackward(c, "attn_mask", "grad_out", 3); },
     .expand = Expand::Never,
     .decompose = attentionBackwardArithmetic},
    // The GPU kernels. Their eval is the same attention without dropout; random state comes back as zeros.
    {.schema =
         "aten._scaled_dot_product_efficient_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, "
         "float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
     .tags = Tag::Heavy | Tag::Random,
     .infer = inferEfficient,
     .eval = evalEfficient,
     .expand = Expand::Never,
     .decompose = attentionArithmetic,
     .derive =
         [](Derivation& d) {
             const Value gradients = d.call(
                 "aten._scaled_dot_product_efficient_attention_backward.default",
                 {d.dy(0), d.in(0), d.in(1), d.in(2), d.arg("attn_bias"), d.out(0), d.out(1), d.out(2), d.out(3),
                  d.arg("dropout_p"),
                  Argument(std::vector<Argument>{d.needs(0), d.needs(1), d.needs(2), d.has("attn_bias") && d.needs(3)}),
                  d.arg("is_causal")},
                 {{"scale", d.arg("scale")}});
             for (size_t i = 0; i < 3; ++i)
                 if (d.needs(i)) d.input(i) = gradients[static_cast<int64_t>(i)];
             if (d.has("attn_bias") && d.needs(3)) d.input(3) = gradients[3];
         }},
    // attn_bias may be None here although PyTorch's schema does not say so.
    {.schema =
         "aten._scaled_dot_product_efficient_attention_backward.default(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor? attn_bias, Tensor out, "
         "Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) "
         "-> (Tensor, Tensor, Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferEfficientBackward,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (c.integersOf("grad_input_mask")[3])
             return unsupported(c.op().name() + ": no reference kernel for the gradient of the bias", {},
                                {"use the math form of attention"});
         return evalAttentionBackward(c, "attn_bias", "grad_out_", 4);
     },
     .expand = Expand::Never,
     .decompose = attentionBackwardArithmetic},
    {.schema =
         "aten._scaled_dot_product_flash_attention.default(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, "
         "bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
         "Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
     .tags = Tag::Heavy | Tag::Random,
     .infer = inferFlash,
     .eval = evalFlash,
     .expand = Expand::Never,
     .decompose = attentionArithmetic,
     .derive =
         [](Derivation& d) {
             const Value gradients =
                 d.call("aten._scaled_dot_product_flash_attention_backward.default",
                        {d.dy(0), d.in(0), d.in(1), d.in(2), d.out(0), d.out(1), Argument(), Argument(),
                         d.in(0).size(2), d.in(1).size(2), d.arg("dropout_p"), d.arg("is_causal"), d.out(6), d.out(7)},
                        {{"scale", d.arg("scale")}});
             for (size_t i = 0; i < 3; ++i) d.input(i) = gradients[static_cast<int64_t>(i)];
         }},
    {.schema =
         "aten._scaled_dot_product_flash_attention_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
         "Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, "
         "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     .tags = Tag::Heavy,
     .infer = inferGpuBackward,
     .eval = evalGpuBackward,
     .expand = Expand::Never,
     .decompose = attentionBackwardArithmetic},
    {.schema =
         "aten._scaled_dot_product_cudnn_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., "
         "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, "
         "SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
     .tags = Tag::Heavy | Tag::Random,
     .infer = inferCudnn,
     .eval = evalCudnn,
     .expand = Expand::Never,
     .decompose = attentionArithmetic,
     .derive =
         [](Derivation& d) {
             const Value gradients = d.call(
                 "aten._scaled_dot_product_cudnn_attention_backward.default",
                 {d.dy(0), d.in(0), d.in(1), d.in(2), d.out(0), d.out(1), d.out(6), d.out(7), d.arg("attn_bias"),
                  Argument(), Argument(), d.in(0).size(2), d.in(1).size(2), d.arg("dropout_p"), d.arg("is_causal")},
                 {{"scale", d.arg("scale")}});
             for (size_t i = 0; i < 3; ++i) d.input(i) = gradients[static_cast<int64_t>(i)];
         }},
    {.schema =
         "aten._scaled_dot_product_cudnn_attention_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
         "Tensor philox_seed, Tensor philox_offset, Tensor? attn_bias, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, "
         "bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferGpuBackward,
     .eval = evalGpuBackward,
     .expand = Expand::Never,
     .decompose = attentionBackwardArithmetic},
};

}  // namespace

std::span<const OpDef> attentionOps() { return kAttentionOps; }

}  // namespace cutaway
