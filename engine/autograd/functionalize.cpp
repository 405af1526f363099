#include "engine/autograd/functionalize.h"

#include "engine/ir/live_nodes.h"
#include "engine/ops/infer_rules.h"

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
    if (!node.is(Tag::View) || node.type().tuple()) return nullptr;
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
    const std::string_view packet = view.isCall("operator.getitem") ? view.arg(0).node()->op().packet() : view.op().packet();
    const auto tail = [&](std::vector<Argument> head, size_t from) {
        for (size_t i = from; i < view.args().size(); ++i) head.push_back(view.arg(i));
        return head;
    };
    if (packet == "aten.alias" || packet == "aten.detach") return source;
    if (packet == "aten.view" || packet == "aten._unsafe_view" || packet == "aten.squeeze" || packet == "aten.unsqueeze" || packet == "aten.reshape")
        return reshape(source, input.sizes());
    if (packet == "aten.t") return unary("aten.t.default", source);
    if (packet == "aten.transpose") return builder.call("aten.transpose.int", tail({source}, 1));
    if (packet == "aten.permute") {
        const auto dims = InferContext(view.op(), view.args()).dims("dims", input.rank(), false);
        if (!dims) return builder.fail(dims.error()), Value(builder, nullptr);
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
        if (!dim) return builder.fail(dim.error()), Value(builder, nullptr);
        const int64_t item = view.arg(1).asInt().value_or(0);
        if (packet == "aten.unbind") return builder.call("aten.select_scatter.default", {input, source, *dim, item});
        SymInt start = 0;
        const TupleType& parts = *call.type().tuple();
        for (int64_t i = 0; i < item; ++i) start = start + parts[static_cast<size_t>(i)].tensor()->sizes[static_cast<size_t>(*dim)];
        return builder.call("aten.slice_scatter.default", {input, source, *dim, Argument(start), Argument(start + source.size(*dim))});
    }
    builder.fail(unsupported("writes through " + std::string(packet) + ", whose elements overlap or have no inverse view", view.name(),
                             {"clone the view before it is written to"}));
    return Value(builder, nullptr);
}

/// All views of `base` that stand before `limit`, in order.
std::vector<Node*> viewsOf(Node& base, const Node& limit) {
    std::vector<Node*> found, pending = {&base};
    Graph& graph = base.graph();
    while (!pending.empty()) {
        Node* node = pending.back();
        pending.pop_back();
        for (Node* user : node->users()) {
            if (!graph.isBefore(*user, limit)) continue;
            const bool tuple = user->is(Tag::View) && user->type().tuple() && user->arg(0).node() == node;
            if (tuple || aliasedInput(*user) == node || (user->isCall("operator.getitem") && node->is(Tag::View) && node->type().tuple())) {
                if (!tuple) found.push_back(user);
                pending.push_back(user);
            }
        }
    }
    std::sort(found.begin(), found.end(), [&](Node* a, Node* b) { return graph.isBefore(*a, *b); });
    return found;
}

bool readLater(const Node& value, const Node& after) {
    return std::any_of(value.users().begin(), value.users().end(),
                       [&](const Node* user) { return user != &after && value.graph().isBefore(after, *user); });
}

/// Reads of `old` after `mutation` become reads of `fresh`.
void redirectLater(Node& old, Node& fresh, const Node& mutation) {
    old.graph().replaceUses(old, fresh, [&](const Node& user) { return &user == &mutation || !old.graph().isBefore(mutation, user); });
}

/// The value that an expansion's own copy_ brings (a batch norm's running statistics), which is the tensor's new value as
/// it is. A copy_ of the program stays a node, as in PyTorch: copy.
Node* replacementOf(const Node& mutation) {
    if (!mutation.isCall("aten.copy_.default") || mutation.provenance().origin.empty()) return nullptr;
    Node* source = mutation.arg(1).node();
    const TensorType *from = source ? source->type().tensor() : nullptr, *to = mutation.arg(0).node()->type().tensor();
    return from && to && from->dtype == to->dtype && from->sizes == to->sizes && from->strides == to->strides ? source : nullptr;
}

/// Copies into inputs stand in the order of the inputs.
Node& finalCopyPosition(const Node& input) {
    Node* position = input.graph().outputNode();
    while (position->previous() && isFinalCopy(*position->previous()) && input.graph().isBefore(input, *position->previous()->arg(0).node()))
        position = position->previous();
    return *position;
}

/// detach_ and its kin change no data: who reads the tensor later reads the view.
Result<void> replaceMetadata(Node& mutation, Node& target, GraphBuilder& builder, const Value& view) {
    if (builder.error()) {
        Error error = *builder.error();
        error.where = mutation.name();
        return error;
    }
    redirectLater(target, *view.node(), mutation);
    target.graph().replaceUses(mutation, *view.node());
    target.graph().erase(mutation);
    return {};
}

Result<void> functionalizeOne(Node& mutation, Rewriter& rewriter) {
    Graph& graph = mutation.graph();
    Node* const target = mutation.arg(0).node();
    Node* base = target;
    std::vector<Node*> chain;  // views from target up to base
    while (Node* up = aliasedInput(*base)) {
        chain.push_back(base);
        base = up;
    }
    GraphBuilder builder = rewriter.builder(graph, &mutation, mutation);

    // The new value, in the written tensor's dtype (an in-place op never changes it).
    std::vector<Argument> positional;
    NamedArguments keywords;
    const Op& functional = *mutation.op().functional();
    for (size_t i = 0; i < mutation.args().size(); ++i) {
        const Param& param = functional.schema()->params[i];
        if (param.keywordOnly) keywords.emplace_back(param.name, mutation.arg(i));
        else positional.push_back(mutation.arg(i));
    }
    Node* const replacement = replacementOf(mutation);
    Value fresh = replacement ? builder.value(*replacement) : builder.call(functional, std::move(positional), std::move(keywords));
    if (functional.is(Tag::View)) return replaceMetadata(mutation, *target, builder, fresh);
    if (!replacement) fresh = convert(fresh, target->tensor().dtype);

    // Written back through every view up to the base.
    Value newBase = fresh;
    for (size_t i = 0; i < chain.size() && newBase; ++i) newBase = scatterBack(builder, *chain[i], builder.value(*aliasedInput(*chain[i])), newBase);

    // Other views that are still read are derived again, in order, so that views of views find their new input.
    // The written view is one of them, as in PyTorch; the passes drop the way there and back.
    Node* written = fresh.node();
    std::vector<std::pair<Node*, Node*>> renewed = {{base, newBase.node()}};
    if (!builder.error()) {
        for (Node* view : viewsOf(*base, mutation)) {
            std::vector<Node*> readers = viewsOf(*view, mutation);
            readers.push_back(view);
            const auto isRead = [&](Node* reader) { return readLater(*reader, mutation) || (reader == target && mutation.hasUsers()); };
            if (std::none_of(readers.begin(), readers.end(), isRead)) continue;
            Node* input = aliasedInput(*view);
            for (const auto& [old, current] : renewed)
                if (old == input) input = current;
            renewed.emplace_back(view, replay(builder, *view, builder.value(*input)).node());
            if (view == target) written = renewed.back().second;
        }
    }
    if (builder.error()) {
        Error error = *builder.error();
        error.where = mutation.name();
        return error;
    }
    for (const auto& [old, current] : renewed) redirectLater(*old, *current, mutation);
    graph.replaceUses(mutation, *written);
    if (base->isPlaceholder()) {
        GraphBuilder atEnd = rewriter.builder(graph, &finalCopyPosition(*base), mutation);
        const Value back = atEnd.call("aten.copy_.default", {Argument(base), Argument(newBase)});
        if (atEnd.error()) return *atEnd.error();
        // An output that is the input itself stays that: what is returned is the input after the copy (A.7.6).
        const auto& users = newBase.node()->users();
        Node& output = *graph.outputNode();
        if (!replacement && std::find(users.begin(), users.end(), &output) != users.end()) graph.replaceInput(output, *newBase.node(), *back.node());
    }
    graph.erase(mutation);
    return {};
}

/// A call that writes to the tensors of a list: the functional call, and copies of its results into them.
Result<void> functionalizeList(Node& mutation, Rewriter& rewriter) {
    Graph& graph = mutation.graph();
    const std::vector<Argument> targets = *mutation.arg(0).list();
    GraphBuilder builder = rewriter.builder(graph, &mutation, mutation);
    const Value fresh = builder.callBound(*mutation.op().functional(), mutation.args());
    std::vector<Node*> copies, written;
    for (size_t i = 0; i < targets.size(); ++i) {
        if (targets[i].node() == nullptr) return invalidInput(mutation.op().name() + ": writes to something that is not a tensor", mutation.name());
        written.push_back(targets[i].node());
        const Value value = fresh[static_cast<int64_t>(i)];
        copies.push_back(builder.call("aten.copy_.default", {targets[i], builder.error() ? Argument() : Argument(convert(value, written.back()->tensor().dtype))}).node());
    }
    if (builder.error()) {
        Error error = *builder.error();
        error.where = mutation.name();
        return error;
    }
    CT_TRY_VOID(rewriter.replaceTuple(mutation, written));
    for (Node* copy : copies) CT_TRY_VOID(functionalizeOne(*copy, rewriter));
    return {};
}

}  // namespace

bool isFinalCopy(const Node& node) {
    if (!node.isCall("aten.copy_.default") || !node.arg(0).node() || !node.arg(0).node()->isPlaceholder()) return false;
    for (const Node* later = node.next(); later; later = later->next())
        if (!later->isOutput() && !(later->isCall("aten.copy_.default") && later->arg(0).node() && later->arg(0).node()->isPlaceholder()))
            return false;
    return !node.hasUsers() || std::all_of(node.users().begin(), node.users().end(), [](const Node* user) { return user->isOutput(); });
}

Result<bool> functionalize(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, functionalize(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node : LiveNodes(graph)) {
        if (!node->isCall() || !node->op().mutates() || isFinalCopy(*node)) continue;
        if (node->op().functional() == nullptr)
            return unsupported(node->op().name() + " mutates and has no functional form here", node->name(), {"remove the op, or export the model with run_decompositions()"});
        const bool list = node->arg(0).list() != nullptr;
        if (!list && node->arg(0).node() == nullptr) return invalidInput(node->op().name() + ": writes to something that is not a tensor", node->name());
        if (!rewriter.begin(node->op().name(), *node)) return changed;
        CT_TRY_VOID(list ? functionalizeList(*node, rewriter) : functionalizeOne(*node, rewriter));
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
