#include "engine/autograd/functionalize.h"

#include <unordered_map>

#include "engine/autograd/expand.h"
#include "engine/autograd/metadata.h"
#include "engine/ir/live_nodes.h"
#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/ops/infer_rules.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

/// The node whose memory `node` looks at, one step up: operand 0 of a view op, or through a getitem of a multi-result
/// view (split, unbind). Null if the node owns its memory.
Node* aliasedInput(const Node& node) {
    if (!node.isCall()) return nullptr;
    if (node.isCall("operator.getitem")) {
        Node* tuple = node.arg(0).node();
        return tuple && tuple->is(Tag::View) ? tuple->arg(0).node() : nullptr;
    }
    if ((!node.is(Tag::View) && !isLazyView(node)) || node.type().tuple()) return nullptr;
    return node.arg(0).node();
}

/// Copies the view op `view`, reading `source` instead.
Value replay(GraphBuilder& builder, const Node& view, const Value& source) {
    const bool item = view.isCall("operator.getitem");
    const Node& call = item ? *view.arg(0).node() : view;
    std::vector<Argument> args = call.args();
    args[0] = source;
    NamedArguments keywords;
    std::vector<Argument> positional;
    const Schema& schema = *call.op().schema();
    for (size_t i = 0; i < args.size(); ++i) {
        if (schema.params[i].keywordOnly) keywords.emplace_back(schema.params[i].name, args[i]);
        else positional.push_back(args[i]);
    }
    const Value result = builder.call(call.op(), std::move(positional), std::move(keywords));
    return item ? result[view.arg(1).asInt().value_or(0)] : result;
}

/// The value of the view's input after `source` has been written through the view. `input` is its value before.
Value scatterBack(GraphBuilder& builder, const Node& view, const Value& input, const Value& source) {
    const std::string_view packet =
        view.isCall("operator.getitem") ? view.arg(0).node()->op().packet() : view.op().packet();
    const auto tail = [&](std::vector<Argument> head, size_t from) {
        for (size_t i = from; i < view.args().size(); ++i) head.push_back(view.arg(i));
        return head;
    };
    if (packet == "aten.alias" || packet == "aten.detach") return source;
    if (packet == "aten._conj" || packet == "aten._neg_view") return unary(view.op().name(), source);
    // The same bits under another dtype, and back.
    if (view.isCall("aten.view.dtype")) return builder.call("aten.view.dtype", {source, input.dtype()});
    if (packet == "aten.view_as_real")
        return unary("aten.view_as_complex.default", builder.call("aten.contiguous.default", {source}));
    if (packet == "aten.view_as_complex") return unary("aten.view_as_real.default", source);
    if (packet == "aten.view" || packet == "aten._unsafe_view" || packet == "aten.squeeze" ||
        packet == "aten.unsqueeze" || packet == "aten.reshape")
        return reshape(source, input.sizes());
    if (packet == "aten.t") return unary("aten.t.default", source);
    if (packet == "aten.transpose") return builder.call("aten.transpose.int", tail({source}, 1));
    if (packet == "aten.permute") {
        const auto dims = InferContext(view.op(), view.args()).dims("dims", input.rank(), false);
        if (!dims) {
            builder.fail(dims.error());
            return Value(builder, nullptr);
        }
        std::vector<int64_t> inverse(dims->size());
        for (size_t i = 0; i < dims->size(); ++i) inverse[static_cast<size_t>((*dims)[i])] = static_cast<int64_t>(i);
        return permute(source, inverse);
    }
    if (packet == "aten.select") return builder.call("aten.select_scatter.default", tail({input, source}, 1));
    if (packet == "aten.slice") return builder.call("aten.slice_scatter.default", tail({input, source}, 1));
    if (packet == "aten.diagonal") return builder.call("aten.diagonal_scatter.default", tail({input, source}, 1));
    if (packet == "aten.as_strided") return builder.call("aten.as_strided_scatter.default", tail({input, source}, 1));
    if (packet == "aten.split" || packet == "aten.split_with_sizes" || packet == "aten.unbind") {
        const Node& call = *view.arg(0).node();
        const auto dim = InferContext(call.op(), call.args()).dim("dim", input.rank());
        if (!dim) {
            builder.fail(dim.error());
            return Value(builder, nullptr);
        }
        const int64_t item = view.arg(1).asInt().value_or(0);
        if (packet == "aten.unbind") return builder.call("aten.select_scatter.default", {input, source, *dim, item});
        const bool there = call.type().tuple() && item >= 0 && item < static_cast<int64_t>(call.type().tuple()->size());
        if (!there || !isKnown(call.type())) {
            builder.fail(
                unsupported("writes through " + std::string(packet) + ", whose parts are not known", view.name()));
            return Value(builder, nullptr);
        }
        SymInt start = 0;
        const TupleType& parts = *call.type().tuple();
        for (int64_t i = 0; i < item; ++i)
            start = start + parts[static_cast<size_t>(i)].tensor()->sizes[static_cast<size_t>(*dim)];
        return builder.call("aten.slice_scatter.default",
                            {input, source, *dim, Argument(start), Argument(start + source.size(*dim))});
    }
    builder.fail(
        unsupported("writes through " + std::string(packet) + ", whose elements overlap or have no inverse view",
                    view.name(), {"clone the view before it is written to"}));
    return Value(builder, nullptr);
}

/// The value that an expansion's own copy_ brings (a batch norm's running statistics), which is the tensor's new value
/// as it is. A copy_ of the program stays a node, as in PyTorch: copy.
Node* replacementOf(const Node& mutation) {
    if (!mutation.isCall("aten.copy_.default") || mutation.provenance().origin.empty()) return nullptr;
    Node* source = mutation.arg(1).node();
    const TensorType *from = source ? source->type().tensor() : nullptr, *to = mutation.arg(0).node()->type().tensor();
    return from && to && from->dtype == to->dtype && from->sizes == to->sizes && from->strides == to->strides ? source
                                                                                                              : nullptr;
}

/// A program's own copy_ that writes several values to one place. (What functionalization itself copies into an input
/// are results of calls that may write there: mayWriteExpanded.)
bool isExpandedCopy(const Node& node) {
    if (!node.isCall("aten.copy_.default") || !node.provenance().origin.empty()) return false;
    const TensorType* target = node.arg(0).node() ? node.arg(0).node()->type().tensor() : nullptr;
    return target && isExpanded(*target);
}

/// Copies into inputs stand in the order of the inputs.
Node& finalCopyPosition(const Node& input) {
    Node* position = input.graph().outputNode();
    while (position->previous() && isFinalCopy(*position->previous()) &&
           input.graph().isBefore(input, *position->previous()->arg(0).node()))
        position = position->previous();
    return *position;
}

/// The first of the copies into inputs in front of the output; the output itself without any.
Node& firstFinalCopy(Node& output) {
    Node* position = &output;
    while (position->previous() && isFinalCopy(*position->previous())) position = position->previous();
    return *position;
}

/// A tensor or a view of one, and the node that currently has its value. A view is derived again from its parent's
/// newest value only when it is read, so that many writes through many views of one tensor cost no more than the reads.
struct Alias {
    const Node* origin = nullptr;  // the view as the program derives it
    Alias* parent = nullptr;       // null: it owns its memory
    Node* current = nullptr;       // its newest value, if it is as new as its root's
    int64_t version = 0;           // writes that `current` has seen; of a root, all there were
    Node* back = nullptr;          // of a root that is an input: the copy_ into it
    bool returned = false;         // of such a root: who returns the input returns the copy_
};
Alias& rootOf(Alias& alias) {
    Alias* root = &alias;
    while (root->parent) root = root->parent;
    return *root;
}

class Functionalization {
  public:
    Functionalization(Graph& graph, Rewriter& rewriter) : m_graph(graph), m_rewriter(rewriter) {}

    Result<bool> run() {
        CT_TRY_VOID(expandWithoutForm());
        for (Node* node : LiveNodes(m_graph)) {
            CT_TRY_VOID(visit(*node));
        }
        return m_changed;
    }

  private:
    /// Calls that write and have no functional form, but an expansion that writes by copy_.
    Result<void> expandWithoutForm() {
        for (Node* node : LiveNodes(m_graph)) {
            if (!node->isCall() || !node->op().mutates() || writesForEffect(node->op()) || node->op().functional() ||
                node->op().def() == nullptr || !node->op().def()->decompose)
                continue;
            if (m_rewriter.begin(node->op().name(), *node) != Go::Yes) {
                m_stopped = true;
                return {};
            }
            CT_TRY(const bool expanded, expandCall(*node, m_rewriter));
            m_changed |= expanded;
        }
        return {};
    }
    Alias& aliasOf(Node& node) {
        if (const auto found = m_aliases.find(node.id()); found != m_aliases.end()) return *found->second;
        return add(node, parentOf(node));
    }
    Alias& add(Node& node, Alias* parent) {
        Alias alias;
        alias.origin = alias.current = &node;
        alias.parent = parent;
        if (parent) alias.version = rootOf(*parent).version;
        m_all.push_back(std::make_unique<Alias>(alias));
        return *(m_aliases[node.id()] = m_all.back().get());
    }
    /// What the node is a view of, null if it owns its memory. A tuple of views is one too; its items are views of what
    /// it is a view of.
    Alias* parentOf(const Node& node) {
        const bool item = node.isCall("operator.getitem");
        if (item && node.arg(0).node() && isTuple(*node.arg(0).node())) return aliasOf(*node.arg(0).node()).parent;
        Node* up = isTuple(node) ? node.arg(0).node() : aliasedInput(node);
        return up ? &aliasOf(*up) : nullptr;
    }
    static bool isTuple(const Node& node) { return node.is(Tag::View) && node.type().tuple(); }
    Alias* known(const Node& node) const {
        const auto found = m_aliases.find(node.id());
        return found == m_aliases.end() ? nullptr : found->second;
    }

    /// The newest value of the tensor, for a reader behind the builder.
    Node* renewed(GraphBuilder& builder, Alias& alias) {
        const int64_t version = rootOf(alias).version;
        if (alias.parent == nullptr || alias.version == version) return alias.current;
        Node* input = renewed(builder, *alias.parent);
        if (input == nullptr) return nullptr;
        alias.current = replay(builder, *alias.origin, builder.value(*input)).node();
        alias.version = version;
        return alias.current;
    }
    /// The same for the tuple that a view of several results gives, which an item is still to be taken from.
    Result<void> renewTuple(Node& item, Node& tuple) {
        Alias& alias = aliasOf(tuple);
        if (alias.parent == nullptr || alias.version == rootOf(alias).version) return {};
        GraphBuilder builder = m_rewriter.builder(m_graph, &item, tuple);
        std::vector<Argument> args = tuple.args();
        args[0] = Argument(renewed(builder, *alias.parent));
        const Value again = builder.callBound(tuple.op(), std::move(args));
        if (builder.error()) return failed(builder, item);
        m_graph.replaceInput(item, tuple, *again.node());
        return {};
    }
    static Error failed(const GraphBuilder& builder, const Node& where) {
        Error error = *builder.error();
        error.where = where.name();
        return error;
    }

    Result<void> visit(Node& node) {
        const bool mutates = node.isCall() && node.op().mutates() && !writesForEffect(node.op());
        // What is written, before the newest value takes its place among the arguments.
        std::vector<Alias*> written;
        if (mutates && !node.args().empty())
            node.arg(0).forEachNode([&](Node* target) { written.push_back(&aliasOf(*target)); });
        const bool final = mutates && isFinalCopy(node) && rootOf(*written[0]).version == 0;
        Alias* const parent = parentOf(node);
        CT_TRY_VOID(renewInputs(node));
        if (parent) add(node, parent);
        const Refusing no(m_rewriter, m_rewriter.pass(), node);
        if (!mutates)
            no(node.isCall() && node.op().mutates() ? "what it writes is for others than this graph, so it stays"
                                                    : "it writes to none of its operands");
        else if (final)
            no("it gives an input its newest value at the end of the graph, which is what functional graphs may write");
        if (isExpandedCopy(node))
            return invalidInput(node.op().name() +
                                    ": several elements of the tensor it is written to are one place in "
                                    "memory; clone it first",
                                node.name());
        if (!mutates || final || m_stopped) return {};
        if (node.op().functional() == nullptr)
            return unsupported(node.op().name() + " mutates and has no functional form here", node.name(),
                               {"remove the op, or export the model with run_decompositions()"});
        const bool list = node.arg(0).list() != nullptr;
        if (!list && node.arg(0).node() == nullptr)
            return invalidInput(node.op().name() + ": writes to something that is not a tensor", node.name());
        if (m_rewriter.begin(node.op().name(), node) != Go::Yes) {
            m_stopped = true;  // what is left writes to the newest values
            return {};
        }
        m_changed = true;
        return list ? writeList(node, written) : write(node, *written[0]);
    }

    /// Reads of values that were written to become reads of the newest value.
    Result<void> renewInputs(Node& node) {
        for (Node* input : node.inputs()) {
            if (node.isCall("operator.getitem") && isTuple(*input)) {
                CT_TRY_VOID(renewTuple(node, *input));
                continue;
            }
            Alias* alias = known(*input);
            if (alias == nullptr || rootOf(*alias).version == 0) continue;
            // Copies into inputs stay last.
            Node& position = node.isOutput() ? firstFinalCopy(node) : node;
            GraphBuilder builder = m_rewriter.builder(m_graph, &position, *alias->origin);
            Node* now = renewed(builder, *alias);
            if (builder.error()) return failed(builder, node);
            // An output that is the input itself stays that: what is returned is the input after the copy (A.7.6).
            if (node.isOutput() && alias->parent == nullptr && alias->back && alias->returned) now = alias->back;
            if (now != input) m_graph.replaceInput(node, *input, *now);
        }
        return {};
    }

    /// detach_ and similar calls change no data: later readers of the tensor read the view.
    Result<void> rename(Node& mutation, Alias& before, GraphBuilder& builder, const Value& view) {
        if (builder.error()) return failed(builder, mutation);
        add(*view.node(), &before);
        redirect(const_cast<Node&>(*before.origin), *view.node(), mutation);
        m_graph.replaceUses(mutation, *view.node());
        m_graph.erase(mutation);
        return {};
    }
    /// Reads of `old` behind the mutation become reads of `fresh`.
    void redirect(Node& old, Node& fresh, const Node& mutation) {
        m_graph.replaceUses(old, fresh,
                            [&](const Node& user) { return &user == &mutation || !m_graph.isBefore(mutation, user); });
    }

    Result<void> write(Node& mutation, Alias& written) {
        Alias& root = rootOf(written);
        GraphBuilder builder = m_rewriter.builder(m_graph, &mutation, mutation);
        std::vector<Argument> args = mutation.args();
        Node* const target = renewed(builder, written);
        if (builder.error()) return failed(builder, mutation);
        args[0] = Argument(target);

        // The new value, in the written tensor's dtype (an in-place op never changes it).
        Node* const replacement = replacementOf(mutation);
        const Op& functional = *mutation.op().functional();
        Value fresh = replacement ? builder.value(*replacement) : builder.callBound(functional, std::move(args));
        if (functional.is(Tag::View)) return rename(mutation, written, builder, fresh);
        if (!replacement) fresh = convert(fresh, target->tensor().dtype);

        // Written back through every view up to the root.
        Value whole = fresh;
        for (Alias* at = &written; at->parent && whole; at = at->parent) {
            Node* input = renewed(builder, *at->parent);
            whole = input ? scatterBack(builder, *at->current, builder.value(*input), whole) : Value();
        }
        if (builder.error()) return failed(builder, mutation);
        Node* const before = root.current;
        root.current = whole.node();
        ++root.version;

        // The written view is derived again at once, as in PyTorch; later passes remove the scatter and view that
        // cancel out.
        const auto& readers = written.origin->users();
        const bool read = mutation.hasUsers() || (!readers.empty() && m_graph.isBefore(mutation, *readers.back()));
        if (read) renewed(builder, written);
        if (builder.error()) return failed(builder, mutation);
        m_graph.replaceUses(mutation,
                            const_cast<Node&>(*written.origin));  // whose readers are renewed when their turn comes
        CT_TRY_VOID(copyBack(root, *before, mutation, replacement != nullptr));
        m_graph.erase(mutation);
        return {};
    }
    /// An input gets its newest value at the end of the graph.
    Result<void> copyBack(Alias& root, Node& before, const Node& mutation, bool replaced) {
        if (!root.origin->isPlaceholder()) return {};
        root.returned |= !replaced;
        if (root.back) {
            if (&before != root.current) m_graph.replaceInput(*root.back, before, *root.current);
            return {};
        }
        GraphBuilder atEnd = m_rewriter.builder(m_graph, &finalCopyPosition(*root.origin), mutation);
        root.back =
            atEnd.call("aten.copy_.default", {Argument(const_cast<Node*>(root.origin)), Argument(root.current)}).node();
        return atEnd.error() ? Result<void>(*atEnd.error()) : Result<void>();
    }

    /// A call that writes to the tensors of a list: the functional call, and copies of its results into them.
    Result<void> writeList(Node& mutation, const std::vector<Alias*>& targets) {
        GraphBuilder builder = m_rewriter.builder(m_graph, &mutation, mutation);
        const Value fresh = builder.callBound(*mutation.op().functional(), mutation.args());
        std::vector<Node*> copies, written;
        for (size_t i = 0; i < targets.size() && !builder.error(); ++i) {
            Node* target = const_cast<Node*>(targets[i]->origin);
            written.push_back(target);
            copies.push_back(builder
                                 .call("aten.copy_.default", {Argument(target), convert(fresh[static_cast<int64_t>(i)],
                                                                                        target->tensor().dtype)})
                                 .node());
        }
        if (builder.error()) return failed(builder, mutation);
        CT_TRY_VOID(m_rewriter.replaceTuple(mutation, written));
        for (size_t i = 0; i < copies.size(); ++i) CT_TRY_VOID(write(*copies[i], *targets[i]));
        return {};
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    std::vector<std::unique_ptr<Alias>> m_all;
    std::unordered_map<NodeId, Alias*> m_aliases;  // looked up by id, never iterated
    bool m_changed = false, m_stopped = false;
};

}  // namespace

bool isFinalCopy(const Node& node) {
    if (!node.isCall("aten.copy_.default") || !node.arg(0).node() || !node.arg(0).node()->isPlaceholder()) return false;
    for (const Node* later = node.next(); later; later = later->next())
        if (!later->isOutput() &&
            !(later->isCall("aten.copy_.default") && later->arg(0).node() && later->arg(0).node()->isPlaceholder()))
            return false;
    return !node.hasUsers() ||
           std::all_of(node.users().begin(), node.users().end(), [](const Node* user) { return user->isOutput(); });
}

bool isWrittenAtEnd(const Node& input) {
    return std::any_of(input.users().begin(), input.users().end(),
                       [&](const Node* user) { return isFinalCopy(*user) && user->arg(0).node() == &input; });
}

Result<bool> functionalize(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, functionalize(*body, rewriter));
        changed |= inner;
    }
    CT_TRY(const bool outer, Functionalization(module.graph(), rewriter).run());
    CT_TRY_VOID(checkWrittenInputs(module));
    return changed || outer;
}

}  // namespace cutaway
