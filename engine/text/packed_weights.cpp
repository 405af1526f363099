#include "engine/text/packed_weights.h"

namespace cutaway::fxtext {
namespace {

const Node* untyped(const Argument& argument) {
    const Node* node = argument.node();
    return node && node->kind() == NodeKind::GetAttr && !node->type().tensor() ? node : nullptr;
}
const TensorType* staticTensor(const Node& node) {
    const TensorType* type = node.type().tensor();
    return type && allInts(type->sizes) ? type : nullptr;
}

/// out[M, N] = x[M, K] * weight[N, K]
void linear(const Node& call, std::map<std::string, PackedWeight>& out) {
    const auto& args = call.args();
    const TensorType* result = staticTensor(call);
    const TensorType* x = args.size() >= 5 && args[0].node() ? staticTensor(*args[0].node()) : nullptr;
    if (!result || !x || result->rank() != 2 || x->rank() != 2) return;
    const TensorType plain = TensorType::contiguous(x->dtype, {result->sizes[1], x->sizes[1]}, x->device);
    if (const Node* packed = untyped(args[1])) out[packed->target()] = {plain, args[4].asInt()};
    if (const Node* original = untyped(args[2])) out.try_emplace(original->target(), PackedWeight{plain, std::nullopt});
}

/// One size of the kernel: the largest that gives this output.
int64_t kernelSize(int64_t in, int64_t out, int64_t padding, int64_t stride, int64_t dilation) {
    return (in + 2 * padding - (out - 1) * stride - 1) / dilation + 1;
}
void convolution(const Node& call, std::map<std::string, PackedWeight>& out) {
    const auto& args = call.args();
    const TensorType* result = staticTensor(call);
    const TensorType* x = args.size() >= 7 && args[0].node() ? staticTensor(*args[0].node()) : nullptr;
    const Node* weight = args.size() >= 7 ? untyped(args[1]) : nullptr;
    if (!result || !x || !weight || result->rank() != x->rank() || x->rank() < 3) return;
    const auto *padding = args[3].list(), *stride = args[4].list(), *dilation = args[5].list();
    const auto groups = args[6].asInt();
    const auto spatial = static_cast<size_t>(x->rank() - 2);
    if (!padding || !stride || !dilation || !groups || *groups < 1 || padding->size() != spatial ||
        stride->size() != spatial || dilation->size() != spatial)
        return;
    SymDims sizes = {result->sizes[1], x->sizes[1].value() / *groups};
    for (size_t i = 0; i < spatial; ++i) {
        const auto p = (*padding)[i].asInt(), s = (*stride)[i].asInt(), d = (*dilation)[i].asInt();
        if (!p || !s || !d || *d < 1 || *s < 1 || *p < 0 || *p > 1'000'000 || *s > 1'000'000 ||
            x->sizes[i + 2].value() > 1'000'000'000 || result->sizes[i + 2].value() > 1'000'000)
            return;
        const int64_t size = kernelSize(x->sizes[i + 2].value(), result->sizes[i + 2].value(), *p, *s, *d);
        if (size < 1) return;
        sizes.push_back(size);
    }
    out[weight->target()] = {TensorType::contiguous(x->dtype, std::move(sizes), x->device), std::nullopt};
}

}  // namespace

std::map<std::string, PackedWeight> packedWeights(const Module& module) {
    std::map<std::string, PackedWeight> found;
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall()) continue;
        if (node.op().packet() == "mkl._mkl_linear") linear(node, found);
        if (node.op().packet() == "mkldnn._convolution_pointwise" &&
            node.op().name() != "mkldnn._convolution_pointwise.binary")
            convolution(node, found);
    }
    return found;
}

}  // namespace cutaway::fxtext
