#include "engine/passes/freezing/layout.h"

#include <array>
#include <cstdio>

#include "engine/ir/live_nodes.h"
#include "engine/ops/infer_rules.h"
#include "engine/passes/freezing/options.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kWeight = "channels_last_weight", kStrides = "keep_stride_order";

/// One whose types are known.
bool isLaidOut(const Node& node) {
    if (!node.isCall("aten.convolution.default") || !node.type().tensor()) return false;
    for (const std::string_view param : {"input", "weight"})
        if (const Node* operand = node.arg(param).node(); operand == nullptr || !operand->type().tensor()) return false;
    return true;
}
const TensorType& operandOf(const Node& convolution, std::string_view param) {
    return convolution.arg(param).node()->tensor();
}

/// How convolutions of a kind fare with channels last: their time there over their time as they are, as PyTorch has
/// measured it (spec: freezing §3.1).
struct ConvolutionKind {
    std::string_view name;
    double factor;
};
constexpr ConvolutionKind kGrouped{"grouped", 1.358}, kDefault{"default", 0.823}, kInOut{"in_out", 0.725},
    kSmall{"small", 0.783};

const ConvolutionKind& kindOf(const Node& convolution) {
    const SymDims& weight = operandOf(convolution, "weight").sizes;
    const int64_t outer = weight[0].value(), inner = weight[1].value();
    if (convolution.arg("groups").asInt().value_or(1) > 1 && inner > 1) return kGrouped;
    if (outer <= 64 && inner <= 64) return kSmall;
    if (2 * outer <= inner && weight[2].value() > 1) return kInOut;
    return kDefault;
}

/// Floating point operations: two for each element of the weight at each place that it is put to.
double flopsOf(const Node& convolution) {
    const SymDims& weight = operandOf(convolution, "weight").sizes;
    const SymDims& places = convolution.arg("transposed").asInt().value_or(0) != 0
                                ? operandOf(convolution, "input").sizes
                                : convolution.tensor().sizes;
    double flops = 2.0 * static_cast<double>(places[0].value());
    for (size_t i = 2; i < places.size(); ++i) flops *= static_cast<double>(places[i].value());
    for (const SymInt& size : weight) flops *= static_cast<double>(size.value());
    return flops;
}

std::string digits(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", value);
    return text.data();
}

LayoutDecision voteForInference(const std::vector<const Node*>& convolutions) {
    struct Share {
        const ConvolutionKind* kind;
        int count = 0;
        double flops = 0;
    };
    std::array<Share, 4> shares{{{&kGrouped}, {&kDefault}, {&kInOut}, {&kSmall}}};
    double before = 0, after = 0;
    for (const Node* node : convolutions) {
        const ConvolutionKind& kind = kindOf(*node);
        const double flops = flopsOf(*node);
        before += flops;
        after += flops * kind.factor;
        for (Share& share : shares)
            if (share.kind == &kind) {
                ++share.count;
                share.flops += flops;
            }
    }
    std::string parts;
    for (const Share& share : shares)
        if (share.count > 0)
            parts += (parts.empty() ? "" : ", ") + std::to_string(share.count) + " " + std::string(share.kind->name) +
                     " of " + digits(share.flops / 1e9) + " GFLOP at " + digits(share.kind->factor);
    return {after <= before, "channels last is estimated at " + digits(before > 0 ? after / before : 1) +
                                 " of the time of channels first (" + parts + ")"};
}

std::optional<SymDims> stridesOfDense(const Node& node) {
    const TensorType* type = node.type().tensor();
    if (type == nullptr || !allInts(type->sizes) || !allInts(type->strides)) return std::nullopt;
    // Dense and without overlap: sorted by stride, each is the product of the sizes below it.
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (size_t i = 0; i < type->sizes.size(); ++i)
        if (type->sizes[i].value() != 1) dims.emplace_back(type->strides[i].value(), type->sizes[i].value());
    std::sort(dims.begin(), dims.end());
    int64_t expected = 1;
    for (const auto& [stride, size] : dims) {
        if (stride != expected) return std::nullopt;
        expected *= size;
    }
    return type->strides;
}

bool liesChannelsLast(const TensorType& type) {
    const auto wanted = formatStrides(MemoryFormat::ChannelsLast, type.sizes);
    if (!wanted || !allInts(type.strides)) return false;
    for (size_t i = 0; i < type.sizes.size(); ++i)
        if (type.sizes[i].value() != 1 && type.strides[i].value() != (*wanted)[i].value()) return false;
    return true;
}

class LayoutChange {
  public:
    LayoutChange(Module& module, Rewriter& rewriter)
        : m_graph(module.graph()), m_rewriter(rewriter), m_decision(decideLayout(m_graph, rewriter.request())) {}

    Result<bool> run() {
        std::vector<Node*> weights;
        for (Node* node : LiveNodes(m_graph))
            if (node->isCall("aten.convolution.default") && wants(*node)) weights.push_back(node);
        CT_TRY_VOID(keepStrides());
        for (Node* node : weights) CT_TRY_VOID(convert(*node));
        return m_rewriter.changed();
    }

  private:
    bool wants(const Node& node) {
        const Refusing no(m_rewriter, kWeight, node);
        if (!isLaidOut(node)) return no("its types are not known");
        if (!m_decision.channelsLast) return no(m_decision.why);
        const TensorType& weight = operandOf(node, "weight");
        if (weight.rank() != 4) return no("its weight, ", weight, ", has not four dims");
        if (!allInts(weight.sizes)) return no("its weight, ", weight, ", has sizes that are known only at run time");
        return !liesChannelsLast(weight) || no("its weight, ", weight, ", lies that way already");
    }
    /// Keeps the strides of returned values and of operands of as_strided. As in PyTorch of all of them, also where no
    /// convolution changes their layout. A graph that has been through it once stays as it is.
    Result<void> keepStrides() {
        for (Node* node : LiveNodes(m_graph)) {
            if (node->isCall() && node->op().packet().starts_with("aten.as_strided"))
                if (Node* read = node->arg(0).node()) CT_TRY_VOID(keepStridesOf(*read, *node));
            if (!node->isOutput()) continue;
            const std::vector<Node*> values = node->inputs();
            for (Node* value : values) CT_TRY_VOID(keepStridesOf(*value, *node));
        }
        return {};
    }
    Result<void> keepStridesOf(Node& value, Node& reader) {
        const auto strides = stridesToKeep(value, reader);
        if (!strides || m_rewriter.begin(kStrides, reader, "whoever reads it relies on its strides") != Go::Yes)
            return {};
        GraphBuilder builder = m_rewriter.builder(m_graph, &reader, value);
        const Value kept = builder.call("prims.inductor_force_stride_order.default", {&value, Argument(*strides)});
        if (builder.error()) return *builder.error();
        m_graph.replaceInput(reader, value, *kept.node());
        return {};
    }
    std::optional<SymDims> stridesToKeep(const Node& value, const Node& reader) {
        const Refusing no(m_rewriter, kStrides, reader);
        if (!m_decision.channelsLast) {
            no(m_decision.why);
            return std::nullopt;
        }
        if (value.isCall("prims.inductor_force_stride_order.default")) {
            no(value, " keeps them already");
            return std::nullopt;
        }
        if (isWrittenBack(reader, value)) {
            no(value, " is written back by the graph itself");
            return std::nullopt;
        }
        auto strides = stridesOfDense(value);
        if (!strides) no(NodeWithKind{&value}, " is not a tensor without gaps and overlaps");
        return strides;
    }
    /// A returned input is the input itself; a copy of it would be another tensor.
    static bool isWrittenBack(const Node& reader, const Node& value) {
        return reader.isOutput() && (value.isPlaceholder() || (value.isCall() && value.op().mutates()));
    }

    Result<void> convert(Node& node) {
        if (m_rewriter.begin(kWeight, node, m_decision.why) != Go::Yes) return {};
        Node& weight = *node.arg("weight").node();
        GraphBuilder builder = m_rewriter.builder(m_graph, &node, weight);
        const Value copy =
            builder.call("aten.clone.default", {&weight}, {{"memory_format", MemoryFormat::ChannelsLast}});
        m_graph.setArg(node, 1, copy);
        CT_TRY(ValueType type, inferCall(node.op(), node.args()));
        m_graph.setType(node, std::move(type));
        return retypeReaders(m_graph, node);
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    LayoutDecision m_decision;
};

}  // namespace

LayoutDecision decideLayout(const Graph& graph, const CompileRequest& request) {
    const FreezingOptions options = freezingOptions(request);
    if (!options.layoutOptimization) return {false, "layout_optimization is off"};
    if (options.forceLayout) return {true, "force_layout_optimization is on"};
    std::vector<const Node*> convolutions;
    bool onCpu = true, symbolic = false;
    for (const Node& node : graph.nodes()) {
        if (!isLaidOut(node)) continue;
        convolutions.push_back(&node);
        for (const std::string_view param : {"input", "weight"}) {
            const TensorType& type = operandOf(node, param);
            onCpu = onCpu && type.device.type == DeviceType::Cpu;
            symbolic = symbolic || !allInts(type.sizes);
        }
        symbolic = symbolic || !allInts(node.tensor().sizes);
    }
    if (convolutions.empty()) return {false, "the graph has no convolution"};
    if (onCpu) return {true, "the library for the CPU computes convolutions with channels last"};
    if (graph.size() >= 300 * convolutions.size())
        return {false, "the graph has " + std::to_string(graph.size()) + " nodes and " +
                           std::to_string(convolutions.size()) + " convolutions, too few to pay for new layouts"};
    if (symbolic) return {false, "a convolution has a size that is known only at run time"};
    return voteForInference(convolutions);
}

Result<bool> convertWeightsToChannelsLast(Module& module, Rewriter& rewriter) {
    return LayoutChange(module, rewriter).run();
}

}  // namespace cutaway
