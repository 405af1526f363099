#include "engine/autograd/expand.h"

#include <algorithm>

#include "engine/autograd/gradient_flow.h"
#include "engine/autograd/joint_graph.h"
#include "engine/ops/operator_definition.h"
#include "engine/support/check.h"

namespace cutaway {

namespace {

bool takesGradient(const Node& node) {
    const TensorType* type = node.type().tensor();
    return type != nullptr && type->requiresGrad;
}
/// What takes the place of a value that a gradient flows through is such a value, too, if it was made for that: of what
/// was there before it is known (an input broadcast beside a parameter stays one without a gradient).
void takeGradient(Node* node, const std::vector<Node*>& made) {
    if (node == nullptr || node->type().tensor() == nullptr || takesGradient(*node)) return;
    if (std::find(made.begin(), made.end(), node) == made.end()) return;
    ValueType type = node->type();
    type.tensor()->requiresGrad = true;
    node->graph().setType(*node, std::move(type));
}

}  // namespace

/// Nodes made by a rule that then declines are removed again.
Result<bool> expandCall(Node& node, Rewriter& rewriter) {
    if (!node.isCall() || node.op().def() == nullptr || !node.op().def()->decompose) return false;
    if (!isKnown(node.type())) return false;  // expansions read what they are to give, and it from their operands
    Graph& graph = node.graph();
    GraphBuilder builder = rewriter.builder(graph, &node, node);
    Decomposition call(node, builder);
    const Values values = node.op().def()->decompose(call);
    if (builder.error()) {
        Error error = *builder.error();
        error.where = node.name();
        error.notes.push_back("while expanding " + node.op().name());
        return error;
    }
    if (!values.handled()) {
        const auto& made = builder.created();
        for (auto created = made.rbegin(); created != made.rend(); ++created)
            if (!(*created)->hasUsers()) graph.erase(**created);
        return false;
    }
    if (values.isTuple()) {
        std::vector<Node*> nodes;
        for (const Value& value : values.values()) nodes.push_back(value.node());
        for (const Node* user : node.users())
            if (const auto position = user->isCall("operator.getitem") ? user->arg(1).asInt() : std::nullopt;
                position && takesGradient(*user) && *position >= 0 && *position < static_cast<int64_t>(nodes.size()))
                takeGradient(nodes[static_cast<size_t>(*position)], builder.created());
        CT_TRY_VOID(rewriter.replaceTuple(node, nodes));
    } else if (values.values().empty() || values.values()[0].node() == nullptr) {
        if (node.hasUsers())
            return invalidInput(node.op().name() + ": gives no value, and something reads it", node.name());
        graph.erase(node);
    } else {
        if (takesGradient(node)) takeGradient(values.values()[0].node(), builder.created());
        rewriter.replace(node, *values.values()[0].node());
    }
    return true;
}

Result<bool> expandCalls(Module& module, Rewriter& rewriter, const Expanding& how) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, expandCalls(*body, rewriter, how));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node = graph.first(); node != nullptr;) {
        Node* const next = node->next();
        if (!node->isCall() || !how.isWanted(*node)) {
            node = next;
            continue;
        }
        // The rule may decline, so what it makes is only kept, and fuel only spent, if it does not.
        Node* const previous = node->previous();
        if (rewriter.outOfFuel() || rewriter.cancelled()) return changed;
        const std::string rule = how.rule(*node), where = node->name();
        const NodeId id = node->id();
        CT_TRY(const bool expanded, expandCall(*node, rewriter));
        if (!expanded) {
            if (rewriter.watches(*node)) rewriter.refuse(rule, *node, how.declined(*node));
            node = next;
            continue;
        }
        rewriter.record(rule, graph, where, id);
        changed = true;
        // Continue with what the expansion made: it may hold ops that expand in turn.
        node = previous ? previous->next() : graph.first();
    }
    return changed;
}

namespace {

/// Which calls of an operator are expanded (OpDef::decompose declines the others), to explain why one stays.
struct ExpansionCondition {
    std::string_view op, why;
};
constexpr ExpansionCondition kConditions[] = {
    {"aten.mm.default",
     "only on the CPU, a row times a column, or a short column times a row, is written as products and a sum"},
    {"aten.bmm.default", "only on the CPU, rows times columns are written as products and a sum"},
    {"aten.addmm.default",
     "only on the CPU, a row times a column, or times a matrix of at most 16 by 16, is written as products and a sum"},
    {"aten.grid_sampler_2d.default", "bicubic samples, and those of images of unknown size, stay"},
    {"aten.bernoulli.p", "the CPU draws these numbers in its own order"},
    {"aten.index_add.default", "numbers of bfloat16 are not added one by one"},
    {"aten.index_reduce.default", "only a mean is written as sums, and not one of int64, bool or bfloat16"},
    {"aten.adaptive_max_pool2d.default", "only planes that the wanted sizes divide are pooled by windows of one size"},
    {"aten.full.default", "its dtype is given already"},
    {"aten.mean.dim", "only a mean of complex numbers is a sum divided by their count"},
    {"aten.mean.default", "only a mean of complex numbers is a sum divided by their count"},
    {"aten.var.correction", "only a variance of complex numbers is that of their parts"},
    {"aten.var_mean.correction", "only a variance of complex numbers is that of their parts"},
    {"aten.ldexp.Tensor", "only of complex numbers it is written as a product and a power"},
    {"aten.isnan.default", "only of complex numbers either part may be it"},
    {"aten.isinf.default", "only of complex numbers either part may be it"},
    {"aten.amax.default", "only of bools the largest is whether there is any"},
    {"aten.amin.default", "only of bools the smallest is whether all are true"},
    {"aten.cat.default", "only one tensor, empty ones and the same one again need no joining"},
    {"aten.convolution_backward.default",
     "only on the GPU, and where the bias has a gradient, that gradient is a sum beside it"},
    {"aten.max_pool2d_with_indices.default", "windows of more than 25 elements, or of unknown size, stay"},
    {"aten.max_pool3d_with_indices.default", "windows of more than 25 elements, or of unknown size, stay"},
};

std::string declined(const Node& node) {
    if (!isKnown(node.type())) return "what it gives is not known";
    const auto kept = std::find_if(std::begin(kConditions), std::end(kConditions),
                                   [&](const ExpansionCondition& row) { return row.op == node.op().name(); });
    std::string operands;
    for (const Node* input : node.inputs()) operands += (operands.empty() ? "" : " and ") + input->type().text();
    if (kept == std::end(kConditions))
        return "the operator stays as it is" + (operands.empty() ? "" : " for " + operands);
    return std::string(kept->why) + (operands.empty() ? "" : "; its operands are " + operands);
}

/// `composite`: only shorthand ops, as before differentiation; else all, since derivatives and expansions use shorthand
/// too.
Result<bool> expandAll(Module& module, Rewriter& rewriter, bool composite, bool late = false) {
    return expandCalls(module, rewriter,
                       {.isWanted =
                            [&](const Node& node) {
                                const OpDef* def = node.op().def();
                                if (def == nullptr || !def->decompose || def->expand == Expand::Never ||
                                    (composite && def->expand != Expand::Composite) ||
                                    (late && !def->decomposedIn.until && !definitionOf(node.op())) ||
                                    rewriter.disabled(node.op().name()))
                                    return false;
                                const Release release = rewriter.request().pytorch;
                                if (late || def->decomposedIn.hold(release)) return true;
                                if (rewriter.watches(node))
                                    rewriter.refuse(
                                        node.op().name(), node,
                                        "PyTorch " + std::string(releaseName(release)) + " leaves the operator whole");
                                return false;
                            },
                        .rule = [](const Node& node) { return node.op().name(); },
                        .declined = declined});
}

}  // namespace

namespace {

/// Notes on the values' types which of them a gradient will flow through: kernels without a derivative by an operand
/// are not chosen where that is asked for (a mask of attention). Files say what held while they were exported.
Result<void> markGradients(Module& module, const CompileRequest& request) {
    for (const std::string& name : request.gradients) CT_TRY_VOID(requireGradient(module, name));
    const std::vector<bool> flow = gradientFlow(module);
    for (Node& node : module.graph().nodes()) {
        const TensorType* tensor = node.type().tensor();
        if (tensor == nullptr || tensor->requiresGrad == flow[index(node.id())]) continue;
        ValueType type = node.type();
        type.tensor()->requiresGrad = flow[index(node.id())];
        module.graph().setType(node, std::move(type));
    }
    return {};
}

}  // namespace

Result<bool> expandComposites(Module& module, Rewriter& rewriter) {
    if (rewriter.request().mode == Mode::Training) CT_TRY_VOID(markGradients(module, rewriter.request()));
    return expandAll(module, rewriter, true);
}
Result<bool> decompose(Module& module, Rewriter& rewriter) { return expandAll(module, rewriter, false); }
Result<bool> decomposeKept(Module& module, Rewriter& rewriter) { return expandAll(module, rewriter, false, true); }

}  // namespace cutaway
