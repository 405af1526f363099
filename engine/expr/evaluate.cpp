#include "engine/expr/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/expr/expr_parse.h"

namespace cutaway {
namespace {

struct Function {
    std::string_view name;
    double (*of)(double);
};
/// By PyTorch's names and by ours, beside those that fold while they are built, because their results are exact
/// (Expr::call). Whether the result is an integer says the call's dtype.
constexpr Function kFunctions[] = {
    {"TruncToFloat", [](double x) { return std::trunc(x); }},
    {"RoundToInt", [](double x) { return std::nearbyint(x); }},
    {"abs", [](double x) { return std::fabs(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"log", [](double x) { return std::log(x); }},
    {"log2", [](double x) { return std::log2(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tan", [](double x) { return std::tan(x); }},
    {"asin", [](double x) { return std::asin(x); }},
    {"acos", [](double x) { return std::acos(x); }},
    {"atan", [](double x) { return std::atan(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
};

bool isLiteral(const Expr& expr) {
    return expr->kind == ExprKind::Int || expr->kind == ExprKind::Float || expr->kind == ExprKind::Bool;
}
double realOf(const Expr& literal) {
    return literal->kind == ExprKind::Float ? literal->real : static_cast<double>(literal->integer);
}
/// Nothing where an integer is asked for and the number is none of 64 bits.
std::optional<Expr> numberAs(double value, DType dtype) {
    if (dtype == DType::Bool) return Expr::boolean(value != 0);
    if (dtype != DType::I64) return Expr::real(value, DType::F64);
    if (!(std::fabs(value) < 0x1p63)) return std::nullopt;
    return Expr::integer(static_cast<int64_t>(value));
}

std::optional<Expr> valueOfCall(const ExprNode& call, std::vector<Expr> in) {
    const std::string_view name = plainFunctionName(call.name);
    for (Expr& each : in)
        if (each->kind == ExprKind::Bool) each = Expr::integer(each->integer);
    if (Expr exact = Expr::call(name, in, call.dtype); isLiteral(exact)) return exact;
    const double x = realOf(in[0]);
    if (in.size() == 2) {
        const double y = realOf(in[1]);
        if (name == "pow" || name == "FloatPow") return numberAs(std::pow(x, y), call.dtype);
        if (name == "RoundDecimal") return numberAs(std::nearbyint(x * std::pow(10, y)) / std::pow(10, y), call.dtype);
        return std::nullopt;
    }
    const auto row = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const Function& each) { return each.name == name; });
    if (in.size() != 1 || row == std::end(kFunctions)) return std::nullopt;
    return numberAs(row->of(x), call.dtype);
}

std::optional<Expr> valueOfFloats(ExprKind kind, const std::vector<Expr>& in) {
    const double x = realOf(in[0]), y = in.size() > 1 ? realOf(in[1]) : 0;
    double result = x;
    switch (kind) {
        case ExprKind::Add:
            for (size_t i = 1; i < in.size(); ++i) result += realOf(in[i]);
            break;
        case ExprKind::Mul:
            for (size_t i = 1; i < in.size(); ++i) result *= realOf(in[i]);
            break;
        case ExprKind::Sub: result = x - y; break;
        case ExprKind::Neg: result = -x; break;
        case ExprKind::Pow: result = std::pow(x, y); break;
        case ExprKind::Min: result = y < x ? y : x; break;
        case ExprKind::Max: result = y > x ? y : x; break;
        case ExprKind::Div:
            if (y == 0) return std::nullopt;
            result = x / y;
            break;
        case ExprKind::FloorDiv:
            if (y == 0) return std::nullopt;
            result = std::floor(x / y);
            break;
        case ExprKind::Mod:
            if (y == 0) return std::nullopt;
            result = x - std::floor(x / y) * y;
            break;
        case ExprKind::Eq: return Expr::boolean(x == y);
        case ExprKind::Ne: return Expr::boolean(x != y);
        case ExprKind::Lt: return Expr::boolean(x < y);
        case ExprKind::Le: return Expr::boolean(x <= y);
        case ExprKind::Gt: return Expr::boolean(x > y);
        case ExprKind::Ge: return Expr::boolean(x >= y);
        default: return std::nullopt;
    }
    return Expr::real(result, DType::F64);
}

/// Over integers these do not fold while they are built.
std::optional<Expr> valueOfBits(ExprKind kind, const std::vector<Expr>& in) {
    const int64_t x = in[0]->integer, y = in.size() > 1 ? in[1]->integer : 0;
    switch (kind) {
        case ExprKind::BitAnd: return Expr::integer(x & y);
        case ExprKind::BitOr: return Expr::integer(x | y);
        case ExprKind::BitXor: return Expr::integer(x ^ y);
        case ExprKind::BitNot: return Expr::integer(~x);
        default: return std::nullopt;
    }
}

}  // namespace

std::optional<Expr> literalValue(const Expr& expr) {
    if (isLiteral(expr)) return expr;
    if (expr->operands.empty() || expr->outOfRange) return std::nullopt;
    std::vector<Expr> in;
    for (const Expr& operand : expr->operands) {
        const auto value = literalValue(operand);
        if (!value) return std::nullopt;
        in.push_back(*value);
    }
    const bool floats = std::any_of(in.begin(), in.end(), [](const Expr& e) { return e->kind == ExprKind::Float; });
    switch (expr->kind) {
        case ExprKind::Call: return valueOfCall(*expr, in);
        case ExprKind::Cast: return numberAs(realOf(in[0]), expr->dtype);
        case ExprKind::Where: return in[0]->integer != 0 ? in[1] : in[2];
        default: break;
    }
    if (floats || expr->dtype == DType::F64) return valueOfFloats(expr->kind, in);
    if (const auto bits = valueOfBits(expr->kind, in)) return bits;
    const Expr made = Expr::make(expr->kind, std::move(in), expr->dtype);
    return isLiteral(made) ? std::optional(made) : std::nullopt;
}

std::optional<Scalar> literalScalar(const Expr& expr) {
    if (const auto value = expr.asInt()) return Scalar(*value);
    if (expr->kind == ExprKind::Bool) return Scalar(expr->integer != 0);
    if (expr->kind == ExprKind::Float) return Scalar(expr->real);
    return std::nullopt;
}

int64_t symbolValue(const std::string& symbol, const Tensor& number) {
    return symbolDType(symbol) == DType::F64 ? std::bit_cast<int64_t>(toDouble(number.item())) : toInt(number.item());
}
Expr symbolLiteral(const std::string& symbol, int64_t value) {
    return symbolDType(symbol) == DType::F64 ? Expr::real(std::bit_cast<double>(value), DType::F64)
                                             : Expr::integer(value);
}
Expr withValues(const Expr& expr, const std::map<std::string, int64_t>& values) {
    const Expr given = substitute(expr, [&](const std::string& symbol) {
        const auto found = values.find(symbol);
        return found == values.end() ? Expr() : symbolLiteral(symbol, found->second);
    });
    if (!given || given->operands.empty() || given == expr) return given;
    return literalValue(given).value_or(given);
}

}  // namespace cutaway
