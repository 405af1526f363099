#pragma once
// How each op maps tangents of its operands to tangents of its results.
#include <functional>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// What a tangent rule sees: the call, its results, and the tangents of its operands.
class TangentCall : public Decomposition {
  public:
    using Lookup = std::function<Node*(const Node& value)>;

    TangentCall(const Node& node, GraphBuilder& builder, std::vector<Value> results, const Lookup& lookup)
        : Decomposition(node, builder), m_results(std::move(results)), m_lookup(lookup) {}
    const std::vector<Value>& results() const { return m_results; }
    /// Tangent of an operand; null if it has none (a constant).
    Value tangent(size_t position) { return tangentOf(arg(position)); }
    Value tangentOf(const Argument& value) {
        Node* found = value.node() ? m_lookup(*value.node()) : nullptr;
        return found ? Value(builder(), found) : Value();
    }
    /// Whether an operand, or an item of a list of them, has one.
    bool hasTangent(size_t position) const;
    /// The derivative rule of the op, with `dy` as the gradient of result `result` and only operand `position` wanted.
    Value pullBack(size_t position, const Value& dy, size_t result = 0);

  private:
    std::vector<Value> m_results;
    const Lookup& m_lookup;
};

/// One tangent per result, null where there is none.
using Tangents = std::vector<Value>;
using TangentRule = Tangents (*)(TangentCall& call);
/// The error for an op through which no tangent can be pushed, in PyTorch's words.
Error noTangentRule(const Node& call);
/// Of fused attention without dropout, which PyTorch has no formula for.
Tangents attentionTangent(TangentCall& call);
bool isFusedAttention(const Op& op);
/// Whether the value can move: integers cannot.
bool isContinuous(const Value& value);
/// The rule of the call's op; null if it has none of its own.
TangentRule tangentRule(const Node& call);
/// For an op that has a derivative whose ops have one again. What pulls a gradient back is linear in it, so pulling the
/// operands' tangents back through that, once more, pushes them forward. Built before `position`; errors: an op on the
/// way without a derivative.
Result<Tangents> pulledBackTwice(TangentCall& call, Node& position, Rewriter& rewriter);

}  // namespace cutaway
