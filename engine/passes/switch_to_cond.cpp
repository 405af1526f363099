#include "engine/passes/switch_to_cond.h"

#include <set>

#include "engine/autograd/graph_call.h"
#include "engine/ops/build.h"

namespace cutaway {
namespace {

constexpr std::string_view kSwitch = "higher_order.switch", kCond = "higher_order.cond";

struct Switch {
    std::vector<std::string> names;
    std::vector<Argument> operands;
    ValueType type;  // of the results, a tuple
};

Result<Switch> readSwitch(const Module& module, const Node& call) {
    const auto fail = [&](const std::string& what) {
        return invalidInput(call.op().name() + ": " + what + "; write switch(index, [graphs], (operands))",
                            call.name());
    };
    const auto* graphs = call.args().size() == 3 ? call.arg(1).list() : nullptr;
    const auto* operands = graphs ? call.arg(2).list() : nullptr;
    if (operands == nullptr || graphs->empty()) return fail("needs an index, a list of graphs and one of operands");
    Switch read{{}, *operands, call.type()};
    for (const Argument& graph : *graphs) {
        const auto* reference = graph.get<SubgraphRef>();
        const Module* body = reference ? module.subgraph(reference->name) : nullptr;
        if (body == nullptr) return fail("a graph is not in the file");
        if (body->graph().placeholders().size() != operands->size())
            return fail("graph '" + reference->name + "' takes " + std::to_string(body->graph().placeholders().size()) +
                        " values, and is given " + std::to_string(operands->size()));
        read.names.push_back(reference->name);
    }
    if (!read.type.tuple()) {
        TupleType results;
        for (const Argument& value : module.subgraph(read.names[0])->graph().outputs())
            results.push_back(value.node() ? value.node()->type() : ValueType());
        read.type = ValueType(std::move(results));
    }
    return read;
}

/// A copy of a branch that takes the index behind its operands, and does not read it.
std::unique_ptr<Module> withIndex(const Module& branch, const TensorType& index) {
    auto copy = std::make_unique<Module>(branch);
    Node* first = copy->graph().first();
    while (first && first->isPlaceholder()) first = first->next();
    copy->graph().placeholder("index", index, first);
    copy->inputs.emplace_back();
    return copy;
}
/// cond(index == number, graph, rest, (operands, index))
Value condOf(GraphBuilder& builder, const Value& index, int64_t number, const std::string& graph,
             const std::string& rest, std::vector<Argument> operands, const ValueType& type) {
    const Value chosen = builder.call("aten.eq.Scalar", {index, number});
    operands.emplace_back(index);
    Node& call = builder.graph().call(findOrMakeOpaque(kCond),
                                      {Argument(chosen), Argument(SubgraphRef{graph}), Argument(SubgraphRef{rest}),
                                       Argument(ArgumentList{std::move(operands), true})},
                                      type, builder.before());
    builder.graph().setProvenance(call, builder.sharedProvenance());
    return builder.value(call);
}
/// The branches from number `first` on as one graph.
std::unique_ptr<Module> branchesFrom(const Module& module, const Switch& all, size_t first, const TensorType& index) {
    const Module& like = *module.subgraph(all.names[first]);
    if (first + 1 == all.names.size()) return withIndex(like, index);
    auto rest = std::make_unique<Module>();
    rest->symbols = like.symbols;
    std::vector<Argument> operands;
    for (const Node* operand : like.graph().placeholders())
        operands.emplace_back(&rest->graph().placeholder(operand->name(), operand->type()));
    GraphBuilder builder(rest->graph());
    const Value number = builder.value(rest->graph().placeholder("index", index));
    rest->inputs.assign(operands.size() + 1, InputSpec{});
    const std::string graph = addGraph(*rest, all.names[first], withIndex(like, index)),
                      others = addGraph(*rest, "switch_rest", branchesFrom(module, all, first + 1, index));
    const Value chosen =
        condOf(builder, number, static_cast<int64_t>(first), graph, others, std::move(operands), all.type);
    ArgumentList results{{}, true};
    for (size_t i = 0; i < all.type.tuple()->size(); ++i) results.items.push_back(chosen[static_cast<int64_t>(i)]);
    rest->outputs.assign(results.items.size(), OutputSpec{});
    rest->graph().output(Argument(std::move(results)));
    return rest;
}

/// The graphs that the call named.
Result<std::vector<std::string>> writeCond(Module& module, Rewriter& rewriter, Node& call) {
    CT_TRY(Switch all, readSwitch(module, call));
    GraphBuilder builder = rewriter.builder(module.graph(), &call, call);
    const bool isTensor = call.arg(0).node() && call.arg(0).node()->type().tensor();
    Value index = isTensor ? builder.value(*call.arg(0).node())
                           : builder.call("aten.scalar_tensor.default", {call.arg(0)}, {{"dtype", DType::I64}});
    if (isTensor && index.rank() > 0) index = view(index, SymDims{});
    if (builder.error()) return *builder.error();
    const std::string graph = addGraph(module, all.names[0], withIndex(*module.subgraph(all.names[0]), index.type())),
                      others = addGraph(module, "switch_rest",
                                        branchesFrom(module, all, all.names.size() > 1 ? 1 : 0, index.type()));
    const Value made = condOf(builder, index, 0, graph, others, all.operands, all.type);
    if (builder.error()) return *builder.error();
    rewriter.replace(call, *made.node());
    return all.names;
}

}  // namespace

Result<bool> switchToCond(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (const auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, switchToCond(*body, rewriter));
        changed |= inner;
    }
    std::vector<Node*> calls;
    std::set<std::string> written;
    for (Node& node : module.graph().nodes()) {
        const bool is = node.isCall() && node.op().packet() == kSwitch;
        if (is) calls.push_back(&node);
        else rewriter.refuse(rewriter.pass(), node, "it is not a call that chooses one of many graphs");
    }
    for (Node* call : calls) {
        if (rewriter.begin(rewriter.pass(), *call, "conds choose between two graphs each") != Go::Yes) return changed;
        CT_TRY(const std::vector<std::string> names, writeCond(module, rewriter, *call));
        written.insert(names.begin(), names.end());
        changed = true;
    }
    for (const std::string& name : written) dropUnnamedGraph(module, name);
    return changed;
}

}  // namespace cutaway
