#include "engine/autograd/forward_duals.h"

#include <algorithm>

#include "engine/autograd/expand.h"
#include "engine/autograd/graph_calls.h"

namespace cutaway {
namespace {

/// A value as result `item` of the call that makes it.
std::pair<const Node*, size_t> resultOfDual(const Node& value) {
    const Node* tuple = value.isCall("operator.getitem") ? value.arg(0).node() : nullptr;
    if (tuple == nullptr || !tuple->type().tuple()) return {&value, 0};
    const int64_t count = static_cast<int64_t>(tuple->type().tuple()->size());
    const int64_t position = value.arg(1).asInt().value_or(0);
    return {tuple, static_cast<size_t>(position < 0 ? position + count : position)};
}

bool carriesTangent(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) return isFloating(tensor->dtype) || isComplex(tensor->dtype);
    if (const TupleType* items = type.tuple()) return std::any_of(items->begin(), items->end(), carriesTangent);
    return false;
}

/// Results as values that rules may read; a tuple gets the getitems that it lacks.
std::vector<Value> resultsOfDual(Node& call, GraphBuilder& builder) {
    if (!call.type().tuple()) return {builder.value(call)};
    std::vector<Value> results(call.type().tuple()->size());
    for (Node* reader : call.users())
        if (reader->isCall("operator.getitem")) results[resultOfDual(*reader).second] = builder.value(*reader);
    for (size_t i = 0; i < results.size(); ++i)
        if (!results[i] || !call.graph().isBefore(*results[i].node(), *builder.before()))
            results[i] = builder.value(call)[static_cast<int64_t>(i)];
    return results;
}

Error whileCalling(Error error, const Node& call) {
    error.where = call.name();
    error.notes.push_back("while taking the tangent of " + call.op().name());
    return error;
}

}  // namespace

Error noTangentRule(const Node& call) {
    std::string name = call.op().name();
    const bool out = name.ends_with("out");
    if (name.ends_with(".default")) name.resize(name.size() - 8);
    if (name.starts_with("aten.")) name.erase(0, 5);
    if (out) std::replace(name.begin(), name.end(), '.', '_');
    return unsupported("Trying to use forward AD with " + name + " that does not support it because it " +
                           (out ? "is an out= function" : "has not been implemented yet"),
                       call.name(),
                       {out ? "call the form that returns its result"
                            : "detach() what it reads, or write the op in terms of smaller ones"});
}

bool sameStrides(const TensorType& a, const TensorType& b) {
    if (a.sizes != b.sizes) return false;
    for (size_t dim = 0; dim < a.sizes.size(); ++dim)
        if (!(a.sizes[dim] == SymInt(1)) && !(a.strides[dim] == b.strides[dim])) return false;
    return true;
}

Value copyLaidOutLike(GraphBuilder& builder, const TensorType& primal, const Value& tangent) {
    if (primal.isContiguous())
        return builder.call("aten.clone.default", {tangent}, {{"memory_format", MemoryFormat::Contiguous}});
    const Value room =
        builder.call("aten.new_empty_strided.default", {tangent, Argument(primal.sizes), Argument(primal.strides)});
    return builder.call("aten.copy.default", {room, tangent});
}

Node* ForwardDuals::tangentOf(const Node& value) const {
    const auto [node, item] = resultOfDual(value);
    const auto found = m_tangents.find(node->id());
    return found == m_tangents.end() || item >= found->second.size() ? nullptr : found->second[item];
}

void ForwardDuals::setTangent(const Node& value, Node* tangent) {
    const auto [node, item] = resultOfDual(value);
    std::vector<Node*>& slots = m_tangents[node->id()];
    slots.resize(std::max(slots.size(), item + 1), nullptr);
    slots[item] = tangent;
}

bool ForwardDuals::reaches(const Node& call) const {
    if (!call.isCall() || call.is(Tag::NoGradient) || call.is(Tag::Factory)) return false;
    if (resultOfDual(call).first != &call) return false;  // its call has its tangents
    if (!call.op().isOpaque() && !carriesTangent(call.type())) return false;
    const std::vector<Node*> inputs = call.inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](const Node* operand) { return tangentOf(*operand); });
}

Result<std::vector<Value>> ForwardDuals::tangentsOf(Node& call, GraphBuilder& builder, Node& position) {
    const TangentCall::Lookup lookup = [this](const Node& value) { return tangentOf(value); };
    if (m_module && runsGraphs(call)) return pushGraphCall(*m_module, call, builder, lookup, m_rewriter);
    TangentCall tangentCall(call, builder, resultsOfDual(call, builder), lookup);
    if (const TangentRule rule = tangentRule(call)) return rule(tangentCall);
    if (!call.op().def()->derive) return noTangentRule(call);
    auto tangents = pulledBackTwice(tangentCall, position, m_rewriter);
    if (tangents) return tangents;
    Error error = noTangentRule(call);
    error.notes.push_back(tangents.error().message);
    return error;
}

Result<Node*> ForwardDuals::push(Node& call) {
    const bool asPyTorch = m_rewriter.request().parity && isFusedAttention(call.op());
    const bool graphs = m_module && !m_rewriter.request().parity && runsGraphs(call);
    if ((call.op().isOpaque() && !graphs) || asPyTorch) return noTangentRule(call);
    const TangentRule rule = graphs ? nullptr : tangentRule(call);
    if (m_rewriter.begin("tangent of " + call.op().name(), call) != Go::Yes) {
        m_stopped = true;
        return &call;
    }
    if (!rule && !graphs) {
        Node* const previous = call.previous();
        CT_TRY(const bool expanded, expandCall(call, m_rewriter));
        if (expanded) return previous ? previous->next() : m_graph.first();
    }
    Node* next = call.next();
    while (resultOfDual(*next).first == &call) next = next->next();
    const uint32_t first = m_graph.idLimit();
    GraphBuilder builder = m_rewriter.builder(m_graph, next, call);
    CT_TRY(const std::vector<Value> tangents, tangentsOf(call, builder, *next));
    std::vector<Node*> nodes;
    const TupleType* const tuple = call.type().tuple();
    for (size_t i = 0; i < tangents.size() && !builder.error(); ++i) {
        // What looks at the result, a view, must be able to look at the tangent in the same way. Text leaves out the
        // last of several results if nobody reads them.
        const TensorType* type = tuple ? nullptr : call.type().tensor();
        if (tuple && i < tuple->size()) type = (*tuple)[i].tensor();
        const bool copied = tangents[i] && type && !sameStrides(*type, tangents[i].type());
        nodes.push_back(copied ? copyLaidOutLike(builder, *type, tangents[i]).node() : tangents[i].node());
    }
    if (builder.error()) return whileCalling(*builder.error(), call);
    // What no tangent reads goes again, last first: results of a tuple, gradients that stood for any.
    for (Node* node = next->previous(); node != &call;) {
        Node* const made = node;
        node = node->previous();
        if (index(made->id()) < first) continue;
        const bool isTangent = std::find(nodes.begin(), nodes.end(), made) != nodes.end();
        if (made->hasUsers() || isTangent) m_graph.setProvenance(*made, builder.sharedProvenance());
        else m_graph.erase(*made);
    }
    m_tangents[call.id()] = std::move(nodes);
    // What the rule has built has no tangents of its own: it is skipped.
    return next;
}

}  // namespace cutaway
