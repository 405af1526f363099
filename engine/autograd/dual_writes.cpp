#include "engine/autograd/dual_writes.h"

#include "engine/ops/alias.h"
#include "engine/ops/counts.h"

namespace cutaway {
namespace {

/// How many elements the storage of a value holds, as far as its types say.
SymInt storageElements(const Node& value) {
    const TensorType& type = storageRoot(value).tensor();
    SymInt last = type.offset;
    for (size_t dim = 0; dim < type.sizes.size(); ++dim) last = last + (type.sizes[dim] - 1) * type.strides[dim];
    return last + 1;
}

bool sameLayout(const Node& a, const Node& b) {
    return sameStrides(a.tensor(), b.tensor()) && a.tensor().offset == b.tensor().offset &&
           storageElements(a) == storageElements(b);
}

Error whileAt(const GraphBuilder& builder, const Node& call) {
    Error error = *builder.error();
    error.where = call.name();
    return error;
}

}  // namespace

Node* DualWrites::sharedWith(const Node& value) const {
    if (m_cut.contains(value.id()) || value.is(Tag::NoGradient)) return nullptr;
    return const_cast<Node*>(sharedOperand(value));
}

Result<void> DualWrites::inherit(Node& value, Node& reader) {
    if (m_duals.tangentOf(value)) return {};
    Node* const source = sharedWith(value);
    if (source == nullptr) return {};
    const bool item = value.isCall("operator.getitem");
    Node* const base = item ? sharedWith(*source) : source;
    if (base == nullptr) return {};
    CT_TRY_VOID(inherit(*base, reader));
    Node* const tangent = m_duals.tangentOf(*base);
    if (tangent == nullptr) return {};
    if (!value.is(Tag::View) && !item && value.op().mutates()) {
        m_duals.setTangent(value, tangent);  // the call gives back what it has written to
        return {};
    }
    GraphBuilder builder = m_rewriter.builder(m_graph, &reader, value);
    const Node& call = item ? *source : value;
    std::vector<Argument> args = call.args();
    args[0] = Argument(tangent);
    Value view = builder.callBound(call.op(), std::move(args));
    if (item) view = view[value.arg(1).asInt().value_or(0)];
    if (builder.error()) return whileAt(builder, value);
    m_duals.setTangent(value, view.node());
    return {};
}

Value DualWrites::laidOutLike(GraphBuilder& builder, const Value& primal, const Value& tangent) const {
    if (sameLayout(*primal.node(), *tangent.node())) return tangent;
    return copyLaidOutLike(builder, primal.type(), tangent);
}

bool DualWrites::begin(const Node& call) {
    if (m_rewriter.begin("tangent of " + call.op().name(), call) == Go::Yes) return true;
    m_duals.stop();
    return false;
}

Result<Node*> DualWrites::write(Node& call) {
    Node* const next = call.next();
    bool reached = false;
    for (const Node* operand : call.inputs()) reached = reached || m_duals.tangentOf(*operand);
    if (!reached) return next;
    const std::string_view packet = call.op().packet();
    if (packet == "aten.resize_") return invalidInput("cannot resize variables that has a forward grad", call.name());
    if (packet == "aten.copy_") return copy(call);
    Node* const target = call.args().empty() ? nullptr : call.arg(0).node();
    if (call.op().functional() == nullptr || target == nullptr) return noTangentRule(call);
    if (!call.op().functional()->is(Tag::View)) return writeThrough(call);
    // Only what the tensor is called, or how it is looked at, changes.
    if (!begin(call)) return next;
    Node* const tangent = m_duals.tangentOf(*target);
    if (call.op().functional()->is(Tag::NoGradient)) {
        m_duals.setTangent(*target, nullptr);
        cut(call);
        cut(*target);
    } else if (tangent) {
        GraphBuilder builder = m_rewriter.builder(m_graph, next, call);
        std::vector<Argument> args = call.args();
        args[0] = Argument(tangent);
        const Value viewed = builder.callBound(call.op(), std::move(args));
        if (builder.error()) return whileAt(builder, call);
        m_duals.setTangent(call, viewed.node());
    }
    return next;
}

/// Computes the new value first, whose tangent may read the old one, and then copies it into the tensor.
Result<Node*> DualWrites::writeThrough(Node& call) {
    if (!begin(call)) return call.next();
    Node* const before = call.previous();
    Node& target = *call.arg(0).node();
    GraphBuilder builder = m_rewriter.builder(m_graph, &call, call);
    const Value fresh = convert(builder.callBound(*call.op().functional(), call.args()), target.tensor().dtype);
    if (builder.error()) return whileAt(builder, call);
    m_graph.setOp(call, requireOp("aten.copy_.default"), {Argument(&target), fresh, Argument(false)}, call.type());
    m_graph.setProvenance(call, builder.sharedProvenance());
    return before ? before->next() : m_graph.first();
}

Result<Node*> DualWrites::copy(Node& call) {
    Node* const next = call.next();
    if (!begin(call)) return next;
    Node& target = *call.arg(0).node();
    Node *const old = m_duals.tangentOf(target), *const source = call.arg(1).node()
                                                                     ? m_duals.tangentOf(*call.arg(1).node())
                                                                     : nullptr;
    GraphBuilder builder = m_rewriter.builder(m_graph, next, call);
    if (old) {
        const Value into = builder.value(*old);
        const Value from = source ? builder.value(*source) : unary("aten.zeros_like.default", into);
        builder.call("aten.copy_.default", {into, from});
    } else {
        CT_TRY_VOID(giveTangent(target, builder.value(*source), *next));
    }
    if (builder.error()) return whileAt(builder, call);
    m_duals.setTangent(call, m_duals.tangentOf(target));
    return next;
}

/// A first tangent by writing: of a view the base gets zeros, of which the view's part is written.
Result<void> DualWrites::giveTangent(Node& target, const Value& tangent, Node& position) {
    Node* base = &target;
    while (Node* up = sharedWith(*base)) base = up;
    GraphBuilder builder = m_rewriter.builder(m_graph, &position, target);
    const TensorType& type = target.tensor();
    Value value = convert(builder.value(*tangent.node()), type.dtype);
    if (value.sizes() != type.sizes) value = expand(value, type.sizes);
    if (base == &target) {
        const Value own = builder.call("aten.clone.default", {value}, {{"memory_format", MemoryFormat::Contiguous}});
        if (builder.error()) return whileAt(builder, target);
        m_duals.setTangent(target, laidOutLike(builder, builder.value(target), own).node());
    } else {
        const Value zeros = unary("aten.zeros_like.default", builder.value(*base));
        if (builder.error()) return whileAt(builder, target);
        m_duals.setTangent(*base, zeros.node());
        CT_TRY_VOID(inherit(target, position));
        builder.call("aten.copy_.default", {Argument(m_duals.tangentOf(target)), value});
    }
    return builder.error() ? Result<void>(whileAt(builder, target)) : Result<void>();
}

}  // namespace cutaway
