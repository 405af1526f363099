#pragma once
// Integer expressions as sums of products. They decide what Expr's own simplification cannot: whether two expressions
// are equal, whether one is at most the other, and the quotient of two.
#include <map>

#include "engine/expr/expr.h"

namespace cutaway {

/// Atoms (symbols, quotients, minima ...), repeated as often as they are factors, sorted. None: the constant term.
using Monomial = std::vector<Expr>;
/// Higher degree first, then earlier atoms first: an order that multiplication keeps, so that one polynomial divides
/// another.
struct MonomialOrder {
    bool operator()(const Monomial& a, const Monomial& b) const;
};
using Polynomial = std::map<Monomial, int64_t, MonomialOrder>;

/// Nothing if it is not an integer expression, a coefficient does not fit, or products of sums grow beyond what sizes
/// need.
std::optional<Polynomial> polynomialOf(const Expr& expr);
Expr exprOf(const Polynomial& polynomial);

/// True if both have the same value whatever their symbols are; false if that is not known.
bool sameValue(const Expr& a, const Expr& b);
/// Whether the value is never negative. Backed sizes are at least 1 (PyTorch specializes graphs on sizes of 0), other
/// symbols at least 0.
bool neverNegative(const Expr& expr);
/// Whether the value is 1 or more, by the same.
bool alwaysPositive(const Expr& expr);
/// A stride under the assumption that no dim is empty: Max(1, e), as PyTorch writes sizes in strides, becomes e.
SymInt strideOfElements(const SymInt& stride);
/// q with q * divisor == dividend, if there is one. The divisor is taken to be not zero.
std::optional<Expr> exactQuotient(const Expr& dividend, const Expr& divisor);
/// Both divided by their common factor: 6*s0*s1 and 4*s0 become 3*s1 and 2.
std::pair<Expr, Expr> reduced(const Expr& dividend, const Expr& divisor);

}  // namespace cutaway
