#include "engine/autograd/backward.h"

#include <cmath>

#include "engine/autograd/graph_calls.h"
#include "engine/ir/live_nodes.h"
#include "engine/ops/counts.h"
#include "engine/support/check.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

/// A value as result `item` of the node that computes it (getitem is looked through, as gradients belong to results).
struct ResultOf {
    const Node* node;
    size_t item;
};
ResultOf resultOf(const Node& value) {
    if (value.isCall("operator.getitem"))
        if (const Node* tuple = value.arg(0).node(); tuple && tuple->type().tuple()) {
            int64_t item = value.arg(1).asInt().value_or(0);
            if (item < 0) item += static_cast<int64_t>(tuple->type().tuple()->size());
            return {tuple, static_cast<size_t>(item)};
        }
    return {&value, 0};
}

size_t resultCount(const Node& call) { return call.type().tuple() ? call.type().tuple()->size() : 1; }

/// Handles on the results of a call. Results of a tuple that nobody reads yet get a getitem, for derivatives that use
/// what the forward did not (the mean of a layer norm); `added` has those.
std::vector<Value> resultsOf(Node& call, GraphBuilder& builder, std::vector<Node*>& added) {
    if (!call.type().tuple()) return {builder.value(call)};
    std::vector<Value> results(resultCount(call));
    Node* after = &call;
    for (Node* reader : call.users()) {
        if (!reader->isCall("operator.getitem")) continue;
        results[resultOf(*reader).item] = builder.value(*reader);
        if (call.graph().isBefore(*after, *reader) && reader->previous() == after) after = reader;
    }
    GraphBuilder forward(call.graph(), after->next());
    Provenance provenance = call.provenance();
    provenance.origin = {call.id()};
    provenance.sourceName.clear();
    forward.setProvenance(std::move(provenance));
    for (size_t i = 0; i < results.size(); ++i) {
        if (results[i]) continue;
        const Value made = forward.value(call)[static_cast<int64_t>(i)];
        if (forward.error()) {
            builder.fail(*forward.error());
            break;
        }
        added.push_back(made.node());
        results[i] = builder.value(*made.node());
    }
    return results;
}

/// A result that a derivative reads is saved by PyTorch as an alias made in the forward, and read through another made
/// in the backward. `forward` and `backward` are erased again where the derivative does not read the result.
struct SavedResult {
    Node *forward = nullptr, *backward = nullptr;
    Value read(Node& result, GraphBuilder& builder) {
        Node* after = result.next();
        while (result.isCall("operator.getitem") && after->isCall("operator.getitem")) after = after->next();
        GraphBuilder beside(result.graph(), after);
        Provenance provenance = result.provenance();
        provenance.origin = {result.id()};
        provenance.sourceName.clear();
        beside.setProvenance(std::move(provenance));
        forward = unary("aten.alias.default", beside.value(result)).node();
        backward = unary("aten.alias.default", builder.value(*forward)).node();
        return builder.value(*backward);
    }
    void eraseUnread() {
        for (Node* node : {backward, forward})
            if (node != nullptr && !node->hasUsers()) node->graph().erase(*node);
    }
    bool isGradient(const std::vector<std::pair<Node*, Value>>& gradients) const {
        return std::any_of(gradients.begin(), gradients.end(),
                           [&](const auto& one) { return one.second.node() == backward; });
    }
};

/// Whether sumToSize can make a gradient of these sizes one of the operand's. Symbols may turn out to be equal.
bool sumsTo(const SymDims& gradient, const SymDims& operand) {
    if (gradient.size() < operand.size()) return false;
    const size_t leading = gradient.size() - operand.size();
    for (size_t dim = 0; dim < operand.size(); ++dim)
        if (!(operand[dim] == SymInt(1)) && differ(gradient[leading + dim], operand[dim])) return false;
    return true;
}
Error misfit(const Node& call, size_t position, const Value& gradient, const Node& operand) {
    const auto& params = call.op().schema()->params;
    return unsupported("the derivative of " + call.op().name() + " by '" + params[position].name + "' is " +
                           gradient.type().text() + ", which cannot be summed to " + operand.tensor().text(),
                       call.name(), {"give it an operand of the gradient's sizes"});
}

/// What tests ask for (support/fault_points.h).
Value spoiled(const Node& call, const Value& gradient) {
    const FaultEffect effect = faultEffect("derive", call.op().name());
    if (!gradient || (effect != FaultEffect::Wrong && effect != FaultEffect::Nan)) return gradient;
    return gradient * (effect == FaultEffect::Nan ? std::nan("") : 3.0);
}

Error noDerivative(const Node& call) {
    if (call.op().isOpaque())
        return unsupported(call.op().name() + " is not known here, so it cannot be differentiated", call.name(),
                           {"export the model with run_decompositions() to get ops that are"});
    return unsupported(call.op().name() + " has no derivative", call.name(),
                       {"detach() the value, or write the op in terms of ones that have a derivative"});
}

}  // namespace

Value sumToSize(const Value& gradient, const SymDims& sizes) {
    if (!gradient || gradient.sizes() == sizes) return gradient;
    if (sizes.empty()) return unary("aten.sum.default", gradient);
    const int64_t leading = gradient.rank() - static_cast<int64_t>(sizes.size());
    CT_CHECK(leading >= 0, "a gradient has at least the dims of its operand");
    std::vector<int64_t> dims;
    for (int64_t dim = 0; dim < gradient.rank(); ++dim) {
        const bool spread = dim >= leading && sizes[static_cast<size_t>(dim - leading)] == SymInt(1) &&
                            !(gradient.size(dim) == SymInt(1));
        if (dim < leading || spread) dims.push_back(dim);
    }
    const Value summed = dims.empty() ? gradient : sum(gradient, dims, true);
    return leading > 0 ? view(summed, sizes) : summed;
}

GraphBuilder Backward::builderFor(const Node& cause) {
    GraphBuilder builder = m_rewriter.builder(m_graph, &m_position, cause);
    Provenance provenance = builder.provenance();
    provenance.backward = true;
    provenance.recompute = 0;
    provenance.region = 0;
    builder.setProvenance(std::move(provenance));
    return builder;
}

void Backward::accumulate(const Node& value, Value gradient, const Node& cause) {
    const ResultOf result = resultOf(value);
    std::vector<Node*>& slots = m_arrived[result.node->id()].items;
    slots.resize(resultCount(*result.node), nullptr);
    Node*& slot = slots[result.item];
    if (slot == nullptr) {
        slot = gradient.node();
        return;
    }
    GraphBuilder builder = builderFor(cause);
    slot = (builder.value(*slot) + gradient).node();
    CT_CHECK(slot != nullptr, "gradients of one value have one shape");
}

Node* Backward::gradientOf(const Node& value) const {
    const ResultOf result = resultOf(value);
    const auto found = m_arrived.find(result.node->id());
    return found == m_arrived.end() || result.item >= found->second.items.size() ? nullptr
                                                                                 : found->second.items[result.item];
}

Result<void> Backward::run() {
    std::vector<Node*> calls;
    for (Node* node : LiveNodes(m_graph)) {
        if (node == &m_position) break;
        if (node->isCall() && flows(*node)) calls.push_back(node);
    }
    return run(calls);
}

Result<void> Backward::run(const std::vector<Node*>& calls) {
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
        const auto arrived = m_arrived.find((*call)->id());
        if (arrived == m_arrived.end()) continue;
        if (m_rewriter.begin("derivative of " + (*call)->op().name(), **call) != Go::Yes) return {};
        CT_TRY_VOID(keepSums(**call));
        CT_TRY_VOID(differentiate(**call, arrived->second));
    }
    return {};
}

/// Attention omits a result that only its derivative reads until a derivative asks for it.
Result<void> Backward::keepSums(Node& call) {
    const Schema* schema = call.op().schema();
    for (size_t i = 0; schema && i < schema->params.size() && i < call.args().size(); ++i) {
        const auto& param = schema->params[i];
        const bool asks = param.name == "compute_log_sumexp" || param.name == "compute_logsumexp";
        const bool* asked = asks ? call.arg(i).get<bool>() : nullptr;
        if (asked == nullptr || *asked) continue;
        m_graph.setArg(call, i, Argument(true));
        CT_TRY(ValueType type, inferCall(call.op(), call.args()));
        m_graph.setType(call, std::move(type));
        for (Node* item : call.users()) {
            if (!item->isCall("operator.getitem")) continue;
            CT_TRY(ValueType itemType, inferCall(item->op(), item->args()));
            m_graph.setType(*item, std::move(itemType));
        }
    }
    return {};
}

/// cond and its kin, whose gradients are computed by graphs, too.
Result<void> Backward::differentiateGraphs(Node& call, const Slots& slots) {
    GraphBuilder builder = builderFor(call);
    std::vector<Value> arrived;
    for (Node* gradient : slots.items) arrived.push_back(gradient ? builder.value(*gradient) : Value());
    CT_TRY(const auto gradients,
           pullBackGraphCall(
               *m_module, call, builder, arrived, [this](const Node& value) { return flows(value); }, m_rewriter));
    if (builder.error()) return *builder.error();
    for (const auto& [operand, gradient] : gradients) accumulate(*operand, gradient, call);
    return {};
}

Result<void> Backward::differentiate(Node& call, const Slots& slots) {
    if (m_module && runsGraphs(call)) return differentiateGraphs(call, slots);
    const OpDef* def = call.op().def();
    if (def == nullptr || !def->derive) return noDerivative(call);
    if (!isKnown(call.type()))
        return unsupported("what " + call.op().name() + " gives is not known, so neither is its derivative",
                           call.name());
    GraphBuilder builder = builderFor(call);
    std::vector<Node*> added;
    std::vector<Value> results = resultsOf(call, builder, added), arrived;
    for (Node* gradient : slots.items) arrived.push_back(gradient ? builder.value(*gradient) : Value());
    SavedResult saved;
    if (results[0] && (isFloating(results[0].dtype()) || isComplex(results[0].dtype())))
        results[0] = saved.read(*results[0].node(), builder);
    Derivation derivation(call, builder, std::move(results), std::move(arrived));
    std::vector<bool> needed(call.args().size(), false);
    for (size_t i = 0; i < needed.size(); ++i)
        call.arg(i).forEachNode([&](const Node* operand) { needed[i] = needed[i] || flows(*operand); });
    derivation.setNeeded(std::move(needed));
    faultPoint("derive", call.op().name());
    if (!builder.error()) def->derive(derivation);

    // Operands get theirs in schema order, each summed and cast first (PyTorch validates all, then adds).
    const auto& gradients = derivation.inputGradients();
    std::vector<std::pair<Node*, Value>> ready;
    for (size_t i = 0; i < gradients.size() && !builder.error(); ++i) {
        for (size_t item = 0; item < gradients[i].size(); ++item) {
            const auto* items = call.arg(i).list();
            Node* operand = items ? (item < items->size() ? (*items)[item].node() : nullptr) : call.arg(i).node();
            const Value& gradient = gradients[i][item];
            if (!gradient || operand == nullptr || !flows(*operand)) continue;
            if (!sumsTo(gradient.sizes(), operand->tensor().sizes)) return misfit(call, i, gradient, *operand);
            Value summed = sumToSize(gradient, operand->tensor().sizes);
            // A real operand moves along the real line only.
            if (isComplex(summed.dtype()) && !isComplex(operand->tensor().dtype))
                summed = unary("aten.real.default", summed);
            ready.emplace_back(operand, spoiled(call, convert(summed, operand->tensor().dtype)));
        }
    }
    if (builder.error()) {
        Error error = *builder.error();
        error.where = call.name();
        error.notes.push_back("while differentiating " + call.op().name());
        return error;
    }
    for (const auto& [operand, gradient] : ready) accumulate(*operand, gradient, call);
    if (!saved.isGradient(ready)) saved.eraseUnread();
    for (Node* node : added)
        if (!node->hasUsers()) m_graph.erase(*node);
    return {};
}

}  // namespace cutaway
