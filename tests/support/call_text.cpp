#include "tests/support/call_text.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "engine/ops/op_registry.h"

namespace cutaway::testing {
namespace {

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}
/// The parts between the commas that stand outside of brackets and quotes.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    char quote = 0;
    size_t start = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"') quote = c;
        else if (c == '[' || c == '(') ++depth;
        else if (c == ']' || c == ')') --depth;
        else if (c == ',' && depth == 0) {
            parts.push_back(text.substr(start, i - start));
            start = i + 1;
        }
    }
    if (!trimmed(text.substr(start)).empty() || !parts.empty()) parts.push_back(text.substr(start));
    return parts;
}
std::vector<int64_t> numbers(std::string_view text) {
    std::vector<int64_t> out;
    for (std::string_view part : split(text)) {
        part = trimmed(part);
        int64_t value = 0;
        std::from_chars(part.data(), part.data() + part.size(), value);
        out.push_back(value);
    }
    return out;
}
/// What stands in the brackets at the front, which go.
std::string_view bracketed(std::string_view& text) {
    const size_t end = std::min(text.find(']'), text.size() - 1);
    const std::string_view inside = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return inside;
}
CallItem parseItem(std::string_view text) {
    CallItem item;
    text = trimmed(text);
    const size_t name = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (const size_t equals = text.find_first_not_of(' ', std::min(name, text.size()));
        equals != std::string_view::npos && text[equals] == '=') {
        item.keyword = text.substr(0, name);
        text = trimmed(text.substr(equals + 1));
    }
    const size_t open = text.find('[');
    if (text.starts_with('[') && text.ends_with(']')) {
        item.kind = CallItem::Kind::List;
        for (std::string_view part : split(text.substr(1, text.size() - 2)))
            if (!trimmed(part).empty()) item.items.push_back(parseItem(part));
    } else if (open != std::string_view::npos && dtypeFromAbbreviation(text.substr(0, open))) {
        item.kind = CallItem::Kind::Tensor;
        item.word = text.substr(0, open);
        text.remove_prefix(open);
        item.sizes = numbers(bracketed(text));
        if (text.starts_with('[')) {
            item.strides = numbers(bracketed(text));
            item.strided = true;
        }
        item.draw = text;
    } else {
        item.word = text;
    }
    return item;
}
}  // namespace

std::vector<CallItem> parseItems(std::string_view text) {
    std::vector<CallItem> items;
    for (std::string_view part : split(text))
        if (!trimmed(part).empty()) items.push_back(parseItem(part));
    return items;
}

namespace {
std::string join(const std::vector<int64_t>& values) {
    std::string out;
    for (int64_t value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
    return "[" + out + "]";
}
std::string print(const CallItem& item) {
    const std::string head = item.keyword.empty() ? "" : item.keyword + " = ";
    if (item.kind == CallItem::Kind::List) return head + "[" + printItems(item.items) + "]";
    if (item.kind == CallItem::Kind::Word) return head + item.word;
    return head + item.word + join(item.sizes) + (item.strided ? join(item.strides) : "") + item.draw;
}
}  // namespace

std::string printItems(const std::vector<CallItem>& items) {
    std::string out;
    for (const CallItem& item : items) out += (out.empty() ? "" : ", ") + print(item);
    return out;
}

Result<CallText> parseCall(std::string_view text) {
    text = trimmed(text);
    const size_t open = text.find('(');
    if (open == std::string_view::npos || !text.ends_with(')')) return invalidInput("not a call: " + std::string(text));
    const Op* op = findOp(text.substr(0, open));
    if (op == nullptr) return invalidInput("no op is called " + std::string(text.substr(0, open)));
    return CallText{op, std::string(text.substr(open + 1, text.size() - open - 2))};
}
std::vector<CallText> callsIn(const std::string& path) {
    std::vector<CallText> calls;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (const size_t space = line.find(' '); !line.starts_with('#') && space != std::string::npos)
            if (auto call = parseCall(std::string_view(line).substr(space + 1))) calls.push_back(std::move(*call));
    return calls;
}

}  // namespace cutaway::testing
