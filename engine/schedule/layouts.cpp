// The layouts of values between calls. They are free until a call that is no kernel wants one: convolutions of the
// library read and write channels last at full speed, and any other layout through copies.
#include "engine/libraries/choose.h"
#include "engine/ops/alias.h"
#include "engine/ops/infer_rules.h"
#include "engine/partition/join_graphs.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr std::string_view kLayoutRule = "channels_last", kSavedRule = "saved_layout";
constexpr std::string_view kGradients = "aten.convolution_backward.default";

/// Of a convolution its result; of its gradients the first, that of its input.
const TensorType* writtenType(const Node& node) {
    if (node.isCall("aten.convolution.default")) return node.type().tensor();
    const TupleType* tuple = node.isCall(kGradients) ? node.type().tuple() : nullptr;
    return tuple != nullptr && !tuple->empty() ? tuple->front().tensor() : nullptr;
}
bool wantsChannelsLast(const Node& node, Rewriter& rewriter) {
    const Refusing no(rewriter, kLayoutRule, node);
    const bool gradients = node.isCall(kGradients);
    if (!node.isCall("aten.convolution.default") && !gradients) return no("it is no convolution");
    const LibraryRow* const row = libraryRowOf(node);
    if (row == nullptr) return no(whyNoLibrary(node));
    if (row->library == kPortable) return no("the function that computes it is as fast in any layout");
    const TensorType* type = writtenType(node);
    if (type == nullptr) return no("the gradient of its input is not asked for");
    if (type->sizes.size() != 4) return no("its result, ", *type, ", has not four dims");
    if (!allInts(type->sizes) || !allInts(type->strides))
        return no("its result, ", *type, ", has sizes that are known only at run time");
    if (type->strides == *formatStrides(MemoryFormat::ChannelsLast, type->sizes))
        return no("its result lies that way already");
    return true;
}

/// What the graph returns keeps its strides: whoever called it relies on them. What a forward saves is its backward's,
/// which takes it as it lies (takeSavedLayouts).
class Returned {
  public:
    explicit Returned(Module& module) : m_graph(module.graph()) {
        const std::vector<Argument> outputs = m_graph.outputs();
        for (size_t i = 0; i < outputs.size(); ++i) {
            const bool saved =
                i < module.outputs.size() && module.outputs[i].kind == OutputSpec::Kind::Saved && outputs[i].node();
            m_types.push_back(outputs[i].node() && !saved ? outputs[i].node()->type() : ValueType());
        }
    }
    void keep(const Rewriter& rewriter) const {
        Node* const output = m_graph.outputNode();
        const std::vector<Argument> now = m_graph.outputs();
        for (size_t i = 0; i < now.size(); ++i) {
            Node* const node = now[i].node();
            const TensorType *was = m_types[i].tensor(), *is = node ? node->type().tensor() : nullptr;
            if (was == nullptr || is == nullptr || was->strides == is->strides) continue;
            if (writeAs(*node, *was)) continue;
            Node& copy = laidOutLike(rewriter.builder(m_graph, output, *node), *node, *was);
            m_graph.replaceInput(*output, *node, copy);
        }
    }

  private:
    /// Gives a weight's gradient with one reader the wanted layout: the library writes any. False: it is none such.
    bool writeAs(Node& node, const TensorType& type) const {
        Node* const tuple = node.isCall("operator.getitem") ? node.arg(0).node() : nullptr;
        if (tuple == nullptr || !tuple->isCall(kGradients) || node.users().size() != 1) return false;
        const LibraryRow* const row = libraryRowOf(*tuple);
        const auto item = node.arg(1).asInt();
        if (row == nullptr || row->library == kPortable || !item || *item < 0) return false;
        TupleType types = *tuple->type().tuple();
        types[static_cast<size_t>(*item)] = type;
        m_graph.setType(*tuple, std::move(types));
        m_graph.setType(node, type);
        return true;
    }

    Graph& m_graph;
    std::vector<ValueType> m_types;
};

TensorType channelsLast(TensorType type) {
    type.strides = *formatStrides(MemoryFormat::ChannelsLast, type.sizes);
    return type;
}
Result<void> writeChannelsLast(Graph& graph, Node& node, Rewriter& rewriter) {
    GraphBuilder builder = rewriter.builder(graph, &node, node);
    const Value again = builder.callBound(node.op(), node.args());
    if (builder.error()) return *builder.error();
    if (node.type().tensor() != nullptr) {
        graph.setType(*again.node(), channelsLast(*node.type().tensor()));
        rewriter.replace(node, *again.node());
        return {};
    }
    TupleType types = *node.type().tuple();
    types.front() = channelsLast(*types.front().tensor());
    graph.setType(*again.node(), types);
    std::vector<Node*> values(types.size());
    for (const Node* reader : node.users())
        if (const auto item = reader->isCall("operator.getitem") ? reader->arg(1).asInt() : std::nullopt;
            item && *item >= 0 && values[static_cast<size_t>(*item)] == nullptr)
            values[static_cast<size_t>(*item)] = builder.call("operator.getitem", {again, *item}).node();
    if (builder.error()) return *builder.error();
    return rewriter.replaceTuple(node, values);
}

}  // namespace

Result<bool> assignLayouts(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    const Returned returned(module);
    const auto visit = [&](Node& node) -> Result<bool> {
        if (!wantsChannelsLast(node, rewriter)) return true;
        const Go go = rewriter.begin(kLayoutRule, node, "the library writes channels last without a copy");
        if (go == Go::Stop) return false;
        if (go != Go::Yes) return true;
        CT_TRY_VOID(writeChannelsLast(graph, node, rewriter));
        returned.keep(rewriter);
        return true;
    };
    // From the last on: what follows a convolution then takes its layout as it is.
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (!node->isCall(kGradients)) {
            CT_TRY(const bool goesOn, visit(*node));
            if (!goesOn) return rewriter.changed();
        }
        node = previous;
    }
    // Gradients from the first on: by its operands alone one would get its old layout again.
    // Each takes the readers of its tuple, which stand behind it, along with it.
    std::vector<Node*> gradients = graph.nodeList();
    std::erase_if(gradients, [](const Node* node) { return !node->isCall(kGradients); });
    for (Node* node : gradients) {
        CT_TRY(const bool goesOn, visit(*node));
        if (!goesOn) break;
    }
    return rewriter.changed();
}

Result<bool> takeSavedLayouts(Module& backward, const Module* forward, Rewriter& rewriter) {
    Graph& graph = backward.graph();
    const Returned returned(backward);
    std::vector<size_t> saved;
    std::vector<Argument> outputs;
    if (forward != nullptr) {
        CT_TRY(saved, savedOutputs(*forward, backward));
        outputs = forward->graph().outputs();
    }
    size_t next = 0;
    const std::vector<Node*> placeholders = graph.placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        Node& value = *placeholders[i];
        const Refusing no(rewriter, kSavedRule, value);
        if (forward == nullptr || i >= backward.inputs.size() || backward.inputs[i].kind != InputSpec::Kind::Saved) {
            no("it is nothing that a forward saves");
            continue;
        }
        const Node* const output = outputs[saved[next++]].node();
        const TensorType *left = output ? output->type().tensor() : nullptr, *taken = value.type().tensor();
        if (left == nullptr || taken == nullptr || left->sizes != taken->sizes || left->strides == taken->strides) {
            no("it lies as the forward leaves it");
            continue;
        }
        if (!allInts(left->strides) || storageIsRead(value)) {
            no("its memory is read by position, or its sizes are known only at run time");
            continue;
        }
        const Go go = rewriter.begin(kSavedRule, value, "the forward leaves it so");
        if (go == Go::Stop) break;
        if (go != Go::Yes) continue;
        const TensorType before = *taken, after = *left;
        graph.setType(value, after);
        if (!retypeReaders(graph, value, true)) {
            graph.setType(value, before);
            CT_TRY_VOID(retypeReaders(graph, value, true));
            graph.setType(value, after);
            const std::vector<Node*> readers = value.users();
            Node& copy = laidOutLike(rewriter.builder(graph, value.next(), value), value, before);
            for (Node* reader : readers) graph.replaceInput(*reader, value, copy);
        }
        returned.keep(rewriter);
    }
    return rewriter.changed();
}

}  // namespace cutaway
