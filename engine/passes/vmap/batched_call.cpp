#include "engine/passes/vmap/batched_call.h"

namespace cutaway {

int64_t levelOfExample(const Node* value) {
    return value && value->isCall(kAddBatchDim) ? value->arg(2).asInt().value_or(0) : 0;
}

SymDims BatchedCall::sizes(const SymDims& ofOne) const {
    SymDims out = ofOne;
    out.insert(out.begin(), m_count);
    return out;
}

Value BatchedCall::all(const Argument& operand) {
    Node& node = *operand.node();
    if (isBatched(operand)) return m_builder->value(*node.arg(0).node());
    return expand(unsqueeze(m_builder->value(node), 0), sizes(node.tensor().sizes));
}

Values BatchedCall::again(std::vector<Argument> args) {
    const Value made = m_builder->callBound(op(), std::move(args));
    const TupleType* results = made ? made.node()->type().tuple() : nullptr;
    if (results == nullptr) return made;
    std::vector<Value> values;
    for (size_t i = 0; i < results->size(); ++i)
        values.push_back((*results)[i].tensor() ? made[static_cast<int64_t>(i)] : Value());
    return values;
}

Value withRank(const Value& all, int64_t rank) {
    Value out = all;
    while (out && out.rank() < rank + 1) out = unsqueeze(out, 1);
    return out;
}

}  // namespace cutaway
