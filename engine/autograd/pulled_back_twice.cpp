#include "engine/autograd/backward.h"
#include "engine/autograd/expand.h"
#include "engine/autograd/tangent_rules.h"

namespace cutaway {
namespace {

/// A derivative that is built to be differentiated itself.
class TwiceBack {
  public:
    TwiceBack(TangentCall& call, Node& position, Rewriter& rewriter)
        : m_call(call),
          m_graph(call.builder().graph()),
          m_position(position),
          m_rewriter(rewriter.pass(), rewriter.context()) {}

    Result<Tangents> run() {
        pullBack();
        if (m_call.builder().error()) return *m_call.builder().error();
        CT_TRY_VOID(expandShorthand());
        return pullBackAgain();
    }

  private:
    /// Gradients of the operands that have tangents, from gradients that stand for any: what is computed from their
    /// values is dropped again.
    void pullBack() {
        for (const Value& result : m_call.results())
            m_gradients.push_back(isContinuous(result) ? unary("aten.zeros_like.default", result) : Value());
        m_first = m_graph.idLimit();
        Derivation derivation(m_call.node(), m_call.builder(), m_call.results(), m_gradients);
        std::vector<bool> needed(m_call.count(), false);
        for (size_t i = 0; i < needed.size(); ++i) needed[i] = m_call.hasTangent(i);
        derivation.setNeeded(std::move(needed));
        m_call.op().def()->derive(derivation);
        for (size_t i = 0; i < m_call.count(); ++i) {
            const auto* items = m_call.arg(i).list();
            const auto& slots = derivation.inputGradients()[i];
            for (size_t item = 0; item < slots.size(); ++item)
                pair(slots[item], items ? (*items)[item] : m_call.arg(i));
        }
    }

    void pair(Value gradient, const Argument& operand) {
        const Value tangent = m_call.tangentOf(operand);
        if (!tangent || !gradient) return;
        gradient = sumToSize(gradient, operand.node()->tensor().sizes);
        if (isComplex(gradient.dtype()) && !isComplex(tangent.dtype())) gradient = unary("aten.real.default", gradient);
        // An alias, which keeps what it reads when that is expanded.
        m_pairs.emplace_back(unary("aten.alias.default", convert(gradient, tangent.dtype())), tangent);
    }

    Node* firstMade() const {
        Node* node = m_position.previous();
        while (node && index(node->id()) >= m_first) node = node->previous();
        return node ? node->next() : m_graph.first();
    }

    /// Calls without a derivative of their own, which derivatives are written with.
    Result<void> expandShorthand() {
        for (Node* node = firstMade(); node != &m_position;) {
            Node* const before = node->previous();
            const OpDef* def = node->isCall() && index(node->id()) >= m_first ? node->op().def() : nullptr;
            bool expanded = false;
            if (def && !def->derive && def->decompose) {
                CT_TRY(expanded, expandCall(*node, m_rewriter));
            }
            node = !expanded ? node->next() : before ? before->next() : m_graph.first();
        }
        return {};
    }

    /// By the gradients, with the operands' tangents coming in.
    Result<Tangents> pullBackAgain() {
        std::vector<bool> flow(m_graph.idLimit(), false);
        for (const Value& gradient : m_gradients)
            if (gradient) flow[index(gradient.node()->id())] = true;
        std::vector<Node*> calls;
        for (Node* node = firstMade(); node != &m_position; node = node->next()) {
            const uint32_t slot = index(node->id());
            if (slot < m_first || node->is(Tag::NoGradient)) continue;
            for (const Node* operand : node->inputs()) flow[slot] = flow[slot] || flow[index(operand->id())];
            if (flow[slot]) calls.push_back(node);
        }
        Backward backward(m_graph, m_position, flow, m_rewriter);
        for (const auto& [gradient, tangent] : m_pairs)
            if (flow[index(gradient.node()->id())]) backward.accumulate(*gradient.node(), tangent, m_call.node());
        CT_TRY_VOID(backward.run(calls));
        Tangents tangents;
        for (const Value& gradient : m_gradients) {
            Node* const found = gradient ? backward.gradientOf(*gradient.node()) : nullptr;
            tangents.push_back(found ? m_call.builder().value(*found) : Value());
        }
        return tangents;
    }

    TangentCall& m_call;
    Graph& m_graph;
    Node& m_position;
    Rewriter m_rewriter;  // without a limit: what is built here is one rewrite
    uint32_t m_first = 0;
    Tangents m_gradients;                          // of the results
    std::vector<std::pair<Value, Value>> m_pairs;  // the gradient of an operand, and its tangent
};

}  // namespace

Result<Tangents> pulledBackTwice(TangentCall& call, Node& position, Rewriter& rewriter) {
    return TwiceBack(call, position, rewriter).run();
}

}  // namespace cutaway
