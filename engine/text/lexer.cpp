#include "engine/text/lexer.h"

#include "engine/support/characters.h"

namespace cutaway::fxtext {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Length of a log prefix: "V1121 08:00:03.825000 693 path.py:12] [0/0] [__artifact] ", also after "[rank0]:".
size_t logPrefix(std::string_view line) {
    size_t at = 0;
    if (line.starts_with("[rank")) {
        at = line.find("]:");
        if (at == std::string_view::npos) return 0;
        at += 2;
    }
    if (line.size() < at + 8 || std::string_view("VIWEC").find(line[at]) == std::string_view::npos) return 0;
    for (size_t i = 1; i <= 4; ++i)
        if (!isDigit(line[at + i])) return 0;
    if (line[at + 5] != ' ' || !isDigit(line[at + 6])) return 0;
    at = line.find(']', at);
    if (at == std::string_view::npos) return 0;
    ++at;
    while (line.substr(at).starts_with(" [")) {
        const size_t close = line.find(']', at);
        if (close == std::string_view::npos) break;
        at = close + 1;
    }
    return at < line.size() && line[at] == ' ' ? at + 1 : at;
}

void appendWithoutColours(std::string& out, std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
            i += 2;
            while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
            continue;
        }
        if (line[i] != '\r') out += line[i];
    }
}

void appendUtf8(std::string& out, uint32_t code) {
    if (code < 0x80) out += static_cast<char>(code);
    else if (code < 0x800) {
        out += static_cast<char>(0xC0 | (code >> 6));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0 | (code >> 12));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | (code >> 18));
        out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    }
}

}  // namespace

PlainText makePlain(std::string_view given) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (given.starts_with(kByteOrderMark)) given.remove_prefix(kByteOrderMark.size());
    PlainText plain;
    plain.text.reserve(given.size());
    bool shifted = false;
    for (size_t at = 0; at <= given.size();) {
        size_t end = given.find('\n', at);
        if (end == std::string_view::npos) end = given.size();
        const std::string_view line = given.substr(at, end - at);
        const size_t prefix = logPrefix(line);
        shifted |= prefix > 0;
        plain.lineBegins.push_back(static_cast<uint32_t>(plain.text.size()));
        plain.shift.push_back(static_cast<uint32_t>(prefix));
        appendWithoutColours(plain.text, line.substr(prefix));
        if (end == given.size()) break;
        plain.text += '\n';
        at = end + 1;
    }
    if (!shifted) plain.shift.clear();
    return plain;
}

std::string PlainText::where(size_t offset) const {
    const auto after = std::upper_bound(lineBegins.begin(), lineBegins.end(), static_cast<uint32_t>(offset));
    const size_t line = static_cast<size_t>(after - lineBegins.begin()) - 1;
    const size_t column = offset - lineBegins[line] + (shift.empty() ? 0 : shift[line]);
    return std::to_string(line + 1) + ":" + std::to_string(column + 1);
}
std::string_view PlainText::line(size_t offset) const {
    const std::string_view all = text;
    const size_t begin = offset == 0 ? 0 : all.rfind('\n', offset - 1) + 1;
    return all.substr(begin, all.find('\n', begin) - begin);
}

void Lexer::skipLine() {
    // The current token is not consumed yet: the line to leave is the one it starts on.
    size_t at = m_text.find('\n', m_token.begin);
    m_at = at == std::string_view::npos ? m_text.size() : at + 1;
    m_brackets = 0;
    m_lineHasTokens = false;
    advance();
}

void Lexer::advance() {
    m_token = Token();
    bool atLineStart = m_at == 0 || m_text[m_at - 1] == '\n';
    size_t lineBegin = m_at;
    for (; m_at < m_text.size(); ++m_at) {
        const char c = m_text[m_at];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f') continue;
        if (c == '\\' && m_at + 1 < m_text.size() && m_text[m_at + 1] == '\n') {
            ++m_at;
            continue;
        }
        if (c != '\n') break;
        if (m_lineHasTokens && m_brackets == 0) {
            m_lineHasTokens = false;
            m_token.kind = TokenKind::Newline;
            m_token.begin = static_cast<uint32_t>(m_at);
            m_token.end = static_cast<uint32_t>(++m_at);
            return;
        }
        atLineStart = true;
        lineBegin = m_at + 1;
    }
    m_token.begin = m_token.end = static_cast<uint32_t>(m_at);
    if (m_at >= m_text.size()) {
        if (m_lineHasTokens) {
            m_lineHasTokens = false;
            m_token.kind = TokenKind::Newline;
        }
        return;
    }
    m_token.startsLine = atLineStart;
    m_token.indent = static_cast<uint32_t>(m_at - lineBegin);
    const char c = m_text[m_at];
    if (c == '#') {
        size_t end = m_text.find('\n', m_at);
        if (end == std::string_view::npos) end = m_text.size();
        m_token.kind = TokenKind::Comment;
        m_token.text = m_text.substr(m_at + 1, end - m_at - 1);
        m_at = end;
    } else {
        m_lineHasTokens = true;
        if (nameStart(m_at) > 0) name();
        else if (isDigit(c) || (c == '.' && m_at + 1 < m_text.size() && isDigit(m_text[m_at + 1]))) number();
        else if (c == '\'' || c == '"') string();
        else symbol();
    }
    m_token.end = static_cast<uint32_t>(m_at);
    if (m_token.kind != TokenKind::Comment) m_token.text = m_text.substr(m_token.begin, m_at - m_token.begin);
}

size_t Lexer::namePart(size_t at) const {
    return at < m_text.size() && m_text[at] == '$' ? 1 : nameCharacter(m_text.substr(std::min(at, m_text.size())));
}
size_t Lexer::nameStart(size_t at) const { return at < m_text.size() && isDigit(m_text[at]) ? 0 : namePart(at); }

void Lexer::name() {
    m_token.kind = TokenKind::Name;
    while (m_at < m_text.size()) {
        const bool dot = m_text[m_at] == '.';
        const size_t length = dot ? nameStart(m_at + 1) : namePart(m_at);
        if (length == 0) break;
        m_at += length + (dot ? 1 : 0);
    }
}

void Lexer::number() {
    m_token.kind = TokenKind::Integer;
    auto digits = [&] {
        while (m_at < m_text.size() && (isDigit(m_text[m_at]) || m_text[m_at] == '_')) ++m_at;
    };
    digits();
    if (m_at < m_text.size() && m_text[m_at] == '.') {
        m_token.kind = TokenKind::Float;
        ++m_at;
        digits();
    }
    if (m_at < m_text.size() && (m_text[m_at] == 'e' || m_text[m_at] == 'E')) {
        size_t exponent = m_at + 1;
        if (exponent < m_text.size() && (m_text[exponent] == '-' || m_text[exponent] == '+')) ++exponent;
        if (exponent < m_text.size() && isDigit(m_text[exponent])) {
            m_token.kind = TokenKind::Float;
            m_at = exponent;
            digits();
        }
    }
    if (m_at < m_text.size() && (m_text[m_at] == 'j' || m_text[m_at] == 'J')) {
        m_token.kind = TokenKind::Imaginary;
        ++m_at;
    }
}

void Lexer::string() {
    const char quote = m_text[m_at];
    const std::string_view triple = m_text.substr(m_at, 3);
    m_token.kind = TokenKind::String;
    if (triple.size() == 3 && triple[1] == quote && triple[2] == quote) {
        const size_t close = m_text.find(triple, m_at + 3);
        if (close == std::string_view::npos) m_token.kind = TokenKind::Bad;
        m_at = close == std::string_view::npos ? m_text.size() : close + 3;
        return;
    }
    for (++m_at; m_at < m_text.size() && m_text[m_at] != '\n'; ++m_at) {
        if (m_text[m_at] == '\\' && m_at + 1 < m_text.size()) ++m_at;
        else if (m_text[m_at] == quote) {
            ++m_at;
            return;
        }
    }
    m_token.kind = TokenKind::Bad;
}

void Lexer::symbol() {
    static constexpr std::string_view kLong[] = {"**=", "//=", "<<=", ">>=", "...", "**", "//", "<<",
                                                 ">>",  "==",  "!=",  "<=",  ">=",  "->", "+=", "-=",
                                                 "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@="};
    static constexpr std::string_view kShort = "()[]{},:;=+-*/%@<>&|^~.!";
    m_token.kind = TokenKind::Symbol;
    const std::string_view rest = m_text.substr(m_at);
    for (std::string_view candidate : kLong)
        if (rest.starts_with(candidate)) {
            m_token.symbol = sym(candidate);
            m_at += candidate.size();
            return;
        }
    const char c = m_text[m_at];
    if (kShort.find(c) == std::string_view::npos) {
        m_at += std::max<size_t>(firstCharacter(rest).bytes, 1);
        m_token.kind = TokenKind::Bad;
        return;
    }
    ++m_at;
    m_token.symbol = static_cast<unsigned char>(c);
    if (c == '(' || c == '[' || c == '{') ++m_brackets;
    if ((c == ')' || c == ']' || c == '}') && m_brackets > 0) --m_brackets;
}

/// Hexadecimal digits behind "\x", "\u" and "\U".
static size_t digitsOfEscape(char c) {
    if (c == 'x') return 2;
    if (c == 'u') return 4;
    return c == 'U' ? 8 : 0;
}

std::string unquote(std::string_view literal) {
    const size_t quotes = literal.size() >= 6 && literal[1] == literal[0] && literal[2] == literal[0] ? 3 : 1;
    if (literal.size() < 2 * quotes) return {};
    const std::string_view inner = literal.substr(quotes, literal.size() - 2 * quotes);
    std::string out;
    out.reserve(inner.size());
    auto number = [&](size_t at, size_t count, int base) -> std::optional<uint32_t> {
        if (at + count > inner.size()) return std::nullopt;
        uint32_t value = 0;
        for (size_t i = at; i < at + count; ++i) {
            const char c = inner[i];
            const int digit = isDigit(c)             ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : 99;
            if (digit >= base) return std::nullopt;
            value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
        }
        return value;
    };
    for (size_t i = 0; i < inner.size(); ++i) {
        if (inner[i] != '\\' || i + 1 == inner.size()) {
            out += inner[i];
            continue;
        }
        const char c = inner[++i];
        static constexpr std::string_view kCodes = "ntrabfv0\\'\"";
        static constexpr std::string_view kValues = {"\n\t\r\a\b\f\v\0\\'\"", 11};
        const size_t digits = digitsOfEscape(c);
        if (c == '\n') continue;
        if (digits > 0) {
            const auto code = number(i + 1, digits, 16);
            if (code && *code <= 0x10FFFF) {
                appendUtf8(out, *code);
                i += digits;
                continue;
            }
        } else if (const size_t found = kCodes.find(c); found != std::string_view::npos) {
            out += kValues[found];
            continue;
        }
        out += '\\';
        out += c;
    }
    return out;
}

}  // namespace cutaway::fxtext
