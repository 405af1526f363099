#include "engine/ops/conv_rules.h"

#include "engine/support/check.h"

namespace cutaway {
namespace {

/// Stride, padding and the like for `spatial` dims; one number stands for all.
Result<std::vector<int64_t>> perConvDim(const InferContext& c, std::string_view param, size_t spatial, int64_t least) {
    CT_TRY(std::vector<int64_t> values, c.integers(param));
    if (values.size() == 1) values.assign(spatial, values[0]);
    if (values.size() != spatial)
        return c.fail("'" + std::string(param) + "' has " + std::to_string(values.size()) + " numbers for " +
                      std::to_string(spatial) + " spatial dims");
    for (int64_t value : values)
        if (value < least) return c.fail("'" + std::string(param) + "' of " + std::to_string(value) + " is too small");
    return values;
}

}  // namespace

Result<ConvolutionCall> readConvolution(const InferContext& c, size_t spatial) {
    ConvolutionCall call;
    CT_TRY(call.stride, perConvDim(c, "stride", spatial, 1));
    CT_TRY(call.padding, perConvDim(c, "padding", spatial, 0));
    CT_TRY(call.dilation, perConvDim(c, "dilation", spatial, 1));
    CT_TRY(call.groups, c.integer("groups", 1));
    call.outputPadding.assign(spatial, 0);
    if (c.op().schema()->find("output_padding") >= 0) {
        CT_TRY(call.outputPadding, perConvDim(c, "output_padding", spatial, 0));
    }
    call.transposed = c.op().schema()->find("transposed") >= 0 && c.flag("transposed");
    if (call.groups < 1) return c.fail("groups must be positive");
    return call;
}

Result<SymDims> convolutionSizes(const InferContext& c, const TensorType& input, const TensorType& weight,
                                 const ConvolutionCall& call) {
    SymDims sizes{input.sizes[0], call.transposed ? weight.sizes[1] * SymInt(call.groups) : weight.sizes[0]};
    for (size_t i = 0; i < call.stride.size(); ++i) {
        const SymInt reach = SymInt(call.dilation[i]) * (weight.sizes[i + 2] - SymInt(1));
        const SymInt& in = input.sizes[i + 2];
        if (call.transposed) {
            if (call.outputPadding[i] >= std::max(call.stride[i], call.dilation[i]))
                return c.fail("an output padding of " + std::to_string(call.outputPadding[i]) +
                              " is neither smaller than the stride nor than the dilation");
            sizes.push_back((in - SymInt(1)) * SymInt(call.stride[i]) - SymInt(2) * SymInt(call.padding[i]) + reach +
                            SymInt(call.outputPadding[i]) + SymInt(1));
        } else {
            const SymInt room = in + SymInt(2) * SymInt(call.padding[i]) - reach - SymInt(1);
            if (exceeds(0, room))
                return c.fail("a kernel that reaches over " + (reach + SymInt(1)).text() +
                              " elements does not fit the padded size " + (room + reach + SymInt(1)).text());
            sizes.push_back(floorDiv(room, SymInt(call.stride[i])) + SymInt(1));
        }
        if (exceeds(0, sizes.back())) return c.fail("the output would have a negative size");
    }
    return sizes;
}

Result<void> checkConvolution(const InferContext& c, const TensorType& input, const TensorType& weight,
                              const ConvolutionCall& call) {
    const SymInt channels = input.sizes[1],
                 expected = call.transposed ? weight.sizes[0] : weight.sizes[1] * SymInt(call.groups);
    if (differ(channels, expected))
        return c.fail("the input has " + channels.text() + " channels, the weight expects " + expected.text());
    if (weight.sizes[0] == SymInt(0)) return c.fail("the weight has no channels");
    if (std::find(weight.sizes.begin() + 2, weight.sizes.end(), SymInt(0)) != weight.sizes.end())
        return c.fail("the kernel " + weight.text() + " has no elements");
    const bool hasChannels = !(input.sizes[0] == SymInt(0)) && !(channels == SymInt(0));
    if (hasChannels && std::find(input.sizes.begin() + 2, input.sizes.end(), SymInt(0)) != input.sizes.end())
        return c.fail("the input " + input.text() + " has batch and channels, but no elements");
    if (leavesRemainder(weight.sizes[0], call.groups))
        return c.fail("the weight's " + weight.sizes[0].text() + " channels do not divide into " +
                      std::to_string(call.groups) + " groups");
    return {};
}

ConvolutionGeometry convolutionGeometry(const InferContext& c, const Dims& input, const Dims& weight,
                                        const Dims& output) {
    auto call = readConvolution(c, input.size() - 2);
    CT_CHECK(call.has_value(), "the op's shape rule has accepted these arguments");
    ConvolutionGeometry g;
    g.batch = input[0];
    g.inChannels = input[1];
    g.outChannels = output[1];
    g.groups = call->groups;
    g.transposed = call->transposed;
    g.in.assign(input.begin() + 2, input.end());
    g.out.assign(output.begin() + 2, output.end());
    g.kernel.assign(weight.begin() + 2, weight.end());
    g.stride = call->stride;
    g.padding = call->padding;
    g.dilation = call->dilation;
    return g;
}

bool isConvolvedByChannel(const InferContext& c) {
    constexpr int64_t kMostTaps = 64;
    const auto input = c.tensor("input"), weight = c.tensor("weight");
    if (!input || !weight || input->device.type != DeviceType::Cuda || !isFloating(input->dtype) || input->rank() < 3)
        return false;
    const auto call = readConvolution(c, input->sizes.size() - 2);
    if (!call || call->transposed || call->groups < 2 || !(input->sizes[1] == SymInt(call->groups)) ||
        !weight->sizes[0].isInt())
        return false;
    int64_t taps = 1;
    for (size_t d = 2; d < weight->sizes.size(); ++d) taps *= weight->sizes[d].asInt().value_or(kMostTaps + 1);
    return taps >= 1 && taps <= kMostTaps;
}

Expr lowerByChannel(LowerContext& c) {
    if (!isConvolvedByChannel(c)) return Expr();
    const TensorType input = c.in("input"), weight = c.in("weight");
    const size_t spatial = input.sizes.size() - 2;
    const auto call = readConvolution(c, spatial);
    const std::vector<Expr>& at = c.index();
    const int64_t perChannel = weight.sizes[0].value() / call->groups;
    const Expr channel =
        perChannel == 1 ? at[1] : Expr::make(ExprKind::FloorDiv, {at[1], Expr::integer(perChannel)}, DType::I64);
    const SymDims windows(weight.sizes.begin() + 2, weight.sizes.end());
    const Expr sum = c.reduce(ReduceKind::Sum, windows, [&](const std::vector<Expr>& r) {
        std::vector<Expr> from{at[0], channel}, by{at[1], Expr::integer(0)};
        Expr inside = Expr::boolean(true);
        for (size_t d = 0; d < spatial; ++d) {
            from.push_back(at[2 + d] * Expr::integer(call->stride[d]) + r[d] * Expr::integer(call->dilation[d]) -
                           Expr::integer(call->padding[d]));
            by.push_back(r[d]);
            if (call->padding[d] == 0) continue;
            inside = inside && compare(ExprKind::Ge, from.back(), Expr::integer(0));
            inside = inside && compare(ExprKind::Lt, from.back(), input.sizes[2 + d].expr());
        }
        return c.guarded(
            inside, [&] { return c.loadAt(0, from) * c.loadAt(1, by); }, Expr::real(0, computeTypeOf(input.dtype)));
    });
    return c.has("bias") ? sum + c.loadAt(2, {at[1]}) : sum;
}

}  // namespace cutaway
