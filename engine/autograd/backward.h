#pragma once
// Reverse-mode differentiation of a graph: gradients are added up per value, and each op's own derivative
// (OpDef::derive) passes them on to its operands. Order and form of the nodes are PyTorch's (spec: autograd A6.5, A6.6;
// ops §2.6 to §2.8). Leaves alone: the forward nodes, and the outputs of the graph.
#include <map>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

class Backward {
  public:
    /// New nodes are inserted before `position`. `flow` is what gradientFlow() says of the graph. `module`: that of the
    /// graph, which gets graphs for derivatives of calls that run some; null: there are no such calls.
    Backward(Graph& graph, Node& position, std::vector<bool> flow, Rewriter& rewriter, Module* module = nullptr)
        : m_graph(graph), m_position(position), m_flow(std::move(flow)), m_rewriter(rewriter), m_module(module) {}

    /// Adds `gradient` to what has arrived at `value`. `cause` is the forward node whose derivative it is.
    void accumulate(const Node& value, Value gradient, const Node& cause);
    /// Takes the derivative of every call that a gradient has arrived at, last call first. One rewrite per call; stops
    /// when the fuel is used up. Errors name the op that has no derivative.
    Result<void> run();
    /// The same for these calls, in the order of the graph.
    Result<void> run(const std::vector<Node*>& calls);
    /// What has arrived at a value so far; null if nothing.
    Node* gradientOf(const Node& value) const;

  private:
    struct Slots {
        std::vector<Node*> items;
    };  // one per result

    Result<void> keepSums(Node& call);
    Result<void> differentiate(Node& call, const Slots& slots);
    Result<void> differentiateGraphs(Node& call, const Slots& slots);
    GraphBuilder builderFor(const Node& cause);
    bool flows(const Node& value) const { return index(value.id()) < m_flow.size() && m_flow[index(value.id())]; }

    Graph& m_graph;
    Node& m_position;
    std::vector<bool> m_flow;
    Rewriter& m_rewriter;
    Module* m_module;
    std::map<NodeId, Slots> m_arrived;
};

/// `gradient` of a broadcast shape, summed down to `sizes`: the whole sum for a 0-d operand, else one sum that keeps
/// its dims, and a view if leading dims were added.
Value sumToSize(const Value& gradient, const SymDims& sizes);

}  // namespace cutaway
