#include "engine/passes/operator_conditions.h"

#include <algorithm>
#include <charconv>

#include "engine/support/trimmed.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

std::string_view bareWord(std::string_view text) { return cutaway::trimmed(text, " "); }

std::optional<double> numberIn(std::string_view text) {
    double number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

Result<std::vector<CaseCondition>> readConditions(std::string_view text) {
    std::vector<CaseCondition> out;
    while (!text.empty()) {
        const size_t end = std::min(text.find(" and "), text.size());
        std::string_view one = bareWord(text.substr(0, end));
        text.remove_prefix(std::min(text.size(), end + 5));
        CaseCondition condition;
        const bool negated = one.starts_with("not ");
        if (negated) one = bareWord(one.substr(4));
        for (const std::string_view relation : {" is not ", " is ", " == ", " != ", " <= ", " >= ", " < ", " > "}) {
            const size_t at = one.find(relation);
            if (at == std::string_view::npos) continue;
            condition.relation = bareWord(relation);
            condition.literal = bareWord(one.substr(at + relation.size()));
            one = bareWord(one.substr(0, at));
            break;
        }
        if (condition.relation.empty()) {
            condition.relation = negated ? "!=" : "==";
            condition.literal = "True";
        } else if (negated) {
            one = {};
        }
        for (const std::string_view of : {"rank", "dtype_of"})
            if (one.starts_with(of) && one.substr(of.size()).starts_with("(") && one.ends_with(")")) {
                condition.of = of;
                one = bareWord(one.substr(of.size() + 1, one.size() - of.size() - 2));
                break;
            }
        condition.name = one;
        if (one.empty() || condition.literal.empty() || one.find_first_of(" ()") != std::string_view::npos)
            return invalidInput(
                "a condition reads 'NAME is None', 'NAME == 2', 'rank(NAME) == 3', 'NAME' or 'not "
                "NAME', with 'and' between several");
        out.push_back(std::move(condition));
    }
    return out;
}

bool conditionHolds(const CaseCondition& condition, const CallView& call) {
    const Argument& value = call.arg(condition.name);
    std::string text = printArgument(value);
    if (!condition.of.empty()) {
        const TensorType* type = value.node() ? value.node()->type().tensor() : nullptr;
        if (type == nullptr) return false;
        text = condition.of == "rank" ? std::to_string(type->rank()) : printArgument(type->dtype);
    }
    std::string literal = condition.literal;
    std::replace(literal.begin(), literal.end(), '"', '\'');
    std::replace(text.begin(), text.end(), '"', '\'');
    const auto left = numberIn(text), right = numberIn(literal);
    const bool same = left && right ? *left == *right : text == literal;
    if (condition.relation == "is" || condition.relation == "==") return same;
    if (condition.relation == "is not" || condition.relation == "!=") return !same;
    if (!left || !right) return false;
    if (condition.relation == "<") return *left < *right;
    if (condition.relation == ">") return *left > *right;
    return condition.relation == "<=" ? *left <= *right : *left >= *right;
}

}  // namespace cutaway
