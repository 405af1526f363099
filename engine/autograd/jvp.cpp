#include "engine/autograd/jvp.h"

#include <algorithm>

#include "engine/autograd/forward_duals.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/autograd/joint_graph.h"

namespace cutaway {
namespace {

constexpr std::string_view kSignature = "jvp(f, primals, tangents): ";

/// Positions of the inputs that move.
std::vector<size_t> differentiatedInputs(const Module& module) {
    const std::vector<Node*> inputs = module.graph().placeholders();
    std::vector<size_t> wanted, floating;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const InputSpec spec = i < module.inputs.size() ? module.inputs[i] : InputSpec{};
        const TensorType* type = inputs[i]->type().tensor();
        if (type == nullptr || !(isFloating(type->dtype) || isComplex(type->dtype))) continue;
        if (isDifferentiable(*inputs[i])) wanted.push_back(i);
        if (spec.kind == InputSpec::Kind::UserInput) floating.push_back(i);
    }
    return wanted.empty() ? floating : wanted;
}

/// Positions of the returned values that are the program's results, as opposed to what is written back.
std::vector<size_t> resultPositions(const Module& module) {
    std::vector<size_t> positions;
    for (size_t i = 0; i < module.graph().outputs().size(); ++i) {
        const OutputSpec::Kind kind = i < module.outputs.size() ? module.outputs[i].kind : OutputSpec::Kind::UserOutput;
        if (kind == OutputSpec::Kind::UserOutput || kind == OutputSpec::Kind::Loss) positions.push_back(i);
    }
    return positions;
}

std::string_view typeNameOf(const Argument& value) {
    if (value.isNone()) return "NoneType";
    if (value.get<bool>()) return "bool";
    if (value.get<int64_t>()) return "int";
    if (value.get<double>()) return "float";
    if (const SymType* symbol = value.node() ? value.node()->type().sym() : nullptr)
        return isFloating(symbol->dtype) ? "float" : "int";
    return "object";
}

Result<void> checkResults(const Module& module, const std::vector<size_t>& positions) {
    const std::vector<Argument> values = module.graph().outputs();
    for (const size_t i : positions)
        if (const Node* node = values[i].node(); node == nullptr || node->type().tensor() == nullptr)
            return Error{ErrorCode::InvalidInput,
                         std::string(kSignature) +
                             "expected f(*primals) to return only tensors, got unsupported type " + "<class '" +
                             std::string(typeNameOf(values[i])) + "'>",
                         node ? node->name() : "output",
                         {"returned value " + std::to_string(i + 1) + " is none: leave it out, or make it a tensor"}};
    return {};
}

class ForwardMode {
  public:
    ForwardMode(Module& module, Rewriter& rewriter)
        : m_module(module), m_graph(module.graph()), m_rewriter(rewriter), m_duals(m_graph, rewriter, &module) {}

    void addTangentInputs(const std::vector<size_t>& positions) {
        const std::vector<Node*> inputs = m_graph.placeholders();
        Node* after = inputs.back()->next();
        m_module.inputs.resize(inputs.size());
        int number = 0;
        for (const size_t i : positions) {
            const TensorType& primal = inputs[i]->tensor();
            // Repeated elements (a stride of 0) each move by themselves.
            TensorType type = TensorType::contiguous(primal.dtype, primal.sizes, primal.device);
            if (std::find(primal.strides.begin(), primal.strides.end(), SymInt(0)) == primal.strides.end())
                type.strides = primal.strides;
            Node& tangent = m_graph.placeholder("tangent_in_" + std::to_string(++number), std::move(type), after);
            InputSpec spec;
            spec.kind = InputSpec::Kind::ForwardTangent;
            const std::string& target = m_module.inputs[i].target;
            spec.target = target.empty() ? inputs[i]->name() : target;
            m_module.inputs.push_back(std::move(spec));
            m_duals.setTangent(*inputs[i], &tangent);
        }
    }

    Result<void> pushAll() {
        for (const Node& node : m_graph.nodes())
            if (node.isCall("operator.getitem"))
                m_rewriter.refuse(m_rewriter.pass(), node,
                                  "its tangent comes with those of the call that it takes a result of");
        for (Node* node = m_graph.first(); !node->isOutput() && !m_duals.stopped();) {
            Node* const call = node;
            node = node->next();
            if (!call->isCall()) continue;
            // Whoever returns an input that was written to returns the copy_ into it.
            if (isFinalCopy(*call) && call->arg(1).node()) {
                m_duals.setTangent(*call, m_duals.tangentOf(*call->arg(1).node()));
                continue;
            }
            if (call->op().mutates()) continue;
            if (m_duals.reaches(*call)) {
                CT_TRY(node, m_duals.push(*call));
            } else sayWhyStill(*call);
        }
        return {};
    }

    Result<void> setOutputs(const std::vector<size_t>& positions) {
        std::vector<Argument> values = m_graph.outputs();
        m_module.outputs.resize(values.size());
        GraphBuilder builder = m_rewriter.builder(m_graph, endOfCalls(), *m_graph.outputNode());
        for (const size_t i : positions) {
            const Node& result = *values[i].node();
            Node* tangent = m_duals.tangentOf(result);
            if (!tangent && m_rewriter.request().strict && !m_duals.stopped()) return independent(result, i);
            const TensorType& type = result.tensor();
            if (!tangent) tangent = full(builder, type.sizes, Scalar(int64_t{0}), type.dtype, type.device).node();
            if (builder.error()) return *builder.error();
            values.emplace_back(tangent);
            m_module.outputs.push_back({OutputSpec::Kind::ForwardTangent, std::to_string(i)});
        }
        m_graph.setArg(*m_graph.outputNode(), 0, ArgumentList{std::move(values), true});
        return {};
    }

  private:
    void sayWhyStill(const Node& call) {
        const std::vector<Node*> inputs = call.inputs();
        const bool reads =
            std::any_of(inputs.begin(), inputs.end(), [&](const Node* operand) { return m_duals.tangentOf(*operand); });
        m_rewriter.refuse(m_rewriter.pass(), call,
                          reads ? "its result does not move, though what it reads does"
                                : "it reads nothing that moves with the inputs");
    }
    /// Copies into inputs stay last.
    Node* endOfCalls() const {
        Node* position = m_graph.outputNode();
        while (position->previous() && isFinalCopy(*position->previous())) position = position->previous();
        return position;
    }
    static Error independent(const Node& result, size_t position) {
        return Error{ErrorCode::InvalidInput,
                     "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                     "not allowed with strict=True",
                     result.name(),
                     {"returned value " + std::to_string(position + 1) +
                      " depends on no differentiated input; without --strict its tangent is zero"}};
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    ForwardDuals m_duals;
};

}  // namespace

Result<bool> jvp(Module& module, Rewriter& rewriter) {
    const Node* output = module.graph().outputNode();
    if (output == nullptr) return invalidInput("the graph has no output");
    for (const std::string& name : rewriter.request().gradients) CT_TRY_VOID(requireGradient(module, name));
    const std::vector<size_t> inputs = differentiatedInputs(module), results = resultPositions(module);
    if (inputs.empty())
        return Error{ErrorCode::InvalidInput,
                     std::string(kSignature) + "Expected primals to contain at least one Tensor",
                     {},
                     {"no input of the graph is a floating tensor, so nothing can move"}};
    CT_TRY_VOID(checkResults(module, results));
    if (rewriter.begin("jvp", *output, "tangents of the inputs come in, those of the results are returned") != Go::Yes)
        return false;
    ForwardMode mode(module, rewriter);
    mode.addTangentInputs(inputs);
    CT_TRY_VOID(mode.pushAll());
    CT_TRY_VOID(mode.setOutputs(results));
    return true;
}

}  // namespace cutaway
