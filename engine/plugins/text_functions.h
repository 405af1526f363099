#pragma once
// A graph's text as lines, so that what a plugin left as it was need not be parsed.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

/// One function of a text in our short form. All lines are views of the text.
struct TextFunction {
    std::string_view name;
    std::vector<std::string_view> head;    // "def NAME(...):", on one line or several
    std::vector<std::string_view> body;    // statements
    std::vector<std::string_view> result;  // "return ...", on one line or several
    std::vector<std::string_view> rest;    // functions inside it
    std::string_view text;                 // all of it
};
struct FunctionTexts {
    std::vector<std::string_view> comments;  // before the first function: what is known of size symbols
    std::vector<TextFunction> functions;

    const TextFunction* find(std::string_view name) const;
};
/// Blank lines and comments between statements are left out. Errors: no function; one without "return".
Result<FunctionTexts> splitFunctions(std::string_view text);

/// The name that a statement gives its value, "" for a line that begins no statement.
std::string_view definedName(std::string_view line);
/// Calls `visit` for each word of a line that may be a value: no part of a dotted name, no keyword's name, not in
/// quotes or a comment.
template <class Visit>
void forEachWord(std::string_view line, Visit&& visit);
/// The line without its comment.
std::string_view withoutComment(std::string_view line);
/// The comment alone, "" without one.
std::string_view commentIn(std::string_view line);

namespace plugintext {
inline bool isWordCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
/// One past the closing quote of the string that begins at `at`.
inline size_t endOfString(std::string_view line, size_t at) {
    const char quote = line[at];
    for (++at; at < line.size() && line[at] != quote; ++at)
        if (line[at] == '\\') ++at;
    return std::min(line.size(), at + 1);
}
}  // namespace plugintext

template <class Visit>
void forEachWord(std::string_view line, Visit&& visit) {
    for (size_t at = 0; at < line.size();) {
        const char c = line[at];
        if (c == '#') return;
        if (c == '"' || c == '\'') {
            at = plugintext::endOfString(line, at);
            continue;
        }
        if (!plugintext::isWordCharacter(c)) {
            ++at;
            continue;
        }
        const size_t begin = at;
        while (at < line.size() && plugintext::isWordCharacter(line[at])) ++at;
        const bool isPart = begin > 0 && line[begin - 1] == '.';
        const bool isKeyword = at + 1 < line.size() && line[at] == '=' && line[at + 1] != '=';
        const bool isNumber = c >= '0' && c <= '9';
        if (!isPart && !isKeyword && !isNumber) visit(line.substr(begin, at - begin));
    }
}

}  // namespace cutaway
