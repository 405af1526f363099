#pragma once
// What happens to sums of products of bytes on their way out of quantized layers, as ops/quantized_call.h says.
#include <algorithm>
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/portable/portable.h"
#include "engine/runtime/portable/quantized_rows.h"

namespace cutaway::portable {

/// The first of these parameters that the operator has; they are called differently in each. Null: it has none.
inline const CtArgument* find(const CtCall& call, std::initializer_list<std::string_view> names) {
    const CallReader reader(call);
    for (const std::string_view name : names)
        if (const CtArgument* const found = reader.find(name)) return found;
    return nullptr;
}
inline double realOf(const CtArgument* argument, double otherwise) {
    return argument ? numberOf<double>(*argument) : otherwise;
}
inline std::string_view wordOf(const CtArgument* argument) {
    return argument && argument->kind == CT_TEXT ? argument->text : "none";
}

/// What happens to a sum of products on its way out.
class Finish {
  public:
    explicit Finish(const Run& run) : m_out(run.out()) {
        const CtCall& call = *run.call;
        const auto tensor = [&](std::initializer_list<std::string_view> names) -> const CtTensor* {
            const CtArgument* const found = find(call, names);
            return found && found->kind == CT_OPERAND ? &run.operands[found->integer] : nullptr;
        };
        const auto floats = [](const CtTensor& from) {
            const Strided strided(from);
            std::vector<float> all(static_cast<size_t>(strided.elements()));
            if (!all.empty()) loadAll(strided, all.data());
            return all;
        };
        m_inputScale = static_cast<float>(number<double>(run, find(call, {"x_scale"}), 1));
        m_scales = floats(*tensor({"w_scale"}));
        if (const CtTensor* const bias = tensor({"bias"})) m_bias = floats(*bias);
        m_unary = wordOf(find(call, {"attr", "post_op_name", "unary_attr", "unary_post_op"}));
        m_algorithm =
            wordOf(find(call, {"algorithm", "post_op_algorithm", "unary_algorithm", "unary_post_op_algorithm"}));
        const CtArgument* const scalars =
            find(call, {"scalars", "post_op_args", "unary_scalars", "unary_post_op_args"});
        for (int64_t i = 0; scalars && i < std::min<int64_t>(scalars->integer, 2); ++i)
            m_scalars[i] = numberOf<float>(scalars->items[i]);
        m_outputScale = 1.0f / static_cast<float>(realOf(find(call, {"output_scale"}), 1));
        m_outputZero = static_cast<float>(realOf(find(call, {"output_zero_point"}), 0));
        if (wordOf(find(call, {"binary_attr", "binary_post_op"})) == "none") return;
        const CtTensor& other = *tensor({"qaccum", "other"});
        const CtTensor& result = run.results[0];
        m_adds = true;
        m_other = broadcast(Strided(other), result.sizes, result.rank);
        m_otherScale = static_cast<float>(realOf(find(call, {"accum_scale", "other_scale"}), 1));
        m_otherZero = static_cast<float>(realOf(find(call, {"accum_zero_point", "other_zp"}), 0));
    }
    /// A literal, or the one element of an operand.
    template <class T>
    static T number(const Run& run, const CtArgument* argument, T otherwise) {
        if (argument == nullptr) return otherwise;
        if (argument->kind != CT_OPERAND) return numberOf<T>(*argument);
        const Strided tensor(run.operands[argument->integer]);
        return loadOne<T>(tensor.dtype, tensor.data);
    }

    /// `sums` of all channels, along dim `channels`, of the row of that number. `y`: room for as many.
    void store(const int32_t* sums, int64_t row, int32_t channels, float* y) const {
        const int64_t width = m_out.sizes[channels];
        scaleSums(sums, width, m_inputScale, m_scales.data(), m_scales.size() == 1 ? 0 : 1,
                  m_bias.empty() ? nullptr : m_bias.data(), y);
        if (m_adds) add(row, channels, width, y);
        if (m_unary == "relu") clipNegative(y, width);
        else if (m_unary != "none")
            for (int64_t n = 0; n < width; ++n) y[n] = applied(y[n]);
        const int64_t to = m_out.offsetOf(row, channels), step = m_out.strides[channels];
        if (m_out.dtype == CT_U8) storeBytes(y, 0.0f, to, step, width);
        else if (m_out.dtype == CT_I8) storeBytes(y, -128.0f, to, step, width);
        else portable::store(m_out.dtype, m_out.at(to), step, width, y);
    }

  private:
    void add(int64_t row, int32_t channels, int64_t width, float* y) const {
        const int64_t from = m_other.offsetOf(row, channels), step = m_other.strides[channels];
        float other[256];
        for (int64_t n = 0; n < width; n += static_cast<int64_t>(std::size(other))) {
            const int64_t count = std::min(width - n, static_cast<int64_t>(std::size(other)));
            load(m_other.dtype, m_other.at(from + n * step), step, count, other);
            for (int64_t k = 0; k < count; ++k) y[n + k] += (other[k] - m_otherZero) * m_otherScale;
        }
    }
    /// PyTorch's functions in f32, as its kernels have them.
    float applied(float y) const {
        if (m_unary == "hardtanh") return std::min(std::max(y, m_scalars[0]), m_scalars[1]);
        if (m_unary == "hardswish") return y * std::min(std::max(y + 3.0f, 0.0f), 6.0f) / 6.0f;
        if (m_unary == "swish") return y / (1.0f + std::exp(-y));
        if (m_unary == "leaky_relu") return y > 0 ? y : y * m_scalars[0];
        if (m_unary == "tanh") return std::tanh(y);
        if (m_unary == "gelu" && m_algorithm == "none") return 0.5f * y * (1.0f + std::erf(y * 0.70710678118654752f));
        if (m_unary == "gelu") return 0.5f * y * (1.0f + std::tanh(0.79788456080286536f * (y + 0.044715f * y * y * y)));
        return y;
    }
    /// `low`: the least number of the dtype.
    void storeBytes(const float* y, float low, int64_t to, int64_t step, int64_t width) const {
        auto* const bytes = reinterpret_cast<uint8_t*>(m_out.data) + to;
        if (step == 1) return roundToBytes(y, width, m_outputScale, m_outputZero, low, bytes);
        for (int64_t n = 0; n < width; ++n) roundToBytes(y + n, 1, m_outputScale, m_outputZero, low, bytes + n * step);
    }

    Strided m_out, m_other{CtTensor{}};
    bool m_adds = false;
    std::string_view m_unary, m_algorithm;
    float m_scalars[2] = {}, m_inputScale = 1, m_outputScale = 1, m_outputZero = 0, m_otherScale = 1, m_otherZero = 0;
    std::vector<float> m_scales, m_bias;
};

}  // namespace cutaway::portable
