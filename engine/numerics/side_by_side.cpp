#include "engine/numerics/side_by_side.h"

#include <algorithm>

#include "engine/interpret/specialize.h"
#include "engine/numerics/raise.h"
#include "engine/numerics/spill.h"
#include "engine/numerics/tally.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

std::vector<Node*> inOrder(const Module& module) {
    std::vector<Node*> nodes;
    for (Node& node : module.graph().nodes()) nodes.push_back(&node);
    return nodes;
}

/// One graph of several, run as far as somebody wants.
class Side {
  public:
    explicit Side(const ReadyGraph& graph, FaultSide faults = FaultSide::None)
        : m_faults(faults),
          m_module(graph.module),
          m_editable(freeSymbols(*m_module).empty() ? nullptr : m_module.get()) {}

    void runPlain(const std::vector<Tensor>& inputs, InterpretOptions options) {
        m_options = std::move(options);
        m_run = std::make_unique<Interpreter>(*m_module, m_editable, m_options);
        m_run->begin(inputs);
    }
    void runWide(const std::vector<Tensor>& inputs, InterpretOptions options) {
        m_options = std::move(options);
        m_raised = raiseDtypes(*m_module);
        m_module = m_raised.module;
        auto run =
            std::make_unique<RaisedInterpreter>(*m_plain, m_raised, m_editable ? m_module.get() : nullptr, m_options);
        m_wide = run.get();
        m_run = std::move(run);
        m_run->begin(inputs);
    }
    Interpreter& run() { return *m_run; }
    const RaisedInterpreter* wide() const { return m_wide; }

    /// Runs everything up to the node, unless that has run.
    Result<void> reach(const Node& node) {
        while (m_run->next() != nullptr && !m_done.contains(node.id())) {
            const Node& now = *m_run->next();
            const int wanted = wantedTimes(now);
            if (wanted > 0) m_run->keep(now, wanted);
            CT_TRY_VOID(advance());
            m_done.insert(now.id());
            // A later call writes to this value, so a copy of what it is now is kept.
            if (wanted > 0 && m_run->writesTo(now)) m_kept[now.id()] = copies(m_run->Interpreter::valueOf(now));
        }
        return {};
    }
    TensorList take(const Node& node) {
        const auto kept = m_kept.find(node.id());
        return kept != m_kept.end() ? kept->second : m_run->Interpreter::valueOf(node);
    }
    void taken(const Node& node) {
        m_run->release(node);
        if (--m_wanted[node.id()] == 0) m_kept.erase(node.id());
    }
    void want(const Node& node) { ++m_wanted[node.id()]; }
    void dropResults() { m_run->dropResults(); }
    /// Runs one node, with the faults on demand (support/fault_points.h) of this side.
    Result<void> advance() {
        const FaultSideScope scope(m_faults);
        return m_run->advance();
    }

  private:
    int wantedTimes(const Node& node) const {
        const auto found = m_wanted.find(node.id());
        return found == m_wanted.end() ? 0 : found->second;
    }
    static TensorList copies(const TensorList& values) {
        TensorList out;
        for (const Tensor& value : values) out.push_back(value.defined() ? value.clone() : value);
        return out;
    }

    FaultSide m_faults;
    std::shared_ptr<Module> m_module, m_plain = m_module;
    Module* m_editable;
    InterpretOptions m_options;
    RaisedGraph m_raised;
    std::unique_ptr<Interpreter> m_run;
    const RaisedInterpreter* m_wide = nullptr;
    std::map<NodeId, int> m_wanted;
    std::set<NodeId> m_done;
    std::map<NodeId, TensorList> m_kept;
};

/// Random calls of one side take the values that those of another drew.
class Draws {
  public:
    /// Somebody will take what the node draws.
    void want(const Node& node) {
        if (node.is(Tag::Random)) ++m_wanted[node.id()];
    }
    std::function<void(const Node&, TensorList&)> record() {
        return [this](const Node& node, TensorList& values) {
            if (m_wanted.contains(node.id())) m_drawn[node.id()] = values;
        };
    }
    /// `of`: the node that drew; null if there is none.
    std::function<void(const Node&, TensorList&)> replay(std::function<const Node*(const Node&)> of) {
        return [this, of = std::move(of)](const Node& node, TensorList& values) {
            if (!node.is(Tag::Random)) return;
            const Node* drew = of(node);
            const auto found = drew ? m_drawn.find(drew->id()) : m_drawn.end();
            if (found == m_drawn.end() || found->second.size() != values.size()) return;
            for (size_t i = 0; i < values.size(); ++i)
                if (found->second[i].sizes() == values[i].sizes()) values[i] = found->second[i].to(values[i].dtype());
            if (--m_wanted[drew->id()] == 0) m_drawn.erase(found);
        };
    }

  private:
    std::map<NodeId, int> m_wanted;
    std::map<NodeId, TensorList> m_drawn;
};

/// The value of a node; undefined for tuples, whose items are compared at their getitem nodes.
Tensor single(const TensorList& values) { return values.size() == 1 ? values[0] : Tensor(); }

/// The same graph, each node as late as one of `wanted`, in the order of these, asks for it: a run ahead of what is
/// compared holds values for long. Calls that draw keep their order; where calls write or sizes come from values,
/// nothing moves.
ReadyGraph inWantedOrder(const ReadyGraph& graph, const std::vector<int>& wanted) {
    const std::vector<Node*> before = inOrder(*graph.module);
    const bool fixed = !freeSymbols(*graph.module).empty() || graph.module->graph().outputNode() == nullptr ||
                       std::any_of(before.begin(), before.end(),
                                   [](const Node* node) { return node->isCall() && node->op().mutates(); });
    if (fixed) return graph;
    ReadyGraph moved{std::make_shared<Module>(*graph.module), graph.inputs};
    Graph& order = moved.module->graph();
    const std::vector<Node*> nodes = inOrder(*moved.module);
    std::map<const Node*, Node*> drawsAfter;
    Node* drew = nullptr;
    for (Node* node : nodes)
        if (node->is(Tag::Random)) {
            drawsAfter[node] = drew;
            drew = node;
        }
    std::set<const Node*> placed{order.outputNode()};
    const auto place = [&](Node& node) {
        if (placed.insert(&node).second) order.moveBefore(node, *order.outputNode());
    };
    for (Node* node : nodes)
        if (node->isPlaceholder()) place(*node);
    std::vector<std::pair<Node*, bool>> open;
    const auto placeWithOperands = [&](Node& wish) {
        for (open.emplace_back(&wish, false); !open.empty();) {
            const auto [node, ready] = open.back();
            open.pop_back();
            if (placed.contains(node)) continue;
            if (ready) {
                place(*node);
                continue;
            }
            open.emplace_back(node, true);
            if (const auto first = drawsAfter.find(node); first != drawsAfter.end() && first->second != nullptr)
                open.emplace_back(first->second, false);
            const std::vector<Node*>& inputs = node->inputs();
            for (size_t i = inputs.size(); i-- > 0;) open.emplace_back(inputs[i], false);
        }
    };
    for (const int at : wanted)
        if (at >= 0 && static_cast<size_t>(at) < nodes.size()) placeWithOperands(*nodes[static_cast<size_t>(at)]);
    for (Node* node : nodes) placeWithOperands(*node);
    return moved;
}

/// Turns positions in `reference` into positions in `moved`, the same graph in another order.
std::vector<int> positionsAfter(const ReadyGraph& reference, const ReadyGraph& moved, std::vector<int> positions) {
    std::map<NodeId, int> places;
    for (const Node* node : inOrder(*moved.module)) places.emplace(node->id(), static_cast<int>(places.size()));
    const std::vector<Node*> nodes = inOrder(*reference.module);
    for (int& at : positions)
        at = at >= 0 && static_cast<size_t>(at) < nodes.size() ? places.at(nodes[static_cast<size_t>(at)]->id()) : -1;
    return positions;
}

struct Lockstep {
    const SideBySideOptions& options;
    std::vector<Node*> nodes, referenceNodes;
    std::map<NodeId, const Node*> counterpart;  // of the checked graph's nodes
    Draws draws;
    Side checked, plain, wide;

    Lockstep(const ReadyGraph& graph, const ReadyGraph& reference, const std::vector<int>& counterparts,
             const SideBySideOptions& given)
        : options(given),
          nodes(inOrder(*graph.module)),
          referenceNodes(inOrder(*reference.module)),
          checked(graph, FaultSide::After),
          plain(reference, FaultSide::Before),
          wide(reference, FaultSide::Before) {
        for (size_t i = 0; i < nodes.size() && i < counterparts.size(); ++i) {
            const auto at = static_cast<size_t>(counterparts[i]);
            if (counterparts[i] < 0 || at >= referenceNodes.size()) continue;
            const Node* found = referenceNodes[at];
            counterpart[nodes[i]->id()] = found;
            plain.want(*found);
            wide.want(*found);
            if (nodes[i]->is(Tag::Random)) draws.want(*found);
        }
        for (const Node* node : referenceNodes) draws.want(*node);
        InterpretOptions basic;
        basic.cancel = options.cancel;
        InterpretOptions recording = basic, widened = basic, replaying = basic;
        replaying.compute = options.compute;
        recording.exchange = draws.record();
        widened.exchange =
            draws.replay([this](const Node& node) { return plain.run().module().graph().find(node.id()); });
        replaying.exchange = draws.replay([this](const Node& node) { return counterpartOf(node); });
        plain.runPlain(reference.inputs, recording);
        wide.runWide(reference.inputs, widened);
        checked.runPlain(graph.inputs, replaying);
        for (Side* side : {&plain, &wide, &checked}) side->dropResults();
    }
    const Node* counterpartOf(const Node& node) const {
        const auto found = counterpart.find(node.id());
        return found == counterpart.end() ? nullptr : found->second;
    }

    /// Has both runs hold one memory for a large value that they have computed to the bit alike.
    void shareEqual(const Node& node, const Tensor& value, const Node& other, const Tensor& reference) {
        constexpr size_t kWorthIt = size_t{64} << 10;
        if (!value.defined() || !reference.defined() || value.bytes() < kWorthIt) return;
        if (checked.run().writesTo(node) || plain.run().writesTo(other)) return;
        if (value.storage() != reference.storage() && sameMemory(value, reference))
            checked.run().exchange(node, reference);
    }

    /// The reference runs first: random calls of the checked graph take what its own drew.
    Result<NodeNumbers> step(size_t position) {
        const Node& node = *nodes[position];
        const Node* other = counterpartOf(node);
        if (other != nullptr) {
            CT_TRY_VOID(plain.reach(*other));
            CT_TRY_VOID(wide.reach(*other));
        }
        NodeNumbers row;
        checked.run().keep(node);
        if (auto done = checked.advance(); !done) {
            if (done.error().code == ErrorCode::Cancelled) return done.error();
            row.verdict = NodeVerdict::Failed;
            row.why = done.error().text();
            return row;
        }
        const TensorList values = checked.run().Interpreter::valueOf(node);
        Tensor reference, exact;
        if (other != nullptr) {
            reference = single(plain.take(*other));
            exact = single(wide.take(*other));
            const bool alike = single(values).defined() && reference.defined() &&
                               reference.sizes() == single(values).sizes() &&
                               isComplex(reference.dtype()) == isComplex(single(values).dtype());
            if (!alike) reference = exact = Tensor();
            if (exact.defined() && exact.sizes() != single(values).sizes()) exact = Tensor();
        }
        if (single(values).defined())
            CT_TRY_VOID(measureAndAsk(single(values), reference, exact, options.judge, options.ask, row));
        if (std::string problem = typeProblem(node.type(), values); !problem.empty()) {
            row.verdict = NodeVerdict::WrongType;
            row.why = std::move(problem);
        }
        if (other != nullptr) {
            shareEqual(node, single(values), *other, reference);
            plain.taken(*other);
            wide.taken(*other);
        }
        return row;
    }
};

}  // namespace

Result<SideBySideEnd> runSideBySide(const ReadyGraph& checked, const ReadyGraph& reference,
                                    const std::vector<int>& counterparts, const SideBySideOptions& options,
                                    const std::function<void(size_t position, const NodeNumbers&)>& row) {
    const ReadyGraph ordered = inWantedOrder(reference, counterparts);
    Lockstep all(checked, ordered, positionsAfter(reference, ordered, counterparts), options);
    Spill spill(options.valueBytes);
    SideBySideEnd end;
    for (size_t i = 0; i < all.nodes.size() && end.failed.empty(); ++i) {
        const Node& node = *all.nodes[i];
        if (node.isOutput()) break;
        if (options.begin) options.begin(node, static_cast<double>(i) / static_cast<double>(all.nodes.size()));
        CT_TRY(const NodeNumbers numbers, all.step(i));
        if (numbers.verdict == NodeVerdict::Failed) end.failed = numbers.why;
        row(i, numbers);
        if (numbers.verdict != NodeVerdict::Failed) all.checked.run().release(node);
        if (options.valueBytes > 0) spill.relieve({&all.wide.run(), &all.plain.run(), &all.checked.run()});
    }
    end.ownDtypes = all.wide.wide()->ownDtypes();
    end.spilled = spill.written();
    return end;
}

namespace {

/// A graph alone; in f64, it runs beside itself in its own dtypes, from which it takes random draws.
struct Alone {
    std::vector<Node*> nodes;
    Draws draws;
    Side plain, raised;
    double begun = 0;

    Alone(const ReadyGraph& graph, bool wide, const Node* wanted, const SideBySideOptions& options)
        : nodes(inOrder(*graph.module)), plain(graph), raised(graph) {
        InterpretOptions recording, replaying;
        recording.cancel = replaying.cancel = options.cancel;
        recording.compute = options.compute;
        recording.begin = [this, &options](const Node& node) {
            if (options.begin) options.begin(node, begun++ / static_cast<double>(nodes.size()));
        };
        recording.exchange = draws.record();
        replaying.exchange =
            draws.replay([this](const Node& node) { return plain.run().module().graph().find(node.id()); });
        if (wanted != nullptr) (wide ? raised : plain).want(*wanted);
        plain.runPlain(graph.inputs, recording);
        if (!wide) return;
        for (const Node* node : nodes) draws.want(*node);
        raised.runWide(graph.inputs, replaying);
    }
};

}  // namespace

Result<TensorList> valueOfNode(const ReadyGraph& graph, size_t position, bool wide, const SideBySideOptions& options) {
    const std::vector<Node*> nodes = inOrder(*graph.module);
    if (position >= nodes.size() || nodes[position]->isOutput())
        return Error{ErrorCode::NotFound, "the node has no value", {}, {}};
    const Node& wanted = *nodes[position];
    Alone run(graph, wide, &wanted, options);
    for (size_t i = 0; i <= position; ++i) {
        CT_TRY_VOID(run.plain.reach(*nodes[i]));
        if (wide) CT_TRY_VOID(run.raised.reach(*nodes[i]));
    }
    if (!wide) return run.plain.take(wanted);
    TensorList out = run.raised.take(wanted);
    // Weights are held in their own dtypes.
    for (Tensor& value : out)
        if (value.defined() && value.dtype() != raised(value.dtype())) value = value.to(raised(value.dtype()));
    return out;
}

Result<TensorList> resultsOf(const ReadyGraph& graph, bool wide, const SideBySideOptions& options) {
    Alone run(graph, wide, nullptr, options);
    for (const Node* node : run.nodes) {
        CT_TRY_VOID(run.plain.reach(*node));
        if (wide) CT_TRY_VOID(run.raised.reach(*node));
    }
    return std::move((wide ? run.raised : run.plain).run().results());
}

}  // namespace cutaway
