// Convolutions: the general op with kernels, its gradient, and the shorthands that expand into it.
#include "engine/ops/build.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/conv_rules.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

Result<void> checkDTypes(const InferContext& c, const TensorType& input, const TensorType& weight) {
    if (input.dtype != weight.dtype)
        return c.fail("input of dtype " + std::string(info(input.dtype).torchName) + " and weight of " +
                      std::string(info(weight.dtype).torchName));
    return {};
}

MemoryFormat channelsLastOf(size_t rank) {
    return rank == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

/// Results are channels-last as soon as one of the operands is.
SymDims convolutionStrides(const TensorType& a, const TensorType& b, const SymDims& sizes) {
    if (isChannelsLast(a) || isChannelsLast(b)) return *formatStrides(channelsLastOf(sizes.size()), sizes);
    return contiguousStrides(sizes);
}

Result<ValueType> inferConvolution(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor("input"));
    CT_TRY(const TensorType weight, c.tensor("weight"));
    if (input.rank() < 3 || input.rank() > 5 || weight.rank() != input.rank())
        return c.fail("needs an input and a weight of three to five dims, not " + std::to_string(input.rank()) +
                      " and " + std::to_string(weight.rank()));
    CT_TRY(const ConvolutionCall call, readConvolution(c, input.sizes.size() - 2));
    CT_TRY_VOID(checkDTypes(c, input, weight));
    CT_TRY_VOID(checkConvolution(c, input, weight, call));
    CT_TRY(SymDims sizes, convolutionSizes(c, input, weight, call));
    if (c.has("bias")) {
        CT_TRY(const TensorType bias, c.tensor("bias"));
        if (bias.rank() != 1 || differ(bias.sizes[0], sizes[1]))
            return c.fail("the bias must have one element per output channel, " + sizes[1].text());
        if (bias.dtype != input.dtype) return c.fail("bias and input have different dtypes");
    }
    TensorType type = TensorType::contiguous(input.dtype, sizes, input.device);
    type.strides = convolutionStrides(input, weight, sizes);
    return ValueType(std::move(type));
}

Result<ValueType> inferConvolutionBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor("grad_output"));
    CT_TRY(const TensorType input, c.tensor("input"));
    CT_TRY(const TensorType weight, c.tensor("weight"));
    CT_TRY(const std::vector<int64_t> mask, c.integers("output_mask"));
    if (mask.size() != 3) return c.fail("output_mask needs three flags");
    if (input.rank() < 3 || input.rank() > 5 || weight.rank() != input.rank() || gradient.rank() != input.rank())
        return c.fail("needs tensors of three to five dims, all alike");
    CT_TRY(const ConvolutionCall call, readConvolution(c, input.sizes.size() - 2));
    CT_TRY_VOID(checkDTypes(c, input, weight));
    CT_TRY_VOID(checkConvolution(c, input, weight, call));
    CT_TRY(const SymDims sizes, convolutionSizes(c, input, weight, call));
    for (size_t i = 0; i < sizes.size(); ++i)
        if (differ(sizes[i], gradient.sizes[i]))
            return c.fail("the gradient " + gradient.text() + " has size " + gradient.sizes[i].text() + " in dim " +
                          std::to_string(i) + ", the output " + sizes[i].text());
    TupleType types(3);
    const bool last = isChannelsLast(input) || isChannelsLast(weight);  // the gradient has no say
    auto like = [&](const TensorType& operand) {
        TensorType type = TensorType::contiguous(gradient.dtype, operand.sizes, gradient.device);
        if (last) type.strides = *formatStrides(channelsLastOf(type.sizes.size()), type.sizes);
        return type;
    };
    if (mask[0]) types[0] = like(input);
    if (mask[1]) types[1] = like(weight);
    if (mask[2]) types[2] = TensorType::contiguous(gradient.dtype, {gradient.sizes[1]}, gradient.device);
    return ValueType(std::move(types));
}

EvalResult evalConvolutionBackward(const EvalContext& c) {
    const Tensor gradient = c.in("grad_output"), input = c.in("input"), weight = c.in("weight");
    const Dims mask = c.integersOf("output_mask");
    const ConvolutionGeometry g = convolutionGeometry(c, input.sizes(), weight.sizes(), gradient.sizes());
    TensorList results(3);
    if (mask[0]) convolveBackInput(g, gradient, weight, results[0] = c.result(0));
    if (mask[1]) convolveBackWeight(g, gradient, input, results[1] = c.result(1));
    if (mask[2]) {
        results[2] = c.result(2);
        // The sum over everything but channels, as a weight gradient against ones.
        ConvolutionGeometry ones;
        ones.batch = gradient.size(0);
        ones.inChannels = ones.groups = 1;
        ones.outChannels = gradient.size(1);
        ones.in = ones.out = Dims{gradient.numel() / std::max<int64_t>(gradient.size(0) * gradient.size(1), 1)};
        ones.kernel = ones.stride = ones.dilation = {1};
        ones.padding = {0};
        convolveBackWeightPlainly(ones, gradient,
                                  Tensor::full(gradient.dtype(), {ones.batch * ones.in[0]}, Scalar(1.0)), results[2]);
    }
    return results;
}

/// Shorthands take inputs without a batch dim, and give them one for the call.
template <class Convolve>
Values withBatch(Decomposition& d, int64_t spatial, Convolve&& convolveBatch) {
    const Value input = d.in("input");
    if (input.rank() == spatial + 1) return d.call("aten.squeeze.dim", {convolveBatch(unsqueeze(input, 0)), 0});
    if (input.rank() != spatial + 2)
        d.builder().fail(d.fail("needs an input of " + std::to_string(spatial + 1) + " or " +
                                std::to_string(spatial + 2) + " dims"));
    return convolveBatch(input);
}

Argument zeros(int64_t count) { return Argument(Dims(static_cast<size_t>(count), 0)); }

template <int kSpatial>
Values decomposeConvolution(Decomposition& d) {
    return withBatch(d, kSpatial, [&](const Value& input) {
        return d.call("aten.convolution.default",
                      {input, d.in("weight"), d.arg("bias"), d.arg("stride"), d.arg("padding"), d.arg("dilation"),
                       false, zeros(kSpatial), d.arg("groups")});
    });
}

template <int kSpatial>
Values decomposeTransposed(Decomposition& d) {
    return withBatch(d, kSpatial, [&](const Value& input) {
        return d.call("aten.convolution.default",
                      {input, d.in("weight"), d.arg("bias"), d.arg("stride"), d.arg("padding"), d.arg("dilation"), true,
                       d.arg("output_padding"), d.arg("groups")});
    });
}

/// padding="same" pads both sides by half of the kernel's reach; an odd rest goes to the right, by padding beforehand.
template <int kSpatial>
Values decomposeNamedPadding(Decomposition& d) {
    const std::string mode = d.text("padding");
    auto dilation = d.integers("dilation"), stride = d.integers("stride");
    if (!dilation || !stride || (mode != "same" && mode != "valid")) {
        d.builder().fail(!dilation ? dilation.error()
                         : !stride ? stride.error()
                                   : d.fail("unknown padding '" + mode + "'; same and valid are known"));
        return d.in("input");
    }
    for (auto* numbers : {&*dilation, &*stride}) {
        if (numbers->size() == 1) numbers->assign(kSpatial, numbers->front());
        if (numbers->size() == kSpatial) continue;
        d.builder().fail(d.fail(std::to_string(numbers->size()) + " numbers of stride or dilation for " +
                                std::to_string(kSpatial) + " spatial dims"));
        return d.in("input");
    }
    return withBatch(d, kSpatial, [&](const Value& batch) {
        const Value weight = d.in("weight");
        // Without padding, one 0 stands for all dims, as PyTorch's own expansion has it.
        if (mode == "valid")
            return d.call("aten.convolution.default", {batch, weight, d.arg("bias"), d.arg("stride"), zeros(1),
                                                       d.arg("dilation"), false, zeros(1), d.arg("groups")});
        std::vector<int64_t> padding(kSpatial, 0), extra(2 * kSpatial, 0);
        bool uneven = false;
        for (int64_t i = 0; i < kSpatial && weight.rank() == kSpatial + 2; ++i) {
            const auto at = static_cast<size_t>(i);
            const SymInt kernel = weight.size(i + 2);
            if (!kernel.isInt() || (*stride)[at] != 1) {
                d.builder().fail(d.fail("padding='same' needs a stride of 1 and a kernel of known size"));
                break;
            }
            const int64_t total = checkedMul((*dilation)[at], kernel.value() - 1);
            if (total < 0) {
                d.builder().fail(
                    d.fail("padding='same' needs a kernel of at least one element in dim " + std::to_string(i)));
                break;
            }
            padding[at] = total / 2;
            if (total % 2 == 0) continue;
            uneven = true;
            extra[static_cast<size_t>(2 * (kSpatial - 1 - i)) + 1] = 1;
        }
        const Value input = uneven ? d.call("aten.constant_pad_nd.default", {batch, Argument(extra)}) : batch;
        return d.call("aten.convolution.default", {input, weight, d.arg("bias"), d.arg("stride"), Argument(padding),
                                                   d.arg("dilation"), false, zeros(kSpatial), d.arg("groups")});
    });
}

constexpr std::string_view kConvolutionSamples = R"(
f32[2, 3, 8], f32[4, 3, 3], f32[4], [1], [1], [1], False, [0], 1
f32[2, 3, 8, 8], f32[4, 3, 3, 3], f32[4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1
f32[2, 3, 8, 8], f32[4, 3, 3, 3], None, [1, 1], [0, 0], [2, 2], False, [0, 0], 1
f32[2, 4, 7, 6], f32[6, 2, 3, 2], None, [2, 1], [1, 0], [1, 1], False, [0, 0], 2
f32[1, 4, 6, 6], f32[4, 1, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 4
f32[2, 3, 8, 8][192, 1, 24, 3], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1
f32[2, 3, 4, 4, 4], f32[2, 3, 2, 2, 2], f32[2], [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], 1
f32[2, 4, 5, 5], f32[4, 3, 3, 3], f32[3], [2, 2], [1, 1], [1, 1], True, [1, 1], 1
f32[2, 4, 5, 5], f32[4, 2, 3, 3], None, [2, 2], [1, 1], [1, 1], True, [0, 0], 2
f32[1, 2, 5], f32[2, 3, 4], None, [3], [0], [2], True, [0], 1
f64[2, 3, 6, 6], f64[4, 3, 3, 3], f64[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1
bf16[2, 3, 8, 8], bf16[4, 3, 3, 3], bf16[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1
f32[0, 3, 8, 8], f32[4, 3, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1
)";

constexpr std::string_view kConvBackwardSamples = R"(
f32[2, 4, 4, 4], f32[2, 3, 8, 8], f32[4, 3, 3, 3], [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
f32[2, 4, 8], f32[2, 3, 8], f32[4, 3, 3], [0], [1], [1], [1], False, [0], 1, [True, True, False]
f32[1, 4, 6, 6], f32[1, 4, 6, 6], f32[4, 1, 3, 3], [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 4, [False, True, True]
f32[2, 3, 10, 10], f32[2, 4, 5, 5], f32[4, 3, 3, 3], [3], [2, 2], [1, 1], [1, 1], True, [1, 1], 1, [True, True, True]
f64[2, 4, 4, 4], f64[2, 3, 8, 8], f64[4, 3, 3, 3], [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
f32[2, 4, 8, 8][256, 1, 32, 4], f32[2, 3, 8, 8][192, 1, 24, 3], f32[4, 3, 3, 3], [0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
)";

#define CUTAWAY_CONVOLUTION_ROW(schemaText, function, sampleText)                               \
    {                                                                                           \
        .schema = schemaText, .tags = Tag::Heavy, .infer = inferExpanded, .eval = evalExpanded, \
        .expand = Expand::Composite, .decompose = function, .samples = sampleText               \
    }

constexpr OpDef kConvOps[] = {
    // Cross-correlation over one to three spatial dims; weight [out, in / groups, ...], transposed [in, out / groups,
    // ...].
    {.schema =
         "aten.convolution.default(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
         "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferConvolution,
     .eval = [](const EvalContext& c) -> EvalResult {
         const Tensor input = c.in("input"), weight = c.in("weight");
         Tensor out = c.result();
         convolve(convolutionGeometry(c, input.sizes(), weight.sizes(), out.sizes()), input, weight, c.optional("bias"),
                  out);
         return out;
     },
     .derive =
         [](Derivation& d) {
             const bool bias = d.has("bias");
             const Value gradients =
                 d.call("aten.convolution_backward.default",
                        {d.dy(), conjugated(d.in(0)), conjugated(d.in(1)),
                         bias ? Argument(d.in(2).sizes()) : Argument(Dims{0}), d.arg("stride"), d.arg("padding"),
                         d.arg("dilation"), d.arg("transposed"), d.arg("output_padding"), d.arg("groups"),
                         Argument(std::vector<Argument>{d.needs(0), d.needs(1), bias && d.needs(2)})});
             for (size_t i = 0; i < 3; ++i)
                 if (d.needs(i)) d.input(i) = gradients[static_cast<int64_t>(i)];
         },
     .lower = lowerByChannel,
     .samples = kConvolutionSamples},
    // Gradients of input, weight and bias, as output_mask asks; the others are None.
    {.schema =
         "aten.convolution_backward.default(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
         "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Heavy,
     .infer = inferConvolutionBackward,
     .eval = evalConvolutionBackward,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         // On the GPU the bias gradient is a plain sum, which fuses with what is around it.
         const Value gradient = d.in(0);
         std::vector<int64_t> mask = d.integersOf("output_mask");
         if (!mask[2] || gradient.type().device.type != DeviceType::Cuda) return Values::notHandled();
         std::vector<int64_t> dims{0};
         for (int64_t i = 2; i < gradient.rank(); ++i) dims.push_back(i);
         const Value bias = sum(gradient, dims, false);
         std::vector<Argument> args = d.node().args();
         args.back() = Argument(std::vector<Argument>{mask[0] != 0, mask[1] != 0, false});
         const Value rest = d.call("aten.convolution_backward.default", std::move(args));
         return {mask[0] ? rest[0] : Value(), mask[1] ? rest[1] : Value(), bias};
     },
     .samples = kConvBackwardSamples},
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv1d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
        "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        decomposeConvolution<1>, "f32[2, 3, 8], f32[4, 3, 3], f32[4]\nf32[3, 8], f32[4, 3, 3], None, [2], [1]"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv2d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
        "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        decomposeConvolution<2>,
        "f32[2, 3, 8, 8], f32[4, 3, 3, 3], f32[4]\nf32[3, 8, 8], f32[4, 3, 3, 3], None, [2, 1], [1, 1]"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv3d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
        "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        decomposeConvolution<3>, "f32[1, 2, 4, 4, 4], f32[3, 2, 2, 2, 2], f32[3]"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", "
        "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
        decomposeNamedPadding<1>,
        "f32[2, 3, 8], f32[4, 3, 3], f32[4], [1], 'same'\nf32[2, 3, 8], f32[4, 3, 4], None, [1], 'same'"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", "
        "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        decomposeNamedPadding<2>,
        "f32[1, 2, 8, 8], f32[3, 2, 4, 3], f32[3], [1, 1], 'same'\nf32[1, 2, 8, 8], f32[3, 2, 3, 3], None, [2, 2], 'valid'"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding=\"valid\", "
        "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        decomposeNamedPadding<3>, "f32[1, 2, 4, 4, 4], f32[3, 2, 3, 3, 3], None, [1, 1, 1], 'same'"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv_transpose1d.default(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
        "SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
        decomposeTransposed<1>, "f32[1, 2, 5], f32[2, 3, 4], f32[3], [2], [1], [1]"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
        "SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
        decomposeTransposed<2>,
        "f32[1, 2, 5, 5], f32[2, 3, 2, 2], f32[3], [2, 2]\nf32[2, 5, 5], f32[2, 3, 3, 3], None, [2, 2], [1, 1], [1, 1]"),
    CUTAWAY_CONVOLUTION_ROW(
        "aten.conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
        "SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        decomposeTransposed<3>, "f32[1, 2, 3, 3, 3], f32[2, 3, 2, 2, 2], f32[3], [2, 2, 2]"),
};

#undef CUTAWAY_CONVOLUTION_ROW

}  // namespace

std::span<const OpDef> convOps() { return kConvOps; }

}  // namespace cutaway
