#include "engine/passes/post_grad/quantized_calls.h"

#include <algorithm>
#include <cmath>

#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

// -- data of one scale

/// As PyTorch compares scales.
bool areClose(double a, double b) { return std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b)); }
bool haveSameParameters(const Node& dequantize, const Node& quantize) {
    const auto a = dequantize.arg("scale").asReal(), b = quantize.arg("scale").asReal();
    return a && b && areClose(*a, *b) && equal(dequantize.arg("zero_point"), quantize.arg("zero_point"));
}
bool isWholeRange(const Node& quantize) {
    const DType dtype = quantize.tensor().dtype;
    const auto low = quantize.arg("quant_min").asInt(), high = quantize.arg("quant_max").asInt();
    return dtype == DType::U8 ? low == 0 && high == 255 : dtype == DType::I8 ? low == -128 && high == 127 : false;
}
std::string_view unlessRangeIsWhole(const Match& m) {
    if (m.parity() || isWholeRange(m.node("q"))) return "";
    return "{q} clamps to fewer numbers than {q:type} has";
}
std::string_view unlessParametersAgree(const Match& m) {
    if (m.tensor("x").dtype != m.tensor("q").dtype) return "{x}, {x:type}, is not of the dtype of {q}, {q:type}";
    if (!haveSameParameters(m.node("d"), m.node("q"))) return "{d} and {q} have different scales or zero points";
    return unlessRangeIsWhole(m);
}
std::string_view unlessPoolsBytes(const Match& m) {
    const TensorType& x = m.tensor("x");
    if (x.dtype != DType::U8 || x.rank() != 4 || x.device.type != DeviceType::Cpu)
        return "{x}, {x:type}, holds no uint8 images on the CPU";
    if (m.tensor("q").dtype != x.dtype) return "{x}, {x:type}, is not of the dtype of {q}, {q:type}";
    return m.parity() ? "" : unlessParametersAgree(m);  // PyTorch compares no scales here
}
std::string_view unlessItemsAgree(const Match& m) {
    for (const Argument& item : *m["d"].list()) {
        const Node& dequantize = *item.node();
        if (dequantize.arg(0).node()->tensor().dtype != m.tensor("q").dtype ||
            !haveSameParameters(dequantize, m.node("q"))) {
            m.note("`" + dequantize.name() + "`");
            return "a tensor has another scale, zero point or dtype than {q}";
        }
    }
    return unlessRangeIsWhole(m);
}
Values buildCat(const Match& m, GraphBuilder& builder) {
    std::vector<Argument> items;
    for (const Argument& item : *m["d"].list()) items.push_back(item.node()->arg(0));
    return builder.call("aten.cat.default", {Argument(std::move(items)), m["dim"]});
}

// -- weights of eight bits

std::string_view unlessWeightOnlyFits(const Match& m) {
    for (const std::string_view name : {"x", "w", "s"})
        if (!m.isTensor(name)) return "an operand is not a tensor";
    const TensorType &x = m.tensor("x"), &w = m.tensor("w"), &s = m.tensor("s"), &y = m.root().tensor();
    if (x.dtype != DType::BF16 || s.dtype != DType::BF16) return "{x}, {x:type}, and {s}, {s:type}, are not bfloat16";
    if (w.dtype != DType::I8 || w.rank() != 2) return "{w}, {w:type}, is not an int8 matrix";
    if (!(x.device == w.device) || !(x.device == s.device)) return "the operands lie on different devices";
    if (s.rank() != 1 || !(s.sizes[0] == w.sizes[0])) return "{s}, {s:type}, is not one scale for each column";
    if (w.strides != contiguousStrides(w.sizes)) return "{w}, {w:type}, is not row-major";
    const auto* dims = m["dims"].list();
    if (dims == nullptr || dims->size() != 2 || (*dims)[0].asInt() != 1) return "{w} is not transposed";
    bool fits = x.rank() >= 1 && x.sizes.size() == y.sizes.size() && y.sizes.back() == w.sizes[0] &&
                x.sizes.back() == w.sizes[1];
    for (size_t i = 0; fits && i + 1 < x.sizes.size(); ++i) fits = x.sizes[i] == y.sizes[i];
    return fits ? "" : "the result, {y:type}, has not the rows of {x}, {x:type}";
}
Values buildWeightOnly(const Match& m, GraphBuilder& builder) {
    const Value x = builder.value(m.node("x")), w = builder.value(m.node("w")), s = builder.value(m.node("s"));
    const SymDims sizes = m.root().tensor().sizes;
    const Value rows = builder.call("aten.reshape.default", {x, Argument(SymDims{SymInt(-1), x.sizes().back()})});
    return builder.call("aten.reshape.default",
                        {builder.call("aten._weight_int8pack_mm.default", {rows, w, s}), Argument(sizes)});
}

// -- scales chosen from data

std::string_view unlessRangeForgetsZero(const Match& m) {
    if (!m.parity()) return "the range holds 0, which PyTorch's compiled form forgets (only with parity)";
    return m.isTensor("x") ? "" : "{x} is not a tensor";
}
/// PyTorch's decomposition: the range is that of the data, whether it holds 0 or not.
Values buildRangeOfData(const Match& m, GraphBuilder& builder) {
    const Value x = builder.value(m.node("x"));
    const Value least = unary("aten.amin.default", x), most = unary("aten.amax.default", x);
    const double low = *m["low"].asReal(), high = *m["high"].asReal();
    const Value smallest = full(builder, {SymInt(1)}, Scalar(*m["eps"].asReal()), DType::F32, x.type().device);
    const Value scale = builder.call("aten.maximum.default", {(most - least) / OperandValue(high - low), smallest});
    if (!scale) return Value();
    const Value steps = convert(unary("aten.round.default", least / scale), DType::I32);
    const Value zero = builder.call("aten.clamp.default", {-steps + OperandValue(m["low"]), m["low"], m["high"]});
    if (!zero) return Value();
    return std::vector<Value>{convert(scale, DType::F64), convert(zero, DType::I64)};
}

#define CUTAWAY_QUANTIZED(y) "q = quantized_decomposed.quantize_per_tensor.default(" y ", _, _, _, _, _); return q"
#define CUTAWAY_DEQUANTIZED "d = quantized_decomposed.dequantize_per_tensor.default(x, _, _, _, _, _); "
#define CUTAWAY_TRANSPOSED "t = aten.permute.default(prims.convert_element_type.default(w, _), $dims); "

constexpr Rule weightOnly(std::string_view name, std::string_view find) {
    return {.name = name,
            .find = find,
            .build = buildWeightOnly,
            .unless = unlessWeightOnlyFits,
            .why = "the weight is read as it is stored, a quarter of the bytes"};
}

constexpr Rule kDataRules[] = {
    {.name = "qmaxpool2d",
     .find = CUTAWAY_DEQUANTIZED
     "p = aten.max_pool2d_with_indices.default(d, $kernel, $stride, $padding, $dilation, $ceil); y = p[0]; " CUTAWAY_QUANTIZED(
         "y"),
     .replace = "q = quantized.max_pool2d.default(x, $kernel, $stride, $padding, $dilation, $ceil); return q",
     .unless = unlessPoolsBytes,
     .why = "with one scale, integers are ordered as the numbers are"},
    {.name = "qmaxpool2d_with_offsets",
     .find = CUTAWAY_DEQUANTIZED
     "p = prims._low_memory_max_pool_with_offsets.default(d, $kernel, $stride, $padding, $dilation, $ceil); y = p[0]; " CUTAWAY_QUANTIZED(
         "y"),
     .replace = "q = quantized.max_pool2d.default(x, $kernel, $stride, $padding, $dilation, $ceil); return q",
     .unless = unlessPoolsBytes,
     .why = "with one scale, integers are ordered as the numbers are"},
    {.name = "qcat",
     .find =
         "d: each = quantized_decomposed.dequantize_per_tensor.default(_, _, _, _, _, _); y = aten.cat.default([*d], $dim); " CUTAWAY_QUANTIZED(
             "y"),
     .build = buildCat,
     .unless = unlessItemsAgree,
     .why = "numbers of one scale are put together as integers"},
    {.name = "qreshape",
     .find = CUTAWAY_DEQUANTIZED "y = aten.reshape.default(d, $sizes); " CUTAWAY_QUANTIZED("y"),
     .replace = "q = aten.reshape.default(x, $sizes); return q",
     .unless = unlessParametersAgree,
     .why = "numbers of one scale are moved as integers"},
    {.name = "choose_qparams_of_data",
     .find = "y = quantized_decomposed.choose_qparams.tensor(x, $low, $high, $eps, _); return y",
     .build = buildRangeOfData,
     .unless = unlessRangeForgetsZero,
     .why = "PyTorch's compiler writes it as the least and the largest number of the data"},
    weightOnly("woq_int8_reshaped", CUTAWAY_TRANSPOSED "m = aten.mm.default(aten.reshape.default(x, _), t); "
                                                       "y = aten.mul.Tensor(aten.reshape.default(m, _), s); return y"),
    weightOnly("woq_int8", CUTAWAY_TRANSPOSED
               "m = aten.mm.default(x, t); y = aten.mul.Tensor(aten.reshape.default(m, _), s); return y"),
    weightOnly(
        "woq_int8_expanded", CUTAWAY_TRANSPOSED
        "m = aten.bmm.default(aten.expand.default(x, _), aten.expand.default(t, _)); y = aten.mul.Tensor(m, s); return y"),
    weightOnly("woq_int8_widened_later",
               "t = prims.convert_element_type.default(aten.permute.default(w, $dims), _); "
               "m = aten.mm.default(x, t); y = aten.mul.Tensor(m, s); return y"),
};

// -- calls of the functions that lower products of integers

Values buildOperatorCall(const Match& m, GraphBuilder& builder) {
    Decomposition call(m.root(), builder);
    return m.root().op().def()->decompose(call);
}
constexpr Rule backTo(std::string_view name, std::string_view find) {
    return {.name = name, .find = find, .build = buildOperatorCall, .why = "the operator's own kernel computes it"};
}

constexpr Rule kFunctionCallRules[] = {
    backTo("qconv_call", "y = torch__inductor_fx_passes_quantization_qconv(_, ...); return y"),
    backTo("qconv_binary_call", "y = torch__inductor_fx_passes_quantization_qconv_binary(_, ...); return y"),
    backTo("qlinear_call", "y = torch__inductor_fx_passes_quantization_qlinear(_, ...); return y"),
    backTo("qlinear_binary_call", "y = torch__inductor_fx_passes_quantization_qlinear_binary(_, ...); return y"),
};

}  // namespace

std::span<const Rule> quantizedDataRules() { return kDataRules; }
std::span<const Rule> quantizedFunctionCallRules() { return kFunctionCallRules; }
Result<bool> simplifyQuantizedData(Module& module, Rewriter& rewriter) {
    return rewriter.applyRules(module, kDataRules);
}

Result<bool> callQuantizedOperators(Module& module, Rewriter& rewriter) {
    return rewriter.applyRules(module, kFunctionCallRules);
}

}  // namespace cutaway
