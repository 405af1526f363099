#include "engine/passes/freezing/freeze_parameters.h"

#include "engine/ops/alias.h"
#include "engine/passes/freezing/options.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

using Kind = InputSpec::Kind;
constexpr std::string_view kFreeze = "freeze_parameter";

bool belongsToProgram(Kind kind) { return kind == Kind::Parameter || kind == Kind::Buffer || kind == Kind::Constant; }

/// Whether the value is what a layer works on, not one of its weights: the first factor of a product, the input of a
/// convolution, what is looked up.
bool isWorkedOn(const Node& input) {
    for (const Node* user : input.users()) {
        if (!user->isCall() || user->op().isOpaque()) continue;
        const auto reads = [&](std::string_view op, std::string_view param) {
            return user->isCall(op) && user->arg(param).node() == &input;
        };
        if (reads("aten.convolution.default", "input") || reads("aten.mm.default", "self") ||
            reads("aten.addmm.default", "mat1") || reads("aten.embedding.default", "indices"))
            return true;
    }
    return false;
}

/// How many of the last inputs are given for each run. The last one is; one before it is if it agrees with it in its
/// first size, as items of one batch do, or if a layer works on it directly.
size_t guessGiven(const std::vector<Node*>& inputs) {
    if (inputs.empty()) return 0;
    const auto firstSize = [](const Node& node) -> std::optional<SymInt> {
        const TensorType* type = node.type().tensor();
        return type && type->rank() > 0 ? std::optional(type->sizes[0]) : std::nullopt;
    };
    const auto hasItems = [](const Node& node) { return node.type().tensor() && node.type().tensor()->rank() > 1; };
    const std::optional<SymInt> batch = firstSize(*inputs.back());
    size_t given = 1;
    while (given < inputs.size()) {
        const Node& next = *inputs[inputs.size() - 1 - given];
        const bool agrees = batch && firstSize(next) == batch && hasItems(next) == hasItems(*inputs.back());
        if (!agrees && !isWorkedOn(next) && next.type().tensor()) break;
        ++given;
    }
    return given;
}

/// The first call that writes to the input's memory; null if none does.
const Node* writerOf(const Node& input) {
    for (const Node* sharer : sharersOf(input))
        for (const Node* user : sharer->users())
            if (user->isCall() && user->op().mutates() && !user->args().empty() && user->arg(0).node() == sharer)
                return user;
    return nullptr;
}
const Node* returnedShareOf(const Graph& graph, const Node& input) {
    for (const Argument& value : graph.outputs())
        if (const Node* node = value.node(); node && &storageRoot(*node) == &input) return node;
    return nullptr;
}

class Freezing {
  public:
    Freezing(Module& module, Rewriter& rewriter)
        : m_module(module), m_graph(module.graph()), m_rewriter(rewriter), m_inputs(m_graph.placeholders()) {
        m_module.inputs.resize(m_inputs.size());
        m_parameters = parametersAmongInputs(module, freezingOptions(rewriter.request()).inputs);
        for (Node& node : m_graph.nodes())
            if (!node.isPlaceholder()) {
                m_behindInputs = &node;
                break;
            }
    }

    bool run() {
        std::vector<InputSpec> kept;
        bool stopped = false;
        for (size_t i = 0; i < m_inputs.size(); ++i) {
            const Go go = stopped || !mayFreeze(i) ? Go::Skip : m_rewriter.begin(kFreeze, *m_inputs[i], why(i));
            stopped = stopped || go == Go::Stop;
            if (go == Go::Yes) freeze(i);
            else kept.push_back(m_module.inputs[i]);
        }
        m_module.inputs = std::move(kept);
        return m_rewriter.changed();
    }

  private:
    std::string_view why(size_t position) const {
        if (belongsToProgram(m_module.inputs[position].kind)) return "weights do not change between runs";
        return "taken for a weight: what is given for each run stands last (--enable freeze=inputs:N says how many)";
    }

    bool mayFreeze(size_t position) {
        const Node& input = *m_inputs[position];
        const Refusing no(m_rewriter, kFreeze, input);
        if (!m_parameters[position]) return no("it is given for each run");
        if (input.type().tensor() == nullptr) return no("it is not a tensor");
        const std::string& target = m_module.inputs[position].target;
        for (const OutputSpec& output : m_module.outputs)
            if (!target.empty() && output.target == target &&
                (output.kind == OutputSpec::Kind::BufferMutation || output.kind == OutputSpec::Kind::ParameterMutation))
                return no("the graph computes a new value for it");
        if (const Node* writer = writerOf(input)) return no.about(writer, writer, " writes to it");
        if (const Node* share = returnedShareOf(m_graph, input))
            return no.about(share, share == &input ? "it is returned" : "a view of it is returned");
        return true;
    }

    void freeze(size_t position) {
        Node& input = *m_inputs[position];
        std::string target = m_module.inputs[position].target;
        if (target.empty()) target = freshName(position);
        const std::string name = input.name();
        Provenance provenance = input.provenance();
        provenance.origin = {input.id()};
        provenance.createdBy = std::string(m_rewriter.pass());
        TensorType type = input.tensor();
        type.requiresGrad = false;
        Node& constant = m_graph.getAttr(target, ValueType(std::move(type)), m_behindInputs);
        m_graph.setProvenance(constant, std::move(provenance));
        m_graph.replaceUses(input, constant);
        m_graph.erase(input);
        m_graph.rename(constant, name);
    }
    std::string freshName(size_t number) const {
        std::string name;
        do name = "_frozen_param" + std::to_string(number++);
        while (m_module.hasConstant(name));
        return name;
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    const std::vector<Node*> m_inputs;
    std::vector<bool> m_parameters;
    Node* m_behindInputs = nullptr;  // the first node that is not an input
};

}  // namespace

std::vector<bool> parametersAmongInputs(const Module& module, int64_t given) {
    const std::vector<Node*> inputs = module.graph().placeholders();
    std::vector<bool> parameters(inputs.size());
    bool said = module.origin.format.starts_with(".pt2");  // a program without weights says so, too
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Kind kind = i < module.inputs.size() ? module.inputs[i].kind : Kind::UserInput;
        parameters[i] = belongsToProgram(kind);
        said = said || kind != Kind::UserInput;
    }
    if (said && given < 0) return parameters;
    const size_t last = given >= 0 ? std::min(static_cast<size_t>(given), inputs.size()) : guessGiven(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) parameters[i] = i + last < inputs.size();
    return parameters;
}

Result<bool> replaceParametersWithConstants(Module& module, Rewriter& rewriter) {
    return Freezing(module, rewriter).run();
}

}  // namespace cutaway
