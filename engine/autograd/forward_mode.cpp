#include "engine/autograd/forward_mode.h"

#include <algorithm>
#include <map>

#include "engine/autograd/expand.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/autograd/tangent_rules.h"

namespace cutaway {
namespace {

class ForwardMode {
  public:
    explicit ForwardMode(Module& module)
        : m_module(module), m_graph(module.graph()), m_rewriter("forward_mode", m_options) {}

    Result<void> run(bool strict) {
        addTangents();
        for (Node* node = m_graph.first(); node != nullptr && !node->isOutput();) {
            // What is copied back into an input at the end is no result.
            if (!node->isCall() || node->op().mutates() || node->is(Tag::NoGradient) || node->is(Tag::Factory) ||
                !dependsOnTangent(*node)) {
                node = node->next();
                continue;
            }
            CT_TRY(node, push(*node));
        }
        return setOutputs(strict);
    }

  private:
    void addTangents() {
        const std::vector<Node*> inputs = m_graph.placeholders();
        Node* after = m_graph.first();
        while (after && after->isPlaceholder()) after = after->next();
        m_module.inputs.resize(inputs.size());
        int number = 0;
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (!isDifferentiable(m_module.inputs[i], *inputs[i])) continue;
            TensorType type = inputs[i]->tensor();
            type.requiresGrad = false;
            Node& tangent = m_graph.placeholder("tangent_in_" + std::to_string(++number), std::move(type), after);
            InputSpec spec;
            spec.kind = InputSpec::Kind::Tangent;
            spec.target = m_module.inputs[i].target;
            m_module.inputs.push_back(std::move(spec));
            m_tangents[inputs[i]->id()] = {&tangent};
        }
    }

    Node* tangentOf(const Node& value) const {
        const Node* node = &value;
        size_t item = 0;
        if (value.isCall("operator.getitem") && value.arg(0).node() && value.arg(0).node()->type().tuple()) {
            node = value.arg(0).node();
            const int64_t count = static_cast<int64_t>(node->type().tuple()->size());
            const int64_t position = value.arg(1).asInt().value_or(0);
            item = static_cast<size_t>(position < 0 ? position + count : position);
        }
        const auto found = m_tangents.find(node->id());
        return found == m_tangents.end() || item >= found->second.size() ? nullptr : found->second[item];
    }

    bool dependsOnTangent(const Node& call) const {
        if (call.isCall("operator.getitem") && call.arg(0).node() && call.arg(0).node()->type().tuple()) return false;
        for (const Node* operand : call.inputs())
            if (tangentOf(*operand)) return true;
        return false;
    }

    /// Results as values that rules may read; a tuple gets the getitems that it lacks.
    std::vector<Value> resultsOf(Node& call, GraphBuilder& builder) {
        if (!call.type().tuple()) return {builder.value(call)};
        std::vector<Value> results;
        for (size_t i = 0; i < call.type().tuple()->size(); ++i)
            results.push_back(builder.value(call)[static_cast<int64_t>(i)]);
        return results;
    }

    static bool carriesTangent(const ValueType& type) {
        if (const TensorType* tensor = type.tensor()) return isFloating(tensor->dtype);
        if (const TupleType* items = type.tuple()) return std::any_of(items->begin(), items->end(), carriesTangent);
        return false;
    }

    /// Builds the tangents of one call after it; returns the node to go on with.
    Result<Node*> push(Node& call) {
        Node* const next = call.next();
        if (!carriesTangent(call.type())) return next;
        if (call.op().isOpaque()) return noRule(call);
        GraphBuilder builder = m_rewriter.builder(m_graph, next, call);
        const TangentCall::Lookup lookup = [this](const Node& value) { return tangentOf(value); };
        TangentCall tangentCall(call, builder, resultsOf(call, builder), lookup);
        auto tangents = tangentsOf(tangentCall);
        if (builder.error()) return at(*builder.error(), call);
        std::vector<Node*> nodes;
        if (tangents)
            for (const Value& tangent : *tangents) nodes.push_back(tangent.node());
        const auto& made = builder.created();
        for (auto node = made.rbegin(); node != made.rend(); ++node)
            if (!(*node)->hasUsers() && std::find(nodes.begin(), nodes.end(), *node) == nodes.end())
                m_graph.erase(**node);
        if (!tangents) return expandInstead(call);
        m_tangents[call.id()] = std::move(nodes);
        // What the rule has built has no tangents of its own: it is skipped.
        return next;
    }

    Result<Node*> expandInstead(Node& call) {
        Node* const previous = call.previous();
        const Error missing = noRule(call);
        CT_TRY(const bool expanded, expandCall(call, m_rewriter));
        if (!expanded) return missing;
        return previous ? previous->next() : m_graph.first();
    }

    static Error noRule(const Node& call) {
        return unsupported("forward-mode differentiation of " + call.op().name() + " is not implemented", call.name(),
                           {"use the joint graph, or write the op in terms of smaller ones"});
    }
    static Error at(Error error, const Node& call) {
        error.where = call.name();
        error.notes.push_back("while taking the tangent of " + call.op().name());
        return error;
    }

    Result<void> setOutputs(bool strict) {
        std::vector<Argument> values = m_graph.outputs();
        m_module.outputs.resize(values.size());
        const size_t count = values.size();
        GraphBuilder builder(m_graph, m_graph.outputNode());
        for (size_t i = 0; i < count; ++i) {
            const Node* node = values[i].node();
            OutputSpec spec;
            spec.kind = OutputSpec::Kind::Gradient;
            spec.target = m_module.outputs[i].target;
            m_module.outputs.push_back(std::move(spec));
            const TensorType* type = node ? node->type().tensor() : nullptr;
            Node* tangent = node ? tangentOf(*node) : nullptr;
            if (!tangent && strict)
                return invalidInput(
                    "returned value " + std::to_string(i) + " does not depend on the differentiated inputs",
                    node ? node->name() : "output");
            if (tangent) values.emplace_back(tangent);
            else if (type && isFloating(type->dtype))
                values.push_back(full(builder, type->sizes, Scalar(int64_t{0}), type->dtype, type->device));
            else values.emplace_back();
        }
        if (builder.error()) return *builder.error();
        m_graph.setArg(*m_graph.outputNode(), 0, ArgumentList{std::move(values), true});
        return {};
    }

    Module& m_module;
    Graph& m_graph;
    CompileRequest m_options;
    Rewriter m_rewriter;
    std::map<NodeId, std::vector<Node*>> m_tangents;  // one per result; null for none
};

}  // namespace

Result<std::unique_ptr<Module>> makeForwardMode(const Module& forward, const ForwardModeOptions& options) {
    auto module = std::make_unique<Module>(forward);
    if (module->graph().outputNode() == nullptr) return invalidInput("the graph has no output");
    CT_TRY_VOID(requireGradients(*module, options.wanted));
    CT_TRY_VOID(ForwardMode(*module).run(options.strict));
    return module;
}

}  // namespace cutaway
