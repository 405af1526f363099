#include "tests/support/graph_text.h"

#include <algorithm>
#include <sstream>

#include "engine/text/parse.h"
#include "engine/text/print.h"

namespace cutaway::testing {
namespace {

struct ArgumentPrinter {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(Node* node) const { return "%" + node->name(); }
    std::string operator()(bool flag) const { return flag ? "True" : "False"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
        std::ostringstream out;
        out << "f" << number;
        return out.str();
    }
    std::string operator()(std::complex<double> number) const {
        return (*this)(number.real()) + "+j" + (*this)(number.imag());
    }
    std::string operator()(const std::string& text) const { return "'" + text + "'"; }
    std::string operator()(DType dtype) const { return std::string(info(dtype).torchName); }
    std::string operator()(const Device& device) const { return "device " + device.text(); }
    std::string operator()(Layout layout) const { return std::string(name(layout)); }
    std::string operator()(MemoryFormat format) const { return std::string(name(format)); }
    std::string operator()(const Expr& expr) const { return "<" + text(expr) + ">"; }
    std::string operator()(const SubgraphRef& graph) const { return "@" + graph.name; }
    std::string operator()(const OpRef& op) const { return "op " + op.op->name(); }
    std::string operator()(const Ellipsis&) const { return "..."; }
    std::string operator()(const LostTensor& lost) const { return lost.text; }
    std::string operator()(const std::shared_ptr<const ArgumentSlice>& slice) const {
        return argumentText(slice->start) + ":" + argumentText(slice->stop) + ":" + argumentText(slice->step);
    }
    std::string operator()(const std::shared_ptr<const ArgumentDict>& dict) const {
        std::string out = "{";
        for (const auto& [key, item] : dict->items)
            out += (out.size() > 1 ? ", " : "") + key + ": " + argumentText(item);
        return out + "}";
    }
    std::string operator()(const std::shared_ptr<const ArgumentList>& list) const {
        std::string out(list->tuple ? "(" : "[");
        for (size_t i = 0; i < list->items.size(); ++i) out += (i ? ", " : "") + argumentText(list->items[i]);
        return out + (list->tuple ? ")" : "]");
    }
};

std::string typeText(const ValueType& type) {
    if (const TupleType* items = type.tuple()) {
        std::string out = "(";
        for (size_t i = 0; i < items->size(); ++i) out += (i ? ", " : "") + typeText((*items)[i]);
        return out + ")";
    }
    if (type.isNone()) return "None";
    if (type.isOpaque()) return "opaque " + std::get<OpaqueType>(type.kind).description;
    return type.text();
}

}  // namespace

std::string argumentText(const Argument& argument) { return std::visit(ArgumentPrinter(), argument.kind()); }

std::string graphText(const Module& module, const std::string& indent) {
    std::string out;
    for (const Node& node : module.graph().nodes()) {
        out += indent;
        if (node.isOutput()) out += "return " + argumentText(node.arg(0));
        else {
            out += "%" + node.name() + ": " + typeText(node.type());
            if (node.isCall()) {
                out += " = " + node.op().name() + "(";
                for (size_t i = 0; i < node.args().size(); ++i) out += (i ? ", " : "") + argumentText(node.arg(i));
                for (const auto& [key, value] : node.kwargs())
                    out += (out.back() == '(' ? "" : ", ") + key + "=" + argumentText(value);
                out += ")";
            } else if (node.kind() == NodeKind::GetAttr) {
                out += " = self." + node.target();
            }
        }
        out += "\n";
    }
    for (const auto& [name, body] : module.subgraphs)
        out += indent + "@" + name + ":\n" + graphText(*body, indent + "  ");
    return out;
}

std::string listing(Module& module) {
    Graph& graph = module.graph();
    int position = 0;
    for (Node* node : graph.nodeList()) graph.rename(*node, "renamed_" + std::to_string(position++));
    position = 0;
    for (Node* node : graph.nodeList()) graph.rename(*node, "v" + std::to_string(position++));
    std::string text;
    for (Node& node : graph.nodes()) {
        const std::string type = node.type().text();
        text += node.name() + (type.empty() ? "" : ": " + type);
        text += node.isPlaceholder()
                    ? "\n"
                    : " = " + (node.isOutput() ? printArgument(node.arg(0)) : printExpression(node)) + "\n";
    }
    return text;
}

std::string roundTripProblem(const Module& module) {
    const PrintedText first = printText(module);
    if (static_cast<std::ptrdiff_t>(first.lineNodes.size()) != std::count(first.text.begin(), first.text.end(), '\n'))
        return "another count of lines than of nodes for them";
    auto again = parseText(first.text);
    if (!again) return again.error().text() + "\n" + first.text.substr(0, 4000);
    const PrintedText second = printText(**again);
    if (second.text == first.text) return {};
    const auto [left, right] =
        std::mismatch(first.text.begin(), first.text.end(), second.text.begin(), second.text.end());
    const size_t at = static_cast<size_t>(left - first.text.begin());
    const size_t begin = at < 200 ? 0 : at - 200;
    return "printed differently:\n" + first.text.substr(begin, 400) + "\n--- against ---\n" +
           second.text.substr(begin, 400);
}

}  // namespace cutaway::testing
