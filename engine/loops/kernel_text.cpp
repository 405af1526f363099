#include "engine/loops/kernel_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/expr/expr_parse.h"
#include "engine/loops/kernel_syntax.h"
#include "engine/loops/unique_exprs.h"
#include "engine/support/check.h"

namespace cutaway {

std::optional<DType> contextOf(std::span<const Expr> operands) {
    for (const Expr& operand : operands)
        if (!isLiteral(operand)) return operand->dtype;
    return std::nullopt;
}

DType usualLiteral(ExprKind literal, std::optional<DType> context) {
    if (literal == ExprKind::Int) return context && isIntegral(*context) ? *context : DType::I64;
    return context && isFloating(*context) ? *context : DType::F32;
}

DType usualResult(ExprKind kind, std::string_view function, std::span<const Expr> operands) {
    switch (kind) {
        case ExprKind::Eq:
        case ExprKind::Ne:
        case ExprKind::Lt:
        case ExprKind::Le:
        case ExprKind::Gt:
        case ExprKind::Ge:
        case ExprKind::And:
        case ExprKind::Or:
        case ExprKind::Not: return DType::Bool;
        default: break;
    }
    for (const std::string_view predicate : {"isnan", "isinf", "isfinite", "signbit"})
        if (kind == ExprKind::Call && function == predicate) return DType::Bool;
    const auto like = likeOperands(kind, operands);
    return contextOf(like).value_or(like.empty() ? DType::F32 : like[0]->dtype);
}

std::optional<int> numberAfter(char letter, std::string_view word) {
    int number = 0;
    if (word.size() < 2 || word[0] != letter || word[1] < '0' || word[1] > '9') return std::nullopt;
    const char* end = word.data() + word.size();
    const auto read = std::from_chars(word.data() + 1, end, number);
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

bool needsQuotes(std::string_view symbol) {
    const auto inWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const bool word = !symbol.empty() && !std::isdigit(static_cast<unsigned char>(symbol[0])) &&
                      std::all_of(symbol.begin(), symbol.end(), inWord);
    return !word || numberAfter('x', symbol) || numberAfter('v', symbol) || numberAfter('b', symbol) ||
           symbol == "True" || symbol == "False" || symbol == "for" || symbol.starts_with("inf") ||
           symbol.starts_with("nan");
}

namespace {

std::string dtypeText(DType dtype) { return std::string(info(dtype).abbreviation); }
std::string suffix(DType dtype) { return "_" + dtypeText(dtype); }
std::string symbolText(const std::string& name) { return needsQuotes(name) ? "'" + name + "'" : name; }

std::string realText(double value) {
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (std::isnan(value)) {
        // One among many that are no number; the others are written by their bits.
        const double usual = std::numeric_limits<double>::quiet_NaN();
        if (std::memcmp(&usual, &value, sizeof value) == 0) return "nan";
        uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        return "nan(" + std::to_string(bits) + ")";
    }
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    std::string out(buffer, end);
    if (out.find_first_of(".e") == std::string::npos) out += ".0";
    return out;
}

/// Index arithmetic that is read again stays where it is; what is longer than a line gets names for its parts.
constexpr int kSharedWeight = 8, kLongWeight = 60;

class Printer {
  public:
    explicit Printer(const Kernel& kernel) : m_kernel(&kernel) {}

    std::string print() {
        std::vector<Expr> roots;
        for (const KernelStore& store : m_kernel->stores)
            for (const Expr& root : {store.index, store.value}) roots.push_back(m_exprs.unique(root));
        chooseNames(roots);
        m_out = header();
        if (!m_kernel->outer.empty()) m_out += "for " + loops(m_kernel->outer) + ":\n";
        for (size_t s = 0; s < m_kernel->stores.size(); ++s) {
            const KernelStore& store = m_kernel->stores[s];
            forEachExpr({roots[2 * s], roots[2 * s + 1]}, [&](const Expr& e) { define(e); });
            line(bufferName(store.buffer) + "[" + shown(roots[2 * s]) + "] = " + shown(roots[2 * s + 1]) +
                 (store.inner.empty() ? "" : " for " + loops(store.inner)));
        }
        return std::move(m_out);
    }

  private:
    std::string header() const {
        std::string all = m_kernel->name + "(";
        for (size_t i = 0; i < m_kernel->buffers.size(); ++i)
            all += (i ? ", " : "") + bufferName(static_cast<int>(i)) + ": " + dtypeText(m_kernel->buffers[i].dtype) +
                   (m_kernel->buffers[i].written ? "!" : "");
        for (const std::string& size : m_kernel->sizes) all += (all.back() == '(' ? "" : ", ") + symbolText(size);
        return all + ")\n";
    }
    void line(const std::string& code) { m_out += (m_kernel->outer.empty() ? "" : "  ") + code + "\n"; }
    std::string loops(const std::vector<Loop>& all) {
        std::string out;
        for (const Loop& loop : all)
            out += (out.empty() ? "x" : ", x") + std::to_string(loop.axis) + " < " + shown(loop.size.expr(), kBits);
        return out;
    }

    void chooseNames(const std::vector<Expr>& roots) {
        std::unordered_map<const ExprNode*, int> readers, weights;
        forEachExpr(roots, [&](const Expr& e) {
            for (const Expr& operand : e->operands) ++readers[&*operand];
        });
        for (const Expr& root : roots) ++readers[&*root];
        forEachExpr(roots, [&](const Expr& e) {
            int weight = 1;
            for (const Expr& operand : e->operands) weight += weights[&*operand];
            const bool shared = readers[&*e] > 1 && (weight >= kSharedWeight || isReduce(e));
            if (shared || weight > kLongWeight) m_named.insert(&*e);
            weights[&*e] = m_named.contains(&*e) ? 1 : weight;
        });
    }
    void define(const Expr& e) {
        if (!m_named.contains(&*e) || m_names.contains(&*e)) return;
        const std::string value = operation(e, 0);
        const std::string name = "v" + std::to_string(m_names.size());
        line(name + " = " + value);
        m_names.emplace(&*e, name);
    }

    /// An operand among others: `context` is what a literal's dtype is where it names none.
    std::string shown(const Expr& e, int strength = 0, std::optional<DType> context = std::nullopt) {
        if (auto found = m_names.find(&*e); found != m_names.end()) return found->second;
        if (!isLiteral(e)) return operation(e, strength);
        const bool negative = e->kind == ExprKind::Int ? e->integer < 0 : std::signbit(e->real) && !std::isnan(e->real);
        std::string out = e->kind == ExprKind::Int ? std::to_string(e->integer) : realText(e->real);
        if (e->dtype != usualLiteral(e->kind, context)) out += suffix(e->dtype);
        return negative && strength > kUnary ? "(" + out + ")" : out;
    }
    /// `out` binds as `own` says, where something of `strength` is asked for.
    static std::string bracketed(const Expr& e, std::string out, int own, int strength, DType usual) {
        const bool named = e->dtype != usual;
        if ((named && own < kAtom) || own < strength) out = "(" + out + ")";
        return named ? out + suffix(e->dtype) : out;
    }
    std::string called(std::string_view name, const Expr& e) {
        std::string out = std::string(name) + "(";
        const auto context = contextOf(likeOperands(e->kind, e->operands));
        for (size_t i = 0; i < e->operands.size(); ++i) out += (i ? ", " : "") + shown(e->operands[i], 0, context);
        return out + ")";
    }
    std::string reduction(const Expr& e) {
        std::string out = std::string(reducerOf(e).name) + "(";
        for (size_t i = 1; i + 1 < e->operands.size(); i += 2)
            out += (i > 1 ? ", " : "") + shown(e->operands[i]) + " < " + shown(e->operands[i + 1], kBits);
        return out + ": " + shown(e->operands[0]) + ")";
    }
    std::string infix(const Expr& e, const InfixSpelling& spelling, std::optional<DType> context) {
        const bool compact = spelling.strength == kProduct || spelling.strength == kPower;
        const std::string symbol = compact ? std::string(spelling.symbol) : " " + std::string(spelling.symbol) + " ";
        const bool chain = e->kind == ExprKind::Add || e->kind == ExprKind::Sub || e->kind == ExprKind::Mul;
        // Sums and products of floats are pairs, written from the left; those of indices are lists.
        const int first = chain && e->dtype != DType::I64 ? spelling.strength : spelling.strength + 1;
        std::string out = shown(e->operands[0], first, context);
        for (size_t i = 1; i < e->operands.size(); ++i) {
            const std::string next = shown(e->operands[i], spelling.strength + 1, context);
            const bool least = e->operands[i].asInt() == std::numeric_limits<int64_t>::min();
            if (e->kind == ExprKind::Add && e->dtype == DType::I64 && next[0] == '-' && !least)
                out += " - " + next.substr(1);
            else out += symbol + next;
        }
        return out;
    }
    std::string operation(const Expr& e, int strength) {
        const auto context = contextOf(likeOperands(e->kind, e->operands));
        const DType usual = usualResult(e->kind, e->name, e->operands);
        const auto atom = [&](std::string out, DType expected) {
            return bracketed(e, std::move(out), kAtom, strength, expected);
        };
        for (const InfixSpelling& row : kInfix)
            if (row.kind == e->kind) return bracketed(e, infix(e, row, context), row.strength, strength, usual);
        for (const NamedSpelling& row : kNamed)
            if (row.kind == e->kind) return atom(called(row.name, e), usual);
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float: return shown(e, strength);
            case ExprKind::Bool: return e->integer ? "True" : "False";
            case ExprKind::Axis: return "x" + std::to_string(e->integer);
            case ExprKind::Symbol: {
                const bool other = e->dtype != symbolDType(e->name);
                return other ? "'" + e->name + "'" + suffix(e->dtype) : symbolText(e->name);
            }
            case ExprKind::Load: {
                const DType stored = m_kernel->buffers.at(static_cast<size_t>(bufferOf(e))).dtype;
                return atom(e->name + "[" + shown(e->operands[0]) + "]", stored);
            }
            case ExprKind::Cast: return dtypeText(e->dtype) + "(" + shown(e->operands[0]) + ")";
            case ExprKind::Call: return atom(called(e->name, e), usual);
            case ExprKind::Reduce: return atom(reduction(e), reducerOf(e).resultType(e->operands[0]->dtype));
            case ExprKind::Neg:
            case ExprKind::BitNot: {
                const Expr& operand = e->operands[0];
                std::string inner = shown(operand, kUnary);
                if (isLiteral(operand)) inner = "(" + inner + ")";
                return bracketed(e, (e->kind == ExprKind::Neg ? "-" : "~") + inner, kUnary, strength, usual);
            }
            default: break;
        }
        CT_CHECK(false, "kernels hold no variables of nests");
        return {};
    }

    const Kernel* m_kernel;
    UniqueExprs m_exprs;
    std::set<const ExprNode*> m_named;
    std::unordered_map<const ExprNode*, std::string> m_names;
    std::string m_out;
};

}  // namespace

std::string text(const Kernel& kernel) { return Printer(kernel).print(); }

}  // namespace cutaway
