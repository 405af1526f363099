#include "engine/plugins/text_functions.h"

#include <algorithm>

namespace cutaway {
namespace {

size_t indentOf(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }
bool isEmpty(std::string_view line) {
    const size_t first = line.find_first_not_of(" \t\r");
    return first == std::string_view::npos || line[first] == '#';
}

std::vector<std::string_view> linesOf(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
        text.remove_prefix(std::min(text.size(), end + 1));
    }
    return lines;
}

std::string_view spanOf(std::string_view first, std::string_view last) {
    return {first.data(), static_cast<size_t>(last.data() + last.size() - first.data())};
}

}  // namespace

const TextFunction* FunctionTexts::find(std::string_view name) const {
    const auto found =
        std::find_if(functions.begin(), functions.end(), [&](const TextFunction& one) { return one.name == name; });
    return found == functions.end() ? nullptr : &*found;
}

Result<FunctionTexts> splitFunctions(std::string_view text) {
    FunctionTexts out;
    const std::vector<std::string_view> lines = linesOf(text);
    enum class At { Before, Head, Body, Result, Rest } part = At::Before;
    int open = 0;  // brackets of the statement under way, in the result
    for (const std::string_view line : lines) {
        if (line.starts_with("def ")) {
            if (part == At::Head || part == At::Body)
                return invalidInput("the function has no 'return'", std::string(out.functions.back().name));
            TextFunction& function = out.functions.emplace_back();
            function.text = line;
            const size_t bracket = std::min(line.find('('), line.size());
            function.name = line.substr(4, bracket - std::min<size_t>(bracket, 4));
            part = At::Head;
        }
        if (part == At::Before) {
            if (!line.empty()) out.comments.push_back(line);
            continue;
        }
        TextFunction& function = out.functions.back();
        if (!isEmpty(line)) function.text = spanOf(function.text, line);
        switch (part) {
            case At::Before: break;
            case At::Head:
                function.head.push_back(line);
                if (withoutComment(line).ends_with(":")) part = At::Body;
                break;
            case At::Body:
                if (isEmpty(line)) break;
                if (!std::string_view(line).substr(indentOf(line)).starts_with("return")) {
                    function.body.push_back(line);
                    break;
                }
                part = At::Result;
                open = 0;
                [[fallthrough]];
            case At::Result:
                if (isEmpty(line)) break;
                function.result.push_back(line);
                for (const char c : withoutComment(line)) open += (c == '(' || c == '[') - (c == ')' || c == ']');
                if (open <= 0) part = At::Rest;
                break;
            case At::Rest:
                if (!isEmpty(line)) function.rest.push_back(line);
                break;
        }
    }
    if (out.functions.empty()) return invalidInput("the text holds no function: it begins with 'def forward(...):'");
    if (part == At::Head || part == At::Body)
        return invalidInput("the function has no 'return'", std::string(out.functions.back().name));
    return out;
}

std::string_view definedName(std::string_view line) {
    const size_t begin = indentOf(line);
    size_t end = begin;
    while (end < line.size() && plugintext::isWordCharacter(line[end])) ++end;
    if (end == begin) return {};
    size_t at = end;
    if (at < line.size() && line[at] == ':') {
        at = std::min(line.find_first_not_of(' ', at + 1), line.size());
        if (at < line.size() && (line[at] == '"' || line[at] == '\'')) at = plugintext::endOfString(line, at);
        else
            while (at < line.size() && line[at] != '=') ++at;
    }
    at = std::min(line.find_first_not_of(' ', at), line.size());
    const bool assigns = at < line.size() && line[at] == '=' && (at + 1 == line.size() || line[at + 1] != '=');
    return assigns ? line.substr(begin, end - begin) : std::string_view{};
}

std::string_view withoutComment(std::string_view line) {
    size_t at = 0;
    while (at < line.size() && line[at] != '#')
        at = line[at] == '"' || line[at] == '\'' ? plugintext::endOfString(line, at) : at + 1;
    line = line.substr(0, at);
    while (line.ends_with(' ')) line.remove_suffix(1);
    return line;
}

std::string_view commentIn(std::string_view line) {
    size_t at = 0;
    while (at < line.size() && line[at] != '#')
        at = line[at] == '"' || line[at] == '\'' ? plugintext::endOfString(line, at) : at + 1;
    return line.substr(std::min(at, line.size()));
}

}  // namespace cutaway
