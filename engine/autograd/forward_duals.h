#pragma once
// Tangents of a graph's values while they are pushed forward, call by call (spec: autograd C.3). Leaves alone: where
// tangents come from and who asks for them.
#include <map>
#include <vector>

#include "engine/autograd/tangent_rules.h"

namespace cutaway {

class ForwardDuals {
  public:
    /// `module`: that of the graph, which gets graphs for tangents of calls that run some; null: those are refused.
    ForwardDuals(Graph& graph, Rewriter& rewriter, Module* module = nullptr)
        : m_graph(graph), m_rewriter(rewriter), m_module(module) {}

    /// The tangent of a value; null if it has none. Items of a tuple have those of the call that makes it.
    Node* tangentOf(const Node& value) const;
    void setTangent(const Node& value, Node* tangent);
    void forget() { m_tangents.clear(); }
    /// Whether the call makes tangents: an operand has one, and so can a result (integers cannot, nor what is
    /// detached).
    bool reaches(const Node& call) const;
    /// Adds the tangents of the call's results behind it; one rewrite. An op without a rule is expanded first, which is
    /// one as well. Returns the node to go on with, which is this one again where there is no fuel left (`stopped`).
    /// Errors name the op that has neither a rule nor an expansion nor a derivative whose own derivative is known.
    Result<Node*> push(Node& call);
    bool stopped() const { return m_stopped; }
    void stop() { m_stopped = true; }

  private:
    Result<std::vector<Value>> tangentsOf(Node& call, GraphBuilder& builder, Node& position);

    Graph& m_graph;
    Rewriter& m_rewriter;
    Module* m_module;
    std::map<NodeId, std::vector<Node*>> m_tangents;  // one per result; null for none
    bool m_stopped = false;
};

/// Whether both have the same strides along dims of more than one element.
bool sameStrides(const TensorType& a, const TensorType& b);
/// A copy of the tangent, laid out as the primal is.
Value copyLaidOutLike(GraphBuilder& builder, const TensorType& primal, const Value& tangent);

}  // namespace cutaway
