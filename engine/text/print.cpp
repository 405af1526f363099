#include "engine/text/print.h"

#include <set>

#include "engine/text/literal.h"
#include "engine/text/print_node.h"
#include "engine/text/provenance_text.h"
#include "engine/text/runnable.h"

namespace cutaway {
namespace fxtext {
namespace {

class ShortPrinter {
  public:
    ShortPrinter(const PrintOptions& options, const Module& root) : m_options(options), m_root(&root) {}

    void function(const Module& module, std::string_view name, size_t indent);
    void symbols(const Module& module) {
        for (const auto& [name, info] : module.symbols)
            if (const std::string comment = symbolComment(name, info); !comment.empty())
                line(0, "# " + comment, NodeId::None);
    }
    PrintedText take() { return std::move(m_printed); }

  private:
    void line(size_t indent, std::string_view content, NodeId node) {
        m_printed.text.append(indent, ' ').append(content) += '\n';
        m_printed.lineNodes.push_back(node);
    }
    void head(const Module& module, std::string_view name, const NodePrinter& nodes, const InputNames& inputs,
              bool expanded, size_t indent);
    void returned(const Module& module, const NodePrinter& nodes, const InputNames& inputs, bool expanded,
                  size_t indent);

    PrintOptions m_options;
    const Module* m_root;
    PrintedText m_printed;
};

/// True if some input or output is more than a user's.
bool hasRoles(const Module& module, size_t placeholders) {
    if (module.inputs.size() != placeholders || module.outputs.size() != module.graph().outputs().size()) return false;
    for (const InputSpec& spec : module.inputs)
        if (spec.kind != InputSpec::Kind::UserInput) return true;
    for (const OutputSpec& spec : module.outputs)
        if (spec.kind != OutputSpec::Kind::UserOutput) return true;
    return false;
}

/// The parameter's own name where it differs from the node's and can be told apart from all others.
std::string rawName(const Node& node, std::set<std::string>& taken) {
    std::string_view raw = node.target();
    const size_t stars = std::min(raw.find_first_not_of('*'), raw.size());
    raw.remove_prefix(stars);
    const Node* same = isIdentifier(raw) ? node.graph().findByName(raw) : &node;
    if (raw.empty() || !isIdentifier(raw) || (same != nullptr && same != &node) ||
        !taken.insert(std::string(raw)).second)
        return node.name();
    return node.target();
}

void ShortPrinter::head(const Module& module, std::string_view name, const NodePrinter& nodes, const InputNames& inputs,
                        bool expanded, size_t indent) {
    std::string whole = "def " + std::string(name) + "(";
    if (expanded) line(indent, whole, NodeId::None);
    std::set<std::string> taken;
    std::vector<std::pair<const Node*, std::string>> renamed;
    size_t position = 0, user = 0;
    for (const Node* node : module.graph().placeholders()) {
        const std::string raw = rawName(*node, taken);
        const std::string plain = raw.substr(std::min(raw.find_first_not_of('*'), raw.size()));
        if (plain != node->name()) renamed.emplace_back(node, plain);
        const std::string type = nodes.annotation(*node);
        const std::string parameter = raw + (type.empty() ? "" : ": \"" + type + "\"");
        if (expanded) {
            const InputSpec& spec = inputs.specs[position];
            const TensorType* tensor = node->type().tensor();
            std::string role = inputRole(spec, spec.kind == InputSpec::Kind::UserInput ? user++ : 0);
            if (spec.kind == InputSpec::Kind::Parameter && tensor && isFloating(tensor->dtype) && !tensor->requiresGrad)
                role.insert(role.size() - 1, ", requires_grad=False");
            line(indent + 4, parameter + ",  # " + role, node->id());
        } else whole += (position > 0 ? ", " : "") + parameter;
        ++position;
    }
    line(indent, expanded ? "):" : whole + "):", NodeId::None);
    for (const auto& [node, raw] : renamed) line(indent + 4, node->name() + " = " + raw, node->id());
}

void ShortPrinter::returned(const Module& module, const NodePrinter& nodes, const InputNames& inputs, bool expanded,
                            size_t indent) {
    const Node* output = module.graph().outputNode();
    if (output == nullptr) return line(indent, "return None", NodeId::None);
    const auto* list = output->arg(0).get<ArgumentList>();
    if (!expanded || (list && list->items.empty()))
        return line(indent, "return " + nodes.value(output->arg(0)), output->id());
    size_t user = 0;
    auto role = [&](size_t position) {
        const OutputSpec& spec = module.outputs[position];
        return "  # " + outputRole(spec, spec.kind == OutputSpec::Kind::UserOutput ? user++ : 0, inputs);
    };
    if (list == nullptr) return line(indent, "return " + nodes.value(output->arg(0)) + role(0), output->id());
    line(indent, list->tuple ? "return (" : "return [", output->id());
    for (size_t i = 0; i < list->items.size(); ++i)
        line(indent + 4, nodes.value(list->items[i]) + "," + role(i), output->id());
    line(indent, list->tuple ? ")" : "]", output->id());
}

void ShortPrinter::function(const Module& module, std::string_view name, size_t indent) {
    const Graph& graph = module.graph();
    const NodePrinter nodes(&graph);
    InputNames inputs{module.inputs, {}};
    size_t placeholders = 0;
    for (const Node* node : graph.placeholders()) {
        if (placeholders < module.inputs.size() && module.inputs[placeholders].kind == InputSpec::Kind::UserInput)
            inputs.userNames.push_back(node->name());
        ++placeholders;
    }
    const bool expanded = hasRoles(module, placeholders);
    head(module, name, nodes, inputs, expanded, indent);
    std::string comment = commentOf({});
    for (const Node& node : graph.nodes()) {
        if (node.isPlaceholder() || node.kind() == NodeKind::Output) continue;
        if (m_options.comments)
            if (std::string next = commentOf(node.provenance()); next != comment)
                line(indent + 4, "# " + (comment = std::move(next)), NodeId::None);
        const std::string type = nodes.annotation(node);
        line(indent + 4, node.name() + (type.empty() ? "" : ": \"" + type + "\"") + " = " + nodes.expression(node),
             node.id());
    }
    returned(module, nodes, inputs, expanded, indent + 4);
    // Subgraphs of the module itself stand beside it, those of subgraphs inside them.
    const size_t inner = &module == m_root ? indent : indent + 4;
    for (const auto& [key, body] : module.subgraphs) {
        line(0, "", NodeId::None);
        function(*body, key, inner);
    }
}

}  // namespace
}  // namespace fxtext

PrintedText printText(const Module& module, const PrintOptions& options) {
    if (options.runnable) return fxtext::printRunnable(module, options);
    fxtext::ShortPrinter printer(options, module);
    printer.symbols(module);
    printer.function(module, "forward", 0);
    return printer.take();
}

std::string printArgument(const Argument& argument) { return fxtext::NodePrinter().value(argument); }
std::string printExpression(const Node& node) { return fxtext::NodePrinter(&node.graph()).expression(node); }

}  // namespace cutaway
