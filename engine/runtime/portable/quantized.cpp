// Quantized layers of oneDNN's operators: products of bytes summed exactly, then scaled, added to and stored as
// ops/quantized_call.h says.
#include <algorithm>
#include <vector>

#include "engine/runtime/portable/quantized_finish.h"

namespace cutaway::portable {
namespace {

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
    /// The input's offset for each element of the window at the position `number` of a row; -1 outside.
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

void quantizedConvolution(const Run& run) {
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

/// out = f(product, column): rows times the columns of a weight, which lie `step` apart, summed in double and rounded
/// to float.
template <class F>
void narrowProduct(const Run& run, const Strided& weight, int32_t columns, F f) {
    const Strided x = run.in(0), out = run.out();
    const int32_t last = x.rank - 1, deep = 1 - columns;
    const int64_t width = weight.sizes[columns], inner = weight.sizes[deep];
    if (out.elements() == 0) return;
    std::vector<float> w(static_cast<size_t>(width * inner));  // [column, inner]
    for (int64_t n = 0; n < width; ++n)
        load(weight.dtype, weight.at(n * weight.strides[columns]), weight.strides[deep], inner, w.data() + n * inner);
    run.share(out.elements() / width, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<double> line(static_cast<size_t>(inner));
        std::vector<float> y(static_cast<size_t>(width));
        for (int64_t row = begin; row < end; ++row) {
            load(x.dtype, x.at(x.offsetOf(row, last)), x.strides[last], inner, line.data());
            for (int64_t n = 0; n < width; ++n) {
                double sum = 0;
                for (int64_t k = 0; k < inner; ++k)
                    sum += line[static_cast<size_t>(k)] * static_cast<double>(w[static_cast<size_t>(n * inner + k)]);
                y[static_cast<size_t>(n)] = f(static_cast<float>(sum), n);
            }
            storeRange(out, row * width, (row + 1) * width, y.data());
        }
    });
}
/// Row by row, in float.
std::vector<float> floatsOf(const Strided& tensor) {
    std::vector<float> all(static_cast<size_t>(tensor.elements()));
    if (!all.empty()) loadAll(tensor, all.data());
    return all;
}
/// (self, mat2 of [columns, inner] bytes, scales)
void int8Product(const Run& run) {
    const std::vector<float> scales = floatsOf(run.in(2));
    narrowProduct(run, run.in(1), 0,
                  [&](float y, int64_t n) { return y * scales[scales.size() == 1 ? 0 : static_cast<size_t>(n)]; });
}
/// (x, w of [inner, columns] half floats, bias)
template <bool relu>
void halfLinear(const Run& run) {
    const std::vector<float> bias = isGiven(*run.call, 2) ? floatsOf(run.in(2)) : std::vector<float>();
    narrowProduct(run, run.in(1), 1, [&](float y, int64_t n) {
        y += bias.empty() ? 0.0f : bias[static_cast<size_t>(n)];
        return relu ? std::max(y, 0.0f) : y;
    });
}

constexpr Function kQuantizedFunctions[] = {
    {"aten._weight_int8pack_mm.default", int8Product},
    {"onednn.linear_dynamic_fp16.default", halfLinear<false>},
    {"onednn.linear_relu_dynamic_fp16.default", halfLinear<true>},
    {"onednn.qlinear_pointwise.default", linear},
    {"onednn.qlinear_pointwise.tensor", linear},
    {"onednn.qlinear_pointwise.binary", linear},
    {"onednn.qlinear_pointwise.binary_tensor", linear},
    {"onednn.qconv_pointwise.default", quantizedConvolution},
    {"onednn.qconv_pointwise.tensor", quantizedConvolution},
    {"onednn.qconv1d_pointwise.default", quantizedConvolution},
    {"onednn.qconv2d_pointwise.default", quantizedConvolution},
    {"onednn.qconv2d_pointwise.tensor", quantizedConvolution},
    {"onednn.qconv2d_pointwise.binary", quantizedConvolution},
    {"onednn.qconv2d_pointwise.binary_tensor", quantizedConvolution},
    {"onednn.qconv3d_pointwise.default", quantizedConvolution},
};

}  // namespace

std::span<const Function> quantizedFunctions() { return kQuantizedFunctions; }

}  // namespace cutaway::portable
