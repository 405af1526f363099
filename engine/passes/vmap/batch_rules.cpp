#include "engine/passes/vmap/batch_rules.h"

#include <algorithm>
#include <unordered_map>

#include "engine/autograd/graph_call.h"

namespace cutaway {
namespace {

std::vector<Operand> operandsOf(const BatchedCall& c) {
    std::vector<Operand> out;
    for (size_t i = 0; i < c.arguments(); ++i) {
        if (c.op().schema()->params[i].kind != ParamKind::Tensor || c.op().schema()->params[i].list) continue;
        if (auto operand = c.operand(i); operand) out.push_back(std::move(*operand));
    }
    return out;
}

/// What an elementwise operator computes in. A tensor without dims counts less in type promotion than one with dims, so
/// the examples' dim changes it: then what is without dims for each example is converted first.
std::optional<DType> promotedDType(const BatchedCall& c, const std::vector<Operand>& examples) {
    std::vector<Operand> all = examples;
    size_t next = 0;
    for (size_t i = 0; i < c.arguments() && next < all.size(); ++i) {
        if (c.op().schema()->params[i].kind != ParamKind::Tensor || c.op().schema()->params[i].list) continue;
        if (!c.operand(i)) continue;
        if (c.isBatched(i)) all[next].type.sizes.insert(all[next].type.sizes.begin(), c.count());
        ++next;
    }
    const DType before = resultType(examples);
    return before == resultType(all) ? std::nullopt : std::optional(before);
}

const std::unordered_map<std::string_view, BatchRule>& allRules() {
    static const auto rules = [] {
        std::unordered_map<std::string_view, BatchRule> out;
        for (const auto table : {batchedViews(), batchedReductions(), batchedProducts(), batchedIndexing()})
            for (const BatchRow& row : table) out.emplace(row.op, row.rule);
        return out;
    }();
    return rules;
}

}  // namespace

Values batchPointwise(BatchedCall& c) {
    const std::vector<Operand> examples = operandsOf(c);
    if (examples.empty()) return Values::notHandled();
    // The gradient of a mean is divided by how many elements one example has.
    if (const int reduction = c.op().schema()->find("reduction");
        reduction >= 0 && c.arg(static_cast<size_t>(reduction)).asInt() != 0)
        return Values::notHandled();
    const std::optional<DType> promoted = examples.size() > 1 ? promotedDType(c, examples) : std::nullopt;
    int64_t rank = 0;
    for (size_t i = 0; i < c.arguments(); ++i) {
        if (c.arg(i).list() && c.arg(i).holdsNode() && c.op().schema()->params[i].kind == ParamKind::Tensor)
            return Values::notHandled();
        if (c.isTensor(i)) rank = std::max(rank, c.type(i).rank());
    }
    std::vector<Argument> args = c.copyOfArgs();
    for (size_t i = 0; i < args.size(); ++i) {
        if (!c.isTensor(i) || !c.isBatched(i)) continue;
        Value value = withRank(c.all(i), rank);
        if (promoted && c.type(i).rank() == 0 && value.dtype() != DType::Bool) value = convert(value, *promoted);
        args[i] = value;
    }
    // What only lends its type has all examples of what is written over it.
    if (c.op().baseName() == "copy" && c.isTensor(0) && !c.isBatched(0)) args[0] = c.all(0);
    // A format is for images of a certain rank.
    if (const int format = c.op().schema()->find("memory_format"); format >= 0) {
        Argument& given = args[static_cast<size_t>(format)];
        if (const auto* as = given.get<MemoryFormat>(); as && *as != MemoryFormat::Contiguous)
            given = MemoryFormat::Preserve;
    }
    return c.again(std::move(args));
}

BatchRule batchRuleOf(const Op& op) {
    const auto found = allRules().find(op.name());
    if (found != allRules().end()) return found->second;
    return op.is(Tag::Pointwise) ? batchPointwise : nullptr;
}

Result<Values> batchByMap(Module& module, BatchedCall& c, Rewriter& rewriter) {
    const Node& call = c.node();
    if (!isKnown(call.type()))
        return unsupported(call.op().name() + ": inside of vmap, and the type of its result is not known", call.name(),
                           {"open the graph after AOTAutograd, which runs no vmap"});
    auto body = std::make_unique<Module>();
    Graph& graph = body->graph();
    std::vector<Argument> items, others;
    std::unordered_map<const Node*, Node*> twins;
    // The examples first, as a map gives them.
    for (const bool batched : {true, false})
        for (Node* operand : call.inputs()) {
            if (c.isBatched(Argument(operand)) != batched || twins.contains(operand)) continue;
            if (batched) {
                Value all = c.all(Argument(operand));
                if (!all.type().isContiguous())
                    all = c.call("aten.clone.default", {all}, {{"memory_format", MemoryFormat::Contiguous}});
                items.emplace_back(all);
            } else others.emplace_back(operand);
            const ValueType type = batched ? ValueType(dense(operand->tensor())) : operand->type();
            twins.emplace(operand, &graph.placeholder(operand->name(), type));
        }
    const auto twin = [&](Node* node) { return twins.at(node); };
    std::vector<Argument> args;
    for (const Argument& arg : call.args()) {
        args.push_back(arg.mapNodes(twin));
        const auto* reference = arg.get<SubgraphRef>();
        const Module* named = reference ? module.subgraph(reference->name) : nullptr;
        if (named && !body->subgraph(reference->name))
            body->subgraphs.emplace_back(reference->name, std::make_unique<Module>(*named));
    }
    NamedArguments keywords;
    for (const auto& [key, value] : call.kwargs()) keywords.emplace_back(key, value.mapNodes(twin));
    GraphBuilder inside(graph);
    // An example lies dense in the map, where it may have been a view: the result's type is another one then.
    const bool infers = call.op().def() && call.op().def()->infer && keywords.empty();
    Node* const inner =
        infers ? inside.callBound(call.op(), std::move(args)).node()
               : &graph.call(call.op(), std::move(args), call.type(), nullptr, call.name(), std::move(keywords));
    if (inside.error()) return *inside.error();
    graph.rename(*inner, call.name());
    std::vector<Argument> outputs;
    std::vector<int64_t> places;
    TupleType types;
    const TupleType single{inner->type()};
    const TupleType& results = inner->type().tuple() ? *inner->type().tuple() : single;
    for (size_t i = 0; i < results.size(); ++i) {
        places.push_back(results[i].tensor() ? static_cast<int64_t>(outputs.size()) : -1);
        if (!results[i].tensor()) continue;
        const Value result = inside.value(*inner);
        outputs.emplace_back(returned(inside, call.type().tuple() ? result[static_cast<int64_t>(i)] : result));
        types.emplace_back(stacked(*results[i].tensor(), c.count()));
    }
    if (inside.error()) return *inside.error();
    graph.output(Argument(ArgumentList{outputs, true}));
    Rewriter whole(rewriter.pass(), rewriter.context());
    CT_TRY(body, finishedGraph(std::move(body), outputs, whole));
    std::vector<NamedGraph> graphs;
    graphs.push_back({"vmap_body_" + std::string(call.op().baseName()), std::move(body)});
    const Value made = callGraphs(module, findOrMakeOpaque("higher_order.map_impl"), {}, std::move(graphs),
                                  {std::move(items), std::move(others)}, std::move(types), c.builder());
    std::vector<Value> values;
    for (const int64_t place : places) values.push_back(place < 0 ? Value() : made[place]);
    if (c.builder().error()) return *c.builder().error();
    return call.type().tuple() ? Values(std::move(values)) : Values(values[0]);
}

}  // namespace cutaway
