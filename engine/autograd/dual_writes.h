#pragma once
// Tangents of values that share memory, and of what is written in place (spec: autograd C.2).
#include <set>

#include "engine/autograd/forward_duals.h"

namespace cutaway {

class DualWrites {
  public:
    DualWrites(Graph& graph, Rewriter& rewriter, ForwardDuals& duals)
        : m_graph(graph), m_rewriter(rewriter), m_duals(duals) {}

    /// The value shares memory with its operand, but no tangent: a dual, the primal of one.
    void cut(const Node& value) { m_cut.insert(value.id()); }
    /// A value without a tangent that shares memory with one that has got one since reads the matching view of it; made
    /// before `reader`.
    Result<void> inherit(Node& value, Node& reader);
    /// The tangent itself where it is laid out as the primal is, in its storage too; else a copy that is.
    Value laidOutLike(GraphBuilder& builder, const Value& primal, const Value& tangent) const;
    /// A call that writes in place: the tangent of what is written becomes that of what it gets. Returns the node to go
    /// on with. Errors name calls that cannot: resizing, out= forms.
    Result<Node*> write(Node& call);

  private:
    bool begin(const Node& call);
    Result<Node*> writeThrough(Node& call);
    Result<Node*> copy(Node& call);
    Result<void> giveTangent(Node& target, const Value& tangent, Node& position);
    Node* sharedWith(const Node& value) const;

    Graph& m_graph;
    Rewriter& m_rewriter;
    ForwardDuals& m_duals;
    std::set<NodeId> m_cut;
};

}  // namespace cutaway
