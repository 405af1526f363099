#include "engine/expr/expr_parse.h"

#include <charconv>
#include <optional>

namespace cutaway {
namespace {
constexpr std::string_view kOpaqueFunction = "OpaqueUnaryFn_";
}  // namespace

DType symbolDType(std::string_view name) {
    return name.starts_with("zf") || name.starts_with("zuf") ? DType::F64 : DType::I64;
}

std::string_view plainFunctionName(std::string_view name) {
    return name.starts_with(kOpaqueFunction) ? name.substr(kOpaqueFunction.size()) : name;
}

namespace {

constexpr int kMaxDepth = 256, kMaxOperations = 1024;

/// The function names of SYM-1 that are plain operators.
struct OperatorName {
    std::string_view name;
    ExprKind kind;
    DType dtype;
    size_t operands;  // 0 = one or more, folded pairwise
};
constexpr OperatorName kOperatorNames[] = {
    {"Add", ExprKind::Add, DType::I64, 0},
    {"Mul", ExprKind::Mul, DType::I64, 0},
    {"Max", ExprKind::Max, DType::I64, 0},
    {"Min", ExprKind::Min, DType::I64, 0},
    {"And", ExprKind::And, DType::Bool, 0},
    {"Or", ExprKind::Or, DType::Bool, 0},
    {"Not", ExprKind::Not, DType::Bool, 1},
    {"FloorDiv", ExprKind::FloorDiv, DType::I64, 2},
    {"CleanDiv", ExprKind::FloorDiv, DType::I64, 2},
    {"Mod", ExprKind::Mod, DType::I64, 2},
    {"PythonMod", ExprKind::Mod, DType::I64, 2},
    {"Pow", ExprKind::Pow, DType::I64, 2},
    {"PowByNatural", ExprKind::Pow, DType::I64, 2},
    {"LShift", ExprKind::ShiftLeft, DType::I64, 2},
    {"RShift", ExprKind::ShiftRight, DType::I64, 2},
    {"Equality", ExprKind::Eq, DType::Bool, 2},
    {"Unequality", ExprKind::Ne, DType::Bool, 2},
    {"StrictLessThan", ExprKind::Lt, DType::Bool, 2},
    {"LessThan", ExprKind::Le, DType::Bool, 2},
    {"StrictGreaterThan", ExprKind::Gt, DType::Bool, 2},
    {"GreaterThan", ExprKind::Ge, DType::Bool, 2},
    {"Eq", ExprKind::Eq, DType::Bool, 2},
    {"Ne", ExprKind::Ne, DType::Bool, 2},
    {"Lt", ExprKind::Lt, DType::Bool, 2},
    {"Le", ExprKind::Le, DType::Bool, 2},
    {"Gt", ExprKind::Gt, DType::Bool, 2},
    {"Ge", ExprKind::Ge, DType::Bool, 2},
};
/// Carried as calls: their meaning is kept by name.
struct FunctionName {
    std::string_view name;
    DType dtype;
};
constexpr FunctionName kFunctionNames[] = {
    {"CeilToInt", DType::I64},
    {"FloorToInt", DType::I64},
    {"TruncToInt", DType::I64},
    {"RoundToInt", DType::I64},
    {"TruncToFloat", DType::F64},
    {"RoundDecimal", DType::F64},
    {"pow", DType::F64},
    {"FloatTrueDiv", DType::F64},
    {"IntTrueDiv", DType::F64},
    {"sqrt", DType::F64},
    {"floor", DType::I64},
    {"ceiling", DType::I64},
    // Of Python's math, as we print them.
    {"trunc", DType::F64},
    {"ceil", DType::F64},
    {"abs", DType::F64},
    {"exp", DType::F64},
    {"log", DType::F64},
    {"log2", DType::F64},
    {"sin", DType::F64},
    {"cos", DType::F64},
    {"tan", DType::F64},
    {"asin", DType::F64},
    {"acos", DType::F64},
    {"atan", DType::F64},
    {"sinh", DType::F64},
    {"cosh", DType::F64},
    {"tanh", DType::F64},
    {"IsNonOverlappingAndDenseIndicator", DType::I64},
};

class ExprReader {
  public:
    explicit ExprReader(std::string_view text) : m_text(text) {}

    Result<Expr> read() {
        Expr whole = comparison();
        skipBlanks();
        if (!m_error && m_at < m_text.size()) fail("unexpected '" + std::string(m_text.substr(m_at, 12)) + "'");
        if (!m_error && whole->outOfRange) fail("a number that does not fit into 64 bits");
        if (m_error) return std::move(*m_error);
        return whole;
    }

  private:
    void skipBlanks() {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\n' || m_text[m_at] == '\t')) ++m_at;
    }
    bool take(std::string_view symbol) {
        skipBlanks();
        if (!m_text.substr(m_at).starts_with(symbol)) return false;
        m_at += symbol.size();
        return true;
    }
    Expr fail(std::string what) {
        if (!m_error)
            m_error = invalidInput("column " + std::to_string(m_at + 1) + " of expression '" +
                                   std::string(m_text.substr(0, 80)) + "': " + std::move(what));
        return Expr::integer(0);
    }

    static DType common(const Expr& a, const Expr& b) {
        return a->dtype == DType::F64 || b->dtype == DType::F64 ? DType::F64 : DType::I64;
    }
    /// A chain of operations is a tree as deep as the chain is long, and simplifying, printing or freeing it recurses
    /// that deep.
    Expr counted(Expr made) {
        return ++m_operations > kMaxOperations ? fail("more than " + std::to_string(kMaxOperations) + " operations")
                                               : std::move(made);
    }
    Expr binary(ExprKind kind, Expr a, Expr b, DType dtype) {
        if ((kind == ExprKind::FloorDiv || kind == ExprKind::Mod) && b.asInt() == 0) return fail("division by zero");
        return counted(Expr::make(kind, {std::move(a), std::move(b)}, dtype));
    }

    Expr comparison() {
        Expr left = shift();
        struct Row {
            std::string_view symbol;
            ExprKind kind;
        };
        static constexpr Row kRows[] = {{"==", ExprKind::Eq}, {"!=", ExprKind::Ne}, {"<=", ExprKind::Le},
                                        {">=", ExprKind::Ge}, {"<", ExprKind::Lt},  {">", ExprKind::Gt}};
        for (const Row& row : kRows)
            if (take(row.symbol)) return binary(row.kind, left, shift(), DType::Bool);
        return left;
    }
    Expr shift() {
        Expr left = sum();
        while (!m_error) {
            if (take("<<")) left = binary(ExprKind::ShiftLeft, left, sum(), DType::I64);
            else if (take(">>")) left = binary(ExprKind::ShiftRight, left, sum(), DType::I64);
            else if (take("&")) left = binary(ExprKind::BitAnd, left, sum(), left->dtype);
            else if (take("|")) left = binary(ExprKind::BitOr, left, sum(), left->dtype);
            else if (take("^")) left = binary(ExprKind::BitXor, left, sum(), left->dtype);
            else break;
        }
        return left;
    }
    Expr sum() {
        Expr left = product();
        while (!m_error) {
            if (take("+")) {
                Expr right = product();
                left = binary(ExprKind::Add, left, right, common(left, right));
            } else if (take("-")) {
                Expr right = product();
                left = binary(ExprKind::Sub, left, right, common(left, right));
            } else break;
        }
        return left;
    }
    Expr product() {
        Expr left = unary();
        while (!m_error) {
            if (take("//")) left = binary(ExprKind::FloorDiv, left, unary(), DType::I64);
            else if (take("/")) left = counted(quotient(left, unary()));
            else if (take("%")) left = binary(ExprKind::Mod, left, unary(), DType::I64);
            else if (startsPower()) break;
            else if (take("*")) {
                Expr right = unary();
                left = binary(ExprKind::Mul, left, right, common(left, right));
            } else break;
        }
        return left;
    }
    bool startsPower() {
        skipBlanks();
        return m_text.substr(m_at).starts_with("**");
    }
    Expr unary() {
        if (++m_depth > kMaxDepth) return fail("nested more than 256 levels deep");
        Expr value;
        if (takeLeast()) value = Expr::integer(std::numeric_limits<int64_t>::min());
        else if (take("-")) {
            Expr operand = unary();
            value = operand->kind == ExprKind::Float ? Expr::real(-operand->real, operand->dtype)
                                                     : Expr::make(ExprKind::Neg, {operand}, operand->dtype);
        } else if (take("+")) value = unary();
        else if (take("~")) {
            Expr operand = unary();
            value = Expr::make(ExprKind::BitNot, {operand}, operand->dtype);
        } else {
            value = atom();
            if (take("**")) value = Expr::make(ExprKind::Pow, {value, unary()});
        }
        --m_depth;
        return value;
    }
    /// Takes -2^63, which is not a negation of a number of 64 bits.
    bool takeLeast() {
        static constexpr std::string_view kLeast = "-9223372036854775808";
        skipBlanks();
        if (!m_text.substr(m_at).starts_with(kLeast)) return false;
        const std::string_view rest = m_text.substr(m_at + kLeast.size());
        if (!rest.empty() && (rest[0] == '.' || rest[0] == 'e' || rest[0] == 'E' || std::isdigit(rest[0])))
            return false;
        m_at += kLeast.size();
        return true;
    }
    Expr atom() {
        if (take("(")) {
            Expr inner = comparison();
            if (!take(")")) return fail("')' expected");
            return inner;
        }
        if (m_at >= m_text.size()) return fail("an operand is missing");
        const char c = m_text[m_at];
        if ((c >= '0' && c <= '9') || c == '.') return number();
        if (c == '\'' || c == '"') return fail("a string stands where a number is expected");
        return name();
    }
    Expr number() {
        const char* begin = m_text.data() + m_at;
        const char* end = m_text.data() + m_text.size();
        int64_t integer = 0;
        auto [stop, status] = std::from_chars(begin, end, integer);
        if (stop == end || (*stop != '.' && *stop != 'e' && *stop != 'E')) {
            if (status != std::errc()) return fail("the integer is out of range");
            m_at += static_cast<size_t>(stop - begin);
            return Expr::integer(integer);
        }
        double real = 0;
        auto [realStop, realStatus] = std::from_chars(begin, end, real);
        if (realStatus != std::errc()) return fail("not a number");
        m_at += static_cast<size_t>(realStop - begin);
        return Expr::real(real, DType::F64);
    }
    Expr name() {
        const size_t begin = m_at;
        auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
        while (m_at < m_text.size() && isWord(m_text[m_at])) ++m_at;
        const std::string_view word = m_text.substr(begin, m_at - begin);
        if (word.empty()) return fail("unexpected '" + std::string(m_text.substr(begin, 1)) + "'");
        if (take("(")) return call(word);
        if (auto constant = constantNamed(word)) return *constant;
        return Expr::symbol(std::string(word), symbolDType(word));
    }
    static std::optional<Expr> constantNamed(std::string_view word) {
        if (word == "True" || word == "true") return Expr::boolean(true);
        if (word == "False" || word == "false") return Expr::boolean(false);
        if (word == "oo" || word == "int_oo") return Expr::integer(std::numeric_limits<int64_t>::max());
        if (word == "inf") return Expr::real(std::numeric_limits<double>::infinity(), DType::F64);
        if (word == "nan") return Expr::real(std::numeric_limits<double>::quiet_NaN(), DType::F64);
        return std::nullopt;
    }
    /// 'text' or "text" without escapes, as symbol names and float digits are written.
    std::string_view quoted() {
        skipBlanks();
        if (m_at >= m_text.size() || (m_text[m_at] != '\'' && m_text[m_at] != '"')) return {};
        const size_t close = m_text.find(m_text[m_at], m_at + 1);
        if (close == std::string_view::npos) return {};
        const std::string_view inner = m_text.substr(m_at + 1, close - m_at - 1);
        m_at = close + 1;
        return inner;
    }
    void skipKeywords() {
        while (take(",")) {
            skipBlanks();
            while (m_at < m_text.size() && m_text[m_at] != ',' && m_text[m_at] != ')') ++m_at;
        }
    }
    Expr call(std::string_view function) {
        if (function == "Symbol" || function == "Float") {
            const std::string_view inner = quoted();
            skipKeywords();
            if (inner.empty() || !take(")")) return fail(std::string(function) + " needs a quoted text");
            bool plain = std::all_of(inner.begin(), inner.end(), [](char c) {
                return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            });
            plain &= !constantNamed(inner) && inner != "None";
            if (function == "Symbol" && (!plain || (inner[0] >= '0' && inner[0] <= '9')))
                return fail("a symbol is named like a variable");
            if (function == "Symbol") return Expr::symbol(std::string(inner), symbolDType(inner));
            double real = 0;
            const auto status = std::from_chars(inner.data(), inner.data() + inner.size(), real);
            if (status.ec != std::errc()) return fail("not a number");
            return Expr::real(real, DType::F64);
        }
        if (function == "Piecewise") return pieces();
        std::vector<Expr> operands;
        if (!take(")")) {
            do operands.push_back(comparison());
            while (!m_error && take(","));
            if (!take(")")) return fail("')' expected");
        }
        return m_error ? Expr::integer(0) : apply(function, std::move(operands));
    }
    /// (value, condition), ...: the first whose condition holds; the last holds always. Also as ExprCondPair(value,
    /// condition).
    Expr pieces() {
        std::vector<std::pair<Expr, Expr>> all;
        do {
            skipBlanks();
            if (constexpr std::string_view kPair = "ExprCondPair"; m_text.substr(m_at).starts_with(kPair))
                m_at += kPair.size();
            if (!take("(")) return fail("a value and its condition in brackets expected");
            const Expr value = comparison();
            if (m_error || !take(",")) return fail("a condition expected");
            all.emplace_back(value, comparison());
            if (m_error || !take(")")) return fail("')' expected");
        } while (take(","));
        if (!take(")")) return fail("')' expected");
        Expr chosen = all.back().first;
        for (size_t i = all.size() - 1; i-- > 0;) {
            if (all[i].second->dtype != DType::Bool || all[i].first->dtype != chosen->dtype)
                return fail("values of one kind, each with a condition, expected");
            chosen = Expr::where(all[i].second, all[i].first, chosen);
        }
        return chosen;
    }
    /// Of floats, as we print it; of integers PyTorch's true division.
    static Expr quotient(const Expr& a, const Expr& b) {
        const bool floats = a->dtype == DType::F64 && b->dtype == DType::F64;
        return floats ? Expr::make(ExprKind::Div, {a, b}, DType::F64) : Expr::call("IntTrueDiv", {a, b}, DType::F64);
    }
    Expr apply(std::string_view function, std::vector<Expr> operands) {
        const size_t count = operands.size();
        if (count == 0) return fail("'" + std::string(function) + "' without operands");
        if ((function == "Integer" || function == "Identity") && count == 1) return operands[0];
        if (function == "Rational" && count == 2) return Expr::call("IntTrueDiv", std::move(operands), DType::F64);
        if (function == "FloatPow" && count == 2) return Expr::call("pow", std::move(operands), DType::F64);
        if (function == "ToFloat" && count == 1) return Expr::cast(operands[0], DType::F64);
        if (function == "Where" && count == 3) return Expr::where(operands[0], operands[1], operands[2]);
        if (function == "ModularIndexing" && count == 3)
            return binary(ExprKind::Mod, binary(ExprKind::FloorDiv, operands[0], operands[1], DType::I64), operands[2],
                          DType::I64);
        if (function == "CeilDiv" && count == 2) {
            const Expr most = Expr::make(ExprKind::Add, {operands[0], operands[1], Expr::integer(-1)});
            return binary(ExprKind::FloorDiv, most, operands[1], DType::I64);
        }
        for (const OperatorName& row : kOperatorNames)
            if (row.name == function) {
                if (row.operands != 0 && row.operands != count)
                    return fail("'" + std::string(function) + "' takes " + std::to_string(row.operands) + " operands");
                if (row.operands == 1) return Expr::make(row.kind, std::move(operands), row.dtype);
                Expr folded = operands[0];
                for (size_t i = 1; i < count; ++i)
                    folded = binary(row.kind, folded, operands[i],
                                    row.dtype == DType::I64 ? common(folded, operands[i]) : row.dtype);
                return folded;
            }
        for (const FunctionName& row : kFunctionNames)
            if (row.name == function) return Expr::call(function, std::move(operands), row.dtype);
        if (function.starts_with(kOpaqueFunction) && count == 1)
            return Expr::call(function, std::move(operands), DType::F64);
        if (auto dtype = dtypeFromAbbreviation(function); dtype && count == 1) {
            // PyTorch's floor is an integer, ours a float that a cast makes one.
            const Expr& x = operands[0];
            const bool floats = *dtype == DType::I64 && x->kind == ExprKind::Call && x->name == "floor";
            return Expr::cast(floats ? Expr::call("floor", x->operands, DType::F64) : x, *dtype);
        }
        return fail("unknown function '" + std::string(function) + "'");
    }

    std::string_view m_text;
    size_t m_at = 0;
    int m_depth = 0, m_operations = 0;
    std::optional<Error> m_error;
};

}  // namespace

Result<Expr> parseExpr(std::string_view text) { return ExprReader(text).read(); }

bool looksLikeSymbol(std::string_view name) {
    for (std::string_view prefix : {"zuf", "zf", "s", "u"})
        if (name.starts_with(prefix)) {
            name.remove_prefix(prefix.size());
            return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
        }
    return false;
}
bool isUnbacked(std::string_view name) { return name.starts_with('u') && looksLikeSymbol(name); }
bool readsData(const Expr& expr) {
    if (expr->kind == ExprKind::Symbol) return isUnbacked(expr->name);
    return std::any_of(expr->operands.begin(), expr->operands.end(), readsData);
}

}  // namespace cutaway
