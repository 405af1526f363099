#include "engine/support/shell_words.h"

namespace cutaway {
namespace {

bool isPlain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}
bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/// Reads one word from `at` on, which is not blank.
Result<std::string> readWord(std::string_view text, size_t& at) {
    std::string word;
    while (at < text.size() && !isBlank(text[at])) {
        const char c = text[at++];
        if (c == '\\') {
            if (at < text.size()) word += text[at++];
        } else if (c == '\'' || c == '"') {
            for (;; ++at) {
                if (at >= text.size()) return invalidInput("a quote is not closed");
                if (text[at] == c) break;
                const bool escape = c == '"' && text[at] == '\\' && at + 1 < text.size() &&
                                    std::string_view("\"\\$`").find(text[at + 1]) != std::string_view::npos;
                word += text[escape ? ++at : at];
            }
            ++at;
        } else {
            word += c;
        }
    }
    return word;
}

}  // namespace

std::string shellWord(std::string_view word) {
    bool plain = !word.empty();
    for (const char c : word) plain &= isPlain(c);
    if (plain) return std::string(word);
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

Result<std::vector<std::string>> shellWords(std::string_view text) {
    std::vector<std::string> words;
    for (size_t at = 0;;) {
        while (at < text.size() && isBlank(text[at])) ++at;
        if (at == text.size()) return words;
        CT_TRY(std::string word, readWord(text, at));
        words.push_back(std::move(word));
    }
}

std::string escaped(std::string_view text, std::string_view marks) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || marks.find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) out += text[i] == '\\' && i + 1 < text.size() ? text[++i] : text[i];
    return out;
}

size_t findPlain(std::string_view text, char mark, size_t from) {
    for (size_t i = from; i < text.size(); ++i) {
        if (text[i] == '\\') ++i;
        else if (text[i] == mark) return i;
    }
    return std::string_view::npos;
}

std::vector<std::string_view> splitPlain(std::string_view text, char mark) {
    std::vector<std::string_view> out;
    for (size_t begin = 0;;) {
        const size_t end = findPlain(text, mark, begin);
        out.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
        if (end == std::string_view::npos) return out;
        begin = end + 1;
    }
}

std::string commandOn(std::string command, std::string_view file) {
    const auto hole = command.find("{}");
    if (hole == std::string::npos) return command + " " + shellWord(file);
    return command.replace(hole, 2, shellWord(file));
}

}  // namespace cutaway
