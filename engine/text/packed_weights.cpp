#include "engine/text/packed_weights.h"

#include "engine/ir/infer.h"
#include "engine/text/print.h"

namespace cutaway::fxtext {
namespace {

constexpr std::string_view kMklLinear = "mkl._mkl_linear";

/// A layout of the library's own is printed as strides [1, 0, ...].
bool isPackedType(const TensorType& type) {
    if (type.rank() < 2 || !(type.strides[0] == SymInt(1))) return false;
    return std::all_of(type.strides.begin() + 1, type.strides.end(), [](const SymInt& s) { return s == SymInt(0); });
}
Node* packedWeight(const Argument& argument) {
    Node* node = argument.node();
    if (!node || node->kind() != NodeKind::GetAttr) return nullptr;
    const TensorType* type = node->type().tensor();
    return type == nullptr || isPackedType(*type) ? node : nullptr;
}
const TensorType* staticTensor(const ValueType& type) {
    const TensorType* tensor = type.tensor();
    return tensor && allInts(tensor->sizes) && tensor->rank() > 0 ? tensor : nullptr;
}

/// One size of the kernel: the largest that gives this output. 0 if none does.
struct SpatialDim {
    int64_t in, out, padding, outputPadding, stride, dilation;
    bool isPlausible() const {
        const auto small = [](int64_t value, int64_t least) { return value >= least && value <= 1'000'000; };
        return small(padding, 0) && small(outputPadding, 0) && small(stride, 1) && small(dilation, 1) && small(in, 0) &&
               small(out, 0);
    }
    int64_t kernel(bool transposed) const {
        if (!isPlausible()) return 0;
        if (!transposed) return (in + 2 * padding - (out - 1) * stride - 1) / dilation + 1;
        return (out - 1 - outputPadding + 2 * padding - (in - 1) * stride) / dilation + 1;
    }
};

struct ConvolutionCall : CallView {
    using CallView::CallView;
    bool transposed() const { return op().schema()->find("output_padding") >= 0; }
    std::optional<int64_t> number(std::string_view param, size_t at) const {
        const auto* list = arg(param).list();
        if (!list || list->empty()) return std::nullopt;
        return (list->size() == 1 ? (*list)[0] : at < list->size() ? (*list)[at] : Argument()).asInt();
    }
    /// [out, in / groups, kernel...], transposed [in, out / groups, kernel...].
    std::optional<TensorType> plainWeight(const TensorType& x, const TensorType& result) const {
        const auto groups = arg("groups").asInt();
        if (x.rank() < 3 || x.rank() != result.rank() || !groups || *groups < 1) return std::nullopt;
        const TensorType &rows = transposed() ? x : result, &columns = transposed() ? result : x;
        SymDims sizes = {rows.sizes[1], columns.sizes[1].value() / *groups};
        for (size_t i = 0; i + 2 < x.sizes.size(); ++i) {
            const auto padding = number("padding", i), stride = number("stride", i), dilation = number("dilation", i);
            const auto extra = transposed() ? number("output_padding", i) : 0;
            if (!padding || !stride || !dilation || !extra) return std::nullopt;
            const int64_t size =
                SpatialDim{x.sizes[i + 2].value(), result.sizes[i + 2].value(), *padding, *extra, *stride, *dilation}
                    .kernel(transposed());
            if (size < 1) return std::nullopt;
            sizes.push_back(size);
        }
        return TensorType::contiguous(x.dtype, std::move(sizes), x.device);
    }
};

enum class Layer : uint8_t { Other, Linear, Convolution, QuantizedLinear, QuantizedConvolution, HalfLinear };
Layer layerOf(const Op& op) {
    constexpr std::pair<std::string_view, Layer> kLayers[] = {
        {"mkl._mkl_linear", Layer::Linear},
        {"mkldnn._linear_pointwise", Layer::Linear},
        {"mkldnn._convolution_pointwise", Layer::Convolution},
        {"mkldnn._convolution_pointwise_", Layer::Convolution},
        {"mkldnn._convolution_transpose_pointwise", Layer::Convolution},
        {"onednn.qlinear_pointwise", Layer::QuantizedLinear},
        {"onednn.qconv_pointwise", Layer::QuantizedConvolution},
        {"onednn.qconv1d_pointwise", Layer::QuantizedConvolution},
        {"onednn.qconv2d_pointwise", Layer::QuantizedConvolution},
        {"onednn.qconv3d_pointwise", Layer::QuantizedConvolution},
        {"onednn.linear_dynamic_fp16", Layer::HalfLinear},
        {"onednn.linear_relu_dynamic_fp16", Layer::HalfLinear}};
    for (const auto& [packet, layer] : kLayers)
        if (op.packet() == packet) return layer;
    return Layer::Other;
}

/// Scales matter to the layout only by their number.
Packing quantizedConvolutionPacking(const Node& call, const Node& weight) {
    const TensorType* type = weight.type().tensor();
    const std::string channels = type && type->rank() > 0 ? type->sizes[0].text() : "1";
    std::string after = ", torch.ones(" + channels + "), ";
    const Argument &scale = call.arg("x_scale"), &zero = call.arg("x_zero_point");
    after += (scale.node() ? std::string("1.0") : printArgument(scale)) + ", " +
             (zero.node() ? std::string("0") : printArgument(zero));
    for (const std::string_view param : {"stride", "padding", "dilation", "groups"})
        after += ", " + printArgument(call.arg(param));
    return {"torch.ops.onednn.qconv_prepack(", after + ", None)"};
}

}  // namespace

std::vector<std::pair<Node*, TensorType>> plainWeights(const Op& op, const std::vector<Argument>& args,
                                                       const ValueType& result) {
    std::vector<std::pair<Node*, TensorType>> found;
    const Layer layer = layerOf(op);
    if (layer == Layer::Other || op.isOpaque() || args.size() != op.schema()->params.size()) return found;
    const ConvolutionCall call(op, args);
    const Node* input = args[0].node();
    const TensorType *x = input ? staticTensor(input->type()) : nullptr, *out = staticTensor(result);
    if (!x || !out || x->rank() != out->rank()) return found;
    std::optional<TensorType> plain;
    if (layer == Layer::Convolution || layer == Layer::QuantizedConvolution) plain = call.plainWeight(*x, *out);
    else plain = TensorType::contiguous(x->dtype, {out->sizes.back(), x->sizes.back()}, x->device);
    if (!plain) return found;
    if (layer == Layer::QuantizedConvolution || layer == Layer::QuantizedLinear)
        plain->dtype = x->dtype == DType::F8E4M3FN ? x->dtype : DType::I8;
    if (layer == Layer::HalfLinear) plain->dtype = DType::F16;
    if (layer == Layer::QuantizedLinear || layer == Layer::HalfLinear) {
        // Packed is the transpose.
        std::swap(plain->sizes[0], plain->sizes[1]);
        std::swap(plain->strides[0], plain->strides[1]);
    }
    for (const std::string_view param : {"W", "MKL_W", "ORI_W", "qw", "w"})
        if (const int at = op.schema()->find(param); at >= 0)
            if (Node* weight = packedWeight(args[static_cast<size_t>(at)])) found.emplace_back(weight, *plain);
    return found;
}

std::map<std::string, Packing> packingsFor(const Module& module) {
    std::map<std::string, Packing> found;
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall() || node.op().isOpaque() || node.op().schema() == nullptr) continue;
        const auto read = [&](std::string_view param) -> const Node* {
            const int at = node.op().schema()->find(param);
            const Node* weight = at >= 0 ? node.arg(static_cast<size_t>(at)).node() : nullptr;
            return weight && weight->kind() == NodeKind::GetAttr ? weight : nullptr;
        };
        const Layer layer = layerOf(node.op());
        if (const Node* weight = node.isCall(kMklLinear) ? read("MKL_W") : nullptr) {
            if (const auto rows = node.arg("batch_size").asInt())
                found[weight->target()] = {"torch.ops.mkl._mkl_reorder_linear_weight(",
                                           ", " + std::to_string(*rows) + ")"};
        } else if (layer == Layer::QuantizedLinear && read("qw")) {
            found[read("qw")->target()] = {"torch.ops.onednn.qlinear_prepack(", ".t().contiguous(), None)"};
        } else if (layer == Layer::HalfLinear && read("w")) {
            found[read("w")->target()] = {"torch.ops.onednn.linear_prepack_fp16(", ".t().float().contiguous(), None)"};
        } else if (layer == Layer::QuantizedConvolution && read("qw")) {
            found[read("qw")->target()] = quantizedConvolutionPacking(node, *read("qw"));
        }
    }
    return found;
}

}  // namespace cutaway::fxtext
