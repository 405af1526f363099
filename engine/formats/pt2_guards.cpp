#include "engine/formats/pt2_guards.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/expr/evaluate.h"
#include "engine/expr/expr_parse.h"
#include "engine/ops/build.h"

namespace cutaway {
namespace {

/// Python's names of functions, and those that parseExpr knows.
constexpr std::pair<std::string_view, std::string_view> kGuardFunctions[] = {
    {"torch.sym_float(", "ToFloat("},
    {"float(", "ToFloat("},
    {"math.trunc(", "TruncToInt("},
    {"math.floor(", "FloorToInt("},
    {"math.ceil(", "CeilToInt("},
    {"round(", "RoundToInt("},
    {"math.sqrt(", "OpaqueUnaryFn_sqrt("},
    {"torch._sym_sqrt(", "OpaqueUnaryFn_sqrt("},
    {"torch.sym_max(", "Max("},
    {"torch.sym_min(", "Min("},
    {"torch.sym_not(", "Not("},
    {"max(", "Max("},
    {"min(", "Min("},
};

/// Whether runs can compute all of it: with numbers for its symbols, it is a number. One of the two may divide by 0.
bool isComputed(const Expr& guard) {
    return std::ranges::any_of(std::array{7, 11}, [&](int sample) {
        const auto number = [&](const std::string& symbol) {
            return symbolDType(symbol) == DType::F64 ? Expr::real(sample, DType::F64) : Expr::integer(sample);
        };
        return literalValue(substitute(guard, number)).has_value();
    });
}

/// Rewrites a guard to what parseExpr reads: inputs' sizes become their symbols, functions get our names.
class GuardReader {
  public:
    GuardReader(std::string_view text, const Graph& graph) : m_text(text), m_graph(graph) {}

    Result<Expr> read() {
        std::string out;
        while (m_at < m_text.size()) {
            if (take("L[")) {
                CT_TRY(const Expr size, sizeOfInput());
                out += "(" + text(size) + ")";
            } else if (!takeFunction(out)) takeWord(out);
        }
        CT_TRY(Expr guard, parseExpr(out));
        if (guard->dtype != DType::Bool) return invalidInput("it is not a condition");
        if (!isComputed(guard)) return invalidInput("it holds a function that is not computed here");
        return guard;
    }

  private:
    bool take(std::string_view token) {
        if (!m_text.substr(m_at).starts_with(token)) return false;
        m_at += token.size();
        return true;
    }
    bool takeFunction(std::string& out) {
        for (const auto& [theirs, ours] : kGuardFunctions)
            if (take(theirs)) {
                out += ours;
                return true;
            }
        return false;
    }
    /// A whole word, so that no function is found within a longer name; any other character alone.
    void takeWord(std::string& out) {
        const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
        do out += m_text[m_at++];
        while (m_at < m_text.size() && isWord(out.back()) && isWord(m_text[m_at]));
    }
    std::optional<size_t> number() {
        size_t value = 0;
        const char* const begin = m_text.data() + m_at;
        const auto [stop, status] = std::from_chars(begin, m_text.data() + m_text.size(), value);
        if (status != std::errc()) return std::nullopt;
        m_at += static_cast<size_t>(stop - begin);
        return value;
    }
    /// The rest of L['d']['x'].size()[0]: inputs are named by the path to them, d_x.
    Result<Expr> sizeOfInput() {
        std::string name;
        do {
            const size_t close = m_text.find(']', m_at);
            if (close == std::string_view::npos) return invalidInput("']' is missing");
            std::string_view key = m_text.substr(m_at, close - m_at);
            if (key.size() > 2 && (key[0] == '\'' || key[0] == '"')) key = key.substr(1, key.size() - 2);
            name += (name.empty() ? "" : "_") + std::string(key);
            m_at = close + 1;
        } while (take("["));
        const Node* input = nullptr;
        for (const Node* each : m_graph.placeholders())
            if (each->name() == name) input = each;
        if (input == nullptr) return invalidInput("there is no input '" + name + "'");
        if (const SymType* symType = input->type().sym(); symType && symType->expr) return symType->expr;
        const TensorType* type = input->type().tensor();
        if (type == nullptr) return invalidInput("input '" + name + "' is not a tensor");
        if (take(".storage_offset()")) return type->offset.expr();
        const bool sizes = take(".size()[");
        if (!sizes && !take(".stride()[")) return invalidInput("it asks for more than sizes of '" + name + "'");
        const SymDims& dims = sizes ? type->sizes : type->strides;
        const auto dim = number();
        if (!dim || *dim >= dims.size() || !take("]")) return invalidInput("'" + name + "' has no such dim");
        return dims[*dim].expr();
    }

    std::string_view m_text;
    size_t m_at = 0;
    const Graph& m_graph;
};

/// Where `word` stands outside of brackets; npos if nowhere.
size_t outsideOfBrackets(std::string_view text, std::string_view word) {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(' || text[i] == '[') ++depth;
        if (text[i] == ')' || text[i] == ']') --depth;
        if (depth == 0 && text.substr(i).starts_with(word)) return i;
    }
    return std::string_view::npos;
}
Result<Expr> guardOf(std::string_view text, const Graph& graph) {
    for (const auto& [word, kind] :
         {std::pair<std::string_view, ExprKind>{" or ", ExprKind::Or}, {" and ", ExprKind::And}})
        if (const size_t at = outsideOfBrackets(text, word); at != std::string_view::npos) {
            CT_TRY(Expr left, guardOf(text.substr(0, at), graph));
            CT_TRY(Expr right, guardOf(text.substr(at + word.size()), graph));
            return Expr::make(kind, {std::move(left), std::move(right)}, DType::Bool);
        }
    if (constexpr std::string_view kNot = "not "; text.starts_with(kNot)) {
        CT_TRY(Expr inner, guardOf(text.substr(kNot.size()), graph));
        return Expr::make(ExprKind::Not, {std::move(inner)}, DType::Bool);
    }
    return GuardReader(text, graph).read();
}

/// s >= 5 and s <= 9, which the range of s says as well.
bool isOfRange(const Expr& guard, const std::map<std::string, SymbolInfo>& symbols) {
    const bool least = guard->kind == ExprKind::Ge;
    if ((!least && guard->kind != ExprKind::Le) || guard->operands[0]->kind != ExprKind::Symbol) return false;
    const auto bound = guard->operands[1].asInt();
    const auto found = symbols.find(guard->operands[0]->name);
    if (!bound || found == symbols.end()) return false;
    const auto& [lower, upper, hint] = found->second;
    return least ? lower && *lower >= *bound : upper && *upper <= *bound;
}

}  // namespace

void readPt2Guards(const Json& root, Module& module) {
    const auto guards = root.find("guards_code");
    if (!guards || !guards->isArray()) return;
    Graph& graph = module.graph();
    Node* first = graph.first();
    while (first != nullptr && first->isPlaceholder()) first = first->next();
    static const Op& kAssert = requireOp("aten._assert_scalar.default");
    for (const Json item : guards->items()) {
        const auto code = item.text();
        if (!code) continue;
        const std::string said(*code);
        const auto guard = guardOf(*code, graph);
        if (!guard) {
            module.origin.remarks.push_back("guard '" + said + "' is not checked: " + guard.error().message);
            continue;
        }
        if (isOfRange(*guard, module.symbols)) continue;
        if (const auto value = literalValue(*guard); value && (*value)->integer != 0) continue;
        graph.call(kAssert, {Argument(*guard), Argument("Guard failed: " + said)}, ValueType(), first, "guard");
    }
}

}  // namespace cutaway
