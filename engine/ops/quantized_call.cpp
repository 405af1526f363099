#include "engine/ops/quantized_call.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/packed.h"

namespace cutaway {
namespace {

bool isFloatOutput(DType dtype) { return dtype == DType::F32 || dtype == DType::BF16; }
std::string nameOf(DType dtype) { return std::string(info(dtype).torchName); }
bool isOneOf(std::string_view name, std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}
std::string listed(std::span<const std::string_view> names) {
    std::string out;
    for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}
/// The first of these parameters that the operator has.
std::string_view paramOf(const InferContext& c, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
        if (c.op().schema()->find(name) >= 0) return name;
    return {};
}

Result<void> readUnary(const InferContext& c, QuantizedCall& call, std::span<const std::string_view> unaries) {
    const std::string_view name = paramOf(c, {"attr", "post_op_name", "unary_attr", "unary_post_op"});
    call.unary = c.has(name) ? c.text(name) : "none";
    call.algorithm =
        c.text(paramOf(c, {"algorithm", "post_op_algorithm", "unary_algorithm", "unary_post_op_algorithm"}));
    const Argument& scalars = c.arg(paramOf(c, {"scalars", "post_op_args", "unary_scalars", "unary_post_op_args"}));
    if (const auto* items = scalars.list())
        for (const Argument& item : *items) {
            if (!item.asReal()) return c.fail("'" + std::string(name) + "' needs literal numbers");
            call.scalars.push_back(*item.asReal());
        }
    if (!isOneOf(call.unary, unaries))
        return c.fail("knows no post-op '" + call.unary + "' here; there are " + listed(unaries));
    if (call.unary == "gelu" && call.algorithm != "none" && call.algorithm != "tanh")
        return c.fail("computes gelu by 'none' or 'tanh', not by '" + call.algorithm + "'");
    const size_t numbers = call.unary == "hardtanh" ? 2 : call.unary == "leaky_relu" ? 1 : call.scalars.size();
    if (call.scalars.size() != numbers)
        return c.fail(call.unary + " needs " + std::to_string(numbers) + " numbers, not " +
                      std::to_string(call.scalars.size()));
    return {};
}

Result<void> readBinary(const InferContext& c, QuantizedCall& call, std::span<const std::string_view> binaries) {
    const std::string_view name = paramOf(c, {"binary_attr", "binary_post_op"});
    if (name.empty()) return {};
    call.binary = c.text(name);
    call.otherScale = c.real(paramOf(c, {"accum_scale", "other_scale"}), 1);
    CT_TRY(call.otherZero, c.integer(paramOf(c, {"accum_zero_point", "other_zp"})));
    if (!isOneOf(call.binary, binaries))
        return c.fail("knows no binary post-op '" + call.binary + "' here; there are " + listed(binaries));
    if (c.real(paramOf(c, {"alpha", "binary_alpha"}), 1) != 1) return c.fail("adds with an alpha of 1 only");
    const bool scaled = call.otherScale != 1 || call.otherZero != 0;
    if (call.adds() && scaled && (call.binary == "add" || isFloatOutput(call.output)))
        return c.fail("takes a scale and a zero point of the other operand only where it sums quantized numbers");
    return {};
}

Result<void> checkSize(const InferContext& c, std::string_view param, const SymInt& wanted, bool orOne) {
    CT_TRY(const TensorType type, c.tensor(param));
    const SymInt count = numel(type.sizes);
    if (!count.isInt() || count == wanted || (orOne && count == SymInt(1))) return {};
    if (!wanted.isInt()) return {};
    return c.fail("'" + std::string(param) + "' has " + count.text() + " elements; needs " + wanted.text());
}
Result<void> checkInputParameter(const InferContext& c, std::string_view param) {
    if (!c.has(param) || c.arg(param).node() == nullptr) return {};
    CT_TRY(const TensorType type, c.tensor(param));
    if (isComplex(type.dtype)) return c.fail("'" + std::string(param) + "' is not a real number");
    return checkSize(c, param, 1, true);
}

/// PyTorch's functions in f32, as its kernels have them.
float applied(const QuantizedCall& call, float y) {
    const auto& [output, name, algorithm, binary, scalars, s1, s2, z1, z2] = call;
    if (name == "relu") return std::max(y, 0.0f);
    if (name == "hardtanh")
        return std::min(std::max(y, static_cast<float>(scalars[0])), static_cast<float>(scalars[1]));
    if (name == "hardswish") return y * std::min(std::max(y + 3.0f, 0.0f), 6.0f) / 6.0f;
    if (name == "swish") return y / (1.0f + std::exp(-y));
    if (name == "leaky_relu") return y > 0 ? y : y * static_cast<float>(scalars[0]);
    if (name == "tanh") return std::tanh(y);
    if (name == "gelu" && algorithm == "none") return 0.5f * y * (1.0f + std::erf(y * 0.70710678118654752f));
    if (name == "gelu") return 0.5f * y * (1.0f + std::tanh(0.79788456080286536f * (y + 0.044715f * y * y * y)));
    return y;
}

int32_t less(int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)); }
float less(float a, float b) { return a - b; }

/// Clamps, then rounds halves to even by adding and subtracting kNoFraction, near which floats have no fraction.
template <class Byte>
void storeBytes(const float* y, float scale, float zero, float low, Byte* out, int64_t count) {
    constexpr float kNoFraction = 12582912.0f;  // 1.5 * 2^23
    for (int64_t n = 0; n < count; ++n) {
        const float within = std::min(std::max(low, y[n] * scale + zero), low + 255.0f);
        out[n] = static_cast<Byte>(static_cast<int32_t>((within + kNoFraction) - kNoFraction));
    }
}

}  // namespace

Result<QuantizedCall> readQuantizedCall(const InferContext& c, std::span<const std::string_view> unaries,
                                        std::span<const std::string_view> binaries) {
    QuantizedCall call;
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    call.output = c.dtype("output_dtype").value_or(input.dtype);
    call.outputScale = c.real("output_scale", 1);
    CT_TRY(call.outputZero, c.integer("output_zero_point"));
    constexpr DType kOutputs[] = {DType::F32, DType::BF16, DType::U8, DType::I8, DType::F8E4M3FN};
    if (std::find(std::begin(kOutputs), std::end(kOutputs), call.output) == std::end(kOutputs))
        return c.fail("gives float32, bfloat16, uint8, int8 and float8_e4m3fn, not " + nameOf(call.output));
    if (isFloatOutput(call.output) && (call.outputScale != 1 || call.outputZero != 0))
        return c.fail("needs an output scale of 1 and a zero point of 0 for results of " + nameOf(call.output));
    if (call.output == DType::F8E4M3FN && call.outputZero != 0) return c.fail("8-bit floats have no zero point");
    CT_TRY_VOID(readBinary(c, call, binaries));
    CT_TRY_VOID(readUnary(c, call, unaries));
    return call;
}

bool areFloatBytes(const TensorType& input) { return input.dtype == DType::F8E4M3FN; }

Result<void> checkQuantizedOperands(const InferContext& c, const TensorType& input, const TensorType& weight,
                                    const SymInt& channels) {
    const DType expected = areFloatBytes(input) ? DType::F8E4M3FN : DType::I8;
    if (weight.dtype != expected)
        return c.fail("needs a weight of " + nameOf(expected) + " for an input of " + nameOf(input.dtype) + ", not " +
                      nameOf(weight.dtype));
    CT_TRY(const TensorType scale, c.tensor("w_scale"));
    if (scale.dtype != DType::F32) return c.fail("needs weight scales of float32, not " + nameOf(scale.dtype));
    CT_TRY_VOID(checkSize(c, "w_scale", channels, true));
    CT_TRY_VOID(checkInputParameter(c, "x_scale"));
    CT_TRY_VOID(checkInputParameter(c, "x_zero_point"));
    if (!c.has("bias")) return {};
    CT_TRY(const TensorType bias, c.tensor("bias"));
    if (bias.dtype != DType::F32 && !isHalf(bias.dtype)) return c.fail("needs a bias of float32, float16 or bfloat16");
    return checkSize(c, "bias", channels, false);
}

/// oneDNN's zero points have 32 bits.
int64_t inputZero(const EvalContext& c) {
    return c.has("x_zero_point") ? static_cast<int32_t>(toInt(c.number("x_zero_point"))) : 0;
}

QuantizedFinish::QuantizedFinish(const EvalContext& c, QuantizedCall call, Tensor result, const Tensor& other)
    : m_call(std::move(call)), m_result(std::move(result)), m_columns(m_result.size(1)) {
    m_inputScale = static_cast<float>(toDouble(c.number("x_scale")));
    m_scales = packElements<float>(c.in("w_scale"));
    if (m_scales.size() == 1) m_scales.assign(static_cast<size_t>(m_columns), m_scales[0]);
    if (c.has("bias")) m_bias = packElements<float>(c.in("bias"));
    if (!other.defined()) return;
    m_other = packElements<float>(other);
    const auto scale = static_cast<float>(m_call.otherScale), zero = static_cast<float>(m_call.otherZero);
    for (float& value : m_other) value = (value - zero) * scale;
}

template <class T>
void QuantizedFinish::run(const T* sums, const T* zeros, int64_t row, int64_t count, int64_t first,
                          int64_t width) const {
    std::vector<float> values(static_cast<size_t>(width));
    float* y = values.data();
    const float* scales = m_scales.data() + first;
    const float* bias = m_bias.empty() ? nullptr : m_bias.data() + first;
    const float inputScale = m_inputScale;  // a copy, since floats are written meanwhile
    for (int64_t i = 0; i < count; ++i, sums += width) {
        if (zeros)
            for (int64_t n = 0; n < width; ++n)
                y[n] = static_cast<float>(less(sums[n], zeros[n])) * inputScale * scales[n];
        else
            for (int64_t n = 0; n < width; ++n) y[n] = static_cast<float>(sums[n]) * inputScale * scales[n];
        if (bias)
            for (int64_t n = 0; n < width; ++n) y[n] += bias[n];
        finish(y, row + i, first, width);
    }
}
template void QuantizedFinish::run(const int32_t*, const int32_t*, int64_t, int64_t, int64_t, int64_t) const;
template void QuantizedFinish::run(const float*, const float*, int64_t, int64_t, int64_t, int64_t) const;

void QuantizedFinish::finish(float* y, int64_t row, int64_t first, int64_t width) const {
    const int64_t at = row * m_columns + first;
    if (!m_other.empty()) {
        const float* other = m_other.data() + at;
        for (int64_t n = 0; n < width; ++n) y[n] += other[n];
    }
    if (m_call.unary == "relu") {
        for (int64_t n = 0; n < width; ++n) y[n] = std::max(y[n], 0.0f);
    } else if (m_call.unary != "none") {
        for (int64_t n = 0; n < width; ++n) y[n] = applied(m_call, y[n]);
    }
    auto* target = static_cast<std::byte*>(m_result.data()) + at * byteSize(m_call.output);
    const float scale = 1.0f / static_cast<float>(m_call.outputScale), zero = static_cast<float>(m_call.outputZero);
    if (m_call.output == DType::U8) {
        storeBytes(y, scale, zero, 0.0f, reinterpret_cast<uint8_t*>(target), width);
    } else if (m_call.output == DType::I8) {
        storeBytes(y, scale, zero, -128.0f, reinterpret_cast<int8_t*>(target), width);
    } else {
        if (m_call.output == DType::F8E4M3FN)
            for (int64_t n = 0; n < width; ++n) y[n] = std::clamp(y[n] * scale, -448.0f, 448.0f);
        storeElements(m_call.output, target, 1, width, y);
    }
}

}  // namespace cutaway
