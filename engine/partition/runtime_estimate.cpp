#include "engine/partition/runtime_estimate.h"

#include <algorithm>
#include <map>

#include "engine/ir/module.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

constexpr double kUnknownSize = 4096;  // PyTorch's fallback of a size hint
constexpr double kFlopsPerMillisecond = 1e8;

using Sizes = std::vector<double>;

Sizes sizesOf(const ValueType& type, const SymbolValues& hints) {
    Sizes out;
    if (const TensorType* tensor = type.tensor())
        for (const SymInt& size : tensor->sizes) {
            const std::optional<int64_t> known = size.isInt() ? size.asInt() : valueFor(size, hints);
            out.push_back(known ? static_cast<double>(*known) : kUnknownSize);
        }
    return out;
}

double product(const Sizes& sizes, size_t first = 0) {
    double out = 1;
    for (size_t i = first; i < sizes.size(); ++i) out *= sizes[i];
    return out;
}

/// `a`: [m, k] or [b, m, k]; `b`: [k, n] or [b, k, n].
double productFlops(const Sizes& a, const Sizes& b) {
    if (a.size() < 2 || b.empty()) return 0;
    return 2 * product(a) * b.back();
}

/// Of x [batch, channels, ...] and w [out, in, ...]; a transposed one is counted by the spatial sizes of its input.
double convolutionFlops(const Sizes& x, const Sizes& w, const Sizes& out, bool transposed) {
    if (x.size() < 2 || w.size() < 2 || out.size() < 2) return 0;
    return 2 * product(transposed ? x : out, 2) * product(w, 2) * x[0] * w[0] * w[1];
}

Sizes swapped(Sizes sizes) {
    if (sizes.size() > 1) std::swap(sizes[0], sizes[1]);
    return sizes;
}

double convolutionBackwardFlops(const Node& call, const std::vector<Sizes>& s, const SymbolValues& hints) {
    const TupleType* results = call.type().tuple();
    const auto* mask = call.arg("output_mask").list();
    if (results == nullptr || mask == nullptr || results->size() < 2 || mask->size() < 2 || s.size() < 3) return 0;
    const bool transposed = call.arg("transposed").asInt().value_or(0) != 0;
    const auto wanted = [&](size_t i) { return (*mask)[i].asInt().value_or(0) != 0; };
    double sum = 0;
    if (wanted(0)) sum += convolutionFlops(s[0], s[2], sizesOf((*results)[0], hints), !transposed);
    const Sizes filter = swapped(sizesOf((*results)[1], hints));
    const Sizes gradient = swapped(s[0]), input = swapped(s[1]);
    if (wanted(1))
        sum += transposed ? convolutionFlops(gradient, input, filter, false)
                          : convolutionFlops(input, gradient, filter, false);
    return sum;
}

/// Query [b, h, sq, d], key [b, h, sk, d], value [b, h, sk, dv]; with `headsLast` [b, s, h, d]. A causal mask saves
/// nothing here. The backward has five such products.
double attentionFlops(Sizes q, Sizes k, Sizes v, bool headsLast, bool backward) {
    if (q.size() != 4 || k.size() != 4 || v.size() != 4) return 0;
    if (headsLast)
        for (Sizes* sizes : {&q, &k, &v}) std::swap((*sizes)[1], (*sizes)[2]);
    const double pairs = 2 * q[0] * q[1] * q[2] * k[2];
    return backward ? pairs * (3 * q[3] + 2 * v[3]) : pairs * (q[3] + v[3]);
}

double attentionOf(const Node& call, const std::vector<Sizes>& s) {
    const std::string_view name = call.op().packet().substr(5);
    const bool backward = name.ends_with("_backward");
    const std::string_view forward = backward ? name.substr(0, name.size() - 9) : name;
    const size_t first = backward ? 1 : 0;
    if (s.size() < first + 3) return 0;
    for (const std::string_view kind : {"efficient", "flash", "cudnn"}) {
        const std::string whole = "_scaled_dot_product_" + std::string(kind) + "_attention",
                          part = "_" + std::string(kind) + "_attention";
        const bool headsLast = forward == part + "_forward" || (backward && forward == part);
        if (forward == whole || headsLast)
            return attentionFlops(s[first], s[first + 1], s[first + 2], headsLast, backward);
    }
    return 0;
}

/// The call alone, on inputs of its operands' types, as text that equal calls have in common; none where it reads or
/// returns what is not a tensor.
std::optional<std::string> alone(const Node& call) {
    if (call.type().tensor() == nullptr) return std::nullopt;
    Module module;
    std::map<const Node*, Node*> inputs;
    for (const Node* input : call.inputs()) {
        if (input->type().tensor() == nullptr) return std::nullopt;
        inputs[input] = &module.graph().placeholder("i" + std::to_string(inputs.size()), input->type());
        module.inputs.emplace_back();
    }
    std::vector<Argument> args;
    for (const Argument& arg : call.args())
        args.push_back(arg.mapNodes([&](const Node* input) { return inputs.at(input); }));
    Node& copy = module.graph().call(call.op(), std::move(args), call.type());
    module.graph().output(Argument(std::vector<Argument>{Argument(&copy)}));
    module.outputs.emplace_back();
    return printText(module, {.comments = false}).text;
}

std::optional<double> measured(const Node& call, const PassContext& context) {
    const std::optional<std::string> graph = alone(call);
    if (!graph) return std::nullopt;
    const std::string key = "operator time: " + *graph;
    if (const std::optional<double> known = context.recall(key)) return known;
    const std::optional<double> milliseconds = context.timeGraph(*graph);
    if (milliseconds) context.remember(key, *milliseconds);
    return milliseconds;
}

}  // namespace

double flopsOf(const Node& call, const SymbolValues& hints) {
    if (!call.isCall()) return 0;
    const std::string_view packet = call.op().packet();
    if (!packet.starts_with("aten.")) return 0;
    std::vector<Sizes> s;
    for (const Argument& arg : call.args()) s.push_back(arg.node() ? sizesOf(arg.node()->type(), hints) : Sizes());
    if ((packet == "aten.mm" || packet == "aten.bmm" || packet == "aten._scaled_mm") && s.size() > 1)
        return productFlops(s[0], s[1]);
    if ((packet == "aten.addmm" || packet == "aten.baddbmm") && s.size() > 2) return productFlops(s[1], s[2]);
    const bool convolution = packet == "aten.convolution" || packet == "aten._convolution" ||
                             packet == "aten.cudnn_convolution" || packet == "aten._slow_conv2d_forward" ||
                             packet == "aten.convolution_overrideable";
    if (convolution && s.size() > 1) {
        const bool transposed = s.size() > 6 && call.arg(6).asInt().value_or(0) != 0;
        return convolutionFlops(s[0], s[1], sizesOf(call.type(), hints), transposed);
    }
    if (packet == "aten.convolution_backward") return convolutionBackwardFlops(call, s, hints);
    return attentionOf(call, s);
}

double runtimeOf(const Node& node, Estimator estimator, const SymbolValues& hints, const PassContext& context) {
    if (estimator == Estimator::Testing) return 1;
    const double flops = std::max(flopsOf(node, hints), 1.0);
    if (estimator == Estimator::Flops) return flops;
    if (node.isCall() && !node.op().isOpaque())
        if (const std::optional<double> milliseconds = measured(node, context)) return *milliseconds;
    return flops / kFlopsPerMillisecond;
}

}  // namespace cutaway
