#include "engine/loops/kernel_syntax.h"

#include <algorithm>
#include <charconv>
#include <iterator>

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
    for (const std::string_view predicate : {"isnan", "isinf", "isfinite", "signbit", "active"})
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

bool isNestFunction(std::string_view name) {
    constexpr std::string_view kNames[] = {"ramp",      "active",   "lane",     "lanes_from",
                                           "lanes_xor", "quotient", "remainder"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool needsQuotes(std::string_view symbol) {
    const auto inWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const bool word = !symbol.empty() && !std::isdigit(static_cast<unsigned char>(symbol[0])) &&
                      std::all_of(symbol.begin(), symbol.end(), inWord);
    return !word || numberAfter('x', symbol) || numberAfter('v', symbol) || numberAfter('b', symbol) ||
           numberAfter('t', symbol) || numberAfter('c', symbol) || symbol == "True" || symbol == "False" ||
           symbol == "for" || symbol.starts_with("inf") || symbol.starts_with("nan");
}

}  // namespace cutaway
