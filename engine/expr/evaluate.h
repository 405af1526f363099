#pragma once
// Expressions as numbers. Sizes fold while they are built (expr.h); what holds floats is computed here, as Python
// computes it, once its symbols have values.
#include <map>
#include <optional>
#include <string>

#include "engine/expr/expr.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// The literal (Int, Float, Bool) that an expression is equal to; nothing where it has symbols, a function that is not
/// known here, or no value.
std::optional<Expr> literalValue(const Expr& expr);

/// The number of a literal; nothing for any other expression.
std::optional<Scalar> literalScalar(const Expr& expr);

/// What tables of symbols' values hold of the number in a tensor: an integer as it is, of a float symbol (zuf0) the
/// bits of the double.
int64_t symbolValue(const std::string& symbol, const Tensor& number);
/// That value as an expression.
Expr symbolLiteral(const std::string& symbol, int64_t value);
/// The expression with these values; those without one stay.
Expr withValues(const Expr& expr, const std::map<std::string, int64_t>& values);

}  // namespace cutaway
