#include "engine/autograd/graph_call.h"

#include <algorithm>

#include "engine/interpret/higher_order.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {

std::optional<GraphCall::Kind> kindOfGraphCall(const Node& call) {
    if (!call.isCall()) return std::nullopt;
    const std::string_view kind = graphKindOf(call.op().name());
    if (kind == "cond") return GraphCall::Kind::Cond;
    if (kind == "map") return GraphCall::Kind::Map;
    if (kind == "while_loop") return GraphCall::Kind::While;
    if (kind == "scan") return GraphCall::Kind::Scan;
    if (kind == "associative_scan") return GraphCall::Kind::AssociativeScan;
    return std::nullopt;
}

Error refuseGraphCall(const Node& call, const std::string& why) {
    return unsupported("the derivative of " + call.op().name() + ": " + why, call.name(),
                       {"detach() what it reads, or take the call out of what is differentiated"});
}

namespace {

/// The types of the results as the graphs give them: text leaves out those that nobody reads.
void completeResults(GraphCall& read) {
    const std::vector<Argument> given = read.graphs[read.body()]->graph().outputs();
    read.results.resize(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
        if (read.results[i].tensor() || !given[i].node()) continue;
        const TensorType* item = given[i].node()->type().tensor();
        const bool collected = read.kind == GraphCall::Kind::Map || read.kind == GraphCall::Kind::AssociativeScan ||
                               (read.kind == GraphCall::Kind::Scan && i >= read.carried());
        const auto& items = read.lists[read.kind == GraphCall::Kind::Scan ? 1 : 0];
        const Node* const first = items.empty() ? nullptr : items[0].node();
        if (!item || !collected) read.results[i] = given[i].node()->type();
        else if (first && first->type().tensor() && first->tensor().rank() > 0)
            read.results[i] = stacked(*item, first->tensor().sizes[0]);
    }
}

}  // namespace

Result<GraphCall> readGraphCall(const Module& module, const Node& call) {
    using Kind = GraphCall::Kind;
    GraphCall out;
    out.kind = *kindOfGraphCall(call);
    size_t at = out.kind == Kind::Cond ? 1 : 0;
    for (; at < call.args().size(); ++at) {
        const auto* name = call.arg(at).get<SubgraphRef>();
        if (!name) break;
        const Module* graph = module.subgraph(name->name);
        if (!graph) return refuseGraphCall(call, "the module has no graph '" + name->name + "'");
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
        return refuseGraphCall(call, "its arguments are not those of such a call");
    for (size_t list = 0; list < out.lists.size(); ++list) {
        out.taken.push_back(list);
        if (list == 0 && out.kind == Kind::AssociativeScan) out.taken.push_back(list);
    }
    const TupleType* results = call.type().tuple();
    if (!results) return refuseGraphCall(call, "the types of its results are not known");
    out.results = *results;
    for (const Module* graph : out.graphs)
        if (graph->graph().placeholders().size() != out.count())
            return refuseGraphCall(call, "a graph takes another number of values than it is given");
    completeResults(out);
    return out;
}

namespace {

bool drawsIn(const Module& graph);
bool drawsInside(const Module& graph) {
    return std::any_of(graph.subgraphs.begin(), graph.subgraphs.end(),
                       [](const auto& inner) { return drawsIn(*inner.second); });
}
bool drawsIn(const Module& graph) {
    for (const Node& node : graph.graph().nodes())
        if (node.isCall() && node.is(Tag::Random)) return true;
    return drawsInside(graph);
}

}  // namespace

Result<void> refuseDraws(const Node& call, const GraphCall& read, bool nested) {
    for (size_t i = 0; i < read.graphs.size(); ++i)
        if (nested ? drawsInside(*read.graphs[i]) : drawsIn(*read.graphs[i]))
            return refuseGraphCall(call,
                                   read.names[i] + " draws random numbers, which would be others when it runs again");
    return {};
}

bool moves(const ValueType& type) {
    const TensorType* tensor = type.tensor();
    return tensor && (isFloating(tensor->dtype) || isComplex(tensor->dtype));
}

TensorType dense(const TensorType& type) { return TensorType::contiguous(type.dtype, type.sizes, type.device); }

std::vector<std::vector<Node*>> inputsByList(const GraphCall& read, const Module& graph) {
    const std::vector<Node*> inputs = graph.graph().placeholders();
    std::vector<std::vector<Node*>> out;
    size_t next = 0;
    for (const size_t list : read.taken) {
        out.emplace_back();
        for (size_t i = 0; i < read.lists[list].size(); ++i) out.back().push_back(inputs[next++]);
    }
    return out;
}

Node* behindList(const Graph& graph, const std::vector<std::vector<Node*>>& lists, size_t list) {
    for (size_t later = list + 1; later < lists.size(); ++later)
        if (!lists[later].empty()) return lists[later].front();
    Node* node = graph.first();
    while (node && node->isPlaceholder()) node = node->next();
    return node;
}

Node* returned(GraphBuilder& builder, const Value& value) {
    return builder.call("aten.clone.default", {value}, {{"memory_format", MemoryFormat::Contiguous}}).node();
}

Result<std::unique_ptr<Module>> finishedGraph(std::unique_ptr<Module> graph, const std::vector<Argument>& outputs,
                                              Rewriter& rewriter) {
    graph->graph().setArg(*graph->graph().outputNode(), 0, Argument(ArgumentList{outputs, true}));
    graph->outputs.assign(outputs.size(), OutputSpec{});
    graph->inputs.assign(graph->graph().placeholders().size(), InputSpec{});
    CT_TRY_VOID(eliminateDeadCode(*graph, rewriter));
    return graph;
}

std::string addGraph(Module& module, const std::string& wanted, std::unique_ptr<Module> graph) {
    std::string name = wanted;
    for (int number = 1; module.subgraph(name); ++number) name = wanted + "_" + std::to_string(number);
    graph->name = name;
    module.subgraphs.emplace_back(name, std::move(graph));
    return name;
}

void dropUnnamedGraph(Module& module, const std::string& name) {
    for (const Node& node : module.graph().nodes())
        for (const Argument& arg : node.args())
            if (const auto* reference = arg.get<SubgraphRef>(); reference && reference->name == name) return;
    std::erase_if(module.subgraphs, [&](const auto& each) { return each.first == name; });
}

Value callGraphs(Module& module, const Op& op, std::vector<Argument> leading, std::vector<NamedGraph> graphs,
                 std::vector<std::vector<Argument>> lists, TupleType types, GraphBuilder& builder) {
    std::vector<Argument> args = std::move(leading);
    for (NamedGraph& each : graphs) args.emplace_back(SubgraphRef{addGraph(module, each.name, std::move(each.graph))});
    for (auto& list : lists) args.emplace_back(std::move(list));
    Node& made = builder.graph().call(op, std::move(args), ValueType(std::move(types)), builder.before());
    builder.graph().setProvenance(made, builder.sharedProvenance());
    return builder.value(made);
}

}  // namespace cutaway
