#include "engine/autograd/loops_backward.h"

#include <algorithm>

#include "engine/autograd/forward_duals.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/autograd/pulled_graph.h"
#include "engine/autograd/stacked_steps.h"

namespace cutaway {
namespace {

using Kind = GraphCall::Kind;

/// By list of GraphCall::taken, the inputs of a step that get a gradient. What is carried on gets one, too, wherever
/// one of a later step reaches it.
std::vector<std::vector<bool>> wantedInputs(const GraphCall& read, const std::function<bool(const Node&)>& needed) {
    std::vector<std::vector<bool>> wanted;
    for (const size_t list : read.taken) {
        wanted.emplace_back();
        for (const Argument& operand : read.lists[list])
            wanted.back().push_back(operand.node() && moves(operand.node()->type()) && needed(*operand.node()));
    }
    Module step(*read.graphs[read.body()]);
    const auto inputs = inputsByList(read, step);
    step.inputs.assign(step.graph().placeholders().size(), InputSpec{});
    const std::vector<Argument> results = step.graph().outputs();
    for (bool more = true; more;) {
        more = false;
        for (size_t list = 0; list < inputs.size(); ++list)
            for (size_t i = 0; i < inputs[list].size(); ++i) {
                ValueType type = inputs[list][i]->type();
                if (!type.tensor()) continue;
                type.tensor()->requiresGrad = wanted[list][i];
                step.graph().setType(*inputs[list][i], std::move(type));
            }
        const std::vector<bool> flow = gradientFlow(step);
        for (size_t i = 0; i < read.carried() && i < results.size(); ++i) {
            const Node* const result = results[i].node();
            if (wanted[0][i] || !result || !moves(result->type()) || !flow[index(result->id())]) continue;
            wanted[0][i] = true;
            more = true;
        }
    }
    return wanted;
}

/// The graph of a step backwards while it is put together. Its inputs and results are those of a scan or while_loop:
/// what is carried on (gradients of what the forward carries, sums of gradients of what every step reads), what comes
/// item by item, and what every step reads.
class StepBackward {
  public:
    StepBackward(const GraphCall& read, const Rewriter& rewriter)
        : m_read(read), m_pulled(read, *read.graphs[read.body()], rewriter) {}

    Result<void> pull(const std::vector<std::vector<bool>>& wanted, const std::vector<bool>& arrived) {
        m_wanted = wanted;
        return m_pulled.run(wanted, arrived);
    }

    const std::vector<std::vector<Node*>>& inputs() const { return m_pulled.inputs(); }
    Node* arriving(size_t result) const { return m_pulled.arriving(result); }
    GraphBuilder& builder() { return m_pulled.builder(); }
    const std::vector<Drawn>& drawn() const { return m_pulled.drawn(); }
    bool wants(size_t list, size_t i) const { return m_wanted[list][i]; }
    Value gradientOf(size_t list, size_t i) { return m_pulled.gradientOf(*inputs()[list][i]); }
    /// The first list of what every step reads.
    size_t firstRead() const { return m_read.kind == Kind::While ? 1 : 2; }

    /// Sums of the gradients of what every step reads: further inputs, which are carried on, and their next values.
    void addSums() {
        for (size_t list = firstRead(); list < inputs().size(); ++list)
            for (size_t i = 0; i < inputs()[list].size(); ++i) {
                if (!wants(list, i)) continue;
                Node& sum =
                    m_pulled.graph().placeholder("sum", dense(inputs()[list][i]->tensor()), m_pulled.graph().first());
                sums.push_back(&sum);
                const Value next = builder().value(sum) + gradientOf(list, i);
                nextSums.emplace_back(next.type().isContiguous() ? next.node() : returned(builder(), next));
                summed.push_back(m_read.lists[m_read.taken[list]][i].node());
            }
    }

    /// The graph with these results. Its inputs are then those of `order` that it reads, and all of `always`.
    Result<std::unique_ptr<Module>> finish(const std::vector<Argument>& outputs, const std::vector<Node*>& always) {
        CT_TRY(std::unique_ptr<Module> step, m_pulled.finish(outputs));
        Graph& graph = step->graph();
        for (Node* input : graph.placeholders())
            if (!input->hasUsers() && std::find(always.begin(), always.end(), input) == always.end()) {
                graph.erase(*input);
                m_erased.push_back(input);
            }
        return step;
    }
    bool isRead(const Node* input) const {
        return input && std::find(m_erased.begin(), m_erased.end(), input) == m_erased.end();
    }
    /// Puts the inputs into this order, in front of everything.
    static void order(Module& step, const std::vector<Node*>& inputs) {
        Node* first = step.graph().first();
        while (first->isPlaceholder()) first = first->next();
        for (Node* input : inputs) step.graph().moveBefore(*input, *first);
        step.inputs.assign(inputs.size(), InputSpec{});
    }

    std::vector<Node*> sums;         // inputs
    std::vector<Argument> nextSums;  // results
    std::vector<Node*> summed;       // the operands of the forward's call

  private:
    const GraphCall& m_read;
    PulledGraph m_pulled;
    std::vector<std::vector<bool>> m_wanted;
    std::vector<const Node*> m_erased;
};

/// A call backwards, in the graph of the call.
class LoopBackward {
  public:
    LoopBackward(Module& module, Node& call, GraphBuilder& builder, const std::vector<Value>& arrived,
                 const Rewriter& rewriter, const GraphCall& read)
        : m_module(module),
          m_call(call),
          m_builder(builder),
          m_arrived(arrived),
          m_rewriter(rewriter),
          m_read(read),
          m_step(read, rewriter) {}

    Result<std::vector<OperandGradient>> run(const std::function<bool(const Node&)>& needed) {
        for (const auto& list : m_read.lists)
            for (const Argument& operand : list)
                if (!operand.node() || !operand.node()->type().tensor())
                    return refuseGraphCall(m_call, "it is given something that is not a tensor");
        for (const ValueType& result : m_read.results)
            if (!result.tensor()) return refuseGraphCall(m_call, "the types of its results are not known");
        m_module.graph().setType(m_call, ValueType(m_read.results));
        m_needed = needed;
        const auto wanted = wantedInputs(m_read, needed);
        std::vector<bool> arrived;
        for (size_t i = 0; i < m_read.results.size(); ++i)
            arrived.push_back(i < m_read.carried() ? wanted[0][i] : hasArrived(i));
        CT_TRY_VOID(m_step.pull(wanted, arrived));
        CT_TRY_VOID(m_read.kind == Kind::While             ? whileLoop()
                    : m_read.kind == Kind::AssociativeScan ? associativeScan()
                                                           : scan());
        if (m_builder.error()) return *m_builder.error();
        return std::move(m_out);
    }

  private:
    bool hasArrived(size_t result) const { return result < m_arrived.size() && m_arrived[result]; }
    Value dense(const Value& x) { return x.type().isContiguous() ? x : m_builder.value(*returned(m_builder, x)); }
    Value zeros(const TensorType& type) {
        return full(m_builder, type.sizes, Scalar(int64_t{0}), type.dtype, type.device);
    }
    Value flipped(const Value& x) {
        return m_builder.call("aten.flip.default", {x, Argument(std::vector<int64_t>{0})});
    }
    Value part(const Value& x, const SymInt& begin, const SymInt& end) {
        return m_builder.call("aten.slice.Tensor", {x, 0, Argument(begin), Argument(end)});
    }
    void give(const Argument& operand, const Value& gradient) { m_out.push_back({operand.node(), gradient}); }

    /// Of the loop backwards: what is carried on, at first, with the inputs that take it and the results that go on.
    void carry(Node& input, const Value& first, const Argument& next) {
        m_carriedInputs.push_back(&input);
        m_carried.emplace_back(first);
        m_outputs.push_back(next);
        m_types.emplace_back(cutaway::dense(first.type()));
    }
    void carrySums() {
        m_step.addSums();
        for (size_t i = 0; i < m_step.sums.size(); ++i)
            carry(*m_step.sums[i], zeros(m_step.summed[i]->tensor()), m_step.nextSums[i]);
    }
    /// The sums are results `first` and on.
    void giveSums(const Value& made, size_t first) {
        for (size_t i = 0; i < m_step.summed.size(); ++i)
            give(Argument(m_step.summed[i]), made[static_cast<int64_t>(first + i)]);
    }
    void addRead(std::vector<Node*>& inputs, std::vector<Argument>& operands) const {
        for (size_t list = m_step.firstRead(); list < m_step.inputs().size(); ++list)
            for (size_t i = 0; i < m_step.inputs()[list].size(); ++i) {
                if (!m_step.isRead(m_step.inputs()[list][i])) continue;
                inputs.push_back(m_step.inputs()[list][i]);
                operands.push_back(m_read.lists[m_read.taken[list]][i]);
            }
    }
    Value callScan(std::unique_ptr<Module> step, std::vector<Argument> items, std::vector<Argument> others) {
        std::vector<NamedGraph> graphs;
        graphs.push_back({m_read.names[0] + "_backward", std::move(step)});
        return callGraphs(m_module, findOrMakeOpaque("higher_order.scan"), {}, std::move(graphs),
                          {m_carried, std::move(items), std::move(others)}, std::move(m_types), m_builder);
    }

    Result<void> scan() {
        const auto& carried = m_step.inputs()[0];
        const auto& items = m_step.inputs()[1];
        std::vector<size_t> places;
        for (size_t i = 0; i < carried.size(); ++i) {
            if (!m_step.wants(0, i)) continue;
            places.push_back(i);
            carry(*m_step.arriving(i), hasArrived(i) ? dense(m_arrived[i]) : zeros(*m_read.results[i].tensor()),
                  Argument(returned(m_step.builder(), m_step.gradientOf(0, i))));
        }
        carrySums();
        std::vector<size_t> given;
        const SymInt count = m_read.lists[1][0].node()->tensor().sizes[0];
        for (size_t i = 0; i < items.size(); ++i) {
            if (!m_step.wants(1, i)) continue;
            given.push_back(i);
            m_outputs.emplace_back(returned(m_step.builder(), m_step.gradientOf(1, i)));
            m_types.emplace_back(stacked(items[i]->tensor(), count));
        }
        if (m_builder.error()) return *m_builder.error();
        std::vector<Node*> always = m_carriedInputs;
        always.push_back(items[0]);  // there must be something to go through
        CT_TRY(auto step, m_step.finish(m_outputs, always));
        std::vector<size_t> kept;
        for (size_t i = 0; i < carried.size(); ++i)
            if (m_step.isRead(carried[i])) kept.push_back(i);
        const std::string name = m_read.names[0];
        CT_TRY(const std::vector<Node*> keptValues,
               keepCollected(m_module, m_call, m_read, kept, m_step.drawn(), m_rewriter));
        std::vector<Node*> inputs = m_carriedInputs;
        std::vector<Argument> itemOperands, others;
        const auto addItem = [&](Node* input, const Value& operand) {
            inputs.push_back(input);
            itemOperands.emplace_back(flipped(operand));
        };
        for (size_t i = 0; i < kept.size(); ++i) addItem(carried[kept[i]], m_builder.value(*keptValues[i]));
        for (size_t i = 0; i < m_step.drawn().size(); ++i)
            addItem(m_step.drawn()[i].input, m_builder.value(*keptValues[kept.size() + i]));
        for (size_t i = 0; i < items.size(); ++i)
            if (m_step.isRead(items[i])) addItem(items[i], m_builder.value(*m_read.lists[1][i].node()));
        for (size_t i = m_read.carried(); i < m_read.results.size(); ++i)
            if (Node* const input = m_step.arriving(i); m_step.isRead(input)) addItem(input, m_arrived[i]);
        addRead(inputs, others);
        StepBackward::order(*step, inputs);
        const size_t carriedOn = m_carried.size();
        const Value made = callScan(std::move(step), std::move(itemOperands), std::move(others));
        for (size_t i = 0; i < places.size(); ++i)
            if (const Argument& operand = m_read.lists[0][places[i]]; m_needed(*operand.node()))
                give(operand, made[static_cast<int64_t>(i)]);
        giveSums(made, places.size());
        for (size_t i = 0; i < given.size(); ++i)
            give(m_read.lists[1][given[i]], flipped(made[static_cast<int64_t>(carriedOn + i)]));
        return {};
    }

    /// From the last item to the second: a step takes the gradient of what has been combined so far, and gives that of
    /// what was combined before, to which what arrives there is added.
    Result<void> associativeScan() {
        const auto& before = m_step.inputs()[0];
        const auto& items = m_step.inputs()[1];
        const SymInt count = m_read.lists[0][0].node()->tensor().sizes[0];
        std::vector<size_t> places;
        std::vector<std::pair<Node*, size_t>> arriving;
        for (size_t i = 0; i < before.size(); ++i) {
            if (!m_step.wants(0, i)) continue;
            places.push_back(i);
            const TensorType type = before[i]->tensor();
            Value next = m_step.gradientOf(0, i), first;
            if (hasArrived(i)) {
                Node& more = m_step.builder().graph().placeholder("arriving", cutaway::dense(type),
                                                                  m_step.builder().graph().first());
                arriving.emplace_back(&more, i);
                next = next + m_step.builder().value(more);
                first = dense(m_builder.call("aten.select.int", {m_arrived[i], 0, -1}));
            } else first = zeros(type);
            carry(*m_step.arriving(i), first, Argument(returned(m_step.builder(), next)));
        }
        carrySums();
        std::vector<size_t> given;
        for (const size_t i : places) {
            if (!m_step.wants(1, i)) continue;
            given.push_back(i);
            m_outputs.emplace_back(returned(m_step.builder(), m_step.gradientOf(1, i)));
            m_types.emplace_back(stacked(items[i]->tensor(), count - SymInt(1)));
        }
        if (m_builder.error()) return *m_builder.error();
        std::vector<Node*> always = m_carriedInputs;
        always.push_back(items[0]);
        CT_TRY(auto step, m_step.finish(m_outputs, always));
        std::vector<Node*> inputs = m_carriedInputs;
        std::vector<Argument> itemOperands, others;
        const auto addItem = [&](Node* input, const Value& operand, bool first) {
            inputs.push_back(input);
            itemOperands.emplace_back(flipped(first ? part(operand, 1, count) : part(operand, 0, count - SymInt(1))));
        };
        for (size_t i = 0; i < before.size(); ++i)
            if (m_step.isRead(before[i])) addItem(before[i], m_builder.value(*resultOfCall(m_call, i)), false);
        for (size_t i = 0; i < items.size(); ++i)
            if (m_step.isRead(items[i])) addItem(items[i], m_builder.value(*m_read.lists[0][i].node()), true);
        for (const auto& [input, i] : arriving) addItem(input, m_arrived[i], false);
        addRead(inputs, others);
        StepBackward::order(*step, inputs);
        const size_t carriedOn = m_carried.size();
        const Value made = callScan(std::move(step), std::move(itemOperands), std::move(others));
        giveSums(made, places.size());
        for (size_t i = 0; i < places.size(); ++i) {
            const auto at = std::find(given.begin(), given.end(), places[i]);
            if (at == given.end()) continue;
            const Value rest = flipped(made[static_cast<int64_t>(carriedOn + static_cast<size_t>(at - given.begin()))]);
            const Value first = unsqueeze(made[static_cast<int64_t>(i)], 0);
            give(m_read.lists[0][places[i]],
                 m_builder.call("aten.cat.default", {Argument(std::vector<Argument>{first, rest}), 0}));
        }
        return {};
    }

    /// From the last step to the first, whose number is carried on.
    Result<void> whileLoop() {
        const auto& carried = m_step.inputs()[0];
        GraphBuilder& inside = m_step.builder();
        const TensorType number = TensorType::contiguous(DType::I64, {});
        Node& later = inside.graph().placeholder("number", number, inside.graph().first());
        Node& firstCall = firstBehindInputs(inside.graph());
        GraphBuilder front(inside.graph(), &firstCall);
        const Value now = front.value(later) - 1;
        m_carriedInputs.push_back(&later);
        m_carried.emplace_back();
        m_outputs.emplace_back(now);
        m_types.emplace_back(number);
        std::vector<size_t> places;
        for (size_t i = 0; i < carried.size(); ++i) {
            if (!m_step.wants(0, i)) continue;
            places.push_back(i);
            carry(*m_step.arriving(i), hasArrived(i) ? dense(m_arrived[i]) : zeros(*m_read.results[i].tensor()),
                  Argument(returned(inside, m_step.gradientOf(0, i))));
        }
        carrySums();
        if (m_builder.error()) return *m_builder.error();
        CT_TRY(auto step, m_step.finish(m_outputs, m_carriedInputs));
        CT_TRY(const StackedSteps kept, keepInWhileLoop(m_module, m_call, m_read, m_step.drawn(), m_rewriter));
        m_carried[0] = Argument(kept.count);
        std::vector<Node*> inputs = m_carriedInputs;
        std::vector<Argument> others;
        for (size_t i = 0; i < carried.size(); ++i) {
            if (!m_step.isRead(carried[i])) continue;
            inputs.push_back(&readAtStep(step->graph(), *carried[i], *now.node(), kept.rows));
            // What comes into the first step was given, what comes into others is what the step before has made.
            const Value first = unsqueeze(m_builder.value(*m_read.lists[0][i].node()), 0);
            const Value all = m_builder.call("aten.cat.default",
                                             {Argument(std::vector<Argument>{first, Argument(kept.stacks[i])}), 0});
            others.emplace_back(m_builder.call("aten.slice.Tensor", {all, 0, 0, -1}));
        }
        for (size_t i = 0; i < kept.drawn.size(); ++i) {
            inputs.push_back(&readAtStep(step->graph(), *m_step.drawn()[i].input, *now.node(), kept.rows));
            others.emplace_back(kept.drawn[i]);
        }
        addRead(inputs, others);
        StepBackward::order(*step, inputs);
        std::vector<NamedGraph> graphs;
        graphs.push_back({m_read.names[0] + "_backward", moreSteps(*step)});
        graphs.push_back({m_read.names[1] + "_backward", std::move(step)});
        const Value made = callGraphs(m_module, findOrMakeOpaque("higher_order.while_loop"), {}, std::move(graphs),
                                      {m_carried, std::move(others)}, std::move(m_types), m_builder);
        for (size_t i = 0; i < places.size(); ++i)
            if (const Argument& operand = m_read.lists[0][places[i]]; m_needed(*operand.node()))
                give(operand, made[static_cast<int64_t>(1 + i)]);
        giveSums(made, 1 + places.size());
        return {};
    }

    static Node& firstBehindInputs(const Graph& graph) {
        Node* node = graph.first();
        while (node->isPlaceholder()) node = node->next();
        return *node;
    }
    /// In place of an input of the step, what stands in a stack at the step's number. The stack is the input that takes
    /// its place.
    static Node& readAtStep(Graph& graph, Node& input, Node& number, const SymInt& rows) {
        const TensorType type = input.tensor();
        Node& stack = graph.placeholder("kept", stacked(type, rows), &input);
        GraphBuilder builder(graph, number.next());
        const Value place = view(builder.value(number), {SymInt(1)});
        const Value row = builder.call("aten.index_select.default", {builder.value(stack), 0, place});
        const Value item = view(row, type.sizes);
        const Value laid = type.isContiguous() ? item : copyLaidOutLike(builder, type, item);
        graph.replaceUses(input, *laid.node());
        graph.erase(input);
        return stack;
    }
    /// Whether there is a step left, of a loop with these inputs.
    static std::unique_ptr<Module> moreSteps(const Module& step) {
        auto more = std::make_unique<Module>();
        for (const Node* input : step.graph().placeholders()) more->graph().placeholder(input->name(), input->type());
        more->inputs.assign(step.inputs.size(), InputSpec{});
        more->symbols = step.symbols;
        GraphBuilder builder(more->graph());
        const Value left = builder.call("aten.gt.Scalar", {builder.value(*more->graph().first()), 0});
        more->graph().output(Argument(left.node()));
        more->outputs.resize(1);
        return more;
    }

    Module& m_module;
    Node& m_call;
    GraphBuilder& m_builder;
    const std::vector<Value>& m_arrived;
    const Rewriter& m_rewriter;
    const GraphCall& m_read;
    StepBackward m_step;
    std::function<bool(const Node&)> m_needed;
    std::vector<Node*> m_carriedInputs;
    std::vector<Argument> m_carried, m_outputs;
    TupleType m_types;
    std::vector<OperandGradient> m_out;
};

}  // namespace

Result<std::vector<OperandGradient>> pullBackLoop(Module& module, Node& call, GraphBuilder& builder,
                                                  const std::vector<Value>& arrived,
                                                  const std::function<bool(const Node&)>& needed,
                                                  const Rewriter& rewriter, const GraphCall& read) {
    return LoopBackward(module, call, builder, arrived, rewriter, read).run(needed);
}

}  // namespace cutaway
