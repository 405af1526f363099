#include "engine/runtime/cpu/onednn.h"

#include <dnnl.hpp>

namespace cutaway {
namespace {

using dnnl::memory;

memory::desc describe(const Tensor& tensor) {
    return memory::desc(tensor.sizes(), memory::data_type::f32, tensor.strides());
}
memory::desc anyLayout(const Dims& sizes) {
    return memory::desc(sizes, memory::data_type::f32, memory::format_tag::any);
}

/// oneDNN reads dense matrices in either order, but no broadcast or overlapping strides.
bool isPlain(const Tensor& tensor) {
    if (tensor.numel() == 0) return false;
    for (size_t d = 0; d < tensor.sizes().size(); ++d)
        if (tensor.sizes()[d] > 1 && tensor.strides()[d] <= 0) return false;
    return true;
}

/// One operand of a primitive: in the caller's layout, reordered into the primitive's own if that differs.
struct Port {
    memory given, own;
    dnnl::reorder reorder;
    bool reordered = false, filled = false;

    void prepare(const dnnl::engine& engine, const memory::desc& outside, const memory::desc& inside, bool inwards) {
        given = memory(outside, engine, nullptr);
        reordered = outside != inside;
        own = reordered ? memory(inside, engine) : given;
        if (reordered) reorder = inwards ? dnnl::reorder(given, own) : dnnl::reorder(own, given);
    }
    void read(dnnl::stream& stream, const Tensor& tensor, bool constant) {
        given.set_data_handle(const_cast<void*>(tensor.data()));
        if (!reordered || (constant && filled)) return;
        reorder.execute(stream, given, own);
        filled = true;
    }
};

bool isConvolution(const PlanCall& call) { return call.function == "aten.convolution.default"; }
/// addmm(bias, a, b): the bias stands first.
bool biasFirst(const PlanCall& call) { return call.function == "aten.addmm.default"; }

Dims literalInts(const Argument& arg, size_t count) {
    Dims values;
    if (const auto* items = arg.list())
        for (const Argument& item : *items) values.push_back(item.asInt().value_or(0));
    else if (auto one = arg.asInt()) values.push_back(*one);
    if (values.size() == 1) values.resize(count, values[0]);
    return values;
}

}  // namespace

struct OneDnn::State {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
};

struct LibraryCall::State {
    dnnl::engine engine;
    dnnl::stream stream;
    size_t firstAt = 0, secondAt = 1, biasAt = 2;  // positions among the operands
    bool packed = false;                           // the second never changes
    dnnl::primitive primitive;
    Port first, second, bias, result;
    bool hasBias = false;
    std::unordered_map<int, memory> ports;

    void prepareMatmul(const Tensor& a, const Tensor& b, const Tensor& added, Tensor& out) {
        const memory::desc weights = packed ? anyLayout(b.sizes()) : describe(b);
        hasBias = added.defined();
        Dims biasSizes(out.sizes().size(), 1);  // as the bias is broadcast
        if (hasBias)
            std::copy(added.sizes().begin(), added.sizes().end(),
                      biasSizes.end() - static_cast<std::ptrdiff_t>(added.sizes().size()));
        const memory::desc biasDesc(biasSizes, memory::data_type::f32, contiguousStrides(biasSizes));
        const auto desc = hasBias ? dnnl::matmul::desc(describe(a), weights, biasDesc, describe(out))
                                  : dnnl::matmul::desc(describe(a), weights, describe(out));
        const dnnl::matmul::primitive_desc pd(desc, engine);
        first.prepare(engine, describe(a), pd.src_desc(), true);
        second.prepare(engine, describe(b), pd.weights_desc(), true);
        if (hasBias) bias.prepare(engine, biasDesc, pd.bias_desc(), true);
        result.prepare(engine, describe(out), pd.dst_desc(), false);
        primitive = dnnl::matmul(pd);
    }
    void prepareConvolution(const PlanCall& call, const Tensor& x, const Tensor& w, const Tensor& added, Tensor& out) {
        const size_t rank = x.sizes().size() - 2;
        const Dims stride = literalInts(call.args[3], rank), pad = literalInts(call.args[4], rank);
        Dims dilation = literalInts(call.args[5], rank);
        for (int64_t& d : dilation) --d;  // oneDNN counts the gaps
        const int64_t groups = call.args[8].asInt().value_or(1);
        Dims sizes = w.sizes(), strides = w.strides();
        if (groups > 1) {
            sizes[0] /= groups;
            sizes.insert(sizes.begin(), groups);
            strides.insert(strides.begin(), strides[0] * sizes[1]);
        }
        const memory::desc weights(sizes, memory::data_type::f32, strides);
        hasBias = added.defined();
        const memory::desc biasDesc({w.sizes()[0]}, memory::data_type::f32, memory::dims{1});
        const auto forward = dnnl::prop_kind::forward_inference;
        const auto algorithm = dnnl::algorithm::convolution_direct;
        const auto src = anyLayout(x.sizes()), any = anyLayout(sizes), dst = anyLayout(out.sizes());
        const auto desc =
            hasBias ? dnnl::convolution_forward::desc(forward, algorithm, src, any, biasDesc, dst, stride, dilation,
                                                      pad, pad)
                    : dnnl::convolution_forward::desc(forward, algorithm, src, any, dst, stride, dilation, pad, pad);
        const dnnl::convolution_forward::primitive_desc pd(desc, engine);
        first.prepare(engine, describe(x), pd.src_desc(), true);
        second.prepare(engine, weights, pd.weights_desc(), true);
        if (hasBias) bias.prepare(engine, biasDesc, pd.bias_desc(), true);
        result.prepare(engine, describe(out), pd.dst_desc(), false);
        primitive = dnnl::convolution_forward(pd);
    }
    void collectPorts() {
        ports = {{DNNL_ARG_SRC, first.own}, {DNNL_ARG_WEIGHTS, second.own}, {DNNL_ARG_DST, result.own}};
        if (hasBias) ports.emplace(DNNL_ARG_BIAS, bias.own);
    }
    void execute(const LibraryOperands& operands, Tensor& out) {
        first.read(stream, *operands.tensors[firstAt], false);
        second.read(stream, *operands.tensors[secondAt], packed);
        Tensor added;  // read when the primitive is executed
        if (hasBias) bias.read(stream, added = operands.tensors[biasAt]->contiguous(), false);
        result.given.set_data_handle(out.data());
        primitive.execute(stream, ports);
        if (result.reordered) result.reorder.execute(stream, result.own, result.given);
        stream.wait();
    }
};

LibraryCall::LibraryCall(std::unique_ptr<State> state) : m_state(std::move(state)) {}
LibraryCall::~LibraryCall() = default;

bool LibraryCall::run(const LibraryOperands& operands, Tensor& result) {
    try {
        m_state->execute(operands, result);
        return true;
    } catch (const dnnl::error&) {
        return false;
    }
}

OneDnn::OneDnn() = default;
OneDnn::~OneDnn() = default;

std::unique_ptr<LibraryCall> OneDnn::prepare(const PlanCall& call, const LibraryOperands& operands, Tensor& result) {
    if (!m_state) m_state = std::make_unique<State>();
    auto state = std::make_unique<LibraryCall::State>();
    state->engine = m_state->engine;
    state->stream = m_state->stream;
    if (biasFirst(call)) state->firstAt = 1, state->secondAt = 2, state->biasAt = 0;
    const Tensor *a = operands.tensors[state->firstAt], *b = operands.tensors[state->secondAt];
    const bool mayHaveBias = biasFirst(call) || isConvolution(call);
    const Tensor bias = mayHaveBias && operands.tensors[state->biasAt] ? *operands.tensors[state->biasAt] : Tensor();
    state->packed = operands.constant[state->secondAt];
    if (a == nullptr || b == nullptr || !isPlain(*a) || !isPlain(*b) || !isPlain(result)) return nullptr;
    if (biasFirst(call) && (call.args[3].asReal() != 1.0 || call.args[4].asReal() != 1.0))
        return nullptr;                                                    // beta, alpha
    if (isConvolution(call) && call.args[6].asInt() != 0) return nullptr;  // transposed
    try {
        if (isConvolution(call)) state->prepareConvolution(call, *a, *b, bias, result);
        else state->prepareMatmul(*a, *b, bias, result);
        state->collectPorts();
    } catch (const dnnl::error&) {
        return nullptr;
    }
    return std::make_unique<LibraryCall>(std::move(state));
}

std::string oneDnnVersion() {
    const dnnl::version_t* version = dnnl::version();
    return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace cutaway
