#include "engine/passes/post_grad/loops.h"

#include <algorithm>
#include <set>

#include "engine/ir/live_nodes.h"
#include "engine/ir/stacked.h"
#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

/// A call of scan(body, carried, items, others) or map_impl(body, items, others), with all that writing the loop takes.
struct Loop {
    Node* call = nullptr;
    std::string bodyName;
    const Module* body = nullptr;
    std::vector<Node*> carried, items, others;
    std::vector<TensorType> collected;  // what is stacked item by item
    SymInt count = 0;
};

std::optional<std::vector<Node*>> nodesIn(const Argument& argument) {
    std::vector<Node*> out;
    if (Node* node = argument.node()) return std::vector<Node*>{node};
    const auto* items = argument.list();
    if (items == nullptr) return std::nullopt;
    for (const Argument& item : *items) {
        if (item.node() == nullptr) return std::nullopt;
        out.push_back(item.node());
    }
    return out;
}

/// The types of the stacked results: the call's own, else those of the body with a dim in front.
std::optional<std::vector<TensorType>> collectedTypes(const Loop& loop) {
    std::vector<TensorType> out;
    const TupleType* results = loop.call->type().tuple();
    const auto given = loop.body->graph().outputs();
    for (size_t i = loop.carried.size(); i < given.size(); ++i) {
        const TensorType* type = results && i < results->size() ? (*results)[i].tensor() : nullptr;
        const Node* value = given[i].node();
        if (type == nullptr && (value == nullptr || !value->type().tensor())) return std::nullopt;
        if (type) {
            out.push_back(*type);
            continue;
        }
        out.push_back(stacked(value->tensor(), loop.count));
    }
    return out;
}

bool isLoopCall(const Node& node, bool scan) {
    if (!node.isCall()) return false;
    const std::string& name = node.op().name();
    return scan ? name == "higher_order.scan" || name == "higher_order.scan.default"
                : name == "higher_order.map_impl" || name == "higher_order.map_impl.default";
}

/// Reads the call's arguments; false if they are not those of a loop.
bool readOperands(const Module& module, bool scan, Loop& loop, const Refusing& refuse) {
    const Node& node = *loop.call;
    const size_t first = scan ? 2 : 1;
    if (!node.kwargs().empty())
        return refuse("its argument '", node.kwargs()[0].first, "' is given by name: body, ",
                      scan ? "first values, " : "", "items and others stand in this order");
    if (node.args().size() <= first)
        return refuse("it has ", Counted{node.args().size(), "argument"}, ", not body, ", scan ? "first values, " : "",
                      "items and others");
    const auto* reference = node.arg(0).get<SubgraphRef>();
    loop.body = reference ? module.subgraph(reference->name) : nullptr;
    if (loop.body == nullptr) return refuse("its body, ", node.arg(0), ", is not a graph of this module");
    loop.bodyName = reference->name;
    const auto isList = [&](size_t position, std::vector<Node*>& out) {
        const auto nodes = nodesIn(node.arg(position));
        if (nodes) out.insert(out.end(), nodes->begin(), nodes->end());
        return nodes ||
               refuse("its argument ", position, ", ", node.arg(position), ", is not a list of values of this graph");
    };
    if (scan && !isList(1, loop.carried)) return false;
    if (!isList(first, loop.items)) return false;
    if (loop.items.empty()) return refuse("it is given no items to go through");
    for (size_t i = first + 1; i < node.args().size(); ++i)
        if (!isList(i, loop.others)) return false;
    for (const Node* item : loop.items)
        if (!item->type().tensor() || item->tensor().rank() == 0) return refuse(item, " has no dim to go along");
    loop.count = loop.items[0]->tensor().sizes[0];
    return true;
}

/// The loop that the call stands for, if it is one.
std::optional<Loop> loopAt(const Module& module, Node& node, bool scan, const Refusing& refuse) {
    Loop loop;
    loop.call = &node;
    if (!isLoopCall(node, scan) || !readOperands(module, scan, loop, refuse)) return std::nullopt;
    const Graph& body = loop.body->graph();
    const size_t inputs = loop.carried.size() + loop.items.size() + loop.others.size();
    const auto given = body.outputs();
    const auto fits = [&] {
        if (body.placeholders().size() != inputs)
            return refuse(loop.bodyName, " takes ", Counted{body.placeholders().size(), "value"}, ", and is given ",
                          inputs);
        if (given.size() < loop.carried.size())
            return refuse(loop.bodyName, " gives back ", Counted{given.size(), "value"}, ", fewer than the ",
                          loop.carried.size(), " that are carried on");
        for (const Argument& value : given)
            if (value.node() == nullptr)
                return refuse(loop.bodyName, " gives back ", value, ", which is not a value of its graph");
        return true;
    };
    if (!fits()) return std::nullopt;
    auto collected = collectedTypes(loop);
    if (!collected) {
        refuse("the types of what ", loop.bodyName, " gives back for each item are not known");
        return std::nullopt;
    }
    loop.collected = std::move(*collected);
    return loop;
}

/// The two graphs of the while_loop. Their inputs are the counter, the results, the carried values, the items and the
/// others.
class LoopGraphs {
  public:
    explicit LoopGraphs(const Loop& loop) : m_loop(loop) {}

    Result<std::unique_ptr<Module>> condition() {
        auto module = std::make_unique<Module>();
        addInputs(*module);
        module->symbols = m_loop.body->symbols;  // the number of items may be a size symbol
        GraphBuilder builder(module->graph());
        const Value more = builder.call("aten.lt.Scalar", {builder.value(*m_counter), Argument(m_loop.count)});
        if (builder.error()) return *builder.error();
        module->graph().output(Argument(more.node()));
        module->outputs.resize(1);
        return module;
    }

    Result<std::unique_ptr<Module>> body() {
        auto module = std::make_unique<Module>();
        addInputs(*module);
        module->tensors = m_loop.body->tensors;
        module->symbols = m_loop.body->symbols;
        for (const auto& [name, inner] : m_loop.body->subgraphs)
            module->subgraphs.emplace_back(name, std::make_unique<Module>(*inner));
        Graph& graph = module->graph();
        GraphBuilder builder(graph);
        int number = 0;
        while (module->symbols.contains("u" + std::to_string(number))) ++number;
        const Expr position = Expr::symbol("u" + std::to_string(number));
        module->symbols["u" + std::to_string(number)] =
            SymbolInfo{0, m_loop.count.isInt() ? std::optional(m_loop.count.value() - 1) : std::nullopt, std::nullopt};
        Node& at = graph.call(requireOp("aten._local_scalar_dense.default"), {Argument(m_counter)},
                              ValueType(SymType{DType::I64, position}));
        std::vector<Node*> operands = m_carried;
        for (Node* item : m_items)
            operands.push_back(builder.call("aten.select.int", {builder.value(*item), 0, Argument(&at)}).node());
        operands.insert(operands.end(), m_others.begin(), m_others.end());
        if (builder.error()) return *builder.error();
        const std::vector<Node*> given = inlined(graph, operands);
        for (size_t i = 0; i < m_results.size(); ++i) {
            const Value place = builder.call("aten.select.int", {builder.value(*m_results[i]), 0, Argument(&at)});
            builder.call("aten.copy_.default", {place, Argument(given[m_carried.size() + i])});
        }
        const Value next = builder.call("aten.add.Tensor", {builder.value(*m_counter), 1});
        if (builder.error()) return *builder.error();
        std::vector<Argument> outputs = {next};
        for (Node* result : m_results) outputs.emplace_back(result);
        for (size_t i = 0; i < m_carried.size(); ++i) outputs.emplace_back(given[i]);
        for (Node* item : m_items) outputs.emplace_back(item);
        module->outputs.resize(outputs.size());
        graph.output(Argument(std::move(outputs)));
        // The graph was made for items of their own, not for views into all of them: what it views begins elsewhere.
        const auto inner = m_loop.body->graph().placeholders();
        for (size_t i = 0; i < operands.size(); ++i)
            if (!sameMemory(inner[i]->type(), operands[i]->type()))
                CT_TRY_VOID(retypeReaders(graph, *operands[i], true));
        return module;
    }

  private:
    void addInputs(Module& module) {
        const auto add = [&](std::string_view name, ValueType type) {
            return &module.graph().placeholder(name, std::move(type));
        };
        m_results.clear();
        m_carried.clear();
        m_items.clear();
        m_others.clear();
        m_counter = add("counter", TensorType::contiguous(DType::I64, {}));
        for (const TensorType& type : m_loop.collected) m_results.push_back(add("result", type));
        const auto inner = m_loop.body->graph().placeholders();
        for (const Node* node : m_loop.carried) m_carried.push_back(add(inner[m_carried.size()]->name(), node->type()));
        for (const Node* node : m_loop.items) m_items.push_back(add("items", node->type()));
        for (const Node* node : m_loop.others)
            m_others.push_back(add(inner[m_carried.size() + m_items.size() + m_others.size()]->name(), node->type()));
        module.inputs.resize(module.graph().placeholders().size());
    }
    /// The calls of the scan's or map's graph, on these operands; its results.
    std::vector<Node*> inlined(Graph& graph, const std::vector<Node*>& operands) const {
        std::map<const Node*, Node*> twins;
        size_t operand = 0;
        for (Node& node : m_loop.body->graph().nodes()) {
            const auto twin = [&](Node* input) { return twins.at(input); };
            if (node.isPlaceholder()) twins[&node] = operands[operand++];
            else if (node.kind() == NodeKind::GetAttr)
                twins[&node] = &graph.getAttr(node.target(), node.type(), nullptr, node.name());
            else if (node.isCall()) {
                std::vector<Argument> args;
                for (const Argument& arg : node.args()) args.push_back(arg.mapNodes(twin));
                NamedArguments keywords;
                for (const auto& [key, value] : node.kwargs()) keywords.emplace_back(key, value.mapNodes(twin));
                Node& copy =
                    graph.call(node.op(), std::move(args), node.type(), nullptr, node.name(), std::move(keywords));
                copy.graph().setProvenance(copy, node.provenance());
                twins[&node] = &copy;
            }
        }
        std::vector<Node*> results;
        for (const Argument& value : m_loop.body->graph().outputs()) results.push_back(twins.at(value.node()));
        return results;
    }

    const Loop& m_loop;
    Node* m_counter = nullptr;
    std::vector<Node*> m_results, m_carried, m_items, m_others;
};

std::string freshBodyName(const Module& module, const std::string& wanted) {
    int number = 0;
    while (module.subgraph(wanted + std::to_string(number))) ++number;
    return wanted + std::to_string(number);
}

Result<void> writeLoop(Module& module, Rewriter& rewriter, const Loop& loop) {
    Graph& graph = module.graph();
    LoopGraphs graphs(loop);
    CT_TRY(auto condition, graphs.condition());
    CT_TRY(auto body, graphs.body());
    GraphBuilder builder = rewriter.builder(graph, loop.call, *loop.call);
    std::vector<Argument> carried = {full(builder, {}, Scalar(int64_t{0}), DType::I64, Device{})};
    TupleType types = {carried[0].node()->type()};
    for (const TensorType& type : loop.collected) {
        const Value result = builder.call(
            "aten.empty_strided.default", {Argument(type.sizes), Argument(type.strides)},
            {{"dtype", type.dtype}, {"layout", Layout::Strided}, {"device", type.device}, {"pin_memory", false}});
        if (builder.error()) return *builder.error();
        carried.emplace_back(result);
    }
    for (Node* node : loop.carried) carried.emplace_back(node);
    for (Node* node : loop.items) carried.emplace_back(node);
    for (size_t i = 1; i < carried.size(); ++i) types.push_back(carried[i].node()->type());
    std::vector<Argument> others;
    for (Node* node : loop.others) others.emplace_back(node);
    const std::string conditionName = freshBodyName(module, "while_loop_cond_graph_"),
                      bodyName = freshBodyName(module, "while_loop_body_graph_");
    Node& made = graph.call(findOrMakeOpaque("higher_order.while_loop"),
                            {Argument(SubgraphRef{conditionName}), Argument(SubgraphRef{bodyName}),
                             Argument(std::move(carried)), Argument(std::move(others))},
                            ValueType(std::move(types)), loop.call);
    made.graph().setProvenance(made, builder.sharedProvenance());
    module.subgraphs.emplace_back(conditionName, std::move(condition));
    module.subgraphs.emplace_back(bodyName, std::move(body));
    std::vector<Node*> results;
    const Value whole = builder.value(made);
    const auto collected = static_cast<int64_t>(loop.collected.size());
    for (size_t i = 0; i < loop.carried.size(); ++i)
        results.push_back(whole[1 + collected + static_cast<int64_t>(i)].node());
    for (int64_t i = 0; i < collected; ++i) results.push_back(whole[1 + i].node());
    if (builder.error()) return *builder.error();
    return rewriter.replaceTuple(*loop.call, results);
}

bool isNamed(const Graph& graph, const std::string& name) {
    for (const Node& node : graph.nodes())
        for (const Argument& arg : node.args())
            if (const auto* reference = arg.get<SubgraphRef>(); reference && reference->name == name) return true;
    return false;
}

Result<bool> toWhileLoops(Module& module, Rewriter& rewriter, bool scan) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, toWhileLoops(*body, rewriter, scan));
        changed |= inner;
    }
    const std::string_view rule = scan ? "scan_to_while_loop" : "map_to_while_loop";
    for (Node* node : LiveNodes(module.graph())) {
        const auto loop = loopAt(module, *node, scan, Refusing(rewriter, rule, *node));
        if (!loop) continue;
        if (rewriter.begin(rule, *node, "later passes know loops only") != Go::Yes) return changed;
        CT_TRY_VOID(writeLoop(module, rewriter, *loop));
        if (!isNamed(module.graph(), loop->bodyName))
            std::erase_if(module.subgraphs, [&](const auto& each) { return each.first == loop->bodyName; });
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> scanToWhileLoop(Module& module, Rewriter& rewriter) { return toWhileLoops(module, rewriter, true); }
Result<bool> mapToWhileLoop(Module& module, Rewriter& rewriter) { return toWhileLoops(module, rewriter, false); }

}  // namespace cutaway
