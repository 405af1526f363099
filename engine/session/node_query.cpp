#include "cutaway/node_query.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace cutaway {
namespace {

constexpr std::array<std::string_view, 6> kTextFields = {"name", "op", "type", "module", "tensor", "change"};
constexpr std::array<std::string_view, 4> kNumberFields = {"numel", "bytes", "users", "inputs"};

template <size_t N>
bool isOneOf(const std::array<std::string_view, N>& fields, std::string_view field) {
    return std::find(fields.begin(), fields.end(), field) != fields.end();
}

std::string_view trimmed(std::string_view text) {
    const auto isSpace = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && isSpace(text.front())) text.remove_prefix(1);
    while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
    return text;
}
std::string lowered(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    return out;
}
bool hasPart(std::string_view text, std::string_view part) {
    return lowered(text).find(lowered(part)) != std::string::npos;
}
std::optional<double> numberIn(std::string_view text) {
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size() && std::isfinite(value);
    return whole ? std::optional(value) : std::nullopt;
}
std::vector<std::string_view> split(std::string_view text, char mark) {
    std::vector<std::string_view> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(mark, begin), text.size());
        if (end > begin) parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::string_view textField(std::string_view field, const UnionGraph::Node& node) {
    static constexpr std::string_view kChanges[] = {"kept", "added", "removed", "edited"};
    if (field == "name") return node.info.name;
    if (field == "op") return node.info.op;
    if (field == "type") return node.info.type;
    if (field == "module") return node.info.module;
    if (field == "tensor") return node.info.tensor;
    return kChanges[static_cast<int>(node.change)];
}
double numberField(std::string_view field, const UnionGraph::Node& node) {
    if (field == "numel") return elementsOf(node.info.type);
    if (field == "bytes") return static_cast<double>(node.info.bytes);
    if (field == "users") return static_cast<double>(node.info.users.size());
    return static_cast<double>(node.info.inputs.size());
}

std::string listOfFields() {
    std::string all;
    for (const std::string_view field : kTextFields) all += (all.empty() ? "" : ", ") + std::string(field);
    for (const std::string_view field : kNumberFields) all += ", " + std::string(field);
    return all;
}

}  // namespace

double elementsOf(std::string_view type) {
    double sum = 0;
    bool any = false;
    for (size_t open; (open = type.find('[')) != std::string_view::npos;) {
        const size_t close = type.find(']', open);
        if (close == std::string_view::npos) break;
        double product = 1;
        for (const std::string_view size : split(type.substr(open + 1, close - open - 1), ',')) {
            const auto number = numberIn(trimmed(size));
            if (!number && !trimmed(size).empty()) return -1;
            product *= number.value_or(1);
        }
        sum += product;
        any = true;
        type.remove_prefix(close + 1);
    }
    return any ? sum : -1;
}

Result<NodeQuery> NodeQuery::parse(std::string_view text) {
    NodeQuery query;
    for (const std::string_view part : split(text, '&')) {
        const std::string_view condition = trimmed(part);
        const size_t at = condition.find_first_of("<>=!");
        const std::string_view field = trimmed(condition.substr(0, std::min(at, condition.size())));
        const bool isWord = !field.empty() && std::all_of(field.begin(), field.end(), [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
        });
        size_t length = 0;
        if (at != std::string_view::npos)
            for (const std::string_view sign : {"<=", ">=", "!=", "=", "<", ">"})
                if (length == 0 && condition.substr(at).starts_with(sign)) length = sign.size();
        const std::string_view value = length > 0 ? trimmed(condition.substr(at + length)) : std::string_view();
        if (!isWord || value.empty()) {
            for (const std::string_view word : split(condition, ' '))
                query.m_conditions.push_back({"any", "=", std::string(word), 0});
            continue;
        }
        Condition made{lowered(field), std::string(condition.substr(at, length)), std::string(value), 0};
        if (isOneOf(kNumberFields, made.field)) {
            const auto number = numberIn(made.value);
            if (!number) return invalidInput(made.field + " needs a number, not \"" + made.value + "\"");
            made.number = *number;
        } else if (!isOneOf(kTextFields, made.field)) {
            return invalidInput("no field \"" + made.field + "\"; there are " + listOfFields());
        } else if (made.comparison != "=" && made.comparison != "!=") {
            return invalidInput(made.field + " is text: compare with = or !=");
        }
        query.m_conditions.push_back(std::move(made));
    }
    return query;
}

bool NodeQuery::holds(const Condition& condition, const UnionGraph::Node& node) {
    if (condition.field == "any")
        return std::any_of(kTextFields.begin(), kTextFields.end(), [&](std::string_view field) {
            return field != "change" && hasPart(textField(field, node), condition.value);
        });
    if (isOneOf(kTextFields, condition.field))
        return hasPart(textField(condition.field, node), condition.value) == (condition.comparison == "=");
    const double value = numberField(condition.field, node);
    if (condition.comparison == "=") return value == condition.number;
    if (condition.comparison == "!=") return value != condition.number;
    if (condition.comparison == "<") return value >= 0 && value < condition.number;
    if (condition.comparison == "<=") return value >= 0 && value <= condition.number;
    if (condition.comparison == ">") return value > condition.number;
    return value >= condition.number;
}

bool NodeQuery::matches(const UnionGraph::Node& node) const {
    return std::all_of(m_conditions.begin(), m_conditions.end(),
                       [&](const Condition& condition) { return holds(condition, node); });
}

}  // namespace cutaway
