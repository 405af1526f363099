#include "engine/text/packed_weights.h"

#include "engine/ir/infer.h"

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

}  // namespace

std::vector<std::pair<Node*, TensorType>> plainWeights(const Op& op, const std::vector<Argument>& args,
                                                       const ValueType& result) {
    std::vector<std::pair<Node*, TensorType>> found;
    const std::string_view packet = op.packet();
    const bool linear = op.name() == kMklLinear || packet == "mkldnn._linear_pointwise";
    const bool convolution = packet == "mkldnn._convolution_pointwise" || packet == "mkldnn._convolution_pointwise_" ||
                             packet == "mkldnn._convolution_transpose_pointwise";
    if ((!linear && !convolution) || op.isOpaque() || args.size() != op.schema()->params.size()) return found;
    const ConvolutionCall call(op, args);
    const Node* input = call.arg("X").node();
    const TensorType *x = input ? staticTensor(input->type()) : nullptr, *out = staticTensor(result);
    if (!x || !out || x->rank() != out->rank()) return found;
    std::optional<TensorType> plain;
    if (linear) plain = TensorType::contiguous(x->dtype, {out->sizes.back(), x->sizes.back()}, x->device);
    else plain = call.plainWeight(*x, *out);
    if (!plain) return found;
    for (const std::string_view param : {"W", "MKL_W", "ORI_W"})
        if (const int at = op.schema()->find(param); at >= 0)
            if (Node* weight = packedWeight(args[static_cast<size_t>(at)])) found.emplace_back(weight, *plain);
    return found;
}

std::map<std::string, int64_t> rowsPackedFor(const Module& module) {
    std::map<std::string, int64_t> found;
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall(kMklLinear)) continue;
        const Node* weight = node.arg("MKL_W").node();
        const auto rows = node.arg("batch_size").asInt();
        if (weight && weight->kind() == NodeKind::GetAttr && rows) found[weight->target()] = *rows;
    }
    return found;
}

}  // namespace cutaway::fxtext
