#include "engine/text/print_node.h"

#include "engine/ir/infer.h"
#include "engine/ir/same_operands.h"
#include "engine/text/literal.h"

namespace cutaway::fxtext {
namespace {

struct InfixName {
    std::string_view name, symbol;
};
constexpr InfixName kInfix[] = {
    {"operator.add", "+"},       {"operator.sub", "-"},  {"operator.mul", "*"},  {"operator.truediv", "/"},
    {"operator.floordiv", "//"}, {"operator.mod", "%"},  {"operator.pow", "**"}, {"operator.lshift", "<<"},
    {"operator.rshift", ">>"},   {"operator.and_", "&"}, {"operator.or_", "|"},  {"operator.xor", "^"},
    {"operator.matmul", "@"},    {"operator.eq", "=="},  {"operator.ne", "!="},  {"operator.lt", "<"},
    {"operator.le", "<="},       {"operator.gt", ">"},   {"operator.ge", ">="}};

/// Callables of Python's own rather than of torch.ops.
bool isPython(std::string_view name) {
    for (std::string_view prefix : {"torch.", "operator.", "math.", "builtins."})
        if (name.starts_with(prefix)) return true;
    return name.find('.') == std::string_view::npos;
}

/// Reads back as the name of an operator.
bool isPlainOpName(std::string_view name) {
    for (std::string_view special :
         {"device", "slice", "getattr", "iter", "next", "torch._C._profiler._RecordFunctionFast"})
        if (name == special) return false;
    if (name.starts_with("self.") || name.starts_with("torch.ops.") || name.starts_with("_operator.")) return false;
    while (true) {
        const size_t dot = name.find('.');
        if (!isIdentifier(name.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        name.remove_prefix(dot + 1);
    }
}

constexpr std::string_view kKeywords[] = {
    "and",    "as",      "assert", "async",  "await",    "break", "class",    "continue", "def",
    "del",    "elif",    "else",   "except", "finally",  "for",   "from",     "global",   "if",
    "import", "in",      "is",     "lambda", "nonlocal", "not",   "or",       "pass",     "raise",
    "return", "try",     "while",  "with",   "yield",    "torch", "operator", "math",     "device",
    "slice",  "getattr", "inf",    "nan",    "self",     "float", "True",     "False",    "None"};

}  // namespace

std::string NodePrinter::name(const Node& node) const {
    if (!m_runnable || std::find(std::begin(kKeywords), std::end(kKeywords), node.name()) == std::end(kKeywords))
        return node.name();
    std::string free = node.name() + "_";
    while (node.graph().findByName(free)) free += '_';
    return free;
}

std::string NodePrinter::attribute(std::string_view path) {
    std::string out = "self";
    while (true) {
        const size_t dot = path.find('.');
        const std::string_view part = path.substr(0, dot);
        if (isIdentifier(part)) out += "." + std::string(part);
        else out = "getattr(" + out + ", " + quoted(part) + ")";
        if (dot == std::string_view::npos) return out;
        path.remove_prefix(dot + 1);
    }
}

std::string NodePrinter::opName(const Op& op, bool called) const {
    const std::string& plain = op.name();
    if (!isPlainOpName(plain)) return called ? "getattr(torch.ops, " + quoted(plain) + ")" : quoted(plain);
    // A bare word would be a value's name.
    if (!called && plain.find('.') == std::string::npos) return "torch.ops." + plain;
    if (m_runnable) return isPython(plain) ? plain : "torch.ops." + plain;
    // "ns.op" would read as a method of a node called ns.
    const size_t dot = plain.find('.');
    const bool taken =
        dot != std::string::npos && m_graph && m_graph->findByName(plain.substr(0, dot)) && !isPython(plain);
    return taken ? "torch.ops." + plain : plain;
}

void NodePrinter::items(std::string& out, const std::vector<Argument>& all) const {
    for (size_t i = 0; i < all.size(); ++i) {
        if (i > 0) out += ", ";
        value(out, all[i]);
    }
}

void NodePrinter::value(std::string& out, const Argument& argument) const {
    std::visit(
        [&](const auto& held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, std::monostate>) out += "None";
            else if constexpr (std::is_same_v<T, Node*>) out += name(*held);
            else if constexpr (std::is_same_v<T, bool>) out += held ? "True" : "False";
            else if constexpr (std::is_same_v<T, int64_t>) out += std::to_string(held);
            else if constexpr (std::is_same_v<T, double>) out += realText(held);
            else if constexpr (std::is_same_v<T, std::complex<double>>) out += complexText(held);
            else if constexpr (std::is_same_v<T, std::string>) out += quoted(held);
            else if constexpr (std::is_same_v<T, DType>) out += "torch." + std::string(info(held).torchName);
            else if constexpr (std::is_same_v<T, Device>) {
                const std::string text = held.text();
                out += "device(type='" + text.substr(0, text.find(':')) + "'";
                if (held.index >= 0) out += ", index=" + std::to_string(held.index);
                out += ')';
            } else if constexpr (std::is_same_v<T, Layout> || std::is_same_v<T, MemoryFormat>)
                out += "torch." + std::string(cutaway::name(held));
            else if constexpr (std::is_same_v<T, Expr>) out += cutaway::text(held);
            else if constexpr (std::is_same_v<T, SubgraphRef>) {
                const bool plain =
                    !m_runnable && isIdentifier(held.name) && !(m_graph && m_graph->findByName(held.name));
                out += plain ? held.name : attribute(held.name);
            } else if constexpr (std::is_same_v<T, OpRef>) out += held.op ? opName(*held.op, false) : "None";
            else if constexpr (std::is_same_v<T, Ellipsis>) out += "Ellipsis";
            else if constexpr (std::is_same_v<T, LostTensor>) out += held.text;
            else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentSlice>>) {
                out += "slice(";
                items(out, {held->start, held->stop, held->step});
                out += ')';
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentDict>>) {
                out += '{';
                for (size_t i = 0; i < held->items.size(); ++i) {
                    out += (i > 0 ? ", " : "") + quoted(held->items[i].first) + ": ";
                    value(out, held->items[i].second);
                }
                out += '}';
            } else {
                out += held->tuple ? '(' : '[';
                items(out, held->items);
                if (held->tuple && held->items.size() == 1) out += ',';
                out += held->tuple ? ')' : ']';
            }
        },
        argument.kind());
}

/// Operands that need no parentheses.
bool isSimple(const Argument& argument) {
    if (argument.node()) return true;
    if (const auto* integer = argument.get<int64_t>()) return *integer >= 0;
    const auto* real = argument.get<double>();
    return real && *real >= 0 && std::isfinite(*real) && !std::signbit(*real);
}

bool NodePrinter::infix(std::string& out, const Node& node) const {
    const std::vector<Argument>& args = node.args();
    if (args.size() != 2 || !node.kwargs().empty()) return false;
    const std::string& op = node.op().name();
    if (op == "operator.getitem" && args[0].node()) {
        out = name(*args[0].node()) + "[" + value(args[1]) + "]";
        return true;
    }
    if (op == "builtins.getattr" && args[0].node() && args[1].get<std::string>() &&
        isIdentifier(*args[1].get<std::string>())) {
        out = name(*args[0].node()) + "." + *args[1].get<std::string>();
        return true;
    }
    if (!isSimple(args[0]) || !isSimple(args[1]) || (!args[0].node() && !args[1].node())) return false;
    for (const InfixName& row : kInfix)
        if (row.name == op) {
            out = value(args[0]) + " " + std::string(row.symbol) + " " + value(args[1]);
            return true;
        }
    return false;
}

void NodePrinter::call(std::string& out, const Node& node, size_t firstArgument) const {
    out += '(';
    bool separate = false;
    auto comma = [&] {
        if (std::exchange(separate, true)) out += ", ";
    };
    const std::vector<Argument>& args = node.args();
    const Schema* schema = node.op().schema();
    size_t positional = args.size();
    if (schema != nullptr) {
        positional = 0;
        for (size_t i = 0; i < args.size(); ++i) {
            const Param& param = schema->params[i];
            if (!param.keywordOnly && (!param.hasDefault || !equal(args[i], param.defaultValue))) positional = i + 1;
        }
    }
    for (size_t i = firstArgument; i < positional; ++i) {
        comma();
        value(out, args[i]);
    }
    for (size_t i = positional; schema != nullptr && i < args.size(); ++i) {
        const Param& param = schema->params[i];
        if (!param.keywordOnly || (param.hasDefault && equal(args[i], param.defaultValue))) continue;
        comma();
        out += param.name + " = ";
        value(out, args[i]);
    }
    for (const auto& [key, argument] : node.kwargs()) {
        comma();
        out += key + " = ";
        value(out, argument);
    }
    out += ')';
}

std::string NodePrinter::expression(const Node& node) const {
    std::string out;
    if (node.kind() == NodeKind::GetAttr) return attribute(node.target());
    if (node.kind() == NodeKind::Output) return value(node.arg(0));
    if (node.kind() == NodeKind::Placeholder) return node.target();
    const Op& op = node.op();
    size_t first = 0;
    if (op.style() == Op::Style::Module) out = attribute(op.name());
    else if (op.style() == Op::Style::Method && !node.args().empty()) {
        first = 1;
        const Node* object = node.arg(0).node();
        if (object && isIdentifier(op.name())) out = name(*object) + "." + op.name();
        else out = "getattr(" + value(node.arg(0)) + ", " + quoted(op.name()) + ")";
    } else if (infix(out, node)) return out;
    else out = opName(op, true);
    call(out, node, first);
    return out;
}

std::string NodePrinter::annotation(const Node& node) const {
    if (node.type().tensor() == nullptr || !node.isCall() || node.op().isOpaque()) return node.type().text();
    LastAnnotation& last = m_annotations[&node.op()];
    const bool same = last.node != nullptr && sameWholly(last.node->type(), node.type()) &&
                      sameOperands(last.node->args(), node.args());
    if (!same) last = {&node, newAnnotation(node)};
    return last.text;
}
std::string NodePrinter::newAnnotation(const Node& node) const {
    std::string out = node.type().text();
    const TensorType* type = node.type().tensor();
    const auto inferred = inferCall(node.op(), node.args());
    const bool leftToRule = inferred && !inferred->isOpaque();
    // Compared as text: a layout other than strided cannot be written.
    const TensorType* rule = leftToRule ? inferred->tensor() : nullptr;
    if (rule != nullptr && rule->sameMeta(*type)) return out;
    return leftToRule && (rule == nullptr || rule->fullText() != type->fullText()) ? type->fullText() : out;
}

}  // namespace cutaway::fxtext
