#include "engine/rewrite/pattern_tokens.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace cutaway {

void PatternTokens::fail(std::string what) {
    if (m_error) return;
    const auto line = 1 + std::count(m_text.begin(),
                                     m_text.begin() + static_cast<std::ptrdiff_t>(std::min(m_at, m_text.size())), '\n');
    m_error = invalidInput(std::move(what), "line " + std::to_string(line));
    m_at = m_text.size();
}

void PatternTokens::skipBlanks() {
    for (;; ++m_at) {
        if (peek() == '#')
            while (m_at < m_text.size() && peek() != '\n') ++m_at;
        const char c = peek();
        if (c != ' ' && c != '\t' && c != '\r' && !(c == '\n' && m_depth > 0)) return;
    }
}

void PatternTokens::skipSeparators() {
    for (skipBlanks(); peek() == ';' || peek() == '\n'; skipBlanks()) ++m_at;
}

bool PatternTokens::accept(std::string_view symbol) {
    skipBlanks();
    if (m_text.substr(m_at, symbol.size()) != symbol) return false;
    m_at += symbol.size();
    return true;
}

void PatternTokens::expect(std::string_view symbol) {
    if (!accept(symbol)) fail("'" + std::string(symbol) + "' is missing");
}

std::string_view PatternTokens::word() {
    skipBlanks();
    const size_t begin = m_at;
    if (isNameStart(peek()))
        while (isNameStart(peek()) || isDigit(peek())) ++m_at;
    return m_text.substr(begin, m_at - begin);
}

std::string PatternTokens::string() {
    if (peek() != '\'' && peek() != '"') {
        fail("a string is missing");
        return std::string();
    }
    const char quote = m_text[m_at++];
    const size_t begin = m_at;
    while (m_at < m_text.size() && peek() != quote && peek() != '\n') ++m_at;
    const std::string text(m_text.substr(begin, m_at - begin));
    if (peek() == quote) ++m_at;
    else fail("a string is not closed");
    return text;
}

Argument PatternTokens::number() {
    const char* const begin = m_text.data() + m_at;
    const char* const end = m_text.data() + m_text.size();
    if (m_text.substr(m_at, 4) == "-inf") {
        m_at += 4;
        return -std::numeric_limits<double>::infinity();
    }
    double real = 0;
    const auto realEnd = std::from_chars(begin, end, real);
    int64_t integer = 0;
    const auto integerEnd = std::from_chars(begin, end, integer);
    if (realEnd.ec != std::errc()) {
        fail("not a number");
        return {};
    }
    m_at += static_cast<size_t>(realEnd.ptr - begin);
    if (integerEnd.ec == std::errc() && integerEnd.ptr == realEnd.ptr) return integer;
    return real;
}

}  // namespace cutaway
