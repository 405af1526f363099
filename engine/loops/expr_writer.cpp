#include "engine/loops/expr_writer.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/expr/expr_parse.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

std::string dtypeText(DType dtype) { return std::string(info(dtype).abbreviation); }
std::string suffix(DType dtype) { return "_" + dtypeText(dtype); }

std::string realText(double value) {
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (std::isnan(value)) {
        // There are many NaNs: the usual one is written as "nan", others by their bits.
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

/// Numbers of nodes from which an expression is named: if it is read more than once; in any case (a line is full).
constexpr int kSharedWeight = 8, kLongWeight = 60;

/// Adds brackets if `own`, the strength of the operation in `out`, is below `strength`, and a dtype suffix if needed.
std::string bracketed(const Expr& e, std::string out, int own, int strength, DType usual) {
    const bool named = e->dtype != usual;
    if ((named && own < kAtom) || own < strength) out = "(" + out + ")";
    return named ? out + suffix(e->dtype) : out;
}

}  // namespace

std::string symbolText(const std::string& name) { return needsQuotes(name) ? "'" + name + "'" : name; }

std::string buffersText(const std::vector<KernelBuffer>& buffers) {
    std::string all;
    for (size_t i = 0; i < buffers.size(); ++i)
        all += (i ? ", " : "") + bufferName(static_cast<int>(i)) + ": " + dtypeText(buffers[i].dtype) +
               (buffers[i].written ? "!" : "");
    return all;
}

void ExprWriter::chooseNames(const std::vector<Expr>& roots) {
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

std::vector<std::string> ExprWriter::definitions(const std::vector<Expr>& roots) {
    std::vector<std::string> lines;
    forEachExpr(roots, [&](const Expr& e) {
        if (!m_named.contains(&*e) || m_names.contains(&*e)) return;
        const std::string value = operation(e, 0);
        const std::string name = "v" + std::to_string(m_names.size());
        lines.push_back(name + " = " + value);
        m_names.emplace(&*e, name);
    });
    return lines;
}

std::string ExprWriter::loops(const std::vector<Loop>& all) {
    std::string out;
    for (const Loop& loop : all)
        out += (out.empty() ? "x" : ", x") + std::to_string(loop.axis) + " < " + shown(loop.size.expr(), kBits);
    return out;
}

std::string ExprWriter::shown(const Expr& e, int strength, std::optional<DType> context) {
    if (auto found = m_names.find(&*e); found != m_names.end()) return found->second;
    if (!isLiteral(e)) return operation(e, strength);
    const bool negative = e->kind == ExprKind::Int ? e->integer < 0 : std::signbit(e->real) && !std::isnan(e->real);
    std::string out = e->kind == ExprKind::Int ? std::to_string(e->integer) : realText(e->real);
    if (e->dtype != usualLiteral(e->kind, context)) out += suffix(e->dtype);
    return negative && strength > kUnary ? "(" + out + ")" : out;
}
std::string ExprWriter::called(std::string_view name, const Expr& e) {
    std::string out = std::string(name) + "(";
    const auto context = contextOf(likeOperands(e->kind, e->operands));
    for (size_t i = 0; i < e->operands.size(); ++i) out += (i ? ", " : "") + shown(e->operands[i], 0, context);
    return out + ")";
}
std::string ExprWriter::reduction(const Expr& e) {
    std::string out = std::string(reducerOf(e).name) + "(";
    for (size_t i = 1; i + 1 < e->operands.size(); i += 2)
        out += (i > 1 ? ", " : "") + shown(e->operands[i]) + " < " + shown(e->operands[i + 1], kBits);
    return out + ": " + shown(e->operands[0]) + ")";
}
std::string ExprWriter::infix(const Expr& e, const InfixSpelling& spelling, std::optional<DType> context) {
    const bool compact = spelling.strength == kProduct || spelling.strength == kPower;
    const std::string symbol = compact ? std::string(spelling.symbol) : " " + std::string(spelling.symbol) + " ";
    const bool chain = e->kind == ExprKind::Add || e->kind == ExprKind::Sub || e->kind == ExprKind::Mul;
    // Sums and products of floats have two operands and associate to the left; those of indices have any number.
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
std::string ExprWriter::operation(const Expr& e, int strength) {
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
        case ExprKind::Var: return "t" + std::to_string(e->integer);
        case ExprKind::Symbol: {
            const bool other = e->dtype != symbolDType(e->name);
            return other ? "'" + e->name + "'" + suffix(e->dtype) : symbolText(e->name);
        }
        case ExprKind::Load: {
            const std::string step = e->operands.size() == 2 ? " : " + shown(e->operands[1]) : "";
            return atom(e->name + "[" + shown(e->operands[0]) + step + "]", m_memory(e));
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
    CT_CHECK(false, "every kind of expression has its spelling");
    return {};
}

}  // namespace cutaway
