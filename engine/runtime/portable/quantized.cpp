// Quantized layers of oneDNN's operators: products of bytes summed exactly, then scaled, added to and stored as
// ops/quantized_call.h says.
#include <algorithm>
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// The first of these parameters that the operator has; they are called differently in each. Null: it has none.
const CtArgument* find(const CtCall& call, std::initializer_list<std::string_view> names) {
    const CallReader reader(call);
    for (const std::string_view name : names)
        if (const CtArgument* const found = reader.find(name)) return found;
    return nullptr;
}
double realOf(const CtArgument* argument, double otherwise) {
    return argument ? numberOf<double>(*argument) : otherwise;
}
std::string_view wordOf(const CtArgument* argument) {
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
        T value{};
        const Strided tensor(run.operands[argument->integer]);
        load(tensor.dtype, tensor.data, 1, 1, &value);
        return value;
    }

    /// `sums` of all channels, along dim `channels`, of the row of that number. `y`: room for as many.
    void store(const int32_t* sums, int64_t row, int32_t channels, float* y) const {
        const int64_t width = m_out.sizes[channels];
        const bool one = m_scales.size() == 1;
        for (int64_t n = 0; n < width; ++n)
            y[n] = static_cast<float>(sums[n]) * m_inputScale * m_scales[one ? 0 : static_cast<size_t>(n)];
        for (int64_t n = 0; !m_bias.empty() && n < width; ++n) y[n] += m_bias[static_cast<size_t>(n)];
        if (m_adds) add(row, channels, width, y);
        if (m_unary != "none")
            for (int64_t n = 0; n < width; ++n) y[n] = applied(y[n]);
        const int64_t to = m_out.offsetOf(row, channels), step = m_out.strides[channels];
        if (m_out.dtype == CT_U8) storeBytes<uint8_t>(y, 0.0f, to, step, width);
        else if (m_out.dtype == CT_I8) storeBytes<int8_t>(y, -128.0f, to, step, width);
        else portable::store(m_out.dtype, m_out.at(to), step, width, y);
    }

  private:
    void add(int64_t row, int32_t channels, int64_t width, float* y) const {
        const int64_t from = m_other.offsetOf(row, channels), step = m_other.strides[channels];
        for (int64_t n = 0; n < width; ++n) {
            float other = 0;
            load(m_other.dtype, m_other.at(from + n * step), 1, 1, &other);
            y[n] += (other - m_otherZero) * m_otherScale;
        }
    }
    /// PyTorch's functions in f32, as its kernels have them.
    float applied(float y) const {
        if (m_unary == "relu") return std::max(y, 0.0f);
        if (m_unary == "hardtanh") return std::min(std::max(y, m_scalars[0]), m_scalars[1]);
        if (m_unary == "hardswish") return y * std::min(std::max(y + 3.0f, 0.0f), 6.0f) / 6.0f;
        if (m_unary == "swish") return y / (1.0f + std::exp(-y));
        if (m_unary == "leaky_relu") return y > 0 ? y : y * m_scalars[0];
        if (m_unary == "tanh") return std::tanh(y);
        if (m_unary == "gelu" && m_algorithm == "none") return 0.5f * y * (1.0f + std::erf(y * 0.70710678118654752f));
        if (m_unary == "gelu") return 0.5f * y * (1.0f + std::tanh(0.79788456080286536f * (y + 0.044715f * y * y * y)));
        return y;
    }
    /// Within the range, so that adding this number leaves an integer, halves going to the even one.
    template <class Byte>
    void storeBytes(const float* y, float low, int64_t to, int64_t step, int64_t width) const {
        constexpr float kNoFraction = 12582912.0f;  // 1.5 * 2^23
        auto* const bytes = reinterpret_cast<Byte*>(m_out.data);
        for (int64_t n = 0; n < width; ++n) {
            const float within = std::min(std::max(low, y[n] * m_outputScale + m_outputZero), low + 255.0f);
            bytes[to + n * step] = static_cast<Byte>(static_cast<int32_t>((within + kNoFraction) - kNoFraction));
        }
    }

    Strided m_out, m_other{CtTensor{}};
    bool m_adds = false;
    std::string_view m_unary, m_algorithm;
    float m_scalars[2] = {}, m_inputScale = 1, m_outputScale = 1, m_outputZero = 0, m_otherScale = 1, m_otherZero = 0;
    std::vector<float> m_scales, m_bias;
};

/// Modulo 2^32, as all sums here.
template <class T>
int32_t dot(const T* a, const T* b, int64_t count) {
    uint32_t total = 0;
    for (int64_t k = 0; k < count; ++k)
        total += static_cast<uint32_t>(static_cast<int32_t>(a[k])) * static_cast<uint32_t>(static_cast<int32_t>(b[k]));
    return static_cast<int32_t>(total);
}
/// body(tag of the type that holds an input less its zero point, the zero point).
template <class Body>
void withZero(const Run& run, Body&& body) {
    const int64_t zero = Finish::number<int64_t>(run, find(*run.call, {"x_zero_point"}), 0);
    if (zero >= -16384 && zero <= 16384) body(int16_t{}, static_cast<int32_t>(zero));
    else body(int32_t{}, static_cast<int32_t>(static_cast<uint32_t>(zero)));
}
template <class T>
T lessZero(int64_t number, int32_t zero) {
    return static_cast<T>(static_cast<uint32_t>(number) - static_cast<uint32_t>(zero));
}

void linear(const Run& run) {
    const Strided out = run.out(), x = run.in(0);
    const int32_t last = out.rank - 1;
    if (out.elements() == 0) return;
    const Strided w(run.operands[find(*run.call, {"qw"})->integer]);
    const int64_t inner = w.sizes[0], columns = w.sizes[1];
    const Finish finish(run);
    withZero(run, [&](auto tag, int32_t zero) {
        using T = decltype(tag);
        std::vector<T> weight(static_cast<size_t>(columns * inner));  // [column, inner]
        for (int64_t n = 0; n < columns; ++n)
            load(w.dtype, w.at(n * w.strides[1]), w.strides[0], inner, weight.data() + n * inner);
        run.share(out.elements() / columns, [&](int64_t, int64_t begin, int64_t end) {
            std::vector<T> line(static_cast<size_t>(inner));
            std::vector<int64_t> given(static_cast<size_t>(inner));
            std::vector<int32_t> sums(static_cast<size_t>(columns));
            std::vector<float> y(static_cast<size_t>(columns));
            for (int64_t row = begin; row < end; ++row) {
                load(x.dtype, x.at(x.offsetOf(row, x.rank - 1)), x.strides[x.rank - 1], inner, given.data());
                for (size_t k = 0; k < line.size(); ++k) line[k] = lessZero<T>(given[k], zero);
                for (int64_t n = 0; n < columns; ++n)
                    sums[static_cast<size_t>(n)] = dot(line.data(), weight.data() + n * inner, inner);
                finish.store(sums.data(), row, last, y.data());
            }
        });
    });
}

/// Where a convolution's windows lie.
struct Windows {
    int32_t dims;
    std::vector<int64_t> stride, padding, dilation;
    int64_t taps = 1, groups;

    Windows(const CtCall& call, const Strided& w)
        : dims(w.rank - 2),
          stride(CallReader(call).integers("stride", static_cast<size_t>(dims))),
          padding(CallReader(call).integers("padding", static_cast<size_t>(dims))),
          dilation(CallReader(call).integers("dilation", static_cast<size_t>(dims))),
          groups(find(call, {"groups"})->integer) {
        for (int32_t d = 0; d < dims; ++d) taps *= w.sizes[d + 2];
    }
    /// Of each element of the window at the position `number` of a row the input's offset; -1 outside.
    void placesOf(int64_t number, const Strided& x, const Strided& w, const Strided& y, int64_t* places) const {
        int64_t position[CT_MAX_RANK];
        for (int32_t d = dims; d-- > 0; number /= y.sizes[d + 2]) position[d] = number % y.sizes[d + 2];
        for (int64_t tap = 0; tap < taps; ++tap) {
            int64_t rest = tap, offset = 0;
            for (int32_t d = dims; d-- > 0; rest /= w.sizes[d + 2]) {
                const auto at = static_cast<size_t>(d);
                const int64_t in = position[d] * stride[at] - padding[at] + rest % w.sizes[d + 2] * dilation[at];
                if (in < 0 || in >= x.sizes[d + 2]) offset = -1;
                if (offset >= 0) offset += in * x.strides[d + 2];
            }
            places[tap] = offset;
        }
    }
};

void convolution(const Run& run) {
    const Strided out = run.out(), x = run.in(0), w(run.operands[find(*run.call, {"qw"})->integer]);
    if (out.elements() == 0) return;
    const Windows windows(*run.call, w);
    const int64_t channels = out.sizes[1], each = w.sizes[1], inner = windows.taps * each,
                  perGroup = channels / windows.groups, rows = out.elements() / channels,
                  positions = rows / out.sizes[0];
    const Finish finish(run);
    withZero(run, [&](auto tag, int32_t zero) {
        using T = decltype(tag);
        std::vector<T> weight(static_cast<size_t>(channels * inner));  // [channel, tap, input channel]
        for (int64_t n = 0; n < channels; ++n)
            for (int64_t tap = 0; tap < windows.taps; ++tap) {
                int64_t rest = tap, offset = n * w.strides[0];
                for (int32_t d = windows.dims; d-- > 0; rest /= w.sizes[d + 2])
                    offset += rest % w.sizes[d + 2] * w.strides[d + 2];
                load(w.dtype, w.at(offset), w.strides[1], each, weight.data() + n * inner + tap * each);
            }
        run.share(rows, [&](int64_t, int64_t begin, int64_t end) {
            std::vector<int64_t> places(static_cast<size_t>(windows.taps)), given(static_cast<size_t>(each));
            std::vector<T> window(static_cast<size_t>(inner));
            std::vector<int32_t> sums(static_cast<size_t>(channels));
            std::vector<float> y(static_cast<size_t>(channels));
            for (int64_t row = begin; row < end; ++row) {
                windows.placesOf(row % positions, x, w, out, places.data());
                for (int64_t group = 0; group < windows.groups; ++group) {
                    const int64_t first = row / positions * x.strides[0] + group * each * x.strides[1];
                    for (int64_t tap = 0; tap < windows.taps; ++tap) {
                        const int64_t place = places[static_cast<size_t>(tap)];
                        T* const to = window.data() + tap * each;
                        if (place < 0) {
                            std::fill_n(to, each, T{0});
                            continue;
                        }
                        load(x.dtype, x.at(first + place), x.strides[1], each, given.data());
                        for (int64_t c = 0; c < each; ++c) to[c] = lessZero<T>(given[static_cast<size_t>(c)], zero);
                    }
                    for (int64_t n = group * perGroup; n < (group + 1) * perGroup; ++n)
                        sums[static_cast<size_t>(n)] = dot(window.data(), weight.data() + n * inner, inner);
                }
                finish.store(sums.data(), row, 1, y.data());
            }
        });
    });
}

constexpr Function kFunctions[] = {
    {"onednn.qlinear_pointwise.default", linear},
    {"onednn.qlinear_pointwise.tensor", linear},
    {"onednn.qconv_pointwise.default", convolution},
    {"onednn.qconv_pointwise.tensor", convolution},
    {"onednn.qconv1d_pointwise.default", convolution},
    {"onednn.qconv2d_pointwise.default", convolution},
    {"onednn.qconv2d_pointwise.tensor", convolution},
    {"onednn.qconv2d_pointwise.binary", convolution},
    {"onednn.qconv2d_pointwise.binary_tensor", convolution},
    {"onednn.qconv3d_pointwise.default", convolution},
};

}  // namespace

std::span<const Function> quantizedFunctions() { return kFunctions; }

}  // namespace cutaway::portable
