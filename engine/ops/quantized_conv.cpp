// Quantized convolutions as oneDNN's operators have them: u8 input, s8 weight (packed: left as it is here), products
// summed exactly, post-ops in f32, results channels-last.
#include <array>

#include "engine/ops/byte_product.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/conv_rules.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/quantized_call.h"

namespace cutaway {
namespace {

using Names = std::span<const std::string_view>;
constexpr std::array<std::string_view, 5> kConvUnaries{"none", "relu", "hardtanh", "hardswish", "swish"};
constexpr std::array<std::string_view, 2> kConvBinaries{"none", "sum"};

bool hasAccumulator(const InferContext& c) { return c.op().schema()->find("qaccum") >= 0; }

/// The post-ops that PyTorch's kernels have: relu only for one spatial dim or with an accumulator, none for three.
Names unariesOf(const InferContext& c, size_t spatial) {
    const size_t known = spatial == 3 ? 1 : spatial == 1 || hasAccumulator(c) ? 2 : kConvUnaries.size();
    return Names(kConvUnaries).first(known);
}
/// Rank that the operator's name asks for; 0: any.
size_t namedSpatial(const InferContext& c) {
    const std::string_view name = c.op().baseName();
    return name.starts_with("qconv1d") ? 1 : name.starts_with("qconv2d") ? 2 : name.starts_with("qconv3d") ? 3 : 0;
}

/// PyTorch sums into the memory of this operand, so it has the result's dtype and sizes. Here the result is new memory.
Result<void> checkAccumulator(const InferContext& c, const QuantizedCall& call, const SymDims& sizes) {
    CT_TRY(const TensorType other, c.tensor("qaccum"));
    // Floats may differ: PyTorch's compiler converts the accumulator to the result's dtype first.
    const auto isFloat = [](DType dtype) { return dtype == DType::F32 || dtype == DType::BF16; };
    if (other.dtype != call.output && !(isFloat(other.dtype) && isFloat(call.output)))
        return c.fail("sums into an accumulator of the result's dtype " + std::string(info(call.output).torchName) +
                      ", not " + std::string(info(other.dtype).torchName));
    bool fits = other.sizes.size() == sizes.size();
    for (size_t d = 0; fits && d < sizes.size(); ++d) fits = !differ(other.sizes[d], sizes[d]);
    if (!fits) return c.fail("sums into an accumulator of the result's sizes, not " + other.text());
    return {};
}
Result<ValueType> inferConv(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    CT_TRY(const TensorType weight, c.tensor("qw"));
    if (input.rank() < 3 || input.rank() > 5 || weight.rank() != input.rank())
        return c.fail("needs an input and a weight of three to five dims, not " + input.text() + " and " +
                      weight.text());
    if (input.dtype != DType::U8 && !areFloatBytes(input))
        return c.fail("needs an input of uint8 or float8_e4m3fn, not " + std::string(info(input.dtype).torchName));
    const size_t spatial = input.sizes.size() - 2;
    if (const size_t named = namedSpatial(c); named != 0 && named != spatial)
        return c.fail("needs an input of " + std::to_string(named + 2) + " dims, not " + input.text());
    CT_TRY(const ConvolutionCall call, readConvolution(c, spatial));
    CT_TRY_VOID(checkConvolution(c, input, weight, call));
    CT_TRY(const SymDims sizes, convolutionSizes(c, input, weight, call));
    CT_TRY(const QuantizedCall quantized, readQuantizedCall(c, unariesOf(c, spatial), kConvBinaries));
    CT_TRY_VOID(checkQuantizedOperands(c, input, weight, weight.sizes[0]));
    if (hasAccumulator(c)) {
        CT_TRY_VOID(checkAccumulator(c, quantized, sizes));
    }
    TensorType type = TensorType::contiguous(quantized.output, sizes, input.device);
    if (spatial > 1)
        type.strides = *formatStrides(spatial == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d, sizes);
    return ValueType(std::move(type));
}
Result<ValueType> inferPackedConvWeight(const InferContext& c) {
    CT_TRY(const TensorType weight, c.tensor(size_t{0}));
    if (weight.rank() < 3 || weight.rank() > 5) return c.fail("needs a weight of three to five dims");
    if (weight.dtype != DType::I8 && weight.dtype != DType::F8E4M3FN)
        return c.fail("packs weights of int8 and float8_e4m3fn, not " + std::string(info(weight.dtype).torchName));
    CT_TRY_VOID(readConvolution(c, weight.sizes.size() - 2));
    return ValueType(weight);
}

// -- kernels

int64_t productOfConvSizes(const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
}
/// The order [batch, spatial..., channels], as a view.
Tensor channelsLast(const Tensor& tensor) {
    Dims sizes{tensor.size(0)}, strides{tensor.stride(0)};
    for (int64_t d = 2; d < tensor.rank(); ++d) {
        sizes.push_back(tensor.size(d));
        strides.push_back(tensor.stride(d));
    }
    sizes.push_back(tensor.size(1));
    strides.push_back(tensor.stride(1));
    return tensor.view(std::move(sizes), std::move(strides), tensor.offset());
}
/// A matrix with a column per channel.
Tensor asRows(const Tensor& tensor) {
    const Tensor packed = channelsLast(tensor).contiguous();
    const int64_t channels = tensor.size(1);
    return packed.view({packed.numel() / std::max<int64_t>(channels, 1), channels}, {channels, 1}, packed.offset());
}

/// What a convolution of bytes reads: input [position, channel], weight [output channel, kernel element, channel].
struct ByteConvolution {
    ConvolutionGeometry g;
    Tensor input, weight;
    uint8_t zero = 0;
    int64_t taps = 0, inPerGroup = 0, outPerGroup = 0;
    std::vector<int64_t> places;  // [output position of a sample, kernel element]: input position of it, -1: outside

    const uint8_t* at(int64_t sample, int64_t place) const {
        return input.as<uint8_t>() + (sample * productOfConvSizes(g.in) + place) * g.inChannels;
    }
};
std::vector<int64_t> placesOf(const ConvolutionGeometry& g) {
    std::vector<int64_t> places{0};
    // Positions and kernel elements of the dims so far, kernel elements running faster.
    int64_t kernels = 1;
    for (size_t d = 0; d < g.kernel.size(); ++d) {
        std::vector<int64_t> next;
        const auto outer = static_cast<int64_t>(places.size()) / kernels;
        for (int64_t position = 0; position < outer; ++position)
            for (int64_t o = 0; o < g.out[d]; ++o)
                for (int64_t kernel = 0; kernel < kernels; ++kernel)
                    for (int64_t k = 0; k < g.kernel[d]; ++k) {
                        const int64_t before = places[static_cast<size_t>(position * kernels + kernel)];
                        const int64_t at = o * g.stride[d] - g.padding[d] + k * g.dilation[d];
                        next.push_back(before < 0 || at < 0 || at >= g.in[d] ? -1 : before * g.in[d] + at);
                    }
        kernels *= g.kernel[d];
        places = std::move(next);
    }
    return places;
}
ByteConvolution byteConvolution(const EvalContext& c, const ConvolutionGeometry& g, uint8_t zero) {
    ByteConvolution conv;
    conv.g = g;
    conv.zero = zero;
    conv.input = asRows(c.in(size_t{0}));
    conv.weight = channelsLast(c.in("qw")).contiguous();
    conv.taps = productOfConvSizes(g.kernel);
    conv.inPerGroup = g.inChannels / g.groups;
    conv.outPerGroup = g.outChannels / g.groups;
    conv.places = placesOf(g);
    return conv;
}

/// Rows of the products: what lies under the kernel at each position, the zero point where that is outside.
void unfold(const ByteConvolution& conv, int64_t row, int64_t count, int64_t group, uint8_t* out) {
    const int64_t positions = productOfConvSizes(conv.g.out), width = conv.inPerGroup;
    for (int64_t i = row; i < row + count; ++i) {
        const int64_t* places = conv.places.data() + i % positions * conv.taps;
        for (int64_t k = 0; k < conv.taps; ++k, out += width) {
            if (places[k] < 0) std::memset(out, conv.zero, static_cast<size_t>(width));
            else std::memcpy(out, conv.at(i / positions, places[k]) + group * width, static_cast<size_t>(width));
        }
    }
}
/// One channel in, one out: no products to speak of, so sums run along the channels.
void depthwise(const ByteConvolution& conv, const std::vector<int16_t>& weight, int64_t row, int64_t count,
               int32_t* sums) {
    const int64_t positions = productOfConvSizes(conv.g.out), channels = conv.g.inChannels;
    std::fill_n(sums, count * channels, 0);
    for (int64_t i = row; i < row + count; ++i, sums += channels)
        for (int64_t k = 0; k < conv.taps; ++k) {
            const int64_t place = conv.places[static_cast<size_t>(i % positions * conv.taps + k)];
            if (place < 0) continue;
            const uint8_t* x = conv.at(i / positions, place);
            const int16_t* w = weight.data() + k * channels;
            for (int64_t n = 0; n < channels; ++n) sums[n] += (int32_t{x[n]} - conv.zero) * w[n];
        }
}
void runDepthwise(const ByteConvolution& conv, const QuantizedFinish& finish) {
    const int64_t channels = conv.g.inChannels;
    std::vector<int16_t> weight(static_cast<size_t>(conv.taps * channels));  // [kernel element, channel]
    for (int64_t n = 0; n < channels; ++n)
        for (int64_t k = 0; k < conv.taps; ++k)
            weight[static_cast<size_t>(k * channels + n)] = conv.weight.as<int8_t>()[n * conv.taps + k];
    forRunsOfRows(conv.g.batch * productOfConvSizes(conv.g.out), conv.taps * channels, (conv.taps + 4) * channels,
                  [&](int64_t row, int64_t count) {
                      std::vector<int32_t> sums(static_cast<size_t>(count * channels));
                      depthwise(conv, weight, row, count, sums.data());
                      finish.run<int32_t>(sums.data(), nullptr, row, count, 0, channels);
                  });
}
/// zero * the sum over a channel's weights, for each; nothing if zero is 0.
std::vector<int32_t> convZeroSums(const ByteConvolution& conv) {
    if (conv.zero == 0) return {};
    std::vector<int32_t> sums(static_cast<size_t>(conv.g.outChannels));
    const int64_t inner = conv.taps * conv.inPerGroup;
    const auto* weight = conv.weight.as<int8_t>();
    for (int32_t& sum : sums) {
        int32_t total = 0;
        for (int64_t k = 0; k < inner; ++k) total += weight[k];
        sum = total * conv.zero;
        weight += inner;
    }
    return sums;
}
void runProducts(const ByteConvolution& conv, const QuantizedFinish& finish) {
    const int64_t inner = conv.taps * conv.inPerGroup, width = conv.outPerGroup;
    // A kernel of one element that takes every position reads the input as it lies.
    const bool asItLies =
        conv.taps == 1 && conv.g.in == conv.g.out && conv.places.back() == productOfConvSizes(conv.g.in) - 1;
    const std::vector<int32_t> zeros = convZeroSums(conv);
    for (int64_t group = 0; group < conv.g.groups; ++group)
        forRunsOfRows(conv.g.batch * productOfConvSizes(conv.g.out), inner * width, inner + 4 * width,
                      [&](int64_t row, int64_t count) {
                          std::vector<uint8_t> rows(static_cast<size_t>(asItLies ? 0 : count * inner));
                          std::vector<int32_t> sums(static_cast<size_t>(count * width));
                          ByteProduct product{count,       width, inner,
                                              rows.data(), inner, conv.weight.as<int8_t>() + group * width * inner};
                          if (asItLies) {
                              product.a = conv.at(0, row) + group * inner;
                              product.stride = conv.g.inChannels;
                          } else {
                              unfold(conv, row, count, group, rows.data());
                          }
                          multiplyBytes(product, sums.data());
                          finish.run<int32_t>(sums.data(), zeros.empty() ? nullptr : zeros.data() + group * width, row,
                                              count, group * width, width);
                      });
}
/// Anything else: 8-bit floats, and zero points that no byte holds.
void runPlainly(const EvalContext& c, const ConvolutionGeometry& g, int64_t zero, const Dims& sizes,
                const QuantizedFinish& finish) {
    const bool floats = areFloatBytes(*c.tensor(size_t{0}));
    const DType dtype = floats ? DType::F32 : DType::I32;
    Tensor input = c.in(size_t{0}).to(dtype), sums = Tensor::empty(dtype, sizes);
    if (!floats && zero != 0) {
        input = input.clone();
        for (int64_t i = 0; i < input.numel(); ++i) input.as<uint32_t>()[i] -= static_cast<uint32_t>(zero);
    }
    convolvePlainly(g, input, c.in("qw").to(dtype), Tensor(), sums);
    const Tensor rows = asRows(sums);
    if (floats) finish.run<float>(rows.as<float>(), nullptr, 0, rows.size(0), 0, rows.size(1));
    else finish.run<int32_t>(rows.as<int32_t>(), nullptr, 0, rows.size(0), 0, rows.size(1));
}

EvalResult evalConv(const EvalContext& c) {
    const Tensor input = c.in(size_t{0});
    auto call = readQuantizedCall(c, unariesOf(c, static_cast<size_t>(input.rank()) - 2), kConvBinaries);
    if (!call) return std::move(call).error();
    const Dims sizes = c.resultSizes();
    const ConvolutionGeometry g = convolutionGeometry(c, input.sizes(), c.in("qw").sizes(), sizes);
    Tensor out = c.result();
    if (out.numel() == 0) return out;
    // Rows of channels are the result itself where it is channels-last.
    const Tensor view = channelsLast(out);
    Tensor last = view.isContiguous() ? view : Tensor::empty(out.dtype(), view.sizes());
    const Tensor rows = last.view({last.numel() / sizes[1], sizes[1]}, {sizes[1], 1}, last.offset());
    const Tensor other = call->adds() ? asRows(c.in("qaccum")) : Tensor();
    const QuantizedFinish finish(c, *call, rows, other);
    const int64_t zero = inputZero(c);
    if (input.dtype() != DType::U8 || zero < 0 || zero > 255 || g.inChannels == 0) {
        runPlainly(c, g, zero, sizes, finish);
    } else {
        const ByteConvolution conv = byteConvolution(c, g, static_cast<uint8_t>(zero));
        if (conv.inPerGroup == 1 && conv.outPerGroup == 1) runDepthwise(conv, finish);
        else runProducts(conv, finish);
    }
    if (!view.isContiguous()) {
        Tensor target = view;
        copyInto(target, last);
    }
    return out;
}

constexpr OpDef convRow(std::string_view schema, std::string_view samples) {
    return {.schema = schema,
            .tags = Tag::Heavy | Tag::NoGradient,
            .infer = inferConv,
            .eval = evalConv,
            .samples = samples};
}

#define CUTAWAY_QCONV_TAIL \
    "int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point, ScalarType? output_dtype, str attr, Scalar?[] scalars, str? algorithm) -> Tensor"
#define CUTAWAY_QCONV_SUM_TAIL \
    "int[] stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point, ScalarType? output_dtype, float accum_scale, int accum_zero_point, str binary_attr, Scalar? alpha, str? unary_attr, Scalar?[] unary_scalars, str? unary_algorithm) -> Tensor"
// Zero points of weights may be None, which PyTorch's schema does not say.
#define CUTAWAY_QCONV_NUMBERS \
    "(Tensor qx, float x_scale, int x_zero_point, Tensor qw, Tensor w_scale, Tensor? w_zero_point, "
#define CUTAWAY_QCONV_TENSORS \
    "(Tensor qx, Tensor x_scale, Tensor x_zero_point, Tensor qw, Tensor w_scale, Tensor? w_zero_point, "

constexpr std::string_view kConvSamples = R"(
u8[2, 3, 8, 7]<256, 0.05, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, f32[8], [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 'none', [], ''
u8[1, 16, 6, 6]<256, 0.0371, 128, i8[24, 16, 1, 1]!, f32[24]>0, i64[24]<1, f32[24], [1, 1], [0, 0], [1, 1], 1, 31.7, 7, torch.uint8, 'relu', [], ''
u8[2, 4, 7, 6]<256, 0.05, 0, i8[6, 2, 3, 2]!, f32[6]>0, i64[6]<1, None, [2, 1], [1, 0], [1, 2], 2, 55.1, -4, torch.int8, 'none', [], ''
u8[1, 5, 6, 6]<256, 0.05, 77, i8[5, 1, 3, 3]!, f32[5]>0, i64[5]<1, f32[5], [2, 2], [1, 1], [1, 1], 5, 1.0, 0, torch.bfloat16, 'none', [], ''
u8[2, 3, 8, 8][192, 1, 24, 3]<256, 0.0005, 10, i8[8, 3, 3, 3][27, 1, 9, 3]!, f32[8]>0, i64[8]<1, f32[8], [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 'hardtanh', [0.0, 6.0], ''
u8[2, 3, 5, 5]<256, 0.0005, 10, i8[8, 3, 3, 3]!, f32[1]>0, None, f32[8], [1, 1], [0, 0], [1, 1], 1, 1.0, 0, torch.float32, 'hardswish', [], ''
u8[2, 3, 5, 5]<256, 0.0005, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, bf16[8], [1, 1], [0, 0], [1, 1], 1, 1.0, 0, torch.float32, 'swish', [], ''
u8[2, 3, 9]<256, 0.05, 10, i8[8, 3, 3]!, f32[8]>0, i64[8]<1, f32[8], [2], [1], [1], 1, 45.0, 3, torch.uint8, 'relu', [], ''
u8[1, 2, 4, 4, 5]<256, 0.05, 10, i8[3, 2, 2, 3, 2]!, f32[3]>0, i64[3]<1, f32[3], [1, 1, 1], [1, 0, 0], [1, 1, 1], 1, 1.0, 0, torch.float32, 'none', [], ''
u8[0, 3, 5, 5]<256, 0.05, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, f32[8], [1, 1], [0, 0], [1, 1], 1, 1.0, 0, torch.float32, 'none', [], ''
)";
constexpr std::string_view kTensorSamples =
    "u8[2, 3, 8, 7]<256, f32[1]>0, i64[1]<9, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, f32[8], [1, 1], [1, 1], [1, 1], 1, 1000.0, 3, torch.uint8, 'relu', [], ''";
constexpr std::string_view kPlaneSamples =
    "u8[2, 3, 8, 7]<256, 0.05, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, f32[8], [1, 1], [1, 1], [1, 1], 1, 45.0, 3, torch.uint8, 'hardtanh', [0.0, 6.0], ''";
constexpr std::string_view kSumSamples = R"(
u8[2, 3, 8, 7]<256, 0.05, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, u8[2, 8, 8, 7][448, 1, 56, 8]<256, f32[8], [1, 1], [1, 1], [1, 1], 1, 45.3, 3, torch.uint8, 7.1, 12, 'sum', 1.0, 'relu', [], ''
u8[2, 3, 8, 7]<256, 0.05, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, f32[2, 8, 8, 7][448, 1, 56, 8], None, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 1.0, 0, 'sum', 1.0, 'none', [], ''
u8[2, 3, 8, 7]<256, 0.05, 10, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, bf16[2, 8, 8, 7][448, 1, 56, 8], None, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.bfloat16, 1.0, 0, 'sum', None, None, [], None
)";

constexpr OpDef kQuantizedConvOps[] = {
    {.schema =
         "onednn.qconv_prepack.default(Tensor weight, Tensor w_scales, float x_scale, int x_zp, int[] stride, int[] padding, int[] dilation, "
         "int groups, int[]? x_shape=None) -> Tensor",
     .tags = Tag::View | Tag::NoGradient,
     .infer = inferPackedConvWeight,
     .eval = [](const EvalContext& c) { return c.resultView(c.in(size_t{0})); },
     .samples = "i8[8, 3, 3, 3], f32[8]>0, 0.05, 10, [1, 1], [1, 1], [1, 1], 1, [2, 3, 8, 8]\n"
                "i8[4, 3, 3], f32[4]>0, 0.05, 10, [1], [1], [1], 1"},
    convRow("onednn.qconv_pointwise.default" CUTAWAY_QCONV_NUMBERS "Tensor? bias, " CUTAWAY_QCONV_TAIL, kConvSamples),
    convRow("onednn.qconv_pointwise.tensor" CUTAWAY_QCONV_TENSORS "Tensor? bias, " CUTAWAY_QCONV_TAIL, kTensorSamples),
    convRow(
        "onednn.qconv1d_pointwise.default" CUTAWAY_QCONV_NUMBERS "Tensor? bias, " CUTAWAY_QCONV_TAIL,
        "u8[2, 3, 9]<256, 0.05, 10, i8[8, 3, 3]!, f32[8]>0, i64[8]<1, f32[8], [2], [1], [1], 1, 45.0, 3, torch.uint8, 'relu', [], ''"),
    convRow("onednn.qconv2d_pointwise.default" CUTAWAY_QCONV_NUMBERS "Tensor? bias, " CUTAWAY_QCONV_TAIL,
            kPlaneSamples),
    convRow("onednn.qconv2d_pointwise.tensor" CUTAWAY_QCONV_TENSORS "Tensor? bias, " CUTAWAY_QCONV_TAIL,
            kTensorSamples),
    convRow("onednn.qconv2d_pointwise.binary" CUTAWAY_QCONV_NUMBERS
            "Tensor qaccum, Tensor? bias, " CUTAWAY_QCONV_SUM_TAIL,
            kSumSamples),
    convRow(
        "onednn.qconv2d_pointwise.binary_tensor" CUTAWAY_QCONV_TENSORS
        "Tensor qaccum, Tensor? bias, " CUTAWAY_QCONV_SUM_TAIL,
        "u8[2, 3, 8, 7]<256, f32[1]>0, i64[1]<9, i8[8, 3, 3, 3]!, f32[8]>0, i64[8]<1, f32[2, 8, 8, 7][448, 1, 56, 8], None, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 1.0, 0, 'sum', 1.0, 'none', [], ''"),
    convRow(
        "onednn.qconv3d_pointwise.default" CUTAWAY_QCONV_NUMBERS "Tensor? bias, " CUTAWAY_QCONV_TAIL,
        "u8[1, 2, 4, 4, 5]<256, 0.05, 10, i8[3, 2, 2, 3, 2]!, f32[3]>0, i64[3]<1, f32[3], [1, 1, 1], [1, 0, 0], [1, 1, 1], 1, 1.0, 0, torch.float32, 'none', [], ''"),
};

#undef CUTAWAY_QCONV_TAIL
#undef CUTAWAY_QCONV_SUM_TAIL
#undef CUTAWAY_QCONV_NUMBERS
#undef CUTAWAY_QCONV_TENSORS

}  // namespace

std::span<const OpDef> quantizedConvOps() { return kQuantizedConvOps; }

}  // namespace cutaway
