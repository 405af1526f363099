// The layouts of values between calls. They are free until a call that is not a kernel wants one, which the row of its
// library says (libraries/choose.h): it reads and writes that one at full speed, and any other through copies.
#include "engine/ops/alias.h"
#include "engine/ops/infer_rules.h"
#include "engine/partition/join_graphs.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr std::string_view kLayoutRule = "channels_last", kSavedRule = "saved_layout";
/// The first result.
const TensorType* writtenType(const Node& node) {
    const TupleType* const tuple = node.type().tuple();
    if (tuple == nullptr) return node.type().tensor();
    return tuple->empty() ? nullptr : tuple->front().tensor();
}
/// Whether the row that computes the call, null if there is none, wants the first result in a layout that it has not.
bool wantsLayout(const Node& node, const LibraryRow* row, const TargetInfo& target, Rewriter& rewriter) {
    const Refusing no(rewriter, kLayoutRule, node);
    if (row == nullptr) return no.watched() && no(whyNoLibrary(node, target));
    if (!row->layout) return no("its library, ", row->library.name, ", takes any layout");
    const TensorType* const type = writtenType(node);
    if (type == nullptr) return no("its first result is not asked for");
    const std::optional<SymDims> strides = formatStrides(*row->layout, type->sizes);
    if (!strides) return no("its result, ", *type, ", has no ", name(*row->layout));
    if (!allInts(type->sizes) || !allInts(type->strides))
        return no("its result, ", *type, ", has sizes that are known only at run time");
    return type->strides != *strides || no("its result lies that way already");
}

/// What the graph returns keeps its strides: whoever called it relies on them. What a forward saves is its backward's,
/// which takes it as it lies (takeSavedLayouts).
class ReturnedLayouts {
  public:
    ReturnedLayouts(Module& module, const TargetInfo& target) : m_graph(module.graph()), m_target(&target) {
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
    /// Gives one of several results, if it has one reader, the wanted layout: of those but the first the library writes
    /// any. False: it is not such a result.
    bool writeAs(Node& node, const TensorType& type) const {
        Node* const tuple = node.isCall("operator.getitem") ? node.arg(0).node() : nullptr;
        if (tuple == nullptr || !tuple->type().tuple() || node.users().size() != 1) return false;
        const LibraryRow* const row = libraryRowOf(*tuple, *m_target);
        const auto item = node.arg(1).asInt();
        if (row == nullptr || !row->layout || !item || *item < 0) return false;
        TupleType types = *tuple->type().tuple();
        types[static_cast<size_t>(*item)] = type;
        m_graph.setType(*tuple, std::move(types));
        m_graph.setType(node, type);
        return true;
    }

    Graph& m_graph;
    const TargetInfo* m_target;
    std::vector<ValueType> m_types;
};

TensorType laidOut(TensorType type, MemoryFormat layout) {
    type.strides = *formatStrides(layout, type.sizes);
    return type;
}
Result<void> writeLaidOut(Graph& graph, Node& node, MemoryFormat layout, Rewriter& rewriter) {
    GraphBuilder builder = rewriter.builder(graph, &node, node);
    const Value again = builder.callBound(node.op(), node.args());
    if (builder.error()) return *builder.error();
    if (node.type().tensor() != nullptr) {
        graph.setType(*again.node(), laidOut(*node.type().tensor(), layout));
        rewriter.replace(node, *again.node());
        return {};
    }
    TupleType types = *node.type().tuple();
    types.front() = laidOut(*types.front().tensor(), layout);
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
    const TargetInfo& target = targetOf(module, rewriter.request());
    const ReturnedLayouts returned(module, target);
    const auto visit = [&](Node& node) -> Result<bool> {
        const LibraryRow* const row = libraryRowOf(node, target);
        if (!wantsLayout(node, row, target, rewriter)) return true;
        const Go go = rewriter.begin(kLayoutRule, node, "the library writes channels last without a copy");
        if (go == Go::Stop) return false;
        if (go != Go::Yes) return true;
        CT_TRY_VOID(writeLaidOut(graph, node, *row->layout, rewriter));
        returned.keep(rewriter);
        return true;
    };
    const auto hasOneResult = [](const Node* node) { return node->type().tuple() == nullptr; };
    // From the last on: what follows a convolution then takes its layout as it is.
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (hasOneResult(node)) {
            CT_TRY(const bool goesOn, visit(*node));
            if (!goesOn) return rewriter.changed();
        }
        node = previous;
    }
    // Gradients, several of a call, from the first on: by its operands alone one would get its old layout again.
    // Each takes the readers of its tuple, which stand behind it, along with it.
    std::vector<Node*> gradients = graph.nodeList();
    std::erase_if(gradients, hasOneResult);
    for (Node* node : gradients) {
        CT_TRY(const bool goesOn, visit(*node));
        if (!goesOn) break;
    }
    return rewriter.changed();
}

Result<bool> takeSavedLayouts(Module& backward, const Module* forward, Rewriter& rewriter) {
    Graph& graph = backward.graph();
    const ReturnedLayouts returned(backward, targetOf(backward, rewriter.request()));
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
            no("an as_strided reads its storage, or its sizes are known only at run time");
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
