#pragma once
// Tokens of FX text: lines, indentation, strings, numbers and comments, no grammar. Tokens are made on demand, so that
// what follows a graph in a log or a script is never read.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::fxtext {

enum class TokenKind : uint8_t {
    Name,  // dotted names are one token: torch.ops.aten.mm.default; keywords are names too (TXT-3)
    Integer,
    Float,
    Imaginary,
    String,
    Symbol,   // punctuation, in Token::symbol
    Comment,  // without the '#'
    Newline,  // end of a logical line; never inside brackets
    End,
    Bad,  // a character or string that cannot be read
};

/// Up to three characters of punctuation as one number: sym("**=").
constexpr uint32_t sym(std::string_view characters) {
    uint32_t value = 0;
    for (size_t i = 0; i < characters.size(); ++i)
        value |= static_cast<uint32_t>(static_cast<unsigned char>(characters[i])) << (8 * i);
    return value;
}

struct Token {
    TokenKind kind = TokenKind::End;
    bool startsLine = false;  // first of a physical line
    uint32_t symbol = 0;
    uint32_t begin = 0, end = 0;
    uint32_t indent = 0;  // blanks before it, if it starts a line
    std::string_view text;
};

/// Text without byte order mark, terminal colours and log prefixes. Lines stay lines, so line numbers hold; `shift` has
/// the number of bytes removed from each line's front, for columns in errors.
struct PlainText {
    std::string text;
    std::vector<uint32_t> lineBegins;
    std::vector<uint32_t> shift;  // empty when nothing was removed

    /// 1-based "line:column" of an offset into `text`, in terms of the text as given.
    std::string where(size_t offset) const;
    std::string_view line(size_t offset) const;
};
PlainText makePlain(std::string_view given);

class Lexer {
  public:
    Lexer() = default;
    Lexer(std::string_view text, size_t begin) : m_text(text), m_at(begin) { advance(); }

    const Token& peek() const { return m_token; }
    Token next() {
        Token token = m_token;
        advance();
        return token;
    }
    /// Moves to the first token of the next physical line whatever stands on this one.
    void skipLine();

  private:
    void advance();
    /// Bytes of the character at `at` if a name may begin with it (or go on with it), else 0.
    size_t nameStart(size_t at) const;
    size_t namePart(size_t at) const;
    void name();
    void number();
    void string();
    void symbol();

    std::string_view m_text;
    size_t m_at = 0;
    int m_brackets = 0;
    bool m_lineHasTokens = false;
    Token m_token;
};

/// The value of a string token, quotes and escapes resolved; \u and \N{...} escapes give UTF-8 (\N is kept as it is).
std::string unquote(std::string_view literal);

}  // namespace cutaway::fxtext
