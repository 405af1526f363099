#include "engine/partition/joint_facts.h"

#include <algorithm>

#include "engine/ir/unbacked_sizes.h"
#include "engine/ops/alias.h"
#include "engine/partition/op_sets.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {
namespace {

constexpr int64_t kUnknownFactSize = 4096;  // PyTorch's fallback of a size hint

/// The product, or the largest number where it does not fit.
int64_t times(int64_t a, int64_t b) {
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t bytesOf(const TensorType& tensor, const SymbolValues& hints) {
    int64_t bytes = byteSize(tensor.dtype);
    for (const SymInt& size : tensor.sizes) {
        const std::optional<int64_t> known = size.isInt() ? size.asInt() : valueFor(size, hints);
        bytes = times(bytes, std::max<int64_t>(0, known.value_or(kUnknownFactSize)));
    }
    return bytes;
}

bool isSeed(const Node& placeholder, std::string_view side) {
    const std::string& name = placeholder.name();
    return name.find(std::string(side) + "_seed") != std::string::npos ||
           name.find(std::string(side) + "_base_offset") != std::string::npos;
}

/// Whether the input is a parameter or buffer by its name: Dynamo's text names inputs after where they come from.
bool isNamedState(const Node& placeholder) {
    const std::string& source = placeholder.provenance().sourceName;
    const std::string& name = source.empty() ? placeholder.target() : source;
    return (name.starts_with("L_") || name.starts_with("l_")) &&
           (name.find("_parameters_") != std::string::npos || name.find("_buffers_") != std::string::npos);
}

bool drawsAnew(const Node& node) {
    if (!node.is(Tag::Random) || node.op().packet().starts_with("prims.inductor_rand")) return false;
    const int dropout = node.op().schema()->find("dropout_p");  // attention draws only if it drops something
    return dropout < 0 || node.arg(static_cast<size_t>(dropout)).asReal() != 0.0;
}

bool drawsAnewIn(const Module& module, const Node& node) {
    if (drawsAnew(node)) return true;
    return std::any_of(node.args().begin(), node.args().end(), [&](const Argument& argument) {
        const auto* name = argument.get<SubgraphRef>();
        const Module* const graph = name ? module.subgraph(name->name) : nullptr;
        if (graph == nullptr) return false;
        const auto nodes = graph->graph().nodes();
        return std::any_of(nodes.begin(), nodes.end(),
                           [&](const Node& inner) { return inner.isCall() && drawsAnewIn(*graph, inner); });
    });
}

JointNode describe(const Module& joint, const Node& node, const SymbolValues& hints) {
    JointNode made;
    made.node = &node;
    made.bytes = node.kind() == NodeKind::GetAttr || node.isCall("aten._assert_scalar.default")
                     ? 0
                     : bytesOf(node.type(), hints);
    made.view = isViewOp(node);
    made.recomputable = isRecomputable(node);
    made.random = isRandomOp(node);
    made.heavy = isComputeIntensive(node);
    made.fusible = made.recomputable || made.random;
    made.concatenates = node.isCall() && node.op().packet() == "aten.cat";
    // What is drawn from a given seed is the same again.
    made.drawsAnew = drawsAnewIn(joint, node);
    made.collective = node.isCall() && node.op().packet().starts_with("_c10d_functional.");
    made.multipleResults = node.type().tuple() != nullptr || node.type().isNone() || node.type().isOpaque();
    made.symbolic = node.type().sym() != nullptr;
    made.recompute = node.provenance().recompute;
    made.region = node.provenance().region;
    return made;
}

}  // namespace

int64_t bytesOf(const ValueType& type, const SymbolValues& hints) {
    if (const TensorType* tensor = type.tensor()) return bytesOf(*tensor, hints);
    if (type.sym()) return 1;
    int64_t sum = 0;
    if (const TupleType* items = type.tuple())
        for (const ValueType& item : *items)
            if (__builtin_add_overflow(sum, bytesOf(item, hints), &sum)) return std::numeric_limits<int64_t>::max();
    return sum;
}

bool mustBeInForward(const Node& node) { return node.isCall() && node.op().mutates() && !node.provenance().backward; }
bool mustBeInBackward(const Node& node) { return node.isCall() && node.op().mutates() && node.provenance().backward; }

namespace {

/// Fills in what follows from the edges of the graph.
class Classifier {
  public:
    Classifier(const Module& joint, JointFacts& facts) : m_joint(joint), m_facts(facts) {}

    void classify() {
        findInputs();
        findRequiredBackward();
        findRequiredForward();
        findDistances();
        for (JointNode& node : m_facts.nodes)
            node.fusesWithAllUsers =
                !node.node->isPlaceholder() && std::all_of(node.users.begin(), node.users.end(), [&](int user) {
                    return m_facts.fusible(m_facts.at(*node.node), user);
                });
    }

  private:
    void findInputs() {
        const std::vector<Node*> placeholders = m_joint.graph().placeholders();
        std::vector<int> seeds, backwardSeeds;
        for (size_t i = 0; i < placeholders.size(); ++i) {
            const int number = m_facts.at(*placeholders[i]);
            const bool tangent = m_joint.inputs[i].kind == InputSpec::Kind::Tangent;
            if (tangent) m_facts.tangents.push_back(number);
            else if (isSeed(*placeholders[i], "bwd")) backwardSeeds.push_back(number);
            else if (isSeed(*placeholders[i], "fwd")) seeds.push_back(number);
            else m_facts.inputs.push_back(number);
            const auto kind = m_joint.inputs[i].kind;
            m_facts.nodes[static_cast<size_t>(number)].stays =
                kind == InputSpec::Kind::Parameter || kind == InputSpec::Kind::Buffer || isNamedState(*placeholders[i]);
        }
        m_facts.inputs.insert(m_facts.inputs.end(), seeds.begin(), seeds.end());
        for (const int number : m_facts.inputs) m_facts.nodes[static_cast<size_t>(number)].forwardInput = true;
        m_tangents = m_facts.tangents;
        m_facts.tangents.insert(m_facts.tangents.end(), backwardSeeds.begin(), backwardSeeds.end());
    }

    void findRequiredBackward() {
        for (const int tangent : m_tangents) m_facts.nodes[static_cast<size_t>(tangent)].requiredBackward = true;
        for (JointNode& node : m_facts.nodes) {
            if (mustBeInBackward(*node.node)) node.requiredBackward = true;
            if (!node.requiredBackward) continue;
            for (const int user : node.users) m_facts.nodes[static_cast<size_t>(user)].requiredBackward = true;
        }
        for (JointNode& node : m_facts.nodes) node.tangentsClosure = node.requiredBackward;
        const std::vector<Argument> returned = m_joint.graph().outputs();
        for (size_t i = m_facts.forwardOutputs; i < returned.size(); ++i)
            if (const Node* gradient = returned[i].node()) {
                m_facts.nodes[static_cast<size_t>(m_facts.at(*gradient))].requiredBackward = true;
                m_facts.hasBackward = true;
            }
        for (const JointNode& node : m_facts.nodes)
            m_facts.hasBackward = m_facts.hasBackward || (node.requiredBackward && !node.node->isOutput());
    }

    /// What the forward's values, and the effects that belong to it, are computed from.
    void findRequiredForward() {
        std::vector<bool> available(m_facts.nodes.size()), needed(m_facts.nodes.size());
        for (size_t i = 0; i + 1 < m_facts.nodes.size(); ++i) {
            const JointNode& node = m_facts.nodes[i];
            if (node.node->isPlaceholder()) available[i] = node.forwardInput;
            else if (mustBeInBackward(*node.node)) available[i] = false;
            else
                available[i] = std::all_of(node.inputs.begin(), node.inputs.end(),
                                           [&](int input) { return available[static_cast<size_t>(input)]; });
        }
        const std::vector<Argument> returned = m_joint.graph().outputs();
        for (size_t i = 0; i < m_facts.forwardOutputs; ++i)
            if (const Node* value = returned[i].node()) needed[static_cast<size_t>(m_facts.at(*value))] = true;
        for (size_t i = m_facts.nodes.size() - 1; i-- > 0;) {
            const JointNode& node = m_facts.nodes[i];
            const bool impure = node.node->isCall() && !isPure(*node.node);
            needed[i] = available[i] && (needed[i] || impure || node.forwardInput);
            if (!needed[i]) continue;
            for (const int input : node.inputs) needed[static_cast<size_t>(input)] = true;
        }
        int order = 0;
        for (size_t i = 0; i < m_facts.nodes.size(); ++i)
            if (needed[i]) m_facts.nodes[i].forwardOrder = order++;
    }

    void findDistances() {
        m_facts.nodes.back().distance = kNotNeeded;
        for (size_t i = m_facts.nodes.size() - 1; i-- > 0;) {
            JointNode& node = m_facts.nodes[i];
            if (!node.requiredForward()) continue;
            node.distance = kNotNeeded;
            for (const int user : node.users) node.distance = std::min(node.distance, m_facts[user].distance + 1);
        }
    }

    const Module& m_joint;
    JointFacts& m_facts;
    std::vector<int> m_tangents;
};

}  // namespace

Result<size_t> countForwardOutputs(const Module& joint) {
    const size_t returned = joint.graph().outputs().size();
    // Nothing was differentiated (A3.2): all is forward.
    if (std::none_of(joint.inputs.begin(), joint.inputs.end(),
                     [](const InputSpec& input) { return input.kind == InputSpec::Kind::Tangent; }))
        return returned;
    size_t leading = 0;
    while (leading < joint.outputs.size() && joint.outputs[leading].kind != OutputSpec::Kind::Gradient) ++leading;
    if (leading < joint.outputs.size()) return leading;
    // Text does not say what is returned: the gradients are the last, one for each primal.
    size_t primals = 0;
    for (const Node* placeholder : joint.graph().placeholders())
        primals += placeholder->name().find("tangents") == std::string::npos && !isSeed(*placeholder, "fwd") &&
                   !isSeed(*placeholder, "bwd");
    if (returned < primals)
        return Error{ErrorCode::InvalidInput,
                     "this is not a joint graph: it returns " + std::to_string(returned) + " values, fewer than its " +
                         std::to_string(primals) + " inputs, each of which has a gradient or None",
                     {},
                     {"compile with --mode training from a forward graph, which makes the joint graph"}};
    return returned - primals;
}

Result<JointFacts> jointFacts(const Module& joint, const SymbolValues& hints) {
    const Graph& graph = joint.graph();
    if (graph.outputNode() == nullptr) return invalidInput("the graph has no output");
    JointFacts facts;
    facts.atId.assign(graph.idLimit(), -1);
    facts.nodes.reserve(graph.size());
    for (const Node& node : graph.nodes()) {
        facts.atId[index(node.id())] = static_cast<int>(facts.nodes.size());
        facts.nodes.push_back(describe(joint, node, hints));
    }
    for (JointNode& node : facts.nodes) {
        for (const Node* input : node.node->inputs()) node.inputs.push_back(facts.at(*input));
        for (const Node* user : node.node->users()) node.users.push_back(facts.at(*user));
        facts.hasTags = facts.hasTags || node.recompute > 0;
    }
    for (const auto& [finder, reader] : foundSizes(graph)) {
        facts.nodes[static_cast<size_t>(facts.at(*reader))].inputs.push_back(facts.at(*finder));
        facts.nodes[static_cast<size_t>(facts.at(*finder))].users.push_back(facts.at(*reader));
    }
    CT_TRY(facts.forwardOutputs, countForwardOutputs(joint));
    Classifier(joint, facts).classify();
    return facts;
}

}  // namespace cutaway
