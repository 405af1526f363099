#include "engine/runtime/cpu/onednn.h"

#include <dnnl.hpp>

#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

using dnnl::memory;

memory::data_type typeOf(const Tensor& tensor) {
    return tensor.dtype() == DType::BF16 ? memory::data_type::bf16 : memory::data_type::f32;
}
memory::desc describe(const Tensor& tensor) { return memory::desc(tensor.sizes(), typeOf(tensor), tensor.strides()); }
memory::desc anyLayout(const Dims& sizes, memory::data_type type) {
    return memory::desc(sizes, type, memory::format_tag::any);
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

/// Which arguments of a call the library's operands are, by parameter.
struct Form {
    enum class Kind : uint8_t { Product, Linear, Convolution } kind;
    std::string_view function, first, second, bias;
    bool channelsLast = false;  // gives channels-last results and takes such inputs as they are
};
constexpr Form kForms[] = {
    {Form::Kind::Product, "aten.mm.default", "self", "mat2", ""},
    {Form::Kind::Product, "aten.bmm.default", "self", "mat2", ""},
    {Form::Kind::Product, "aten.addmm.default", "mat1", "mat2", "self"},
    {Form::Kind::Convolution, "aten.convolution.default", "input", "weight", "bias"},
    {Form::Kind::Linear, "mkl._mkl_linear", "X", "ORI_W", "B"},
    {Form::Kind::Linear, "mkldnn._linear_pointwise.default", "X", "W", "B"},
    {Form::Kind::Linear, "mkldnn._linear_pointwise.binary", "X", "W", "B"},
    {Form::Kind::Convolution, "mkldnn._convolution_pointwise.default", "X", "W", "B", true},
    {Form::Kind::Convolution, "mkldnn._convolution_pointwise.binary", "X", "W", "B", true},
    {Form::Kind::Convolution, "mkldnn._convolution_pointwise_.binary", "X", "W", "B", true},
    {Form::Kind::Convolution, "mkldnn._convolution_transpose_pointwise.default", "X", "W", "B", true},
};

/// A call's arguments by the names of its schema.
class NamedCall {
  public:
    explicit NamedCall(const PlanCall& call) : m_call(&call), m_schema(requireOp(call.function).schema()) {
        for (const Form& form : kForms)
            if (form.function == call.function) m_form = &form;
    }
    const Form* form() const { return m_form; }
    /// Null if the operator has no such parameter.
    const Argument* arg(std::string_view param) const {
        const int at = m_schema->find(param);
        return at < 0 ? nullptr : &m_call->args[static_cast<size_t>(at)];
    }
    std::optional<size_t> position(std::string_view param) const {
        const int at = m_schema->find(param);
        return at < 0 ? std::nullopt : std::optional(static_cast<size_t>(at));
    }
    std::string text(std::string_view param) const {
        const Argument* found = arg(param);
        const auto* value = found ? found->get<std::string>() : nullptr;
        return value ? *value : std::string();
    }
    Dims integers(std::string_view param, size_t count) const {
        Dims values;
        const Argument* found = arg(param);
        if (found == nullptr) return Dims(count, 0);
        if (const auto* items = found->list())
            for (const Argument& item : *items) values.push_back(item.asInt().value_or(0));
        else if (auto one = found->asInt()) values.push_back(*one);
        if (values.size() == 1) values.resize(count, values[0]);
        return values;
    }
    bool isTransposed() const {
        return arg("output_padding") && (arg("transposed") == nullptr || arg("transposed")->asInt() != 0);
    }

  private:
    const PlanCall* m_call;
    const Schema* m_schema;
    const Form* m_form = nullptr;
};

/// A function of each element of the result, appended to what is computed of it already. False if there is none of that
/// name.
bool appendUnary(dnnl::post_ops& ops, const NamedCall& call, const std::string& name) {
    using dnnl::algorithm;
    std::vector<float> numbers;
    if (const Argument* scalars = call.arg("scalars"); scalars && scalars->list())
        for (const Argument& each : *scalars->list()) numbers.push_back(static_cast<float>(each.asReal().value_or(0)));
    const auto append = [&](algorithm function, float a = 0, float b = 0) {
        ops.append_eltwise(1, function, a, b);
        return true;
    };
    if (name.empty() || name == "none") return true;
    if (name == "relu") return append(algorithm::eltwise_relu);
    if (name == "sigmoid") return append(algorithm::eltwise_logistic);
    if (name == "tanh") return append(algorithm::eltwise_tanh);
    if (name == "swish") return append(algorithm::eltwise_swish, 1);
    if (name == "hardswish") return append(algorithm::eltwise_hardswish);
    if (name == "hardsigmoid")
        return append(algorithm::eltwise_linear, 1.0f / 6, 0.5f) && append(algorithm::eltwise_clip, 0, 1);
    if (name == "leaky_relu" && numbers.size() == 1) return append(algorithm::eltwise_relu, numbers[0]);
    if (name == "hardtanh" && numbers.size() == 2) return append(algorithm::eltwise_clip, numbers[0], numbers[1]);
    if (name == "gelu")
        return append(call.text("algorithm") == "tanh" ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf);
    return false;
}
bool appendBinary(dnnl::post_ops& ops, const std::string& name, const memory::desc& other) {
    using dnnl::algorithm;
    constexpr std::pair<std::string_view, algorithm> kFunctions[] = {{"add", algorithm::binary_add},
                                                                     {"sub", algorithm::binary_sub},
                                                                     {"mul", algorithm::binary_mul},
                                                                     {"div", algorithm::binary_div}};
    for (const auto& [known, function] : kFunctions)
        if (name == known) return ops.append_binary(function, other), true;
    return false;
}

/// The tensor as a matrix: all dims but the last as one. Undefined if its strides do not allow that.
Tensor asMatrix(const Tensor& tensor) {
    const size_t rank = tensor.sizes().size();
    if (rank == 2 || rank == 0) return rank == 2 ? tensor : Tensor();
    int64_t rows = 1, step = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
        if (tensor.sizes()[d] == 1) continue;
        if (rows > 1 && step != tensor.strides()[d] * tensor.sizes()[d]) return {};
        rows *= tensor.sizes()[d];
        step = tensor.strides()[d];
    }
    const int64_t columns = tensor.sizes().back();
    if (rows == 1) step = columns * std::max<int64_t>(tensor.strides().back(), 1);
    return Tensor(tensor.storage(), tensor.dtype(), {rows, columns}, {step, tensor.strides().back()}, tensor.offset());
}
Tensor transposed(const Tensor& matrix) {
    return Tensor(matrix.storage(), matrix.dtype(), {matrix.sizes()[1], matrix.sizes()[0]},
                  {matrix.strides()[1], matrix.strides()[0]}, matrix.offset());
}

}  // namespace

struct OneDnn::State {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
};

struct LibraryCall::State {
    dnnl::engine engine;
    dnnl::stream stream;
    size_t firstAt = 0, secondAt = 1;  // positions among the operands
    std::optional<size_t> biasAt, otherAt;
    bool packed = false;  // the second never changes
    dnnl::primitive primitive;
    dnnl::primitive_attr attributes;
    Port first, second, bias, other, result;
    int otherArgument = 0;
    std::unordered_map<int, memory> ports;

    /// What is computed of the result before it is stored. False if the library does not know it.
    bool appendFunctions(const NamedCall& call, const Tensor* added, const Tensor& out) {
        dnnl::post_ops ops;
        const std::string function = call.text(call.arg("binary_attr") ? "binary_attr" : "attr");
        if (added != nullptr) {
            const Tensor shaped = call.form()->kind == Form::Kind::Linear ? asMatrix(*added) : *added;
            if (!shaped.defined() || shaped.sizes().size() != out.sizes().size() || !isPlain(shaped)) return false;
            // The library reads an operand of the result's sizes in the result's layout, whatever layout it is told.
            const memory::desc wanted = describe(shaped.sizes() == out.sizes() ? out : shaped);
            if (!appendBinary(ops, function, wanted)) return false;
            other.prepare(engine, describe(shaped), wanted, true);
            otherArgument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
        }
        if (!appendUnary(ops, call, added ? call.text("unary_attr") : function)) return false;
        attributes.set_post_ops(ops);
        return true;
    }
    void prepareMatmul(const Tensor& a, const Tensor& b, const Tensor* added, const Tensor& out) {
        const memory::desc weights = packed ? anyLayout(b.sizes(), typeOf(b)) : describe(b);
        Dims biasSizes(out.sizes().size(), 1);  // as the bias is broadcast
        if (added)
            std::copy(added->sizes().begin(), added->sizes().end(),
                      biasSizes.end() - static_cast<std::ptrdiff_t>(added->sizes().size()));
        const memory::desc biasDesc(biasSizes, typeOf(added ? *added : out), contiguousStrides(biasSizes));
        const auto desc = added ? dnnl::matmul::desc(describe(a), weights, biasDesc, describe(out))
                                : dnnl::matmul::desc(describe(a), weights, describe(out));
        const dnnl::matmul::primitive_desc pd(desc, attributes, engine);
        second.prepare(engine, describe(b), pd.weights_desc(), true);
        preparePorts(pd, a, added ? std::optional(biasDesc) : std::nullopt, out);
        primitive = dnnl::matmul(pd);
    }
    template <class PrimitiveDesc>
    void preparePorts(const PrimitiveDesc& pd, const Tensor& x, const std::optional<memory::desc>& biasDesc,
                      const Tensor& out) {
        first.prepare(engine, describe(x), pd.src_desc(), true);
        if (biasDesc) bias.prepare(engine, *biasDesc, pd.bias_desc(), true);
        result.prepare(engine, describe(out), pd.dst_desc(), false);
    }
    template <class Primitive>
    void prepareWindows(const NamedCall& call, dnnl::algorithm algorithm, const Tensor& x, const Tensor& w,
                        const Tensor* added, const Tensor& out) {
        const size_t rank = x.sizes().size() - 2;
        const Dims stride = call.integers("stride", rank), left = call.integers("padding", rank);
        const Dims dilation = call.integers("dilation", rank);
        const bool backwards = call.isTransposed();
        Dims gaps = dilation, right = left;  // the library counts the gaps, and pads what is left over on the right
        for (size_t i = 0; i < rank; ++i) {
            --gaps[i];
            const int64_t reach = (w.sizes()[i + 2] - 1) * dilation[i] + 1;
            const int64_t larger = (backwards ? out : x).sizes()[i + 2], smaller = (backwards ? x : out).sizes()[i + 2];
            right[i] = (smaller - 1) * stride[i] + reach - larger - left[i];
        }
        const memory::desc weights = windowWeights(w, call.arg("groups")->asInt().value_or(1), backwards);
        const memory::desc biasDesc({out.sizes()[1]}, typeOf(added ? *added : out), memory::dims{1});
        const auto forward = dnnl::prop_kind::forward_inference;
        const bool keep = call.form()->channelsLast;
        const auto src = keep && isChannelsLast(x) ? describe(x) : anyLayout(x.sizes(), typeOf(x)),
                   any = anyLayout(weights.dims(), typeOf(w)),
                   dst = keep ? describe(out) : anyLayout(out.sizes(), typeOf(out));
        const auto desc =
            added ? typename Primitive::desc(forward, algorithm, src, any, biasDesc, dst, stride, gaps, left, right)
                  : typename Primitive::desc(forward, algorithm, src, any, dst, stride, gaps, left, right);
        const typename Primitive::primitive_desc pd(desc, attributes, engine);
        second.prepare(engine, weights, pd.weights_desc(), true);
        preparePorts(pd, x, added ? std::optional(biasDesc) : std::nullopt, out);
        primitive = Primitive(pd);
    }
    static bool isChannelsLast(const Tensor& x) { return x.strides()[1] == 1 && x.strides().back() == x.sizes()[1]; }
    /// [groups, out / groups, in / groups, ...] of weights that are stored as [out, in / groups, ...], or, for
    /// transposed convolutions, as [in, out / groups, ...].
    static memory::desc windowWeights(const Tensor& w, int64_t groups, bool backwards) {
        Dims sizes = w.sizes(), strides = w.strides();
        sizes[0] /= groups;
        const int64_t groupStride = strides[0] * sizes[0];
        if (backwards) std::swap(sizes[0], sizes[1]), std::swap(strides[0], strides[1]);
        if (groups > 1) {
            sizes.insert(sizes.begin(), groups);
            strides.insert(strides.begin(), groupStride);
        }
        return memory::desc(sizes, typeOf(w), strides);
    }
    void collectPorts() {
        ports = {{DNNL_ARG_SRC, first.own}, {DNNL_ARG_WEIGHTS, second.own}, {DNNL_ARG_DST, result.own}};
        if (biasAt) ports.emplace(DNNL_ARG_BIAS, bias.own);
        if (otherAt) ports.emplace(otherArgument, other.own);
    }
    void execute(const LibraryOperands& operands, Tensor& out) {
        first.read(stream, *operands.tensors[firstAt], false);
        second.read(stream, *operands.tensors[secondAt], packed);
        if (otherAt) other.read(stream, *operands.tensors[*otherAt], false);
        Tensor added;  // read when the primitive is executed
        if (biasAt) bias.read(stream, added = operands.tensors[*biasAt]->contiguous(), false);
        result.given.set_data_handle(out.data());
        primitive.execute(stream, ports);
        if (result.reordered) result.reorder.execute(stream, result.own, result.given);
        stream.wait();
    }
};

namespace {

/// Makes the primitive of a call. False if the library has none.
bool prepareCall(LibraryCall::State& state, const NamedCall& call, const LibraryOperands& operands, const Tensor& out) {
    const auto given = [&](std::optional<size_t> at) { return at ? operands.tensors[*at] : nullptr; };
    const Tensor *a = operands.tensors[state.firstAt], *b = operands.tensors[state.secondAt];
    const Tensor *bias = given(state.biasAt), *other = given(state.otherAt);
    if (a == nullptr || b == nullptr || !isPlain(*a) || !isPlain(*b) || !isPlain(out)) return false;
    for (const char* factor : {"beta", "alpha"})
        if (const Argument* value = call.arg(factor); value && !value->isNone() && value->asReal() != 1.0) return false;
    const bool linear = call.form()->kind == Form::Kind::Linear;
    const Tensor rows = linear ? asMatrix(*a) : *a, columns = linear ? transposed(*b) : *b,
                 result = linear ? asMatrix(out) : out;
    if (!rows.defined() || !result.defined() || !state.appendFunctions(call, other, result)) return false;
    if (call.form()->kind != Form::Kind::Convolution) state.prepareMatmul(rows, columns, bias, result);
    else if (!call.isTransposed())
        state.prepareWindows<dnnl::convolution_forward>(call, dnnl::algorithm::convolution_direct, *a, *b, bias, out);
    else
        state.prepareWindows<dnnl::deconvolution_forward>(call, dnnl::algorithm::deconvolution_direct, *a, *b, bias,
                                                          out);
    state.collectPorts();
    return true;
}

}  // namespace

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
    const NamedCall named(call);
    if (named.form() == nullptr) return nullptr;
    auto state = std::make_unique<LibraryCall::State>();
    state->engine = m_state->engine;
    state->stream = m_state->stream;
    state->firstAt = *named.position(named.form()->first);
    state->secondAt = *named.position(named.form()->second);
    state->packed = operands.constant[state->secondAt];
    const auto present = [&](std::string_view param) {
        const auto at = named.position(param);
        return at && operands.tensors[*at] ? at : std::nullopt;
    };
    state->biasAt = present(named.form()->bias);
    state->otherAt = present("other");
    try {
        if (!prepareCall(*state, named, operands, result)) return nullptr;
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
