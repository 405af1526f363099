// Convolutions of 1 to 3 dims, transposed ones too, and their gradients.
#include "engine/runtime/libraries/onednn_plan.h"
#include "engine/support/library_windows.h"

namespace cutaway {
namespace {

using Type = dnnl::memory::data_type;

/// The numbers of a convolution as the library counts them.
struct Windows {
    Dims stride, gaps, left, right;
    bool transposed = false;
    bool beside = false;  // some lie wholly in the padding
    int64_t groups = 1;
};

bool isTransposed(const CallReader& call) {
    return call.find("output_padding") && (!call.find("transposed") || call.flag("transposed"));
}

Windows windowsOf(const CallReader& call, const DnnlLayout& x, const DnnlLayout& w, const DnnlLayout& y) {
    const size_t rank = x.sizes.size() - 2;
    if (x.sizes.size() < 3 || rank > 3) throw LibraryRefusal("it slides windows over one to three dims");
    Windows made;
    made.stride = call.integers("stride", rank);
    made.left = call.integers("padding", rank);
    made.transposed = isTransposed(call);
    made.groups = call.find("groups")->integer;
    made.gaps = call.integers("dilation", rank);
    made.right = made.left;
    for (size_t i = 0; i < rank; ++i) {
        const LibraryWindows own((made.transposed ? y : x).sizes[i + 2], (made.transposed ? x : y).sizes[i + 2],
                                 w.sizes[i + 2], made.stride[i], made.left[i], made.gaps[i]);
        made.stride[i] = own.stride;
        made.gaps[i] = own.gap;
        made.right[i] = own.behind;
        made.beside |= std::max(made.left[i], own.behind) > (w.sizes[i + 2] - 1) * (own.gap + 1);
        constexpr int64_t kMost = 1 << 29;  // the library adds such numbers up in 32 bits
        for (const int64_t number : {own.stride, own.gap, own.behind, made.left[i]})
            if (std::abs(number) > kMost) throw LibraryRefusal("its windows lie too far apart");
    }
    return made;
}

/// [groups, out / groups, in / groups, ...] of weights that are stored as [out, in / groups, ...], or, for transposed
/// convolutions, as [in, out / groups, ...].
DnnlLayout groupedWeights(const DnnlLayout& w, const Windows& windows) {
    Dims sizes = w.sizes, strides = w.strides;
    sizes[0] /= windows.groups;
    const int64_t groupStride = strides[0] * sizes[0];
    if (windows.transposed) {
        std::swap(sizes[0], sizes[1]);
        std::swap(strides[0], strides[1]);
    }
    if (windows.groups > 1) {
        sizes.insert(sizes.begin(), windows.groups);
        strides.insert(strides.begin(), groupStride);
    }
    return w.with(w.type, sizes, strides);
}
bool isChannelsLast(const DnnlLayout& x) { return x.strides[1] == 1 && x.strides.back() == x.sizes[1]; }

DnnlLayout channelsLast(DnnlLayout x) {
    int64_t stride = x.strides[1] = 1;
    stride *= x.sizes[1];
    for (size_t d = x.sizes.size(); d-- > 2; stride *= x.sizes[d]) x.strides[d] = stride;
    x.strides[0] = stride;
    return x;
}

/// Layouts of what a convolution reads and makes.
struct Layouts {
    dnnl::memory::desc x, w, y;
};
/// Not by unfolding windows into a matrix, and not by plain loops: these take several times as long.
bool isDirect(std::string_view implementation) {
    return implementation.find("jit") != std::string_view::npos &&
           implementation.find("gemm") == std::string_view::npos;
}
/// The first of the layouts that is computed directly, else the library's choice. Both are tried, since each unfolds
/// windows where the other does not (windows of 5 by 5 and 7 by 7 over single channels, groups of 6 channels).
template <class Describe>
auto describeDirect(const std::vector<Layouts>& ways, const Layouts& any, Describe&& describe) {
    for (const Layouts& way : ways) {
        try {
            if (auto made = describe(way); isDirect(made.impl_info_str())) return made;
        } catch (const dnnl::error&) {
            continue;  // not in this layout
        }
    }
    return describe(any);
}
/// The library's choice and channels last; the latter first where input or result has it.
std::vector<Layouts> waysOf(const Layouts& any, const DnnlLayout& x, const DnnlLayout& y, Type type) {
    const Layouts last{channelsLast(x).as(type).desc(), any.w, channelsLast(y).as(type).desc()};
    if (isChannelsLast(x) || isChannelsLast(y)) return {last, any};
    return {any, last};
}

/// The post-ops that a packed convolution's arguments name, with another operand or without. With an operand of the
/// result's sizes in a post-op the library would use plain loops, or unfold windows. So one that is added is copied to
/// where the sums go, and the convolution adds to it; any other is read by a step behind the convolution.
class OtherOperand {
  public:
    OtherOperand(const CallReader& call, const DnnlLayout& y, const Windows& windows)
        : m_call(&call), m_number(call.operand("other")) {
        if (!m_number) return;
        m_given = DnnlLayout(*call.tensor("other"));
        if (m_given.sizes.size() != y.sizes.size())
            throw LibraryRefusal("the other operand has another number of dims than the result");
        // Sums of windows that lie in the padding are not added.
        m_added = m_given.sizes == y.sizes && call.text("binary_attr") == "add" && !windows.beside;
    }
    /// Post-ops of the convolution itself.
    dnnl::post_ops within() const {
        dnnl::post_ops ops;
        if (m_added) ops.append_sum(1);
        if (m_added || !m_number) appendUnary(ops, *m_call, function());
        return ops;
    }
    /// The name of the last function.
    std::string_view function() const { return m_call->text(m_number ? "unary_attr" : "attr"); }
    void before(OneDnnPlan& plan, const OneDnnPlan::Place& made) const {
        if (m_added) plan.copyOperand(*m_number, m_given, made);
    }
    void behind(OneDnnPlan& plan, const OneDnnPlan::Place& made) const {
        if (!m_number || m_added) return;
        dnnl::post_ops ops;
        appendUnary(ops, *m_call, function());
        dnnl::primitive_attr attributes = callersScratch();
        attributes.set_post_ops(ops);
        const DnnlLayout own = m_given.as(typeIn(made.layout));
        const auto wanted = m_given.sizes == sizesOf(m_call->call().results[0]) ? made.layout : own.desc();
        const auto description = describePrimitive<dnnl::binary>(
            attributes, binaryFunction(m_call->text("binary_attr")), made.layout, wanted, made.layout);
        plan.add(
            dnnl::binary(description), description,
            {{DNNL_ARG_SRC_0, made}, {DNNL_ARG_SRC_1, plan.operand(*m_number, m_given, wanted)}, {DNNL_ARG_DST, made}});
    }

  private:
    const CallReader* m_call;
    std::optional<int> m_number;
    DnnlLayout m_given;
    bool m_added = false;
};

template <class Primitive>
void planForward(const CallReader& call, OneDnnPlan& plan, dnnl::algorithm algorithm, Type type) {
    const bool packedForm = call.find("X") != nullptr;
    const char *const xName = packedForm ? "X" : "input", *const wName = packedForm ? "W" : "weight",
                      *const biasName = packedForm ? "B" : "bias";
    const DnnlLayout x(*call.tensor(xName)), w(*call.tensor(wName)), y(call.call().results[0]);
    const Windows windows = windowsOf(call, x, w, y);
    const DnnlLayout weights = groupedWeights(w, windows);
    const auto forward = dnnl::prop_kind::forward_inference;
    const auto &s = windows.stride, &g = windows.gaps, &l = windows.left, &r = windows.right;
    const Layouts any{x.as(type).any(), weights.as(type).any(), y.as(type).any()};
    const auto bias = call.operand(biasName);
    const DnnlLayout given = bias ? DnnlLayout(call.call().operands[*bias]) : DnnlLayout();
    const DnnlLayout row(type, given.sizes, {1});
    const OtherOperand other(call, y, windows);
    dnnl::primitive_attr attributes = callersScratch();
    attributes.set_post_ops(other.within());
    auto description = describeDirect(waysOf(any, x, y, type), any, [&](const Layouts& way) {
        return bias ? describePrimitive<Primitive>(attributes, forward, algorithm, way.x, way.w, row.desc(), way.y, s,
                                                   g, l, r)
                    : describePrimitive<Primitive>(attributes, forward, algorithm, way.x, way.w, way.y, s, g, l, r);
    });
#if DNNL_VERSION_MAJOR < 3
    const auto chooseAgain = [&](const Layouts& way, const std::function<bool(std::string_view)>& wanted) {
        using Operation = typename Primitive::desc;  // read again for each choice
        const Operation operation = bias ? Operation(forward, algorithm, way.x, way.w, row.desc(), way.y, s, g, l, r)
                                         : Operation(forward, algorithm, way.x, way.w, way.y, s, g, l, r);
        typename Primitive::primitive_desc next(operation, attributes, oneDnnEngine());
        while (!wanted(next.impl_info_str()) && next.next_impl()) {
        }
        if (wanted(next.impl_info_str())) description = next;
    };
    const std::string_view chosen = description.impl_info_str();
    constexpr int64_t kSmall = 14;
    // Over one dim it chooses an implementation (brgconv) whose code is unrolled over rows and channels: megabytes that
    // take tens of milliseconds to make, and the sums up to 2.7 times as long as its next choice takes, at best 0.9.
    if (x.sizes.size() == 3 && type == Type::f32 && !isDirect(chosen)) chooseAgain(any, isDirect);
    // Windows over single channels take up to 1.6 times as long as by its next choice, but for small images.
    else if (chosen.starts_with("brgdmm_dw") && type == Type::f32 && y.sizes.back() >= kSmall)
        chooseAgain({description.src_desc(), any.w, description.dst_desc()},
                    [](std::string_view way) { return way.starts_with("jit_dw:avx512"); });
#endif
    refuseSlow(type, description.impl_info_str());
    const OneDnnPlan::Place made = plan.result(0, y, description.dst_desc());
    other.before(plan, made);
    OneDnnPlan::Arguments arguments = {
        {DNNL_ARG_SRC, plan.operand(*call.operand(xName), x, description.src_desc())},
        {DNNL_ARG_WEIGHTS, plan.operand(*call.operand(wName), weights, description.weights_desc())},
        {DNNL_ARG_DST, made}};
    if (bias) arguments.emplace_back(DNNL_ARG_BIAS, plan.operand(*bias, given, row.desc()));
    plan.add(Primitive(description), description, std::move(arguments));
    other.behind(plan, made);
    clampBehind(plan, call, other.function(), made, y);
}

template <class Forward, class Data, class Weights>
void planGradients(const CallReader& call, OneDnnPlan& plan, dnnl::algorithm algorithm, Type type) {
    const DnnlLayout x(*call.tensor("input")), w(*call.tensor("weight")), dy(*call.tensor("grad_output"));
    const Windows windows = windowsOf(call, x, w, dy);
    const DnnlLayout weights = groupedWeights(w, windows);
    const auto &s = windows.stride, &g = windows.gaps, &l = windows.left, &r = windows.right;
    const Layouts any{x.as(type).any(), weights.as(type).any(), dy.as(type).any()};
    const std::vector<Layouts> ways = waysOf(any, x, dy, type);
    const dnnl::primitive_attr attributes = callersScratch();
    const auto forwardOf = [&](const Layouts& way) {
        return describePrimitive<Forward>(attributes, dnnl::prop_kind::forward_training, algorithm, way.x, way.w, way.y,
                                          s, g, l, r);
    };
    const int dyNumber = *call.operand("grad_output");
    const CtTensor* const results = call.call().results;
    const bool bias = results[2].rank >= 0;
    if (results[0].rank >= 0) {
        const auto description = describeDirect(ways, any, [&](const Layouts& way) {
            return describeGradient<Data>(attributes, forwardOf(way), algorithm, way.x, way.w, way.y, s, g, l, r);
        });
        refuseSlow(type, description.impl_info_str());
        plan.add(Data(description), description,
                 {{DNNL_ARG_DIFF_DST, plan.operand(dyNumber, dy, description.diff_dst_desc())},
                  {DNNL_ARG_WEIGHTS, plan.operand(*call.operand("weight"), weights, description.weights_desc())},
                  {DNNL_ARG_DIFF_SRC, plan.result(0, DnnlLayout(results[0]), description.diff_src_desc())}});
    }
    if (results[1].rank < 0 && !bias) return;
    const DnnlLayout row(type, {dy.sizes[1]}, {1});
    const auto description = describeDirect(ways, any, [&](const Layouts& way) {
        const auto forward = forwardOf(way);
        return bias ? describeGradient<Weights>(attributes, forward, algorithm, way.x, way.w, row.desc(), way.y, s, g,
                                                l, r)
                    : describeGradient<Weights>(attributes, forward, algorithm, way.x, way.w, way.y, s, g, l, r);
    });
    refuseSlow(type, description.impl_info_str());
    const auto made = description.diff_weights_desc();
    OneDnnPlan::Arguments arguments = {
        {DNNL_ARG_SRC, plan.operand(*call.operand("input"), x, description.src_desc())},
        {DNNL_ARG_DIFF_DST, plan.operand(dyNumber, dy, description.diff_dst_desc())},
        {DNNL_ARG_DIFF_WEIGHTS, results[1].rank < 0
                                    ? plan.scratch(made)
                                    : plan.result(1, groupedWeights(DnnlLayout(results[1]), windows), made)}};
    if (bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, plan.result(2, DnnlLayout(results[2]), row.desc()));
    plan.add(Weights(description), description, std::move(arguments));
}

}  // namespace

void planConvolution(const CallReader& call, OneDnnPlan& plan) {
    plan.inOwnTypeOrF32(DnnlLayout(call.call().results[0]).type, [&](Type type) {
        if (isTransposed(call))
            planForward<dnnl::deconvolution_forward>(call, plan, dnnl::algorithm::deconvolution_direct, type);
        else planForward<dnnl::convolution_forward>(call, plan, dnnl::algorithm::convolution_direct, type);
    });
}

OneDnnPlan::Place planByteConvolution(const CallReader& call, OneDnnPlan& plan, const dnnl::primitive_attr& attributes,
                                      OneDnnPlan::Arguments arguments) {
    const int first = call.operand("qx").value(), second = call.operand("qw").value();
    const DnnlLayout x(call.call().operands[first]), w(call.call().operands[second]);
    const Dims sizes = sizesOf(call.call().results[0]);
    const DnnlLayout sums = channelsLast({Type::s32, sizes, sizes});
    const Windows windows = windowsOf(call, x, w, sums);
    const DnnlLayout weights = groupedWeights(w, windows);
    const auto description = describePrimitive<dnnl::convolution_forward>(
        attributes, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x.any(), weights.any(),
        sums.desc(), windows.stride, windows.gaps, windows.left, windows.right);
    refuseSlow(x.type, description.impl_info_str());
    return addToScratch<dnnl::convolution_forward>(plan, description, plan.operand(first, x, description.src_desc()),
                                                   plan.operand(second, weights, description.weights_desc()),
                                                   sums.desc(), std::move(arguments));
}

void planConvolutionGradients(const CallReader& call, OneDnnPlan& plan) {
    plan.inOwnTypeOrF32(DnnlLayout(*call.tensor("grad_output")).type, [&](Type type) {
        if (isTransposed(call))
            planGradients<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data,
                          dnnl::deconvolution_backward_weights>(call, plan, dnnl::algorithm::deconvolution_direct,
                                                                type);
        else
            planGradients<dnnl::convolution_forward, dnnl::convolution_backward_data,
                          dnnl::convolution_backward_weights>(call, plan, dnnl::algorithm::convolution_direct, type);
    });
}

}  // namespace cutaway
