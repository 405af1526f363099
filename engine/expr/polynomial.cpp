#include "engine/expr/polynomial.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/expr/expr_parse.h"

namespace cutaway {
namespace {

constexpr size_t kMostTerms = 64;  // sizes and strides of models have a handful

bool earlier(const Expr& a, const Expr& b) { return compareExpr(a, b) < 0; }

bool add(Polynomial& sum, const Monomial& monomial, int64_t coefficient) {
    auto [at, fresh] = sum.try_emplace(monomial, 0);
    // A coefficient of -2^63 is refused, too: it has no negation.
    if (__builtin_add_overflow(at->second, coefficient, &at->second) ||
        at->second == std::numeric_limits<int64_t>::min())
        return false;
    if (at->second == 0) sum.erase(at);
    return sum.size() <= kMostTerms;
}

Monomial times(const Monomial& a, const Monomial& b) {
    Monomial product;
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(product), earlier);
    return product;
}

std::optional<Polynomial> times(const Polynomial& a, const Polynomial& b) {
    Polynomial product;
    for (const auto& [x, m] : a)
        for (const auto& [y, n] : b) {
            int64_t coefficient = 0;
            if (__builtin_mul_overflow(m, n, &coefficient) || !add(product, times(x, y), coefficient))
                return std::nullopt;
        }
    return product;
}

/// whole / part, if every atom of the part is in the whole.
std::optional<Monomial> without(const Monomial& whole, const Monomial& part) {
    Monomial rest;
    auto at = part.begin();
    for (const Expr& atom : whole) {
        if (at != part.end() && compareExpr(atom, *at) == 0) ++at;
        else rest.push_back(atom);
    }
    return at == part.end() ? std::optional(std::move(rest)) : std::nullopt;
}

/// The greatest coefficient and monomial that divide every term; the coefficient is positive.
std::pair<int64_t, Monomial> contentOf(const Polynomial& p) {
    int64_t number = 0;
    std::optional<Monomial> shared;
    for (const auto& [monomial, coefficient] : p) {
        number = std::gcd(number, coefficient);
        if (!shared) {
            shared = monomial;
            continue;
        }
        Monomial both;
        std::set_intersection(shared->begin(), shared->end(), monomial.begin(), monomial.end(),
                              std::back_inserter(both), earlier);
        shared = std::move(both);
    }
    return {std::max<int64_t>(number, 1), shared.value_or(Monomial())};
}

Polynomial divided(const Polynomial& p, int64_t number, const Monomial& monomial) {
    Polynomial quotient;
    for (const auto& [own, coefficient] : p) quotient.emplace(*without(own, monomial), coefficient / number);
    return quotient;
}

/// Sizes of inputs as PyTorch names them: s0, s77.
bool isBackedSize(const Expr& atom) {
    return atom->kind == ExprKind::Symbol && atom->name.starts_with('s') && looksLikeSymbol(atom->name);
}

bool atomNeverNegative(const Expr& atom) {
    switch (atom->kind) {
        case ExprKind::Symbol:
        case ExprKind::Axis: return true;
        case ExprKind::FloorDiv: return neverNegative(atom->operands[0]) && neverNegative(atom->operands[1]);
        case ExprKind::Mod: return neverNegative(atom->operands[1]);
        case ExprKind::Pow: return neverNegative(atom->operands[0]);
        case ExprKind::Max: return neverNegative(atom->operands[0]) || neverNegative(atom->operands[1]);
        case ExprKind::Min: return neverNegative(atom->operands[0]) && neverNegative(atom->operands[1]);
        default: return false;
    }
}

}  // namespace

bool MonomialOrder::operator()(const Monomial& a, const Monomial& b) const {
    if (a.size() != b.size()) return a.size() > b.size();
    for (size_t i = 0; i < a.size(); ++i)
        if (const int order = compareExpr(a[i], b[i])) return order < 0;
    return false;
}

std::optional<Polynomial> polynomialOf(const Expr& expr) {
    if (expr->outOfRange || expr->dtype != DType::I64) return std::nullopt;
    if (const auto number = expr.asInt()) {
        Polynomial constant;
        return *number == 0 || add(constant, {}, *number) ? std::optional(constant) : std::nullopt;
    }
    if (expr->kind == ExprKind::Add) {
        Polynomial sum;
        for (const Expr& operand : expr->operands) {
            const auto term = polynomialOf(operand);
            if (!term) return std::nullopt;
            for (const auto& [monomial, coefficient] : *term)
                if (!add(sum, monomial, coefficient)) return std::nullopt;
        }
        return sum;
    }
    if (expr->kind == ExprKind::Mul) {
        std::optional<Polynomial> product = Polynomial{{Monomial(), 1}};
        for (const Expr& operand : expr->operands) {
            const auto factor = polynomialOf(operand);
            if (!factor) return std::nullopt;
            product = times(*product, *factor);
            if (!product) return std::nullopt;
        }
        return product;
    }
    return Polynomial{{Monomial{expr}, 1}};
}

Expr exprOf(const Polynomial& polynomial) {
    std::vector<Expr> terms = {Expr::integer(0)};
    for (const auto& [monomial, coefficient] : polynomial) {
        std::vector<Expr> factors = {Expr::integer(coefficient)};
        factors.insert(factors.end(), monomial.begin(), monomial.end());
        terms.push_back(Expr::make(ExprKind::Mul, std::move(factors)));
    }
    return Expr::make(ExprKind::Add, std::move(terms));
}

bool sameValue(const Expr& a, const Expr& b) {
    if (a == b) return true;
    const auto x = polynomialOf(a), y = polynomialOf(b);
    return x && y && *x == *y;
}

bool neverNegative(const Expr& expr) {
    const auto polynomial = polynomialOf(expr);
    if (!polynomial) return false;
    // With s = 1 + t for backed sizes, t is any number from 0 on: then no coefficient may be below zero.
    Polynomial shifted;
    for (const auto& [monomial, coefficient] : *polynomial) {
        std::optional<Polynomial> term = Polynomial{{Monomial(), coefficient}};
        for (const Expr& atom : monomial) {
            if (!atomNeverNegative(atom)) return false;
            Polynomial factor = {{Monomial{atom}, 1}};
            if (isBackedSize(atom)) factor.emplace(Monomial(), 1);
            term = times(*term, factor);
            if (!term) return false;
        }
        for (const auto& [product, number] : *term)
            if (!add(shifted, product, number)) return false;
    }
    return std::all_of(shifted.begin(), shifted.end(), [](const auto& term) { return term.second >= 0; });
}

bool alwaysPositive(const Expr& expr) {
    if (const auto value = expr.asInt()) return *value > 0;
    return expr->dtype == DType::I64 && neverNegative(Expr::make(ExprKind::Add, {expr, Expr::integer(-1)}));
}

SymInt strideOfElements(const SymInt& stride) {
    if (stride.isInt()) return stride;
    const auto walk = [](auto&& self, const Expr& expr) -> Expr {
        if (expr->operands.empty()) return expr;
        std::vector<Expr> operands;
        for (const Expr& operand : expr->operands) operands.push_back(self(self, operand));
        if (expr->kind == ExprKind::Max && operands[0].asInt() == 1) return operands[1];
        if (expr->kind == ExprKind::Max && operands[1].asInt() == 1) return operands[0];
        return Expr::make(expr->kind, std::move(operands), expr->dtype);
    };
    const Expr expr = stride.expr();
    return expr->dtype == DType::I64 && !expr->outOfRange ? SymInt(walk(walk, expr)) : stride;
}
std::optional<Expr> exactQuotient(const Expr& dividend, const Expr& divisor) {
    auto rest = polynomialOf(dividend);
    const auto by = polynomialOf(divisor);
    if (!rest || !by || by->empty()) return std::nullopt;
    const auto& [leading, number] = *by->begin();
    if (number == -1) return std::nullopt;  // of no use, and -2^63 / -1 does not fit
    Polynomial quotient;
    while (!rest->empty()) {
        const auto monomial = without(rest->begin()->first, leading);
        if (!monomial || rest->begin()->second % number != 0 || quotient.size() == kMostTerms) return std::nullopt;
        const int64_t coefficient = rest->begin()->second / number;
        quotient.emplace(*monomial, coefficient);
        for (const auto& [own, factor] : *by) {
            int64_t product = 0;
            if (__builtin_mul_overflow(coefficient, -factor, &product) || !add(*rest, times(*monomial, own), product))
                return std::nullopt;
        }
    }
    return exprOf(quotient);
}

std::pair<Expr, Expr> reduced(const Expr& dividend, const Expr& divisor) {
    const auto a = polynomialOf(dividend), b = polynomialOf(divisor);
    if (!a || !b || a->empty() || b->empty()) return {dividend, divisor};
    const auto [x, m] = contentOf(*a);
    const auto [y, n] = contentOf(*b);
    Monomial shared;
    std::set_intersection(m.begin(), m.end(), n.begin(), n.end(), std::back_inserter(shared), earlier);
    const int64_t number = std::gcd(x, y);
    if (number == 1 && shared.empty()) return {dividend, divisor};
    return {exprOf(divided(*a, number, shared)), exprOf(divided(*b, number, shared))};
}

}  // namespace cutaway
