#include "engine/autograd/graph_calls.h"

#include <algorithm>

#include "engine/autograd/forward_duals.h"
#include "engine/autograd/loops_backward.h"
#include "engine/autograd/pulled_graph.h"

namespace cutaway {
namespace {

/// What stands in front of the graphs.
std::vector<Argument> leadingOf(const GraphCall& read, const Node& call) {
    if (read.kind == GraphCall::Kind::Cond) return {call.arg(0)};
    return {};
}

/// A graph that takes tangents behind each list of its inputs, and returns tangents: alone, or, of a loop's body,
/// behind what it carries on and behind what it collects.
class PushedGraph {
  public:
    PushedGraph(const GraphCall& read, const Module& graph, const Rewriter& rewriter)
        : m_read(read),
          m_module(std::make_unique<Module>(graph)),
          m_inputs(inputsByList(read, *m_module)),
          m_rewriter(rewriter.pass(), rewriter.context()),
          m_duals(m_module->graph(), m_rewriter, m_module.get()) {}

    Result<std::unique_ptr<Module>> run(const std::vector<std::vector<bool>>& moving, bool isCondition) {
        Graph& graph = m_module->graph();
        const std::vector<Node*> own = graph.placeholders();
        for (size_t list = 0; list < m_inputs.size(); ++list) {
            Node* const place = behindList(graph, m_inputs, list);
            for (size_t i = 0; i < m_inputs[list].size(); ++i)
                if (moving[list][i]) {
                    Node& input = *m_inputs[list][i];
                    TensorType type = input.tensor();
                    type.requiresGrad = false;
                    m_duals.setTangent(input, &graph.placeholder("tangent", std::move(type), place));
                }
        }
        if (isCondition) return finishedGraph(std::move(m_module), graph.outputs(), m_rewriter);
        for (Node* node = graph.first(); !node->isOutput();) {
            Node* const call = node;
            node = node->next();
            if (!m_duals.reaches(*call)) continue;
            CT_TRY(node, m_duals.push(*call));
        }
        GraphBuilder builder(graph, graph.outputNode());
        const std::vector<Argument> results = graph.outputs();
        std::vector<Argument> outputs;
        for (const auto& [begin, end] : m_read.parts(results.size())) add(outputs, results, begin, end, builder);
        if (builder.error()) return *builder.error();
        return finishedGraph(std::move(m_module), outputs, m_rewriter);
    }

  private:
    void add(std::vector<Argument>& outputs, const std::vector<Argument>& results, size_t begin, size_t end,
             GraphBuilder& builder) {
        if (m_read.isLoop())
            for (size_t i = begin; i < end; ++i) outputs.push_back(results[i]);
        for (size_t i = begin; i < end; ++i) {
            Node* const result = results[i].node();
            if (!result || !moves(result->type())) continue;
            Node* const tangent = m_duals.tangentOf(*result);
            const Value value =
                tangent ? builder.value(*tangent) : unary("aten.zeros_like.default", builder.value(*result));
            if (!builder.error()) outputs.emplace_back(copyLaidOutLike(builder, result->tensor(), value).node());
        }
    }

    const GraphCall& m_read;
    std::unique_ptr<Module> m_module;
    std::vector<std::vector<Node*>> m_inputs;
    Rewriter m_rewriter;
    ForwardDuals m_duals;
};

/// What a call of pushed graphs returns, in the order of PushedGraph, and where the tangent of each result of the call
/// stands in it.
struct DualResults {
    TupleType types;
    std::vector<std::optional<size_t>> tangents;
};
DualResults dualResults(const GraphCall& read) {
    DualResults out;
    out.tangents.resize(read.results.size());
    for (const auto& [begin, end] : read.parts(read.results.size())) {
        for (size_t i = begin; i < end && read.isLoop(); ++i) out.types.push_back(read.results[i]);
        for (size_t i = begin; i < end; ++i) {
            if (!moves(read.results[i])) continue;
            out.tangents[i] = out.types.size();
            out.types.push_back(read.results[i]);
        }
    }
    return out;
}

}  // namespace

bool runsGraphs(const Node& call) { return kindOfGraphCall(call).has_value(); }

Result<std::vector<OperandGradient>> pullBackGraphCall(Module& module, Node& call, GraphBuilder& builder,
                                                       const std::vector<Value>& arrived,
                                                       const std::function<bool(const Node&)>& needed,
                                                       const Rewriter& rewriter) {
    CT_TRY(const GraphCall read, readGraphCall(module, call));
    using Kind = GraphCall::Kind;
    CT_TRY_VOID(refuseDraws(call, read, read.kind != Kind::AssociativeScan));
    if (read.isLoop()) return pullBackLoop(module, call, builder, arrived, needed, rewriter, read);
    std::vector<std::vector<Argument>> lists = read.lists;
    std::vector<std::vector<bool>> wanted;
    std::vector<OperandGradient> out;
    std::vector<bool> summed;
    TupleType types;
    for (size_t list = 0; list < lists.size(); ++list) {
        wanted.emplace_back();
        for (const Argument& operand : lists[list]) {
            const bool here = operand.node() && moves(operand.node()->type()) && needed(*operand.node());
            wanted.back().push_back(here);
            if (!here) continue;
            out.push_back({operand.node(), {}});
            // What every item reads gets a gradient from each.
            summed.push_back(read.kind == Kind::Map && !read.isStacked(list));
            const TensorType& type = operand.node()->tensor();
            types.emplace_back(summed.back() ? stacked(type, lists[0][0].node()->tensor().sizes[0]) : dense(type));
        }
    }
    std::vector<bool> given;
    for (size_t i = 0; i < read.results.size(); ++i) {
        const bool here = i < arrived.size() && arrived[i];
        given.push_back(here);
        // The graph takes it dense, as a tangent; what arrives may be spread from one element.
        if (here)
            lists[0].emplace_back(arrived[i].type().isContiguous() ? arrived[i].node() : returned(builder, arrived[i]));
    }
    if (builder.error()) return *builder.error();
    std::vector<NamedGraph> graphs;
    std::vector<std::vector<Drawn>> drawn;  // by graph
    for (size_t i = 0; i < read.graphs.size(); ++i) {
        PulledGraph pulled(read, *read.graphs[i], rewriter);
        CT_TRY_VOID(pulled.run(wanted, given));
        std::vector<Argument> gradients;
        for (size_t list = 0; list < wanted.size(); ++list)
            for (size_t input = 0; input < wanted[list].size(); ++input)
                if (wanted[list][input])
                    gradients.emplace_back(
                        returned(pulled.builder(), pulled.gradientOf(*pulled.inputs()[list][input])));
        CT_TRY(auto graph, pulled.finish(gradients));
        graphs.push_back({read.names[i] + "_backward", std::move(graph)});
        drawn.push_back(pulled.drawn());
    }
    std::vector<Node*> kept;
    if (read.kind == Kind::Cond) {
        std::vector<Module*> branches;
        for (const NamedGraph& each : graphs) branches.push_back(each.graph.get());
        CT_TRY(kept, keepDrawnByBranches(module, call, read, drawn, branches, rewriter));
    } else {
        CT_TRY(kept, keepCollected(module, call, read, {}, drawn[0], rewriter));
    }
    for (Node* value : kept) lists[0].emplace_back(value);
    const Value made = callGraphs(module, call.op(), leadingOf(read, call), std::move(graphs), std::move(lists),
                                  std::move(types), builder);
    for (size_t i = 0; i < out.size(); ++i) {
        out[i].gradient = made[static_cast<int64_t>(i)];
        if (summed[i]) out[i].gradient = sum(out[i].gradient, {0}, false);
    }
    return out;
}

Result<Tangents> pushGraphCall(Module& module, const Node& call, GraphBuilder& builder,
                               const TangentCall::Lookup& tangentOf, const Rewriter& rewriter) {
    CT_TRY(const GraphCall read, readGraphCall(module, call));
    CT_TRY_VOID(refuseDraws(call, read));
    std::vector<std::vector<Argument>> lists = read.lists;
    std::vector<std::vector<bool>> moving(read.lists.size());
    for (size_t list = 0; list < read.lists.size(); ++list)
        for (const Argument& operand : read.lists[list]) {
            Node* const node = operand.node();
            Node* const tangent = node ? tangentOf(*node) : nullptr;
            // What a loop carries on may begin to move later.
            const bool carried = list == 0 && read.carried() > 0 && node && moves(node->type());
            moving[list].push_back(tangent || carried);
            if (tangent) lists[list].emplace_back(tangent);
            else if (carried) lists[list].emplace_back(unary("aten.zeros_like.default", builder.value(*node)));
        }
    if (builder.error()) return *builder.error();
    std::vector<std::vector<bool>> movingInputs;
    for (const size_t list : read.taken) movingInputs.push_back(moving[list]);
    std::vector<NamedGraph> graphs;
    for (size_t i = 0; i < read.graphs.size(); ++i) {
        CT_TRY(auto pushed,
               PushedGraph(read, *read.graphs[i], rewriter).run(movingInputs, i != read.body() && read.isLoop()));
        graphs.push_back({read.names[i] + "_jvp", std::move(pushed)});
    }
    DualResults results = dualResults(read);
    const Value made = callGraphs(module, call.op(), leadingOf(read, call), std::move(graphs), std::move(lists),
                                  std::move(results.types), builder);
    Tangents tangents;
    for (const auto& place : results.tangents) tangents.push_back(place ? made[static_cast<int64_t>(*place)] : Value());
    return tangents;
}

}  // namespace cutaway
