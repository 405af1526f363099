#include "engine/autograd/graph_calls.h"

#include <algorithm>
#include <array>

#include "engine/autograd/backward.h"
#include "engine/autograd/forward_duals.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/interpret/higher_order.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {
namespace {

enum class Kind : uint8_t { Cond, Map, While, Scan };

/// Operands in the lists in which the call takes them; its graphs take them in this order, one list behind the other.
struct GraphCall {
    Kind kind = Kind::Cond;
    std::vector<const Module*> graphs;  // of while_loop the condition first
    std::vector<std::string> names;
    std::vector<std::vector<Argument>> lists;
    TupleType results;

    bool isLoop() const { return kind == Kind::While || kind == Kind::Scan; }
    size_t carried() const { return isLoop() ? lists[0].size() : 0; }
    /// Of `count` results: those that are carried on, and those that are collected.
    std::array<std::pair<size_t, size_t>, 2> parts(size_t count) const {
        return {{{0, carried()}, {carried(), count}}};
    }
    bool isStacked(size_t list) const { return (kind == Kind::Map && list == 0) || (kind == Kind::Scan && list == 1); }
    size_t count() const {
        size_t all = 0;
        for (const auto& list : lists) all += list.size();
        return all;
    }
};

std::optional<Kind> kindOf(const Node& call) {
    if (!call.isCall()) return std::nullopt;
    const std::string_view kind = graphKindOf(call.op().name());
    if (kind == "cond") return Kind::Cond;
    if (kind == "map") return Kind::Map;
    if (kind == "while_loop") return Kind::While;
    if (kind == "scan") return Kind::Scan;
    return std::nullopt;
}

Error refusal(const Node& call, const std::string& why) {
    return unsupported("the derivative of " + call.op().name() + ": " + why, call.name(),
                       {"detach() what it reads, or take the call out of what is differentiated"});
}

Result<GraphCall> read(const Module& module, const Node& call) {
    GraphCall out;
    out.kind = *kindOf(call);
    size_t at = out.kind == Kind::Cond ? 1 : 0;
    for (; at < call.args().size(); ++at) {
        const auto* name = call.arg(at).get<SubgraphRef>();
        if (!name) break;
        const Module* graph = module.subgraph(name->name);
        if (!graph) return refusal(call, "the module has no graph '" + name->name + "'");
        out.graphs.push_back(graph);
        out.names.push_back(name->name);
    }
    for (; at < call.args().size(); ++at) {
        const auto* list = call.arg(at).list();
        out.lists.push_back(list ? *list : std::vector<Argument>{call.arg(at)});
    }
    const size_t graphs = out.kind == Kind::Cond || out.kind == Kind::While ? 2 : 1;
    const size_t least = out.kind == Kind::Scan ? 2 : 1;
    if (out.graphs.size() != graphs || out.lists.size() < least || !call.kwargs().empty())
        return refusal(call, "its arguments are not those of such a call");
    const TupleType* results = call.type().tuple();
    if (!results) return refusal(call, "the types of its results are not known");
    out.results = *results;
    for (const Module* graph : out.graphs)
        if (graph->graph().placeholders().size() != out.count())
            return refusal(call, "a graph takes another number of values than it is given");
    return out;
}

bool moves(const ValueType& type) {
    const TensorType* tensor = type.tensor();
    return tensor && (isFloating(tensor->dtype) || isComplex(tensor->dtype));
}

/// What is drawn in a graph would be drawn anew where that is computed again.
bool drawsIn(const Module& graph) {
    for (const Node& node : graph.graph().nodes())
        if (node.isCall() && node.is(Tag::Random)) return true;
    return std::any_of(graph.subgraphs.begin(), graph.subgraphs.end(),
                       [](const auto& inner) { return drawsIn(*inner.second); });
}

Result<void> refuseDraws(const Node& call, const GraphCall& read) {
    for (size_t i = 0; i < read.graphs.size(); ++i)
        if (drawsIn(*read.graphs[i]))
            return refusal(call, read.names[i] + " draws random numbers, which would be others when it runs again");
    return {};
}

std::string freshName(const Module& module, const std::string& wanted) {
    std::string name = wanted;
    for (int number = 1; module.subgraph(name); ++number) name = wanted + "_" + std::to_string(number);
    return name;
}

/// The inputs of a graph, by list.
std::vector<std::vector<Node*>> inputsByList(const GraphCall& read, const Module& graph) {
    const std::vector<Node*> inputs = graph.graph().placeholders();
    std::vector<std::vector<Node*>> out;
    size_t next = 0;
    for (const auto& list : read.lists) {
        out.emplace_back();
        for (size_t i = 0; i < list.size(); ++i) out.back().push_back(inputs[next++]);
    }
    return out;
}

Node* behind(const Graph& graph, const std::vector<std::vector<Node*>>& lists, size_t list) {
    for (size_t later = list + 1; later < lists.size(); ++later)
        if (!lists[later].empty()) return lists[later].front();
    Node* node = graph.first();
    while (node && node->isPlaceholder()) node = node->next();
    return node;
}

/// What a graph returns has memory of its own, and one layout whichever graph ran.
Node* returned(GraphBuilder& builder, const Value& value) {
    return builder.call("aten.clone.default", {value}, {{"memory_format", MemoryFormat::Contiguous}}).node();
}

Result<std::unique_ptr<Module>> finished(std::unique_ptr<Module> graph, const std::vector<Argument>& outputs,
                                         Rewriter& rewriter) {
    graph->graph().setArg(*graph->graph().outputNode(), 0, Argument(ArgumentList{outputs, true}));
    graph->outputs.assign(outputs.size(), OutputSpec{});
    graph->inputs.assign(graph->graph().placeholders().size(), InputSpec{});
    CT_TRY_VOID(eliminateDeadCode(*graph, rewriter));
    return graph;
}

TensorType dense(const TensorType& type) { return TensorType::contiguous(type.dtype, type.sizes, type.device); }

/// The call of graphs that were made of those of another call, on its lists and more.
Value callOf(Module& module, const Node& like, const GraphCall& read, std::vector<std::unique_ptr<Module>> graphs,
             const std::string& ending, std::vector<std::vector<Argument>> lists, TupleType types,
             GraphBuilder& builder) {
    std::vector<Argument> args;
    if (read.kind == Kind::Cond) args.push_back(like.arg(0));
    for (size_t i = 0; i < graphs.size(); ++i) {
        std::string name = freshName(module, read.names[i] + ending);
        graphs[i]->name = name;
        args.emplace_back(SubgraphRef{name});
        module.subgraphs.emplace_back(std::move(name), std::move(graphs[i]));
    }
    for (auto& list : lists) args.emplace_back(std::move(list));
    Node& made = builder.graph().call(like.op(), std::move(args), ValueType(std::move(types)), builder.before());
    builder.graph().setProvenance(made, builder.sharedProvenance());
    return builder.value(made);
}

// Backwards.

/// From a graph's inputs and the gradients of what it returns, the gradients of some inputs.
class PulledGraph {
  public:
    PulledGraph(const GraphCall& read, const Module& graph, const Rewriter& rewriter)
        : m_read(read),
          m_module(std::make_unique<Module>(graph)),
          m_inputs(inputsByList(read, *m_module)),
          m_rewriter(rewriter.pass(), rewriter.context()) {}

    Result<std::unique_ptr<Module>> run(const std::vector<std::vector<bool>>& needed,
                                        const std::vector<bool>& arrived) {
        Graph& graph = m_module->graph();
        for (size_t list = 0; list < m_inputs.size(); ++list)
            for (size_t i = 0; i < m_inputs[list].size(); ++i) mark(*m_inputs[list][i], needed[list][i]);
        m_module->inputs.assign(graph.placeholders().size(), InputSpec{});
        const std::vector<bool> flow = gradientFlow(*m_module);
        const std::vector<Argument> results = graph.outputs();
        Backward backward(graph, *graph.outputNode(), flow, m_rewriter, m_module.get());
        Node* const place = behind(graph, m_inputs, 0);
        GraphBuilder builder(graph, graph.outputNode());
        for (size_t i = 0; i < results.size(); ++i) {
            Node* const result = results[i].node();
            if (!arrived[i] || !result) continue;
            Node& tangent = graph.placeholder("tangents", dense(result->tensor()), place);
            const bool reaches = index(result->id()) < flow.size() && flow[index(result->id())];
            if (reaches) backward.accumulate(*result, builder.value(tangent), *result);
        }
        CT_TRY_VOID(backward.run());
        std::vector<Argument> gradients;
        for (size_t list = 0; list < m_inputs.size(); ++list)
            for (size_t i = 0; i < m_inputs[list].size(); ++i) {
                if (!needed[list][i]) continue;
                Node* const found = backward.gradientOf(*m_inputs[list][i]);
                const Value value =
                    found ? builder.value(*found) : unary("aten.zeros_like.default", builder.value(*m_inputs[list][i]));
                gradients.emplace_back(returned(builder, value));
            }
        if (builder.error()) return *builder.error();
        return finished(std::move(m_module), gradients, m_rewriter);
    }

  private:
    void mark(Node& input, bool wanted) {
        ValueType type = input.type();
        if (!type.tensor()) return;
        type.tensor()->requiresGrad = wanted;
        m_module->graph().setType(input, std::move(type));
    }

    const GraphCall& m_read;
    std::unique_ptr<Module> m_module;
    std::vector<std::vector<Node*>> m_inputs;
    Rewriter m_rewriter;  // without a limit: what is built here is one rewrite
};

// Forwards.

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
            Node* const place = behind(graph, m_inputs, list);
            for (size_t i = 0; i < m_inputs[list].size(); ++i)
                if (moving[list][i]) {
                    Node& input = *m_inputs[list][i];
                    TensorType type = input.tensor();
                    type.requiresGrad = false;
                    m_duals.setTangent(input, &graph.placeholder("tangent", std::move(type), place));
                }
        }
        if (isCondition) return finished(std::move(m_module), graph.outputs(), m_rewriter);
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
        return finished(std::move(m_module), outputs, m_rewriter);
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

bool runsGraphs(const Node& call) { return kindOf(call).has_value(); }

Result<std::vector<OperandGradient>> pullBackGraphCall(Module& module, const Node& call, GraphBuilder& builder,
                                                       const std::vector<Value>& arrived,
                                                       const std::function<bool(const Node&)>& needed,
                                                       const Rewriter& rewriter) {
    CT_TRY(const GraphCall read, cutaway::read(module, call));
    if (read.isLoop()) return refusal(call, "the steps of a loop are not kept, so it cannot be gone through backwards");
    CT_TRY_VOID(refuseDraws(call, read));
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
            TensorType type = dense(operand.node()->tensor());
            if (summed.back()) {
                type.sizes.insert(type.sizes.begin(), lists[0][0].node()->tensor().sizes[0]);
                type = dense(type);
            }
            types.emplace_back(std::move(type));
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
    std::vector<std::unique_ptr<Module>> graphs;
    for (const Module* graph : read.graphs) {
        CT_TRY(auto pulled, PulledGraph(read, *graph, rewriter).run(wanted, given));
        graphs.push_back(std::move(pulled));
    }
    const Value made =
        callOf(module, call, read, std::move(graphs), "_backward", std::move(lists), std::move(types), builder);
    for (size_t i = 0; i < out.size(); ++i) {
        out[i].gradient = made[static_cast<int64_t>(i)];
        if (summed[i]) out[i].gradient = sum(out[i].gradient, {0}, false);
    }
    return out;
}

Result<Tangents> pushGraphCall(Module& module, const Node& call, GraphBuilder& builder,
                               const TangentCall::Lookup& tangentOf, const Rewriter& rewriter) {
    CT_TRY(const GraphCall read, cutaway::read(module, call));
    CT_TRY_VOID(refuseDraws(call, read));
    std::vector<std::vector<Argument>> lists = read.lists;
    std::vector<std::vector<bool>> moving;
    for (size_t list = 0; list < read.lists.size(); ++list) {
        moving.emplace_back();
        for (const Argument& operand : read.lists[list]) {
            Node* const node = operand.node();
            Node* const tangent = node ? tangentOf(*node) : nullptr;
            // What a loop carries on may begin to move later.
            const bool carried = list == 0 && read.carried() > 0 && node && moves(node->type());
            moving.back().push_back(tangent || carried);
            if (tangent) lists[list].emplace_back(tangent);
            else if (carried) lists[list].emplace_back(unary("aten.zeros_like.default", builder.value(*node)));
        }
    }
    if (builder.error()) return *builder.error();
    std::vector<std::unique_ptr<Module>> graphs;
    for (size_t i = 0; i < read.graphs.size(); ++i) {
        const bool condition = read.kind == Kind::While && i == 0;
        CT_TRY(auto pushed, PushedGraph(read, *read.graphs[i], rewriter).run(moving, condition));
        graphs.push_back(std::move(pushed));
    }
    DualResults results = dualResults(read);
    const Value made =
        callOf(module, call, read, std::move(graphs), "_jvp", std::move(lists), std::move(results.types), builder);
    Tangents tangents;
    for (const auto& place : results.tangents) tangents.push_back(place ? made[static_cast<int64_t>(*place)] : Value());
    return tangents;
}

}  // namespace cutaway
