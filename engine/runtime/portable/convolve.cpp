// Convolutions of all dtypes, and the gradients of input, weight and bias: floats summed in double. Each element is
// summed channel by channel, and in one by the positions of the smaller side, the first dim outermost.
#include <array>
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

constexpr size_t kDims = 3;
using Sizes = std::array<int64_t, kDims>;

int64_t volumeOf(const Sizes& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/// Dims that the tensors lack are of size 1. `large` is the side that the kernel reaches over: what is convolved, or
/// the result of a transposed convolution.
struct Geometry {
    Sizes large{1, 1, 1}, small{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
    int64_t batch, inChannels, outChannels, groups;
    bool transposed;

    Geometry(const CtCall& call, const Strided& in, const Strided& weight, const Strided& out)
        : batch(in.sizes[0]), inChannels(in.sizes[1]), outChannels(out.sizes[1]) {
        const CallReader reader(call);
        groups = reader.find("groups")->integer;
        transposed = reader.flag("transposed");
        const auto dims = static_cast<size_t>(in.rank - 2), first = kDims - dims;
        const std::vector<int64_t> steps = reader.integers("stride", dims), around = reader.integers("padding", dims),
                                   apart = reader.integers("dilation", dims);
        const Strided &wide = transposed ? out : in, &narrow = transposed ? in : out;
        for (size_t d = 0; d < dims; ++d) {
            large[first + d] = wide.sizes[d + 2];
            small[first + d] = narrow.sizes[d + 2];
            kernel[first + d] = weight.sizes[d + 2];
            stride[first + d] = steps[d];
            padding[first + d] = around[d];
            dilation[first + d] = apart[d];
        }
    }
    /// The convolution that leads from the result's gradient to the input's, with the same weights.
    Geometry reversed() const {
        Geometry back = *this;
        back.transposed = !transposed;
        std::swap(back.inChannels, back.outChannels);
        return back;
    }
    int64_t inPerGroup() const { return inChannels / groups; }
    int64_t outPerGroup() const { return outChannels / groups; }
    /// Where the kernel of a pair of channels begins.
    int64_t kernelAt(int64_t inChannel, int64_t outChannel) const {
        const int64_t pair = transposed ? inChannel * outPerGroup() + outChannel % outPerGroup()
                                        : outChannel * inPerGroup() + inChannel % inPerGroup();
        return pair * volumeOf(kernel);
    }
    /// body(first place in the large plane, first in the small one, how many follow) for each row of positions at which
    /// an element of the kernel meets the large plane; steps are 1 in the small plane.
    template <class Body>
    void forRows(int64_t element, Body&& body) const {
        Sizes shift, first, last;
        for (size_t d = kDims; d-- > 0; element /= kernel[d]) {
            shift[d] = element % kernel[d] * dilation[d] - padding[d];
            first[d] = shift[d] < 0 ? (-shift[d] + stride[d] - 1) / stride[d] : 0;
            const int64_t room = large[d] - 1 - shift[d];
            last[d] = room < 0 ? -1 : std::min(small[d] - 1, room / stride[d]);
            if (first[d] > last[d]) return;
        }
        for (int64_t a = first[0]; a <= last[0]; ++a)
            for (int64_t b = first[1]; b <= last[1]; ++b) {
                const int64_t y = a * stride[0] + shift[0], x = b * stride[1] + shift[1];
                body((y * large[1] + x) * large[2] + first[2] * stride[2] + shift[2],
                     (a * small[1] + b) * small[2] + first[2], last[2] - first[2] + 1);
            }
    }
};

template <class T>
std::vector<T> allOf(const Strided& tensor) {
    std::vector<T> elements(static_cast<size_t>(tensor.elements()));
    if (!elements.empty()) loadAll(tensor, elements.data());
    return elements;
}

template <class T>
void convolveAs(const Run& run, const Geometry& g, const Strided& input, const Strided& weight, const Strided* bias,
                const Strided& out) {
    const std::vector<T> in = allOf<T>(input), w = allOf<T>(weight), added = bias ? allOf<T>(*bias) : std::vector<T>();
    const int64_t inPlane = volumeOf(g.transposed ? g.small : g.large),
                  outPlane = volumeOf(g.transposed ? g.large : g.small), taps = volumeOf(g.kernel), step = g.stride[2];
    run.share(g.batch * g.outChannels, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<T> sums(static_cast<size_t>(outPlane));
        for (int64_t plane = begin; plane < end; ++plane) {
            const int64_t n = plane / g.outChannels, o = plane % g.outChannels;
            std::fill(sums.begin(), sums.end(), T{});
            for (int64_t i = 0; i < g.inPerGroup(); ++i) {
                const int64_t channel = o / g.outPerGroup() * g.inPerGroup() + i;
                const T* const from = in.data() + (n * g.inChannels + channel) * inPlane;
                const T* const kernel = w.data() + g.kernelAt(channel, o);
                for (int64_t tap = 0; tap < taps; ++tap) {
                    // Sums go along rising places of the smaller side; transposed, these are falling taps.
                    const int64_t element = g.transposed ? taps - 1 - tap : tap;
                    const T factor = kernel[element];
                    g.forRows(element, [&](int64_t large, int64_t small, int64_t count) {
                        T* const to = sums.data() + (g.transposed ? large : small);
                        const T* const x = from + (g.transposed ? small : large);
                        const int64_t a = g.transposed ? step : 1, b = g.transposed ? 1 : step;
                        if (a == 1 && b == 1)
                            for (int64_t k = 0; k < count; ++k) to[k] = sumOf(to[k], productOf(x[k], factor));
                        else
                            for (int64_t k = 0; k < count; ++k)
                                to[k * a] = sumOf(to[k * a], productOf(x[k * b], factor));
                    });
                }
            }
            if (bias)
                for (T& sum : sums) sum = sumOf(sum, added[static_cast<size_t>(o)]);
            storeRange(out, plane * outPlane, (plane + 1) * outPlane, sums.data());
        }
    });
}
void convolve(const Run& run, const Geometry& g, const Strided& input, const Strided& weight, const Strided* bias,
              const Strided& out) {
    withWide(out.dtype, [&](auto tag) { convolveAs<decltype(tag)>(run, g, input, weight, bias, out); });
}
template <class T>
void weightGradientAs(const Run& run, const Geometry& g, const Strided& gradient, const Strided& input,
                      const Strided& out) {
    const std::vector<T> in = allOf<T>(input), dy = allOf<T>(gradient);
    const int64_t inPlane = volumeOf(g.transposed ? g.small : g.large),
                  outPlane = volumeOf(g.transposed ? g.large : g.small), taps = volumeOf(g.kernel), step = g.stride[2];
    run.share(g.outChannels * g.inPerGroup(), [&](int64_t, int64_t begin, int64_t end) {
        std::vector<T> sums(static_cast<size_t>(taps));
        for (int64_t pair = begin; pair < end; ++pair) {
            const int64_t o = pair / g.inPerGroup(), i = o / g.outPerGroup() * g.inPerGroup() + pair % g.inPerGroup();
            std::fill(sums.begin(), sums.end(), T{});
            for (int64_t n = 0; n < g.batch; ++n) {
                const T* const x = in.data() + (n * g.inChannels + i) * inPlane;
                const T* const y = dy.data() + (n * g.outChannels + o) * outPlane;
                for (int64_t tap = 0; tap < taps; ++tap) {
                    T& sum = sums[static_cast<size_t>(tap)];
                    g.forRows(tap, [&](int64_t large, int64_t small, int64_t count) {
                        const T *const a = x + (g.transposed ? small : large), *const b =
                                                                                   y + (g.transposed ? large : small);
                        for (int64_t k = 0; k < count; ++k)
                            sum = sumOf(sum, productOf(a[g.transposed ? k : k * step], b[g.transposed ? k * step : k]));
                    });
                }
            }
            storeRange(out, g.kernelAt(i, o), g.kernelAt(i, o) + taps, sums.data());
        }
    });
}
/// The sum over everything but channels.
void biasGradient(const Run& run, const Strided& gradient, const Strided& out) {
    const int64_t channels = gradient.sizes[1],
                  plane = gradient.elements() / std::max<int64_t>(gradient.sizes[0] * channels, 1);
    withWide(out.dtype, [&](auto tag) {
        using T = decltype(tag);
        run.share(channels, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) {
                T sum{};
                for (int64_t i = 0; i < gradient.sizes[0] * plane; ++i) {
                    const int64_t at = (i / plane * channels + o) * plane + i % plane;
                    const auto element = loadOne<T>(gradient.dtype, gradient.at(gradient.offsetOf(at)));
                    sum = sumOf(sum, element);
                }
                storeRange(out, o, o + 1, &sum);
            }
        });
    });
}

/// (input, weight, bias, ...)
void convolution(const Run& run) {
    const Strided in = run.in(0), weight = run.in(1), out = run.out();
    Strided bias;
    const bool given = isGiven(*run.call, 2);
    if (given) bias = run.in(2);
    convolve(run, Geometry(*run.call, in, weight, out), in, weight, given ? &bias : nullptr, out);
}
/// (grad_output, input, weight, ...): the gradients that are asked for.
void convolutionBackward(const Run& run) {
    const Strided dy = run.in(0), in = run.in(1), weight = run.in(2);
    const Geometry g(*run.call, in, weight, dy);
    if (run.wants(0)) convolve(run, g.reversed(), dy, weight, nullptr, run.out(0));
    if (run.wants(1))
        withWide(run.out(1).dtype, [&](auto tag) { weightGradientAs<decltype(tag)>(run, g, dy, in, run.out(1)); });
    if (run.wants(2)) biasGradient(run, dy, run.out(2));
}

constexpr Function kConvolveFunctions[] = {
    {"aten.convolution.default", convolution},
    {"aten.convolution_backward.default", convolutionBackward},
};

}  // namespace

std::span<const Function> convolveFunctions() { return kConvolveFunctions; }

}  // namespace cutaway::portable
