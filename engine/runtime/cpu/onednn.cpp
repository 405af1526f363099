#include "engine/runtime/cpu/onednn.h"

#include <dnnl.hpp>

namespace cutaway {
namespace {

using dnnl::memory;

memory::desc describe(const Tensor& tensor) { return memory::desc(tensor.sizes(), memory::data_type::f32, tensor.strides()); }
memory::desc anyLayout(const Dims& sizes) { return memory::desc(sizes, memory::data_type::f32, memory::format_tag::any); }

/// oneDNN reads dense matrices in either order; broadcast or overlapping strides are not its business.
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

struct Prepared {
    dnnl::primitive primitive;
    Port first, second, bias, result;
    bool hasBias = false, usable = false;
    Tensor zeroBias;
};

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
    std::map<size_t, Prepared> prepared;

    void prepareMatmul(Prepared& p, const Tensor& a, const Tensor& b, const Tensor& bias, bool packed, Tensor& result) {
        const memory::desc weights = packed ? anyLayout(b.sizes()) : describe(b);
        p.hasBias = bias.defined();
        Dims biasSizes(result.sizes().size(), 1);   // as the bias is broadcast
        if (p.hasBias) std::copy(bias.sizes().begin(), bias.sizes().end(), biasSizes.end() - static_cast<std::ptrdiff_t>(bias.sizes().size()));
        const memory::desc biasDesc(biasSizes, memory::data_type::f32, contiguousStrides(biasSizes));
        const auto desc = p.hasBias ? dnnl::matmul::desc(describe(a), weights, biasDesc, describe(result)) : dnnl::matmul::desc(describe(a), weights, describe(result));
        const dnnl::matmul::primitive_desc pd(desc, engine);
        p.first.prepare(engine, describe(a), pd.src_desc(), true);
        p.second.prepare(engine, describe(b), pd.weights_desc(), true);
        if (p.hasBias) p.bias.prepare(engine, biasDesc, pd.bias_desc(), true);
        p.result.prepare(engine, describe(result), pd.dst_desc(), false);
        p.primitive = dnnl::matmul(pd);
    }
    void prepareConvolution(Prepared& p, const PlanCall& call, const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& result) {
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
        p.hasBias = bias.defined();
        const memory::desc biasDesc({w.sizes()[0]}, memory::data_type::f32, memory::dims{1});
        const auto forward = dnnl::prop_kind::forward_inference;
        const auto algorithm = dnnl::algorithm::convolution_direct;
        const auto src = anyLayout(x.sizes()), any = anyLayout(sizes), dst = anyLayout(result.sizes());
        const auto desc = p.hasBias ? dnnl::convolution_forward::desc(forward, algorithm, src, any, biasDesc, dst, stride, dilation, pad, pad)
                                    : dnnl::convolution_forward::desc(forward, algorithm, src, any, dst, stride, dilation, pad, pad);
        const dnnl::convolution_forward::primitive_desc pd(desc, engine);
        p.first.prepare(engine, describe(x), pd.src_desc(), true);
        p.second.prepare(engine, weights, pd.weights_desc(), true);
        if (p.hasBias) p.bias.prepare(engine, biasDesc, pd.bias_desc(), true);
        p.result.prepare(engine, describe(result), pd.dst_desc(), false);
        p.primitive = dnnl::convolution_forward(pd);
    }
    void execute(Prepared& p, const Tensor& a, const Tensor& b, const Tensor& bias, bool constantWeights, Tensor& result) {
        p.first.read(stream, a, false);
        p.second.read(stream, b, constantWeights);
        std::unordered_map<int, memory> ports = {{DNNL_ARG_SRC, p.first.own}, {DNNL_ARG_WEIGHTS, p.second.own}};
        if (p.hasBias) {
            p.bias.read(stream, bias, false);
            ports.emplace(DNNL_ARG_BIAS, p.bias.own);
        }
        p.result.given.set_data_handle(result.data());
        ports.emplace(DNNL_ARG_DST, p.result.own);
        p.primitive.execute(stream, ports);
        if (p.result.reordered) p.result.reorder.execute(stream, p.result.own, p.result.given);
        stream.wait();
    }
};

OneDnn::OneDnn() : m_state(std::make_unique<State>()) {}
OneDnn::~OneDnn() = default;

bool OneDnn::run(size_t slot, const PlanCall& call, const std::vector<Tensor>& operands, const std::vector<bool>& constant, Tensor& result) {
    const bool convolution = call.function == "aten.convolution.default", biased = call.function == "aten.addmm.default";
    // addmm(bias, a, b): the bias stands first.
    const Tensor &a = operands[biased ? 1 : 0], &b = operands[biased ? 2 : 1];
    Tensor bias = biased ? operands[0] : convolution ? operands[2] : Tensor();
    const bool constantWeights = constant[biased ? 2 : 1];
    auto [at, fresh] = m_state->prepared.try_emplace(slot);
    Prepared& p = at->second;
    if (bias.defined() && !bias.isContiguous()) bias = bias.contiguous();
    try {
        if (fresh) {
            if (!isPlain(a) || !isPlain(b) || !isPlain(result)) return false;
            if (biased && (call.args[3].asReal() != 1.0 || call.args[4].asReal() != 1.0)) return false;   // beta, alpha
            if (convolution && call.args[6].asInt() != 0) return false;   // transposed
            if (convolution) m_state->prepareConvolution(p, call, a, b, bias, result);
            else m_state->prepareMatmul(p, a, b, bias, constantWeights, result);
            p.usable = true;
        }
        if (!p.usable) return false;
        m_state->execute(p, a, b, bias, constantWeights, result);
        return true;
    } catch (const dnnl::error&) {
        p.usable = false;
        return false;
    }
}

std::string oneDnnVersion() {
    const dnnl::version_t* version = dnnl::version();
    return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

}  // namespace cutaway
