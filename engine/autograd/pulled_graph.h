#pragma once
// A graph that is gone through backwards: from its inputs and the gradients of what it returns, the gradients of some
// inputs.
#include <map>

#include "engine/autograd/graph_call.h"
#include "engine/autograd/stacked_steps.h"

namespace cutaway {

class PulledGraph {
  public:
    /// A copy of one of the call's graphs.
    PulledGraph(const GraphCall& read, const Module& graph, const Rewriter& rewriter);

    /// `needed`: of the inputs, by list. For each result that has `arrived` there is one more input, its gradient,
    /// behind the first list.
    Result<void> run(const std::vector<std::vector<bool>>& needed, const std::vector<bool>& arrived);

    const std::vector<std::vector<Node*>>& inputs() const { return m_inputs; }
    Graph& graph() { return m_module->graph(); }
    Module& module() { return *m_module; }
    GraphBuilder& builder() { return m_builder; }
    /// The input for the gradient of a result; null where none has arrived.
    Node* arriving(size_t result) const { return m_arriving[result]; }
    /// What an input gets: zeros where no result depends on it.
    Value gradientOf(Node& input);
    /// The graph with these results. What it has drawn comes in behind the first list.
    Result<std::unique_ptr<Module>> finish(const std::vector<Argument>& outputs);
    const std::vector<Drawn>& drawn() const { return m_drawn; }

  private:
    std::unique_ptr<Module> m_module;
    std::vector<std::vector<Node*>> m_inputs;
    Rewriter m_rewriter;  // without a limit: what is built here is one rewrite
    GraphBuilder m_builder;
    std::vector<Node*> m_arriving;
    std::vector<Drawn> m_drawn;
    std::map<const Node*, Node*> m_gradients;  // lookups only
};

}  // namespace cutaway
