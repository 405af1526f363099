#include "engine/ops/conv_kernels.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/arithmetic.h"
#include "engine/ops/double_product.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

/// One pairing of positions: element `large` of the padded side meets element `small` of the strided side under
/// kernel element `kernel`. For a plain convolution the input is large and the output small; transposed, the reverse.
struct Tap {
    int64_t large, small, kernel;
};

/// All taps that lie inside, over the flattened spatial dims.
std::vector<Tap> tapsOf(const ConvolutionGeometry& g) {
    const std::vector<int64_t>& large = g.transposed ? g.out : g.in;
    const std::vector<int64_t>& small = g.transposed ? g.in : g.out;
    if (g.batch == 0) return {};  // whatever the padding says
    std::vector<Tap> taps{{0, 0, 0}};
    for (size_t dim = 0; dim < g.kernel.size(); ++dim) {
        // Windows that lie wholly in the padding have no taps: only `first` to `last` can reach an element.
        const int64_t begin = g.padding[dim] - (g.kernel[dim] - 1) * g.dilation[dim];
        const int64_t first = begin > 0 ? (begin - 1) / g.stride[dim] + 1 : 0;
        const int64_t last = std::min(small[dim] - 1, (large[dim] - 1 + g.padding[dim]) / g.stride[dim]);
        std::vector<Tap> next;
        for (const Tap& tap : taps)
            for (int64_t s = first; s <= last; ++s)
                for (int64_t k = 0; k < g.kernel[dim]; ++k) {
                    const int64_t at = s * g.stride[dim] - g.padding[dim] + k * g.dilation[dim];
                    if (at < 0 || at >= large[dim]) continue;
                    next.push_back(
                        {tap.large * large[dim] + at, tap.small * small[dim] + s, tap.kernel * g.kernel[dim] + k});
                }
        taps = std::move(next);
    }
    return taps;
}

int64_t productOfSizes(const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
}

/// Runs body(input offset, weight offset, output offset) for every multiplication of the convolution.
template <class Body>
void forEachProduct(const ConvolutionGeometry& g, Body&& body) {
    const std::vector<Tap> taps = tapsOf(g);
    const int64_t in = productOfSizes(g.in), out = productOfSizes(g.out), kernel = productOfSizes(g.kernel);
    const int64_t inPerGroup = g.inChannels / g.groups, outPerGroup = g.outChannels / g.groups;
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t group = 0; group < g.groups; ++group)
            for (int64_t o = 0; o < outPerGroup; ++o)
                for (int64_t i = 0; i < inPerGroup; ++i) {
                    const int64_t outChannel = group * outPerGroup + o, inChannel = group * inPerGroup + i;
                    const int64_t inBase = (n * g.inChannels + inChannel) * in,
                                  outBase = (n * g.outChannels + outChannel) * out;
                    const int64_t weightBase =
                        (g.transposed ? inChannel * outPerGroup + o : outChannel * inPerGroup + i) * kernel;
                    for (const Tap& tap : taps)
                        body(inBase + (g.transposed ? tap.small : tap.large), weightBase + tap.kernel,
                             outBase + (g.transposed ? tap.large : tap.small));
                }
}

template <class T>
void addBias(const ConvolutionGeometry& g, const Tensor& bias, std::vector<T>& out) {
    if (!bias.defined()) return;
    const std::vector<T> values = packElements<T>(bias);
    const int64_t spatial = productOfSizes(g.out);
    for (size_t i = 0; i < out.size(); ++i) {
        const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / spatial % g.outChannels);
        out[i] = wrapAdd(out[i], values[channel]);
    }
}

bool libraryServes(DType dtype) { return dtype == DType::F32 || isHalf(dtype); }

/// The convolution that computes the gradient of the input: from outputs to inputs, with the same weights.
ConvolutionGeometry reversed(const ConvolutionGeometry& g) {
    ConvolutionGeometry back = g;
    back.transposed = !g.transposed;
    std::swap(back.in, back.out);
    std::swap(back.inChannels, back.outChannels);
    return back;
}

/// Unfolds the large side of one sample and group into [channels * kernel, small positions], zero outside.
template <class T>
std::vector<T> columns(const ConvolutionGeometry& g, const std::vector<Tap>& taps, const T* data, int64_t channels) {
    const int64_t large = productOfSizes(g.transposed ? g.out : g.in),
                  small = productOfSizes(g.transposed ? g.in : g.out), kernel = productOfSizes(g.kernel);
    std::vector<T> out(static_cast<size_t>(channels * kernel * small), T(0));
    for (int64_t channel = 0; channel < channels; ++channel)
        for (const Tap& tap : taps)
            out[static_cast<size_t>((channel * kernel + tap.kernel) * small + tap.small)] =
                data[channel * large + tap.large];
    return out;
}

/// Unfolding writes zeros for the padding. These leave a sum as it is, to the bit, unless they meet NaN or infinity.
bool allFinite(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}
/// So many channels of an unfolded side stay in the cache.
int64_t channelsAtOnce(int64_t channels, int64_t kernel, int64_t positions) {
    constexpr int64_t kElements = int64_t{1} << 20;
    return std::clamp<int64_t>(kElements / std::max<int64_t>(1, kernel * positions), 1, channels);
}
constexpr int64_t kFewRows = 4;  // of a product: not worth unfolding for

/// As products of matrices over unfolded channels, each sum in the order of forEachProduct. False if that would not be
/// the same, or be slower.
bool convolveDoubles(const ConvolutionGeometry& g, const std::vector<double>& in, const std::vector<double>& weight,
                     std::vector<double>& out) {
    const int64_t inPerGroup = g.inChannels / g.groups, outPerGroup = g.outChannels / g.groups;
    const int64_t kernel = productOfSizes(g.kernel), inSize = productOfSizes(g.in), outSize = productOfSizes(g.out);
    if (outPerGroup < kFewRows || outSize == 0 || inPerGroup == 0 || !allFinite(weight)) return false;
    // Unfolded is the input, by output element. Transposed, an output element meets rising input elements with falling
    // kernel elements, so kernel elements are numbered from the end.
    std::vector<Tap> taps = tapsOf(g);
    ConvolutionGeometry sides = g;
    if (g.transposed) {
        for (Tap& tap : taps) tap = {tap.small, tap.large, kernel - 1 - tap.kernel};
        std::swap(sides.in, sides.out);
    }
    const int64_t step = channelsAtOnce(inPerGroup, kernel, outSize);
    std::vector<double> rows;
    for (int64_t group = 0; group < g.groups; ++group)
        for (int64_t first = 0; first < inPerGroup; first += step) {
            const int64_t channels = std::min(step, inPerGroup - first), depth = channels * kernel;
            rows.assign(static_cast<size_t>(outPerGroup * depth), 0.0);
            for (int64_t o = 0; o < outPerGroup; ++o)
                for (int64_t i = 0; i < channels; ++i)
                    for (int64_t k = 0; k < kernel; ++k) {
                        const int64_t channel = group * inPerGroup + first + i;
                        const int64_t from = g.transposed
                                                 ? (channel * outPerGroup + o) * kernel + kernel - 1 - k
                                                 : ((group * outPerGroup + o) * inPerGroup + first + i) * kernel + k;
                        rows[static_cast<size_t>(o * depth + i * kernel + k)] = weight[static_cast<size_t>(from)];
                    }
            for (int64_t n = 0; n < g.batch; ++n) {
                const std::vector<double> unfolded = columns(
                    sides, taps, in.data() + (n * g.inChannels + group * inPerGroup + first) * inSize, channels);
                addDoubleProduct(outPerGroup, outSize, depth, rows.data(), depth, {unfolded.data(), outSize, 1},
                                 out.data() + (n * g.outChannels + group * outPerGroup) * outSize, outSize);
            }
        }
    return true;
}

/// The same for the gradient of the weights.
bool weightGradientOfDoubles(const ConvolutionGeometry& g, const std::vector<double>& gradient,
                             const std::vector<double>& input, std::vector<double>& out) {
    const std::vector<double>&large = g.transposed ? gradient : input, &small = g.transposed ? input : gradient;
    const int64_t largeChannels = (g.transposed ? g.outChannels : g.inChannels) / g.groups;
    const int64_t smallChannels = (g.transposed ? g.inChannels : g.outChannels) / g.groups;
    const int64_t largeSize = productOfSizes(g.transposed ? g.out : g.in),
                  smallSize = productOfSizes(g.transposed ? g.in : g.out);
    const int64_t kernel = productOfSizes(g.kernel), width = largeChannels * kernel;
    if (smallChannels < kFewRows || smallSize == 0 || width == 0 || !allFinite(small)) return false;
    const std::vector<Tap> taps = tapsOf(g);
    const int64_t step = channelsAtOnce(largeChannels, kernel, smallSize);
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t group = 0; group < g.groups; ++group)
            for (int64_t first = 0; first < largeChannels; first += step) {
                const int64_t channels = std::min(step, largeChannels - first), block = n * g.groups + group;
                const std::vector<double> unfolded =
                    columns(g, taps, large.data() + (block * largeChannels + first) * largeSize, channels);
                addDoubleProduct(smallChannels, channels * kernel, smallSize,
                                 small.data() + block * smallChannels * smallSize, smallSize,
                                 {unfolded.data(), 1, smallSize},
                                 out.data() + group * smallChannels * width + first * kernel, width);
            }
    return true;
}

/// Weight gradient as one matrix product per sample and group over unfolded columns.
bool backWeightByLibrary(const ConvolutionGeometry& g, const Tensor& gradient, const Tensor& input, Tensor& result) {
    const std::vector<Tap> taps = tapsOf(g);
    // The side with the kernel's reach is unfolded; its channels are the second dim of the stored weights.
    const std::vector<float> large = packElements<float>(g.transposed ? gradient : input);
    const std::vector<float> small = packElements<float>(g.transposed ? input : gradient);
    const int64_t largeChannels = (g.transposed ? g.outChannels : g.inChannels) / g.groups;
    const int64_t smallChannels = (g.transposed ? g.inChannels : g.outChannels) / g.groups;
    const int64_t largeSize = productOfSizes(g.transposed ? g.out : g.in),
                  smallSize = productOfSizes(g.transposed ? g.in : g.out);
    const int64_t width = largeChannels * productOfSizes(g.kernel);
    std::vector<float> sum(static_cast<size_t>(result.numel()), 0.0f), part(static_cast<size_t>(smallChannels * width));
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t group = 0; group < g.groups; ++group) {
            const int64_t block = n * g.groups + group;
            const std::vector<float> unfolded =
                columns(g, taps, large.data() + block * largeChannels * largeSize, largeChannels);
            const MatrixView left{small.data() + block * smallChannels * smallSize, smallSize, 1},
                right{unfolded.data(), 1, smallSize};
            if (!libraryGemm(smallChannels, width, smallSize, left, right, part.data())) return false;
            float* target = sum.data() + group * smallChannels * width;
            for (size_t i = 0; i < part.size(); ++i) target[i] += part[i];
        }
    unpackElements(sum, result);
    return true;
}

}  // namespace

void convolvePlainly(const ConvolutionGeometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias,
                     Tensor& result) {
    withAccumulator(result.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(input), w = packElements<T>(weight);
        std::vector<T> out(static_cast<size_t>(result.numel()));
        bool done = false;
        if constexpr (std::is_same_v<T, double>) done = convolveDoubles(g, in, w, out);
        if (!done)
            forEachProduct(g, [&](int64_t i, int64_t k, int64_t o) {
                T& sum = out[static_cast<size_t>(o)];
                sum = wrapAdd(sum, wrapMul(in[static_cast<size_t>(i)], w[static_cast<size_t>(k)]));
            });
        addBias(g, bias, out);
        unpackElements(out, result);
    });
}

void convolve(const ConvolutionGeometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias,
              Tensor& result) {
    if (libraryServes(result.dtype())) {
        const std::vector<float> in = packElements<float>(input), w = packElements<float>(weight);
        const std::vector<float> b = bias.defined() ? packElements<float>(bias) : std::vector<float>();
        std::vector<float> out(static_cast<size_t>(result.numel()));
        if (libraryConvolution(g, in.data(), w.data(), bias.defined() ? b.data() : nullptr, out.data()))
            return unpackElements(out, result);
    }
    convolvePlainly(g, input, weight, bias, result);
}

void convolveBackInputPlainly(const ConvolutionGeometry& g, const Tensor& gradient, const Tensor& weight,
                              Tensor& result) {
    convolvePlainly(reversed(g), gradient, weight, Tensor(), result);
}
void convolveBackInput(const ConvolutionGeometry& g, const Tensor& gradient, const Tensor& weight, Tensor& result) {
    convolve(reversed(g), gradient, weight, Tensor(), result);
}

void convolveBackWeightPlainly(const ConvolutionGeometry& g, const Tensor& gradient, const Tensor& input,
                               Tensor& result) {
    withAccumulator(result.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> in = packElements<T>(input), dy = packElements<T>(gradient);
        std::vector<T> out(static_cast<size_t>(result.numel()));
        bool done = false;
        if constexpr (std::is_same_v<T, double>) done = weightGradientOfDoubles(g, dy, in, out);
        if (!done)
            forEachProduct(g, [&](int64_t i, int64_t k, int64_t o) {
                T& sum = out[static_cast<size_t>(k)];
                sum = wrapAdd(sum, wrapMul(in[static_cast<size_t>(i)], dy[static_cast<size_t>(o)]));
            });
        unpackElements(out, result);
    });
}
void convolveBackWeight(const ConvolutionGeometry& g, const Tensor& gradient, const Tensor& input, Tensor& result) {
    if (!libraryServes(result.dtype()) || !backWeightByLibrary(g, gradient, input, result))
        convolveBackWeightPlainly(g, gradient, input, result);
}

}  // namespace cutaway
