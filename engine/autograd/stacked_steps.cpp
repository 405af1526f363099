#include "engine/autograd/stacked_steps.h"

#include <algorithm>

#include "engine/autograd/forward_duals.h"
#include "engine/interpret/specialize.h"

namespace cutaway {
namespace {

/// Nodes made beside a call of the forward are of the forward.
GraphBuilder besideCall(const Node& call, Node* before) {
    GraphBuilder builder(*const_cast<Graph*>(&call.graph()), before);
    Provenance provenance = call.provenance();
    provenance.origin = {call.id()};
    provenance.sourceName.clear();
    builder.setProvenance(std::move(provenance));
    return builder;
}

bool isResultOf(const Node& node, const Node& call) {
    return node.isCall("operator.getitem") && node.arg(0).node() == &call;
}
size_t positionOf(const Node& item, size_t count) {
    const int64_t position = item.arg(1).asInt().value_or(0);
    return static_cast<size_t>(position < 0 ? position + static_cast<int64_t>(count) : position);
}

/// What a graph of the forward draws there.
Value drawnIn(GraphBuilder& builder, const Drawn& one) {
    const Value value = builder.value(*builder.graph().find(one.call));
    return value.node()->type().tuple() ? value[static_cast<int64_t>(one.item)] : value;
}
/// In the place of draws that were not made.
Node* zerosFor(GraphBuilder& builder, const Drawn& one) {
    const TensorType& type = one.input->tensor();
    return full(builder, type.sizes, Scalar(int64_t{0}), type.dtype, type.device).node();
}

/// A name for a size that only a run tells. A module and its bodies share their symbols, so those of bodies start at
/// other numbers.
SymInt freshSize(const Module& module) {
    const std::vector<std::string> used = freeSymbols(module);
    size_t number = 0;
    if (module.name != "main") {
        for (const char letter : module.name) number = (number * 31 + static_cast<unsigned char>(letter)) % 997;
        number = 100 * (number + 1);
    }
    const auto name = [&] { return "u" + std::to_string(number); };
    while (std::find(used.begin(), used.end(), name()) != used.end()) ++number;
    return SymInt(Expr::symbol(name()));
}

}  // namespace

Node* resultOfCall(Node& call, size_t position) {
    const size_t count = call.type().tuple()->size();
    Node* after = &call;
    for (Node* reader : call.users()) {
        if (!isResultOf(*reader, call)) continue;
        if (positionOf(*reader, count) == position) return reader;
    }
    while (isResultOf(*after->next(), call)) after = after->next();
    GraphBuilder builder = besideCall(call, after->next());
    return builder.value(call)[static_cast<int64_t>(position)].node();
}

std::vector<Drawn> takeOutDraws(Module& step, Node& place) {
    Graph& graph = step.graph();
    std::vector<Drawn> drawn;
    const auto takeOut = [&](Node& value, const Node& call, size_t item) {
        const TensorType* const type = value.type().tensor();
        if (!value.hasUsers() || !type) return;
        Node& input = graph.placeholder("drawn", dense(*type), &place);
        graph.replaceUses(value, input);
        drawn.push_back({call.id(), item, &input});
    };
    std::vector<Node*> taken;  // erased at the end, since `place` may be one of them
    for (Node* node : graph.nodeList()) {
        if (!node->isCall() || !node->is(Tag::Random)) continue;
        taken.push_back(node);
        if (!node->type().tuple()) takeOut(*node, *node, 0);
        else
            for (Node* item : node->users()) {
                takeOut(*item, *node, positionOf(*item, node->type().tuple()->size()));
                taken.push_back(item);
            }
    }
    for (auto node = taken.rbegin(); node != taken.rend(); ++node) graph.erase(**node);
    return drawn;
}

Result<std::vector<Node*>> keepCollected(Module& module, Node& call, const GraphCall& read,
                                         const std::vector<size_t>& carried, const std::vector<Drawn>& drawn,
                                         const Rewriter& rewriter) {
    if (carried.empty() && drawn.empty()) return std::vector<Node*>();
    auto step = std::make_unique<Module>(*read.graphs[0]);
    const auto inputs = inputsByList(read, *step);
    GraphBuilder inside(step->graph(), step->graph().outputNode());
    std::vector<Argument> outputs = step->graph().outputs();
    TupleType types = read.results;
    const SymInt count = read.lists[read.kind == GraphCall::Kind::Scan ? 1 : 0][0].node()->tensor().sizes[0];
    const auto keep = [&](const Value& value) {
        outputs.emplace_back(returned(inside, value));
        if (!inside.error()) types.emplace_back(stacked(value.type(), count));
    };
    for (const size_t place : carried) keep(inside.value(*inputs[0][place]));
    for (const Drawn& one : drawn) keep(drawnIn(inside, one));
    if (inside.error()) return *inside.error();
    Rewriter whole(rewriter.pass(), rewriter.context());
    CT_TRY(step, finishedGraph(std::move(step), outputs, whole));
    const std::string before = read.names[0];
    Graph& graph = module.graph();
    graph.setArg(call, 0, SubgraphRef{addGraph(module, before + "_kept", std::move(step))});
    graph.setType(call, ValueType(std::move(types)));
    dropUnnamedGraph(module, before);
    std::vector<Node*> kept;
    for (size_t i = 0; i < carried.size() + drawn.size(); ++i)
        kept.push_back(resultOfCall(call, read.results.size() + i));
    return kept;
}

Result<std::vector<Node*>> keepDrawnByBranches(Module& module, Node& call, const GraphCall& read,
                                               const std::vector<std::vector<Drawn>>& drawn,
                                               const std::vector<Module*>& backward, const Rewriter& rewriter) {
    TupleType added;
    for (const auto& branch : drawn)
        for (const Drawn& one : branch) added.push_back(one.input->type());
    if (added.empty()) return std::vector<Node*>();
    for (size_t i = 0; i < backward.size(); ++i) {
        Graph& graph = backward[i]->graph();
        Node* const behind = drawn[i].empty() ? behindList(graph, inputsByList(read, *backward[i]), 0) : nullptr;
        for (size_t other = 0; other < drawn.size(); ++other) {
            if (other == i) continue;
            // A branch's own stand together.
            Node* const place = behind ? behind : other < i ? drawn[i].front().input : drawn[i].back().input->next();
            for (const Drawn& one : drawn[other]) graph.placeholder("unused", one.input->type(), place);
        }
        backward[i]->inputs.assign(graph.placeholders().size(), InputSpec{});
    }
    Rewriter whole(rewriter.pass(), rewriter.context());
    Graph& graph = module.graph();
    for (size_t i = 0; i < read.graphs.size(); ++i) {
        auto branch = std::make_unique<Module>(*read.graphs[i]);
        GraphBuilder inside(branch->graph(), branch->graph().outputNode());
        std::vector<Argument> outputs = branch->graph().outputs();
        for (size_t from = 0; from < drawn.size(); ++from)
            for (const Drawn& one : drawn[from]) {
                outputs.emplace_back(from == i ? returned(inside, drawnIn(inside, one)) : zerosFor(inside, one));
                if (inside.error()) return *inside.error();
            }
        CT_TRY(branch, finishedGraph(std::move(branch), outputs, whole));
        graph.setArg(call, i + 1, SubgraphRef{addGraph(module, read.names[i] + "_kept", std::move(branch))});
    }
    TupleType types = read.results;
    types.insert(types.end(), added.begin(), added.end());
    graph.setType(call, ValueType(std::move(types)));
    for (const std::string& name : read.names) dropUnnamedGraph(module, name);
    std::vector<Node*> kept;
    for (size_t i = 0; i < added.size(); ++i) kept.push_back(resultOfCall(call, read.results.size() + i));
    return kept;
}

Result<StackedSteps> keepInWhileLoop(Module& module, Node& call, const GraphCall& read, const std::vector<Drawn>& drawn,
                                     const Rewriter& rewriter) {
    const size_t carried = read.carried();
    Rewriter whole(rewriter.pass(), rewriter.context());
    const TensorType counter = TensorType::contiguous(DType::I64, {});
    std::vector<std::string> names;
    for (size_t i = 0; i < read.graphs.size(); ++i) {
        auto step = std::make_unique<Module>(*read.graphs[i]);
        Graph& graph = step->graph();
        Node* const place = behindList(graph, inputsByList(read, *step), 0);
        Node& counted = graph.placeholder("steps", counter, place);
        for (const Drawn& one : drawn) graph.placeholder("drawn", one.input->type(), place);
        GraphBuilder inside(graph, graph.outputNode());
        std::vector<Argument> outputs = graph.outputs();
        if (i == read.body()) {
            outputs.emplace_back(inside.value(counted) + 1);
            for (const Drawn& one : drawn) outputs.emplace_back(returned(inside, drawnIn(inside, one)));
        }
        if (inside.error()) return *inside.error();
        CT_TRY(step, finishedGraph(std::move(step), outputs, whole));
        names.push_back(addGraph(module, read.names[i] + "_kept", std::move(step)));
    }
    GraphBuilder front = besideCall(call, &call);
    std::vector<std::vector<Argument>> lists = read.lists;
    lists[0].emplace_back(full(front, {}, Scalar(int64_t{0}), DType::I64, Device{}));
    for (const Drawn& one : drawn) lists[0].emplace_back(zerosFor(front, one));
    if (front.error()) return *front.error();
    StackedSteps out;
    out.rows = freshSize(module);
    TupleType types;
    for (const ValueType& result : read.results) types.emplace_back(stacked(*result.tensor(), out.rows));
    types.emplace_back(stacked(counter, out.rows));
    for (const Drawn& one : drawn) types.emplace_back(stacked(one.input->tensor(), out.rows));
    std::vector<Argument> args = {Argument(SubgraphRef{names[0]}), Argument(SubgraphRef{names[1]})};
    for (auto& list : lists) args.emplace_back(std::move(list));
    Graph& graph = module.graph();
    graph.setOp(call, findOrMakeOpaque("higher_order.while_loop_stack_output"), std::move(args),
                ValueType(std::move(types)));
    for (const std::string& name : read.names) dropUnnamedGraph(module, name);
    const std::vector<Node*> readers = call.users();
    for (size_t i = 0; i < readers.size(); ++i)
        if (Node* const one = resultOfCall(call, positionOf(*readers[i], carried)); one != readers[i]) {
            graph.replaceUses(*readers[i], *one);
            graph.erase(*readers[i]);
        }
    for (size_t i = 0; i <= carried; ++i) {
        Node* const stack = resultOfCall(call, i);
        out.stacks.push_back(stack);
        graph.setType(*stack, (*call.type().tuple())[i]);
    }
    Node* after = &call;
    while (isResultOf(*after->next(), call)) after = after->next();
    GraphBuilder behind = besideCall(call, after->next());
    for (size_t i = 0; i <= carried; ++i) {
        Node& stack = *out.stacks[i];
        if (i < carried && !stack.hasUsers()) continue;
        const Value last = behind.call("aten.select.int", {behind.value(stack), 0, -1});
        const TensorType& type = i < carried ? *read.results[i].tensor() : counter;
        const Value value = copyLaidOutLike(behind, type, last);
        if (behind.error()) return *behind.error();
        graph.replaceUses(stack, *value.node(), [&](const Node& user) { return &user == last.node(); });
        if (i == carried) out.count = value.node();
    }
    out.stacks.pop_back();
    for (size_t i = 0; i < drawn.size(); ++i) out.drawn.push_back(resultOfCall(call, carried + 1 + i));
    return out;
}

}  // namespace cutaway
