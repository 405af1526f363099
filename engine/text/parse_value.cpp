#include "engine/text/parse_value.h"

#include <charconv>
#include <numbers>
#include <span>

#include "engine/expr/expr_parse.h"
#include "engine/support/characters.h"

namespace cutaway::fxtext {
namespace {

constexpr size_t kMaxRemarks = 200;

/// Where the point of a number stands, counted from its first digit that is not 0: 3 for 123.0, -2 for 0.00123 and
/// for 1.23e-3.
int64_t decimalPoint(std::string_view digits) {
    const size_t e = std::min(digits.find_first_of("eE"), digits.size());
    int64_t exponent = 0;
    if (e < digits.size()) {
        const char* const begin = digits.data() + e + (digits.substr(e + 1).starts_with('+') ? 2 : 1);
        constexpr int64_t kFar = int64_t{1} << 40;  // more than any text has digits
        if (std::from_chars(begin, digits.data() + digits.size(), exponent).ec != std::errc())
            exponent = *begin == '-' ? -kFar : kFar;
    }
    const std::string_view mantissa = digits.substr(0, e);
    const auto point = static_cast<int64_t>(std::min(mantissa.find('.'), mantissa.size()));
    const auto first = static_cast<int64_t>(mantissa.find_first_not_of("0."));
    return exponent + point - first + (first > point ? 1 : 0);
}

std::optional<double> parseReal(std::string_view text) {
    std::string digits;
    for (char c : text)
        if (c != '_' && c != 'j' && c != 'J') digits += c;
    double value = 0;
    const auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (stop != digits.data() + digits.size()) return std::nullopt;
    // Python reads 1e999 as inf and 1e-999 as 0.
    if (status == std::errc::result_out_of_range)
        return decimalPoint(digits) > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    return status == std::errc() ? std::optional<double>(value) : std::nullopt;
}

struct NamedReal {
    std::string_view name;
    double value;
};
/// What modules of Python call these numbers; float() reads the first three, too.
constexpr NamedReal kNamedReals[] = {{"inf", std::numeric_limits<double>::infinity()},
                                     {"infinity", std::numeric_limits<double>::infinity()},
                                     {"nan", std::numeric_limits<double>::quiet_NaN()},
                                     {"pi", std::numbers::pi},
                                     {"e", std::numbers::e},
                                     {"tau", 2 * std::numbers::pi}};

std::optional<double> namedReal(std::string_view name, size_t known = std::size(kNamedReals)) {
    for (const NamedReal& row : std::span(kNamedReals).first(known))
        if (row.name == name) return row.value;
    return std::nullopt;
}

/// The number that float('...') makes of a text.
std::optional<double> realOfText(std::string_view text) {
    std::string plain;
    for (const char c : text) plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const bool negative = plain.starts_with('-');
    if (negative || plain.starts_with('+')) plain.erase(0, 1);
    auto value = namedReal(plain, 3);
    const bool digits = !plain.empty() && (std::isdigit(static_cast<unsigned char>(plain[0])) || plain[0] == '.') &&
                        plain.find('j') == std::string::npos;
    if (!value && digits) value = parseReal(plain);
    if (value && negative) value = -*value;
    return value;
}

}  // namespace

void ParseState::fail(size_t offset, std::string what) {
    if (!error) error = syntaxError(tree.source, offset, std::move(what));
}
void ParseState::fail(size_t offset, const Error& inner) {
    if (error) return;
    error = syntaxError(tree.source, offset, inner.message);
    error->code = inner.code;
    error->notes = inner.notes;
}
void ParseState::remark(size_t offset, std::string what) {
    if (remarks.size() < kMaxRemarks) remarks.push_back(tree.source.where(offset) + ": " + std::move(what));
    else if (remarks.size() == kMaxRemarks) remarks.push_back("more remarks were left out");
}

const Op& ParseState::op(std::string_view name) {
    auto [place, fresh] = ops.try_emplace(name, nullptr);
    if (!fresh) return *place->second;
    std::string_view plain = name;
    if (plain.starts_with("torch.ops.")) plain.remove_prefix(10);
    else if (plain.starts_with("_operator.")) plain.remove_prefix(1);
    const Op* found = findOp(plain);
    // A call of the packet without an overload: torch.ops.mkl._mkl_linear(...).
    if (found == nullptr) found = findOp(std::string(plain) + ".default");
    if (found == nullptr && plain.ends_with(".default")) found = findOp(plain.substr(0, plain.size() - 8));
    // Functions of modules that are not torch's are global names in FX text: math_trunc(...).
    if (constexpr std::string_view kMath = "math_"; found == nullptr && plain.starts_with(kMath))
        found = findOp("math." + std::string(plain.substr(kMath.size())));
    if (found == nullptr) found = &findOrMakeOpaque(plain);
    return *(place->second = found);
}

std::string_view Scope::findSubgraph(std::string_view name) const {
    for (const auto& child : *subgraphs)
        if (child->name == name) return child->name;
    return {};
}

Binding* ValueReader::use(std::string_view name, const SyntaxNode& at) {
    auto found = m_scope.names.find(name);
    if (found == m_scope.names.end()) return nullptr;
    Binding& binding = found->second;
    if (binding.freed) {
        m_state.remark(at.begin, "'" + std::string(name) + "' is used after it was freed");
        binding.freed = false;
    }
    binding.lastUse = m_scope.statement;
    return &binding;
}

Argument ValueReader::read(SyntaxId id) {
    if (m_state.error) return {};
    const SyntaxNode& node = m_state.at(id);
    switch (node.kind) {
        case SyntaxKind::Name: return isPlainName(node) ? readName(node) : readDotted(node);
        case SyntaxKind::Integer: return readInteger(node, false);
        case SyntaxKind::Float:
            if (auto value = parseReal(node.text)) return Argument(*value);
            break;
        case SyntaxKind::Imaginary:
            if (auto value = parseReal(node.text)) return Argument(std::complex<double>(0, *value));
            break;
        case SyntaxKind::String: return Argument(unquote(node.text));
        case SyntaxKind::Tuple: return Argument(readItems(node.first, true));
        case SyntaxKind::List: return Argument(readItems(node.first, false));
        case SyntaxKind::Dict: return readDict(node);
        case SyntaxKind::Call: return readCall(id);
        case SyntaxKind::Slice: return readSlice(node.first);
        case SyntaxKind::Unary: return readUnary(id);
        case SyntaxKind::Binary: return readBinary(id);
        case SyntaxKind::Empty: return {};
        case SyntaxKind::Attribute:
            if (auto path = attributePath(id)) return attribute(*path, node);
            m_state.fail(node.begin, "an attribute of a value is a statement of its own");
            return {};
        case SyntaxKind::Subscript: m_state.fail(node.begin, "a subscript is a statement of its own"); return {};
        case SyntaxKind::Keyword: break;
    }
    m_state.fail(node.begin, "'" + visibleText(clipped(node.text, 30)) + "' is not a value");
    return {};
}

Argument ValueReader::readName(const SyntaxNode& node) {
    const std::string_view name = node.text;
    if (const Binding* binding = use(name, node)) {
        if (binding->node) return Argument(binding->node);
        return Argument(SubgraphRef{std::string(binding->subgraph)});
    }
    if (name == "None" || name == "NoneType") return {};
    if (name == "True") return Argument(true);
    if (name == "False") return Argument(false);
    if (name == "Ellipsis" || name == "...") return Argument(Ellipsis{});
    if (name == "inf") return Argument(std::numeric_limits<double>::infinity());
    if (name == "nan") return Argument(std::numeric_limits<double>::quiet_NaN());
    if (name == "infj") return Argument(std::complex<double>(0, std::numeric_limits<double>::infinity()));
    if (name == "nanj") return Argument(std::complex<double>(0, std::numeric_limits<double>::quiet_NaN()));
    if (const auto subgraph = m_scope.findSubgraph(name); !subgraph.empty())
        return Argument(SubgraphRef{std::string(subgraph)});
    if (looksLikeSymbol(name) || m_state.symbols.contains(std::string(name)))
        return Argument(Expr::symbol(std::string(name), symbolDType(name)));
    m_state.fail(node.begin, "'" + std::string(name) + "' is not defined");
    return {};
}

Argument ValueReader::readDotted(const SyntaxNode& node) {
    const std::string_view name = node.text;
    if (name.starts_with("self.")) return attribute(std::string(name.substr(5)), node);
    if (name.starts_with("torch.") && name.find('.', 6) == std::string_view::npos) {
        const std::string_view rest = name.substr(6);
        if (auto dtype = dtypeFromTorchName(name)) return Argument(*dtype);
        if (auto format = memoryFormatFromName(rest)) return Argument(*format);
        if (auto layout = layoutFromName(rest)) return Argument(*layout);
    }
    for (const std::string_view module : {"torch.", "math.", "numpy.", "np."})
        if (name.starts_with(module))
            if (const auto value = namedReal(name.substr(module.size()))) return Argument(*value);
    const std::string_view first = name.substr(0, name.find('.'));
    if (const auto found = m_scope.names.find(first); found != m_scope.names.end() && found->second.node) {
        m_state.fail(node.begin, "an attribute of a value is a statement of its own");
        return {};
    }
    return Argument(OpRef{&m_state.op(name)});
}

Argument ValueReader::readInteger(const SyntaxNode& node, bool negative) {
    std::string digits = negative ? "-" : "";
    for (char c : node.text)
        if (c != '_') digits += c;
    int64_t value = 0;
    const auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || stop != digits.data() + digits.size())
        m_state.fail(node.begin, "'" + digits + "' does not fit into 64 bits");
    return Argument(value);
}

ArgumentList ValueReader::readItems(SyntaxId first, bool tuple) {
    ArgumentList list{{}, tuple};
    for (SyntaxId id = first; id != kNoSyntax && !m_state.error; id = m_state.at(id).next)
        list.items.push_back(read(id));
    return list;
}

Argument ValueReader::readSlice(SyntaxId first) {
    std::vector<Argument> parts = readItems(first, true).items;
    // slice(stop), slice(start, stop), slice(start, stop, step)
    if (parts.size() == 1) parts.insert(parts.begin(), Argument());
    parts.resize(3);
    return Argument(std::make_shared<const ArgumentSlice>(ArgumentSlice{parts[0], parts[1], parts[2]}));
}

Argument ValueReader::readDict(const SyntaxNode& node) {
    ArgumentDict dict;
    for (SyntaxId id = node.first; id != kNoSyntax && !m_state.error;) {
        const SyntaxNode& key = m_state.at(id);
        if (key.kind != SyntaxKind::String) m_state.fail(key.begin, "the keys of a dict are strings (§4.4)");
        dict.items.emplace_back(unquote(key.text), read(key.next));
        id = m_state.at(key.next).next;
    }
    return Argument(std::make_shared<const ArgumentDict>(std::move(dict)));
}

Argument ValueReader::readDevice(const SyntaxNode& call) {
    std::string text;
    for (SyntaxId id = m_state.at(call.first).next; id != kNoSyntax && !m_state.error; id = m_state.at(id).next) {
        const SyntaxNode& item = m_state.at(id);
        const Argument value = read(item.kind == SyntaxKind::Keyword ? item.first : id);
        if (const auto* name = value.get<std::string>()) text = *name + text;
        else if (auto index = value.asInt()) text += ":" + std::to_string(*index);
        else if (!value.isNone()) m_state.fail(item.begin, "a device is a type and an index");
    }
    if (auto device = deviceFromText(text)) return Argument(*device);
    m_state.fail(call.begin, "'" + text + "' is not a device that Cutaway knows (cpu, cuda, meta)");
    return {};
}

Argument ValueReader::readCall(SyntaxId id) {
    const SyntaxNode& call = m_state.at(id);
    const SyntaxNode& callee = m_state.at(call.first);
    if (auto path = attributePath(id)) return attribute(*path, call);
    if (callee.kind != SyntaxKind::Name) {
        m_state.fail(call.begin, "calls do not nest; name the inner value first");
        return {};
    }
    const std::string_view name = callee.text;
    if (name == "device" || name == "torch.device") return readDevice(call);
    if (name == "slice") return readSlice(callee.next);
    if (name == "torch.Size" && callee.next != kNoSyntax && m_state.at(callee.next).next == kNoSyntax) {
        Argument sizes = read(callee.next);
        if (const auto* list = sizes.list()) return Argument(ArgumentList{*list, true});
    }
    if (name == "torch.Tensor" || name == "torch.tensor" || name == "tensor" || name == "Parameter") {
        m_state.remark(call.begin, "the data of an inline tensor was not printed");
        return Argument(LostTensor{m_state.tree.source.text.substr(call.begin, call.end - call.begin)});
    }
    if (name == "float" && callee.next != kNoSyntax) {
        if (const auto value = realOfText(unquote(m_state.at(callee.next).text))) return Argument(*value);
    }
    static constexpr std::string_view kSymbolic[] = {
        "Max",          "Min",        "FloorDiv",   "Mod",       "PythonMod",  "ModularIndexing", "CeilDiv",
        "Where",        "CleanDiv",   "And",        "Or",        "Not",        "IntTrueDiv",      "FloatTrueDiv",
        "ToFloat",      "TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt", "TruncToFloat",    "FloatPow",
        "PowByNatural", "sqrt",       "floor",      "f64",       "i64",        "RoundDecimal"};
    if (std::find(std::begin(kSymbolic), std::end(kSymbolic), name) != std::end(kSymbolic)) return readSymbolic(call);
    if (isPlainName(callee) && !m_scope.names.contains(name) && name.find('_') != std::string_view::npos) {
        m_state.remark(call.begin, "the named tuple '" + std::string(name) + "' is read as a plain tuple");
        return Argument(readItems(callee.next, true));
    }
    m_state.fail(call.begin, "calls do not nest; name the inner value first");
    return {};
}

void ValueReader::readArguments(SyntaxId call, std::vector<Argument>& positional,
                                std::vector<std::pair<std::string, Argument>>& keywords) {
    for (SyntaxId id = m_state.at(m_state.at(call).first).next; id != kNoSyntax && !m_state.error;
         id = m_state.at(id).next) {
        const SyntaxNode& item = m_state.at(id);
        if (item.kind == SyntaxKind::Keyword) keywords.emplace_back(std::string(item.text), read(item.first));
        else if (keywords.empty()) positional.push_back(read(id));
        else m_state.fail(item.begin, "a positional argument follows a keyword");
    }
}

Argument ValueReader::readUnary(SyntaxId id) {
    const SyntaxNode& node = m_state.at(id);
    const SyntaxNode& operand = m_state.at(node.first);
    if (node.symbol == sym("-") && operand.kind == SyntaxKind::Integer) return readInteger(operand, true);
    if (node.symbol == sym("-") || node.symbol == sym("+")) {
        const Argument value = read(node.first);
        const double sign = node.symbol == sym("-") ? -1 : 1;
        if (const auto* real = value.get<double>()) return Argument(sign * *real);
        if (const auto* complex = value.get<std::complex<double>>()) return Argument(sign * *complex);
        if (value.get<int64_t>() && sign > 0) return value;
    }
    return readSymbolic(node);
}

Argument ValueReader::readBinary(SyntaxId id) {
    const SyntaxNode& node = m_state.at(id);
    const SyntaxNode& left = m_state.at(node.first);
    const SyntaxNode& right = m_state.at(left.next);
    const bool imaginary = right.kind == SyntaxKind::Imaginary ||
                           (right.kind == SyntaxKind::Name && (right.text == "infj" || right.text == "nanj"));
    if (imaginary && (node.symbol == sym("+") || node.symbol == sym("-"))) {
        const Argument imaginaryPart = read(left.next);
        const auto* part = imaginaryPart.get<std::complex<double>>();
        // Python writes the real part -0.0 as "-0", which is an integer by itself.
        const Argument real = read(node.first);
        double value = real.asReal().value_or(0);
        if (left.kind == SyntaxKind::Unary && left.symbol == sym("-") && value == 0) value = -0.0;
        if (part && real.asReal())
            return Argument(std::complex<double>(value, node.symbol == sym("-") ? -part->imag() : part->imag()));
    }
    return readSymbolic(node);
}

/// Arithmetic over size symbols. A node may stand for its symbol.
Argument ValueReader::readSymbolic(const SyntaxNode& node) {
    if (m_state.error) return {};
    const std::string_view all = m_state.tree.source.text;
    auto expr = parseExpr(all.substr(node.begin, node.end - node.begin));
    if (!expr) {
        m_state.fail(node.begin, "not a value: " + expr.error().message);
        return {};
    }
    for (const std::string& name : symbolsOf(*expr)) {
        auto found = m_scope.names.find(name);
        if (found == m_scope.names.end() || !found->second.node) {
            if (!looksLikeSymbol(name) && !m_state.symbols.contains(name))
                m_state.fail(node.begin, "'" + name + "' is not defined");
            continue;
        }
        const SymType* type = found->second.node->type().sym();
        if (type == nullptr || !type->expr) {
            m_state.fail(node.begin, "arithmetic on values is a statement of its own");
            return {};
        }
        *expr = substitute(*expr, [&](const std::string& symbol) { return symbol == name ? type->expr : Expr(); });
    }
    if (auto value = (*expr)->kind == ExprKind::Int ? (*expr).asInt() : std::nullopt) return Argument(*value);
    if ((*expr)->kind == ExprKind::Float) return Argument((*expr)->real);
    if ((*expr)->kind == ExprKind::Bool) return Argument((*expr)->integer != 0);
    return Argument(std::move(*expr));
}

std::optional<std::string> ValueReader::attributePath(SyntaxId id) const {
    const SyntaxNode& node = m_state.at(id);
    if (node.kind == SyntaxKind::Name) {
        if (node.text == "self" && !m_scope.names.contains("self")) return std::string();
        if (node.text.starts_with("self.")) return std::string(node.text.substr(5));
        return std::nullopt;
    }
    if (node.kind == SyntaxKind::Attribute) {
        auto base = attributePath(node.first);
        if (!base) return std::nullopt;
        return (base->empty() ? "" : *base + ".") + std::string(node.text);
    }
    if (node.kind != SyntaxKind::Call) return std::nullopt;
    const SyntaxNode& callee = m_state.at(node.first);
    if (callee.kind != SyntaxKind::Name || callee.text != "getattr" || callee.next == kNoSyntax) return std::nullopt;
    const SyntaxId name = m_state.at(callee.next).next;
    if (name == kNoSyntax || m_state.at(name).kind != SyntaxKind::String) return std::nullopt;
    auto base = attributePath(callee.next);
    if (!base) return std::nullopt;
    return (base->empty() ? "" : *base + ".") + unquote(m_state.at(name).text);
}

Argument ValueReader::attribute(const std::string& path, const SyntaxNode& at) {
    if (path.empty()) {
        m_state.fail(at.begin, "'self' is not a value");
        return {};
    }
    if (const auto subgraph = m_scope.findSubgraph(path); !subgraph.empty())
        return Argument(SubgraphRef{std::string(subgraph)});
    const auto found = m_state.options.types.find(path);
    return Argument(
        &m_scope.graph().getAttr(path, found == m_state.options.types.end() ? ValueType(OpaqueType{}) : found->second));
}

}  // namespace cutaway::fxtext
