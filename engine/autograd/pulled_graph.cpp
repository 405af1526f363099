#include "engine/autograd/pulled_graph.h"

#include "engine/autograd/backward.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {

PulledGraph::PulledGraph(const GraphCall& read, const Module& graph, const Rewriter& rewriter)
    : m_module(std::make_unique<Module>(graph)),
      m_inputs(inputsByList(read, *m_module)),
      m_rewriter(rewriter.pass(), rewriter.context()),
      m_builder(m_module->graph(), m_module->graph().outputNode()) {}

Result<void> PulledGraph::run(const std::vector<std::vector<bool>>& needed, const std::vector<bool>& arrived) {
    Graph& graph = m_module->graph();
    for (size_t list = 0; list < m_inputs.size(); ++list)
        for (size_t i = 0; i < m_inputs[list].size(); ++i) {
            ValueType type = m_inputs[list][i]->type();
            if (!type.tensor()) continue;
            type.tensor()->requiresGrad = needed[list][i];
            graph.setType(*m_inputs[list][i], std::move(type));
        }
    m_module->inputs.assign(graph.placeholders().size(), InputSpec{});
    const std::vector<bool> flow = gradientFlow(*m_module);
    const std::vector<Argument> results = graph.outputs();
    m_arriving.assign(results.size(), nullptr);
    Backward backward(graph, *graph.outputNode(), flow, m_rewriter, m_module.get());
    Node* const place = behindList(graph, m_inputs, 0);
    for (size_t i = 0; i < results.size(); ++i) {
        Node* const result = results[i].node();
        if (i >= arrived.size() || !arrived[i] || !result) continue;
        m_arriving[i] = &graph.placeholder("tangents", dense(result->tensor()), place);
        const bool reaches = index(result->id()) < flow.size() && flow[index(result->id())];
        if (reaches) backward.accumulate(*result, m_builder.value(*m_arriving[i]), *result);
    }
    CT_TRY_VOID(backward.run());
    for (size_t list = 0; list < m_inputs.size(); ++list)
        for (size_t i = 0; i < m_inputs[list].size(); ++i)
            if (needed[list][i]) m_gradients[m_inputs[list][i]] = backward.gradientOf(*m_inputs[list][i]);
    return {};
}

Value PulledGraph::gradientOf(Node& input) {
    const auto found = m_gradients.find(&input);
    if (found != m_gradients.end() && found->second) return m_builder.value(*found->second);
    return unary("aten.zeros_like.default", m_builder.value(input));
}

Result<std::unique_ptr<Module>> PulledGraph::finish(const std::vector<Argument>& outputs) {
    if (m_builder.error()) return *m_builder.error();
    CT_TRY(std::unique_ptr<Module> made, finishedGraph(std::move(m_module), outputs, m_rewriter));
    m_drawn = takeOutDraws(*made, *behindList(made->graph(), m_inputs, 0));
    if (m_drawn.empty()) return made;
    // What was drawn from other draws alone is not read any more.
    CT_TRY_VOID(eliminateDeadCode(*made, m_rewriter));
    std::erase_if(m_drawn, [&](const Drawn& one) {
        if (one.input->hasUsers()) return false;
        made->graph().erase(*one.input);
        return true;
    });
    made->inputs.assign(made->graph().placeholders().size(), InputSpec{});
    return made;
}

}  // namespace cutaway
