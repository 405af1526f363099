#pragma once
// Prints one operation of an expression as C++ from its printed operands: arithmetic, comparisons, casts, functions.
// Loads, and where the result is computed, are the printer's (cpp_printer.h).
#include <set>
#include <string>
#include <vector>

#include "engine/expr/expr.h"

namespace cutaway {

/// A value in generated code: a name or literal, one element or a vector.
struct Code {
    std::string text;
    bool vector = false;
};
/// A vector of copies of a single element.
Code widened(const Code& code, DType dtype);

/// `vector`: the result is a vector, and so are the operands (the condition of a Where need not be). `helpers` collects
/// what the text calls, for cppPrelude.
std::string cppOperation(const Expr& expr, const std::vector<Code>& in, bool vector, std::set<std::string>& helpers);

}  // namespace cutaway
