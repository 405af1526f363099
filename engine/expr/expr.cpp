#include "engine/expr/expr.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "engine/expr/polynomial.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

__extension__ using Wide = __int128;  // sums of numbers of 64 bits fit

Expr finish(ExprNode node) {
    for (const Expr& operand : node.operands) node.outOfRange |= operand->outOfRange;
    Hasher hasher;
    hasher.add(static_cast<int>(node.kind)).add(static_cast<int>(node.dtype)).add(node.integer).add(node.real);
    hasher.add(std::string_view(node.name));
    for (const Expr& operand : node.operands) hasher.add(operand->hash);
    node.hash = hasher.finish().low;
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

bool isIndexDType(DType dtype) { return dtype == DType::I64; }

/// Nothing where there is no quotient, or none that fits.
std::optional<int64_t> floorDivide(int64_t a, int64_t b) {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
    const int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a % b < 0) != (b < 0)));
}
std::optional<int64_t> floorModulo(int64_t a, int64_t b) {
    if (b == 0) return std::nullopt;
    if (b == -1) return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
std::optional<int64_t> power(int64_t base, int64_t exponent) {
    if (exponent < 0) return std::nullopt;
    if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    int64_t result = 1;
    for (; exponent > 0; --exponent)  // at most 63 times: then it no longer fits
        if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
    return result;
}

/// A number as a sum of numbers of 64 bits: itself, or as few as there must be.
std::vector<int64_t> addends(Wide value) {
    std::vector<int64_t> parts;
    constexpr Wide most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
    for (; value > most; value -= most) parts.push_back(std::numeric_limits<int64_t>::max());
    for (; value < least; value -= least) parts.push_back(std::numeric_limits<int64_t>::min());
    if (value != 0) parts.push_back(static_cast<int64_t>(value));
    return parts;
}

/// term = coefficient * rest, rest null for a constant.
std::pair<int64_t, Expr> splitCoefficient(const Expr& term) {
    if (auto constant = term.asInt()) return {*constant, Expr()};
    if (term->outOfRange) return {1, term};
    if (term->kind == ExprKind::Mul)
        if (auto constant = term->operands[0].asInt()) {
            if (term->operands.size() == 2) return {*constant, term->operands[1]};
            std::vector<Expr> rest(term->operands.begin() + 1, term->operands.end());
            return {*constant, finish({.kind = ExprKind::Mul, .dtype = term->dtype, .operands = std::move(rest)})};
        }
    return {1, term};
}

Expr scaled(int64_t coefficient, const Expr& rest) {
    if (!rest) return Expr::integer(coefficient);
    if (coefficient == 1) return rest;
    return Expr::make(ExprKind::Mul, {Expr::integer(coefficient), rest});
}

Expr makeSum(const std::vector<Expr>& operands) {
    std::vector<Expr> flat;
    for (const Expr& operand : operands) {
        if (operand->kind == ExprKind::Add) flat.insert(flat.end(), operand->operands.begin(), operand->operands.end());
        else flat.push_back(operand);
    }
    Wide constant = 0;
    std::vector<std::pair<Expr, Wide>> terms;
    for (const Expr& term : flat) {
        const auto split = splitCoefficient(term);  // not a structured binding: the lambda below reads it (clang 14)
        const auto& [coefficient, rest] = split;
        if (!rest) {
            constant += coefficient;
            continue;
        }
        auto same = std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return t.first == split.second; });
        if (same != terms.end()) same->second += coefficient;
        else terms.emplace_back(rest, Wide{coefficient});
    }
    std::erase_if(terms, [](const auto& t) { return t.second == 0; });
    const std::vector<int64_t> constants = addends(constant);
    if (terms.empty() && constants.size() < 2) return Expr::integer(static_cast<int64_t>(constant));
    bool outOfRange = constants.size() > 1;
    std::sort(terms.begin(), terms.end(),
              [](const auto& a, const auto& b) { return compareExpr(a.first, b.first) < 0; });
    std::vector<Expr> sum;
    for (const auto& [rest, coefficient] : terms) {
        const std::vector<int64_t> parts = addends(coefficient);
        outOfRange |= parts.size() > 1;
        for (const int64_t part : parts) sum.push_back(scaled(part, rest));
    }
    for (const int64_t part : constants) sum.push_back(Expr::integer(part));
    if (sum.size() == 1) return sum[0];
    return finish({.kind = ExprKind::Add, .dtype = DType::I64, .operands = std::move(sum), .outOfRange = outOfRange});
}

Expr makeProduct(const std::vector<Expr>& operands) {
    int64_t constant = 1;
    std::vector<Expr> factors, excess;  // excess: constants whose product with the others does not fit
    auto take = [&](const Expr& factor) {
        int64_t product = 0;
        const auto value = factor.asInt();
        if (!value) factors.push_back(factor);
        else if (__builtin_mul_overflow(constant, *value, &product)) excess.push_back(factor);
        else constant = product;
    };
    for (const Expr& operand : operands) {
        if (operand->kind == ExprKind::Mul)
            for (const Expr& factor : operand->operands) take(factor);
        else take(operand);
    }
    if (constant == 0 || (factors.empty() && excess.empty())) return Expr::integer(constant);
    if (factors.size() == 1 && factors[0]->kind == ExprKind::Add && constant != 1 && excess.empty()) {
        std::vector<Expr> terms;
        for (const Expr& term : factors[0]->operands) terms.push_back(makeProduct({Expr::integer(constant), term}));
        return makeSum(terms);
    }
    std::sort(factors.begin(), factors.end(), [](const Expr& a, const Expr& b) { return compareExpr(a, b) < 0; });
    factors.insert(factors.begin(), excess.begin(), excess.end());
    if (constant != 1) factors.insert(factors.begin(), Expr::integer(constant));
    if (factors.size() == 1) return factors[0];
    return finish(
        {.kind = ExprKind::Mul, .dtype = DType::I64, .operands = std::move(factors), .outOfRange = !excess.empty()});
}

/// Splits a sum into what `divisor` divides exactly (already divided) and the rest.
std::pair<Expr, Expr> splitMultiples(const Expr& expr, int64_t divisor) {
    std::vector<Expr> exact, rest;
    const std::vector<Expr> single = {expr};
    for (const Expr& term : expr->kind == ExprKind::Add ? expr->operands : single) {
        auto [coefficient, symbolic] = splitCoefficient(term);
        // No negation of it fits: the one coefficient that -1 does not divide.
        const bool fits = divisor != -1 || coefficient != std::numeric_limits<int64_t>::min();
        if (fits && coefficient % divisor == 0) exact.push_back(scaled(coefficient / divisor, symbolic));
        else rest.push_back(term);
    }
    return {makeSum(exact), makeSum(rest)};
}

/// Sizes are not zero where they divide; elements that a kernel loads, or counts by its loops, may be, and then the
/// division fails.
bool isMadeOfSizes(const Expr& expr) {
    return expr->kind != ExprKind::Load && expr->kind != ExprKind::Call && expr->kind != ExprKind::Var &&
           expr->kind != ExprKind::Axis && std::all_of(expr->operands.begin(), expr->operands.end(), isMadeOfSizes);
}

Expr makeDivision(ExprKind kind, const Expr& a, const Expr& b) {
    const auto x = a.asInt(), y = b.asInt();
    if (x && y) {
        const auto folded = kind == ExprKind::FloorDiv ? floorDivide(*x, *y) : floorModulo(*x, *y);
        if (folded) return Expr::integer(*folded);
        return finish({.kind = kind, .dtype = DType::I64, .operands = {a, b}, .outOfRange = true});
    }
    if (y && *y != 0) {
        if (*y == 1) return kind == ExprKind::FloorDiv ? a : Expr::integer(0);
        auto [exact, rest] = splitMultiples(a, *y);
        if (rest.asInt() == 0) return kind == ExprKind::FloorDiv ? exact : Expr::integer(0);
        if (exact.asInt() != 0) {
            const Expr small = makeDivision(kind, rest, b);
            return kind == ExprKind::FloorDiv ? makeSum({exact, small}) : small;
        }
        if (kind == ExprKind::FloorDiv && *y > 0 && a->kind == ExprKind::FloorDiv)
            if (auto inner = a->operands[1].asInt(); inner && *inner > 0)
                if (int64_t both = 0; !__builtin_mul_overflow(*inner, *y, &both))
                    return makeDivision(kind, a->operands[0], Expr::integer(both));
    }
    if (y && *y == 0) return finish({.kind = kind, .dtype = DType::I64, .operands = {a, b}, .outOfRange = true});
    if (!y && isMadeOfSizes(b)) {
        if (a == b) return Expr::integer(kind == ExprKind::FloorDiv ? 1 : 0);
        if (x == 0) return a;
        if (const auto quotient = exactQuotient(a, b)) return kind == ExprKind::FloorDiv ? *quotient : Expr::integer(0);
        if (kind == ExprKind::FloorDiv)
            if (const auto [dividend, divisor] = reduced(a, b); !(divisor == b))
                return makeDivision(kind, dividend, divisor);
    }
    return finish({.kind = kind, .dtype = DType::I64, .operands = {a, b}});
}

}  // namespace

namespace {

/// The value of an integer or double constant. Floats of other widths are computed as kernels compute them.
std::optional<double> realConstant(const Expr& expr) {
    if (expr->kind == ExprKind::Float && expr->dtype == DType::F64) return expr->real;
    if (expr->kind == ExprKind::Int && expr->dtype == DType::I64) return static_cast<double>(expr->integer);
    return std::nullopt;
}
bool fitsInteger(double value) { return std::fabs(value) < 0x1p63; }

/// Folds functions of constants whose results are exact or correctly rounded, so the same wherever they are computed:
/// programs compute sizes through floats. By the names that PyTorch's files have, and by ours.
std::optional<Expr> ofConstants(std::string_view function, const std::vector<Expr>& operands, DType dtype) {
    if (operands.empty() || (dtype != DType::F64 && dtype != DType::I64)) return std::nullopt;
    const auto x = realConstant(operands[0]), y = operands.size() == 2 ? realConstant(operands[1]) : std::nullopt;
    if (!x || (operands.size() == 2 && !y)) return std::nullopt;
    std::optional<double> value;
    if (y && *y != 0 && (function == "FloatTrueDiv" || function == "IntTrueDiv")) value = *x / *y;
    if (operands.size() == 1) {
        if (function == "ToFloat") value = x;
        if (function == "TruncToInt" || function == "trunc") value = std::trunc(*x);
        if (function == "FloorToInt" || function == "floor") value = std::floor(*x);
        if (function == "CeilToInt" || function == "ceil" || function == "ceiling") value = std::ceil(*x);
        if (function == "sqrt" || function == "OpaqueUnaryFn_sqrt") value = std::sqrt(*x);
    }
    if (!value || (dtype == DType::I64 && !fitsInteger(*value))) return std::nullopt;
    return dtype == DType::I64 ? Expr::integer(static_cast<int64_t>(*value)) : Expr::real(*value, dtype);
}

/// The comparison that holds where this one does not; of floats there is none, since NaN is on neither side.
std::optional<ExprKind> opposite(const Expr& comparison) {
    static constexpr std::pair<ExprKind, ExprKind> kPairs[] = {
        {ExprKind::Eq, ExprKind::Ne}, {ExprKind::Lt, ExprKind::Ge}, {ExprKind::Gt, ExprKind::Le}};
    if (comparison->operands.size() != 2 || !isIndexDType(comparison->operands[0]->dtype) ||
        !isIndexDType(comparison->operands[1]->dtype))
        return std::nullopt;
    for (const auto& [a, b] : kPairs)
        if (comparison->kind == a || comparison->kind == b) return comparison->kind == a ? b : a;
    return std::nullopt;
}

}  // namespace

bool Expr::operator==(const Expr& other) const {
    if (m_node == other.m_node) return true;
    if (!m_node || !other.m_node || m_node->hash != other.m_node->hash) return false;
    return compareExpr(*this, other) == 0;
}

Expr Expr::integer(int64_t value, DType dtype) {
    return finish({.kind = ExprKind::Int, .dtype = dtype, .integer = value});
}
Expr Expr::real(double value, DType dtype) { return finish({.kind = ExprKind::Float, .dtype = dtype, .real = value}); }
Expr Expr::boolean(bool value) { return finish({.kind = ExprKind::Bool, .dtype = DType::Bool, .integer = value}); }
Expr Expr::symbol(std::string name, DType dtype) {
    return finish({.kind = ExprKind::Symbol, .dtype = dtype, .name = std::move(name)});
}
Expr Expr::load(std::string buffer, Expr index, DType dtype) {
    return finish({.kind = ExprKind::Load, .dtype = dtype, .name = std::move(buffer), .operands = {std::move(index)}});
}
Expr Expr::loadAlong(std::string buffer, Expr index, Expr step, DType dtype) {
    return finish({.kind = ExprKind::Load,
                   .dtype = dtype,
                   .name = std::move(buffer),
                   .operands = {std::move(index), std::move(step)}});
}
Expr Expr::axis(int number) { return finish({.kind = ExprKind::Axis, .dtype = DType::I64, .integer = number}); }
Expr Expr::var(int number, DType dtype) { return finish({.kind = ExprKind::Var, .dtype = dtype, .integer = number}); }
Expr Expr::reduce(int reducer, std::vector<Expr> operands, DType dtype) {
    return finish({.kind = ExprKind::Reduce, .dtype = dtype, .integer = reducer, .operands = std::move(operands)});
}
Expr Expr::call(std::string_view function, std::vector<Expr> operands, DType dtype) {
    if (auto folded = ofConstants(function, operands, dtype)) return *folded;
    return finish(
        {.kind = ExprKind::Call, .dtype = dtype, .name = std::string(function), .operands = std::move(operands)});
}
Expr Expr::cast(Expr operand, DType dtype) {
    if (operand->dtype == dtype) return operand;
    if (const auto value = realConstant(operand); value && dtype == DType::F64) return real(*value, dtype);
    if (const auto value = realConstant(operand); value && dtype == DType::I64 && fitsInteger(*value))
        return integer(static_cast<int64_t>(*value));
    return finish({.kind = ExprKind::Cast, .dtype = dtype, .operands = {std::move(operand)}});
}
Expr Expr::where(Expr condition, Expr yes, Expr no) {
    if (condition->kind == ExprKind::Bool) return condition->integer ? yes : no;
    if (yes == no) return yes;
    const DType dtype = yes->dtype;
    return finish(
        {.kind = ExprKind::Where, .dtype = dtype, .operands = {std::move(condition), std::move(yes), std::move(no)}});
}

std::optional<int64_t> Expr::asInt() const {
    if (m_node && m_node->kind == ExprKind::Int) return m_node->integer;
    return std::nullopt;
}

Expr Expr::make(ExprKind kind, std::vector<Expr> operands, DType dtype) {
    for (const Expr& operand : operands) CT_CHECK(operand, "expressions are built from expressions");
    const bool index = isIndexDType(dtype) && std::all_of(operands.begin(), operands.end(),
                                                          [](const Expr& e) { return isIndexDType(e->dtype); });
    if (index) {
        switch (kind) {
            case ExprKind::Add: return makeSum(operands);
            case ExprKind::Mul: return makeProduct(operands);
            case ExprKind::Sub: {
                const auto x = operands[0].asInt(), y = operands[1].asInt();
                if (int64_t difference = 0; x && y && !__builtin_sub_overflow(*x, *y, &difference))
                    return Expr::integer(difference);
                return makeSum({operands[0], makeProduct({Expr::integer(-1), operands[1]})});
            }
            case ExprKind::Neg: return makeProduct({Expr::integer(-1), operands[0]});
            case ExprKind::FloorDiv:
            case ExprKind::Mod: return makeDivision(kind, operands[0], operands[1]);
            case ExprKind::Pow: {
                const auto base = operands[0].asInt(), exponent = operands[1].asInt();
                if (base && exponent) {
                    if (const auto folded = power(*base, *exponent)) return Expr::integer(*folded);
                    return finish({.kind = kind, .dtype = dtype, .operands = std::move(operands), .outOfRange = true});
                }
                // A small power becomes a product, as which strides are written, so that the two compare equal.
                if (exponent && *exponent >= 0 && *exponent <= 8)
                    return makeProduct(std::vector<Expr>(static_cast<size_t>(*exponent), operands[0]));
                break;
            }
            case ExprKind::Min:
            case ExprKind::Max: {
                const auto x = operands[0].asInt(), y = operands[1].asInt();
                if (x && y) return Expr::integer(kind == ExprKind::Min ? std::min(*x, *y) : std::max(*x, *y));
                if (operands[0] == operands[1]) return operands[0];
                for (size_t i = 0; i < 2; ++i)  // one that is never above the other
                    if (neverNegative(make(ExprKind::Sub, {operands[1 - i], operands[i]})))
                        return operands[kind == ExprKind::Min ? i : 1 - i];
                break;
            }
            default: break;
        }
    }
    if (dtype == DType::Bool && operands.size() == 2) {
        const auto x = operands[0].asInt(), y = operands[1].asInt();
        if (x && y) {
            switch (kind) {
                case ExprKind::Eq: return boolean(*x == *y);
                case ExprKind::Ne: return boolean(*x != *y);
                case ExprKind::Lt: return boolean(*x < *y);
                case ExprKind::Le: return boolean(*x <= *y);
                case ExprKind::Gt: return boolean(*x > *y);
                case ExprKind::Ge: return boolean(*x >= *y);
                default: break;
            }
        }
        for (int side = 0; side < 2; ++side) {
            const Expr &a = operands[static_cast<size_t>(side)], &b = operands[static_cast<size_t>(1 - side)];
            if (a->kind != ExprKind::Bool) continue;
            if (kind == ExprKind::And) return a->integer ? b : a;
            if (kind == ExprKind::Or) return a->integer ? a : b;
        }
    }
    if (kind == ExprKind::Not && operands[0]->kind == ExprKind::Bool) return boolean(operands[0]->integer == 0);
    if (kind == ExprKind::Not && operands[0]->dtype == DType::Bool)
        if (const auto other = opposite(operands[0])) return make(*other, operands[0]->operands, DType::Bool);
    if (kind == ExprKind::Div && dtype == DType::F64 && operands[1]->dtype == DType::F64) {
        const auto x = realConstant(operands[0]), y = realConstant(operands[1]);
        if (x && y && *y != 0) return real(*x / *y, dtype);
    }
    if (kind == ExprKind::Where) return where(operands[0], operands[1], operands[2]);
    return finish({.kind = kind, .dtype = dtype, .operands = std::move(operands)});
}

namespace {

/// Parts that two expressions share among themselves are compared once: asked again for every path that leads to them,
/// a comparison of two copies would take as many steps as there are paths.
class Comparer {
  public:
    int compare(const Expr& a, const Expr& b) {
        if (&*a == &*b) return 0;
        if (const int c = compareNodes(*a, *b)) return c;
        if (a->operands.empty() || !m_equal.emplace(&*a, &*b).second) return 0;
        for (size_t i = 0; i < a->operands.size(); ++i)
            if (const int c = compare(a->operands[i], b->operands[i])) return c;
        return 0;
    }

  private:
    static int compareNodes(const ExprNode& a, const ExprNode& b) {
        auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
        if (a.kind != b.kind) {
            // Symbols first, then products and sums, constants last: "s0 + 1", "4*s77".
            auto rank = [](ExprKind kind) {
                if (kind == ExprKind::Symbol) return -2;
                return kind == ExprKind::Axis ? -1 : static_cast<int>(kind);
            };
            return order(rank(a.kind), rank(b.kind));
        }
        if (int c = order(static_cast<int>(a.dtype), static_cast<int>(b.dtype))) return c;
        if (int c = order(a.integer, b.integer)) return c;
        if (const int c = std::memcmp(&a.real, &b.real, sizeof a.real)) return c;
        // Shorter names first, so that s2 stands before s10.
        if (int c = order(a.name.size(), b.name.size())) return c;
        if (int c = order(a.name, b.name)) return c;
        return order(a.operands.size(), b.operands.size());
    }
    /// Pairs whose comparison has begun. While it goes on, or after it came out equal, the pair decides nothing; one
    /// that came out different has ended the whole comparison.
    std::set<std::pair<const ExprNode*, const ExprNode*>> m_equal;
};

}  // namespace

int compareExpr(const Expr& a, const Expr& b) { return Comparer().compare(a, b); }

std::vector<std::string> symbolsOf(const Expr& expr) {
    std::vector<std::string> names;
    auto walk = [&](auto&& self, const Expr& e) -> void {
        if (e->kind == ExprKind::Symbol) names.push_back(e->name);
        for (const Expr& operand : e->operands) self(self, operand);
    };
    if (expr) walk(walk, expr);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace cutaway
