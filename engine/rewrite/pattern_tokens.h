#pragma once
// The characters of a rule's text, taken symbol by symbol: words, numbers, strings, and where the text is broken.
#include <optional>
#include <string>
#include <string_view>

#include "cutaway/result.h"
#include "engine/ir/argument.h"

namespace cutaway {

inline bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// A place in the text. After the first error it stands at the end, so that nothing more is found.
class PatternTokens {
  protected:
    explicit PatternTokens(std::string_view text) : m_text(text) {}

    void fail(std::string what);
    char peek(size_t ahead = 0) const { return m_at + ahead < m_text.size() ? m_text[m_at + ahead] : '\0'; }
    void skipBlanks();
    void skipSeparators();
    bool accept(std::string_view symbol);
    void expect(std::string_view symbol);
    std::string_view word();
    std::string string();
    Argument number();

    std::string_view m_text;
    size_t m_at = 0;
    int m_depth = 0;  // of brackets, inside of which a new line is a blank
    std::optional<Error> m_error;
};

}  // namespace cutaway
