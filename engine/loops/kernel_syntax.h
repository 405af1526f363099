#pragma once
// What the printer and the reader of kernels share: how operations are spelled, and which dtype goes without saying.
#include <optional>
#include <span>
#include <string_view>

#include "engine/loops/kernel.h"

namespace cutaway {

/// How strongly an operation binds, weakest first.
enum Strength : uint8_t { kCompare = 1, kBits, kSum, kProduct, kUnary, kPower, kAtom };

struct InfixSpelling {
    ExprKind kind;
    std::string_view symbol;
    Strength strength;
};
/// In the order in which they are tried when reading: a symbol stands before those that are its beginning (<<, <).
inline constexpr InfixSpelling kInfix[] = {
    {ExprKind::Eq, "==", kCompare},      {ExprKind::Ne, "!=", kCompare}, {ExprKind::ShiftLeft, "<<", kBits},
    {ExprKind::ShiftRight, ">>", kBits}, {ExprKind::Le, "<=", kCompare}, {ExprKind::Ge, ">=", kCompare},
    {ExprKind::Lt, "<", kCompare},       {ExprKind::Gt, ">", kCompare},  {ExprKind::BitAnd, "&", kBits},
    {ExprKind::BitOr, "|", kBits},       {ExprKind::BitXor, "^", kBits}, {ExprKind::Add, "+", kSum},
    {ExprKind::Sub, "-", kSum},          {ExprKind::Pow, "**", kPower},  {ExprKind::FloorDiv, "//", kProduct},
    {ExprKind::Mul, "*", kProduct},      {ExprKind::Div, "/", kProduct}, {ExprKind::Mod, "%", kProduct},
};
struct NamedSpelling {
    ExprKind kind;
    std::string_view name;
    size_t least, most;  // operands
};
inline constexpr NamedSpelling kNamed[] = {
    {ExprKind::Min, "Min", 2, 2}, {ExprKind::Max, "Max", 2, 2}, {ExprKind::And, "And", 2, 2},
    {ExprKind::Or, "Or", 2, 2},   {ExprKind::Not, "Not", 1, 1}, {ExprKind::Where, "Where", 3, 3},
};

inline bool isLiteral(const Expr& expr) { return expr->kind == ExprKind::Int || expr->kind == ExprKind::Float; }
/// The dtype of the first operand that is not a literal; nullopt if all are.
std::optional<DType> contextOf(std::span<const Expr> operands);
/// The dtype of a literal of this kind without a suffix, among operands of the dtype `context`.
DType usualLiteral(ExprKind literal, std::optional<DType> context);
/// The dtype of an operation on these operands without a suffix.
DType usualResult(ExprKind kind, std::string_view function, std::span<const Expr> operands);
/// The operands that give literals among them their dtype: all but the condition of a Where.
inline std::span<const Expr> likeOperands(ExprKind kind, std::span<const Expr> operands) {
    return kind == ExprKind::Where ? operands.subspan(1) : operands;
}
/// "x12" is 12.
std::optional<int> numberAfter(char letter, std::string_view word);
/// What only nests call: ramp, active, lane, quotient, remainder.
bool isNestFunction(std::string_view name);
/// A symbol of this name is written in quotes: it reads as something else, or is not a word.
bool needsQuotes(std::string_view symbol);

}  // namespace cutaway
