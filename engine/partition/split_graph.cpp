#include "engine/partition/split_graph.h"

#include <algorithm>
#include <set>

#include "engine/ir/unbacked_sizes.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {
namespace {

enum class Side : uint8_t { Forward, Backward };

/// Which nodes one side consists of.
class Extraction {
  public:
    Extraction(const JointFacts& facts, Side side, const std::vector<int>& inputs)
        : m_facts(facts), m_side(side), m_isInput(facts.nodes.size()) {
        for (const int input : inputs) m_isInput[static_cast<size_t>(input)] = true;
    }

    /// Marks what the outputs, and effects of this side, are computed from. The first output that cannot be, if any.
    const Node* need(const std::vector<const Node*>& outputs) {
        const size_t count = m_facts.nodes.size() - 1;
        std::vector<bool> available(count);
        for (size_t i = 0; i < count; ++i) {
            const JointNode& node = m_facts.nodes[i];
            if (m_isInput[i]) available[i] = true;
            else if (node.node->isPlaceholder() || otherSideOnly(*node.node)) available[i] = false;
            else
                available[i] = std::all_of(node.inputs.begin(), node.inputs.end(),
                                           [&](int input) { return available[static_cast<size_t>(input)]; });
        }
        needed.assign(count, false);
        for (const Node* output : outputs) {
            const size_t at = static_cast<size_t>(m_facts.at(*output));
            if (!available[at]) return output;
            needed[at] = true;
        }
        for (size_t i = count; i-- > 0;) {
            const JointNode& node = m_facts.nodes[i];
            const bool effect = node.node->isCall() && !isPure(*node.node) && available[i] && !m_isInput[i] &&
                                (m_side == Side::Forward || !node.requiredForward());
            if (effect) needed[i] = true;
            if (!needed[i] || m_isInput[i]) continue;
            for (const int input : node.inputs) needed[static_cast<size_t>(input)] = true;
        }
        return nullptr;
    }
    std::vector<bool> needed;

    bool isInput(size_t node) const { return m_isInput[node]; }

  private:
    bool otherSideOnly(const Node& node) const {
        return m_side == Side::Forward ? mustBeInBackward(node) : mustBeInForward(node);
    }
    const JointFacts& m_facts;
    const Side m_side;
    std::vector<bool> m_isInput;
};

/// A module of the joint one's tensors and bodies, with an empty graph.
std::shared_ptr<Module> emptyLike(const Module& joint, const std::string& name) {
    auto made = std::make_shared<Module>();
    made->name = name;
    made->graph().reserveIds(joint.graph().idLimit());  // new nodes, the output first, get ids of their own
    made->tensors = joint.tensors;
    made->symbols = joint.symbols;
    made->origin = joint.origin;
    return made;
}

/// Bodies and tensors that the graph names.
void keepWhatIsNamed(const Module& joint, Module& made) {
    std::set<std::string> bodies, tensors;
    for (const Node& node : made.graph().nodes()) {
        if (node.kind() == NodeKind::GetAttr) tensors.insert(node.target());
        for (const Argument& arg : node.args())
            if (const auto* body = arg.get<SubgraphRef>()) bodies.insert(body->name);
        for (const auto& [key, arg] : node.kwargs())
            if (const auto* body = arg.get<SubgraphRef>()) bodies.insert(body->name);
    }
    for (const InputSpec& input : made.inputs) tensors.insert(input.target);
    std::erase_if(made.tensors, [&](const auto& one) { return !tensors.contains(one.first); });
    for (const auto& [name, body] : joint.subgraphs)
        if (bodies.contains(name)) made.subgraphs.emplace_back(name, std::make_unique<Module>(*body));
}

class Splitting {
  public:
    Splitting(const Module& joint, const JointFacts& facts) : m_joint(joint), m_facts(facts) {
        const std::vector<Node*> placeholders = joint.graph().placeholders();
        for (size_t i = 0; i < placeholders.size(); ++i) m_specs[placeholders[i]] = joint.inputs[i];
        const std::vector<Argument> returned = joint.graph().outputs();
        m_forwardOutputs.assign(returned.begin(), returned.begin() + static_cast<std::ptrdiff_t>(facts.forwardOutputs));
        m_gradients.assign(returned.begin() + static_cast<std::ptrdiff_t>(facts.forwardOutputs), returned.end());
    }

    Result<SplitGraph> split(const std::vector<int>& wanted) {
        SplitGraph out;
        for (const int value : wanted)
            (m_facts[value].symbolic ? out.saved.numbers : out.saved.values).push_back(value);
        CT_TRY_VOID(dropUnread(out.saved));
        bindSymbols(out.saved);
        CT_TRY(out.forward, forward(out.saved));
        CT_TRY(out.backward, backward(out.saved));
        return out;
    }

  private:
    std::vector<int> backwardInputs(const SavedForBackward& saved) const {
        std::vector<int> inputs = saved.numbers;
        inputs.insert(inputs.end(), saved.values.begin(), saved.values.end());
        inputs.insert(inputs.end(), m_facts.tangents.begin(), m_facts.tangents.end());
        return inputs;
    }
    static std::vector<const Node*> nodesOf(const std::vector<Argument>& values) {
        std::vector<const Node*> out;
        for (const Argument& value : values)
            if (value.node()) out.push_back(value.node());
        return out;
    }

    Error unreachable(const Node& output, std::string_view side) const {
        return Error{
            ErrorCode::Unsupported,
            std::string(side) + " returns " + output.name() + ", which cannot be computed from what it is given",
            output.name(),
            {"a value of the forward that depends on a tangent, or the other way round, cannot be split off"}};
    }

    /// Saved values that the backward turns out not to read are not saved.
    Result<void> dropUnread(SavedForBackward& saved) {
        const std::vector<int> inputs = backwardInputs(saved);
        Extraction extraction(m_facts, Side::Backward, inputs);
        const std::vector<const Node*> gradients = nodesOf(m_gradients);
        if (const Node* lost = extraction.need(gradients)) return unreachable(*lost, "the backward");
        std::vector<bool> read(m_facts.nodes.size());
        for (size_t i = 0; i + 1 < m_facts.nodes.size(); ++i)
            if (extraction.needed[i] && !extraction.isInput(i))
                for (const int input : m_facts.nodes[i].inputs) read[static_cast<size_t>(input)] = true;
        for (const Node* gradient : gradients) read[static_cast<size_t>(m_facts.at(*gradient))] = true;
        const auto unread = [&](int value) { return !read[static_cast<size_t>(value)]; };
        std::erase_if(saved.numbers, unread);
        std::erase_if(saved.values, unread);
        return {};
    }

    /// Saves inputs whose value is a size symbol where a type of the backward's inputs needs it; they come first.
    void bindSymbols(SavedForBackward& saved) const {
        std::map<std::string, int> bindings;
        for (const int input : m_facts.inputs)
            if (const SymType* type = m_facts[input].node->type().sym(); type && type->expr)
                if (type->expr->kind == ExprKind::Symbol) bindings.emplace(type->expr->name, input);
        if (bindings.empty()) return;
        std::vector<int> binding, derived;
        std::set<std::string> bound;
        for (const int number : saved.numbers) {
            const SymType* type = m_facts[number].node->type().sym();
            const bool binds = type && type->expr && type->expr->kind == ExprKind::Symbol;
            if (binds) bound.insert(type->expr->name);
            (binds ? binding : derived).push_back(number);
        }
        const std::vector<int>* const groups[] = {&derived, &saved.values, &m_facts.tangents};
        for (const std::vector<int>* group : groups)
            for (const int value : *group)
                for (const std::string& symbol : symbolsOf(m_facts[value].node->type()))
                    if (const auto found = bindings.find(symbol);
                        bound.insert(symbol).second && found != bindings.end())
                        binding.push_back(found->second);
        saved.numbers = std::move(binding);
        saved.numbers.insert(saved.numbers.end(), derived.begin(), derived.end());
    }
    static std::set<std::string> symbolsOf(const ValueType& type) {
        std::set<std::string> out;
        const auto collect = [&](const SymInt& size) {
            if (size.isInt()) return;
            for (std::string& symbol : cutaway::symbolsOf(size.expr())) out.insert(std::move(symbol));
        };
        if (const TensorType* tensor = type.tensor())
            for (const SymDims* dims : {&tensor->sizes, &tensor->strides})
                for (const SymInt& size : *dims) collect(size);
        if (const SymType* number = type.sym()) collect(SymInt(number->expr));
        return out;
    }

    void addInputs(Module& made, const std::vector<int>& inputs) const {
        for (const int input : inputs) {
            const Node& node = *m_facts[input].node;
            made.graph().takeAsInput(node);
            const auto spec = m_specs.find(&node);
            made.inputs.push_back(spec == m_specs.end() ? InputSpec{} : spec->second);
        }
    }
    void addNodes(Module& made, const Extraction& extraction) const {
        for (size_t i = 0; i + 1 < m_facts.nodes.size(); ++i)
            if (extraction.needed[i] && !extraction.isInput(i)) made.graph().take(*m_facts.nodes[i].node);
    }
    static void addOutputs(Module& made, const std::vector<Argument>& values) {
        const auto twin = [&](const Node* node) { return made.graph().find(node->id()); };
        ArgumentList list{{}, true};
        for (const Argument& value : values) list.items.push_back(value.mapNodes(twin));
        made.graph().output(Argument(std::move(list)));
    }

    Result<std::shared_ptr<Module>> forward(const SavedForBackward& saved) const {
        std::vector<Argument> outputs = m_forwardOutputs;
        for (const std::vector<int>* group : {&saved.values, &saved.numbers})
            for (const int value : *group) outputs.emplace_back(const_cast<Node*>(m_facts[value].node));
        Extraction extraction(m_facts, Side::Forward, m_facts.inputs);
        if (const Node* lost = extraction.need(nodesOf(outputs))) return unreachable(*lost, "the forward");
        std::shared_ptr<Module> made = emptyLike(m_joint, "forward");
        addInputs(*made, m_facts.inputs);
        addNodes(*made, extraction);
        addOutputs(*made, outputs);
        made->outputs.assign(m_joint.outputs.begin(),
                             m_joint.outputs.begin() +
                                 static_cast<std::ptrdiff_t>(std::min(m_facts.forwardOutputs, m_joint.outputs.size())));
        made->outputs.resize(m_facts.forwardOutputs);
        for (size_t i = m_facts.forwardOutputs; i < outputs.size(); ++i)
            made->outputs.push_back({OutputSpec::Kind::Saved, outputs[i].node()->name()});
        keepWhatIsNamed(m_joint, *made);
        return made;
    }
    Result<std::shared_ptr<Module>> backward(const SavedForBackward& saved) const {
        const std::vector<int> inputs = backwardInputs(saved);
        Extraction extraction(m_facts, Side::Backward, inputs);
        if (const Node* lost = extraction.need(nodesOf(m_gradients))) return unreachable(*lost, "the backward");
        std::shared_ptr<Module> made = emptyLike(m_joint, "backward");
        addInputs(*made, inputs);
        for (size_t i = 0; i < saved.numbers.size() + saved.values.size(); ++i) {
            InputSpec& spec = made->inputs[i];
            spec = {};
            spec.kind = InputSpec::Kind::Saved;
        }
        addNodes(*made, extraction);
        addOutputs(*made, m_gradients);
        for (size_t i = m_facts.forwardOutputs; i < m_facts.forwardOutputs + m_gradients.size(); ++i) {
            OutputSpec spec = i < m_joint.outputs.size() ? m_joint.outputs[i] : OutputSpec{};
            spec.kind = OutputSpec::Kind::Gradient;
            made->outputs.push_back(std::move(spec));
        }
        keepWhatIsNamed(m_joint, *made);
        return made;
    }

    const Module& m_joint;
    const JointFacts& m_facts;
    std::map<const Node*, InputSpec> m_specs;
    std::vector<Argument> m_forwardOutputs, m_gradients;
};

}  // namespace

Result<SplitGraph> splitGraph(const Module& joint, const JointFacts& facts, const std::vector<int>& saved) {
    return Splitting(joint, facts).split(saved);
}

void computeAgainLate(Module& backward) {
    Graph& graph = backward.graph();
    std::vector<Node*> order = graph.nodeList();
    std::vector<int> place(graph.idLimit(), -1);
    for (size_t i = 0; i < order.size(); ++i) place[index(order[i]->id())] = static_cast<int>(i);
    const auto at = [&](const Node& node) { return place[index(node.id())]; };

    int first = static_cast<int>(order.size());
    const std::vector<Node*> placeholders = graph.placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i)
        if (backward.inputs[i].kind == InputSpec::Kind::Tangent)
            for (const Node* user : placeholders[i]->users()) first = std::min(first, at(*user));
    if (first == static_cast<int>(order.size())) return;

    std::map<const Node*, std::vector<const Node*>> finders;  // lookups only
    for (const auto& [finder, reader] : foundSizes(graph)) finders[reader].push_back(finder);
    std::vector<bool> placed(order.size());
    for (const Node* placeholder : placeholders) placed[static_cast<size_t>(at(*placeholder))] = true;
    std::vector<Node*> result;
    const auto placeWithOperands = [&](Node& node) {
        std::vector<int> open = {at(node)}, found;
        while (!open.empty()) {
            const int one = open.back();
            open.pop_back();
            if (placed[static_cast<size_t>(one)]) continue;
            placed[static_cast<size_t>(one)] = true;
            found.push_back(one);
            for (const Node* input : order[static_cast<size_t>(one)]->inputs()) open.push_back(at(*input));
            for (const Node* finder : finders[order[static_cast<size_t>(one)]]) open.push_back(at(*finder));
        }
        std::sort(found.begin(), found.end());
        for (const int one : found) result.push_back(order[static_cast<size_t>(one)]);
    };
    for (int i = 0; i < first; ++i)
        if (order[static_cast<size_t>(i)]->isCall("aten.copy_.default"))
            placeWithOperands(*order[static_cast<size_t>(i)]);
    for (size_t i = static_cast<size_t>(first); i < order.size(); ++i) placeWithOperands(*order[i]);

    Node* const output = graph.outputNode();
    for (Node* node : result)
        if (node != output) graph.moveBefore(*node, *output);
}

void raiseGetitems(Graph& graph) {
    std::vector<Node*> taken;
    for (Node& node : graph.nodes())
        if (node.isCall("operator.getitem") && node.inputs().size() == 1) taken.push_back(&node);
    for (auto node = taken.rbegin(); node != taken.rend(); ++node) {
        Node& source = *(*node)->inputs().front();
        if (source.isPlaceholder()) continue;
        if (source.next() != *node) graph.moveBefore(**node, *source.next());
    }
}

}  // namespace cutaway
