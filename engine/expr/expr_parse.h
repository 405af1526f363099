#pragma once
// Reads symbolic expressions from text: infix as FX text and logs print it ("4*s77", "((s0 + 1)//2)", "s0 < 5") and
// SymPy's constructor form as .pt2 files store it ("Add(Symbol('s77', positive=True, integer=True), Integer(1))"),
// freely mixed (spec: input-formats §3.7).
#include <string_view>

#include "cutaway/result.h"
#include "engine/expr/expr.h"

namespace cutaway {

/// The whole text must be one expression. Errors name the column (1-based). Nesting is
/// limited to 256 levels. Division by a literal zero is an error. "oo" and "int_oo" give the largest int64.
Result<Expr> parseExpr(std::string_view text);

/// The dtype of a symbol by its prefix: "zf" and "zuf" are floats, all others integers.
DType symbolDType(std::string_view name);
/// Without PyTorch's prefix of functions that it keeps unevaluated: OpaqueUnaryFn_sqrt is sqrt.
std::string_view plainFunctionName(std::string_view name);
/// s0, u3, zf1, zuf2: how PyTorch names size symbols (SYM-2).
bool looksLikeSymbol(std::string_view name);
/// u3: a number that is read from data. Where it stands for a size it is none below zero; as an index it may be one.
bool isUnbacked(std::string_view name);
/// Whether the expression reads such a number.
bool readsData(const Expr& expr);

}  // namespace cutaway
