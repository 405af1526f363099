#include "ui/models/syntax.h"

#include <QSet>
#include <QStringList>
#include <algorithm>

namespace cutaway::ui {
namespace {

constexpr LineState kComment = 1, kTripleSingle = 2, kTripleDouble = 3;

using Words = QSet<QStringView>;
#define WORDS(...)                                            \
    [] {                                                      \
        static constexpr QStringView kList[] = {__VA_ARGS__}; \
        return Words(std::begin(kList), std::end(kList));     \
    }()

const Words& keywordsOf(Language language) {
    static const Words kPython = WORDS(u"def", u"return", u"import", u"from", u"as", u"class", u"with", u"if", u"else",
                                       u"elif", u"for", u"in", u"not", u"and", u"or", u"is", u"None", u"True", u"False",
                                       u"lambda", u"pass", u"raise", u"self", u"while", u"assert", u"del", u"global");
    static const Words kRules =
        kPython | WORDS(u"rule", u"place", u"why", u"find", u"replace", u"replace_by_example", u"search", u"parameters",
                        u"training", u"grad", u"shared", u"each", u"repeated", u"readers");
    static const Words kCpp =
        WORDS(u"auto", u"break", u"case", u"const", u"constexpr", u"continue", u"default", u"do", u"else", u"extern",
              u"false", u"for", u"if", u"inline", u"namespace", u"nullptr", u"operator", u"return", u"sizeof",
              u"static", u"struct", u"switch", u"template", u"true", u"typedef", u"typename", u"union", u"using",
              u"while", u"__restrict", u"__restrict__", u"__attribute__", u"reinterpret_cast", u"static_cast");
    return language == Language::Cpp ? kCpp : language == Language::Rules ? kRules : kPython;
}

const Words& typesOf(Language language) {
    static const Words kCpp = WORDS(u"void", u"bool", u"char", u"short", u"int", u"long", u"float", u"double",
                                    u"unsigned", u"signed", u"size_t", u"int8_t", u"int16_t", u"int32_t", u"int64_t",
                                    u"uint8_t", u"uint16_t", u"uint32_t", u"uint64_t", u"_Float16", u"__bf16");
    static const Words kPython = WORDS(u"torch", u"aten", u"prims", u"int", u"float", u"bool");
    return language == Language::Cpp ? kCpp : kPython;
}
#undef WORDS

bool isLetter(QChar c) { return c.isLetter() || c == '_'; }
bool isWord(QChar c) { return isLetter(c) || c.isDigit(); }

class Scanner {
  public:
    Scanner(QStringView line, Language language, LineState& state)
        : m_line(line), m_language(language), m_state(state) {}

    QVector<TokenRange> scan() {
        goOn();
        while (m_at < m_line.size()) {
            const QChar c = m_line[m_at];
            if (startsComment()) comment();
            else if (m_language == Language::Cpp && c == '#' && m_line.first(m_at).trimmed().isEmpty())
                add(m_at, wordEnd(m_at + 1), Token::Keyword);
            else if (c == '"' || c == '\'') string(c);
            else if (c.isDigit() && (m_at == 0 || !isWord(m_line[m_at - 1]))) add(m_at, numberEnd(m_at), Token::Number);
            else if (isLetter(c)) word();
            else ++m_at;
        }
        return std::move(m_found);
    }

  private:
    /// Goes on with a comment or string that the line before left open.
    void goOn() {
        if (m_state == kNothingOpen) return;
        const QStringView close = m_state == kComment ? u"*/" : m_state == kTripleSingle ? u"'''" : u"\"\"\"";
        const qsizetype end = m_line.indexOf(close);
        const Token token = m_state == kComment ? Token::Comment : Token::String;
        if (end >= 0) m_state = kNothingOpen;
        add(0, end < 0 ? m_line.size() : end + close.size(), token);
    }

    bool startsComment() const {
        if (m_language != Language::Cpp) return m_line[m_at] == '#';
        const QStringView two = m_line.sliced(m_at, std::min<qsizetype>(2, m_line.size() - m_at));
        return two == u"//" || two == u"/*";
    }
    void comment() {
        const bool block = m_language == Language::Cpp && m_line[m_at + 1] == '*';
        const qsizetype close = block ? m_line.indexOf(u"*/", m_at + 2) : -1;
        if (block && close < 0) m_state = kComment;
        add(m_at, close < 0 ? m_line.size() : close + 2, Token::Comment);
    }

    void string(QChar quote) {
        const QString triple(3, quote);
        if (m_language != Language::Cpp && m_line.sliced(m_at).startsWith(triple)) {
            const qsizetype close = m_line.indexOf(triple, m_at + 3);
            if (close < 0) m_state = quote == '\'' ? kTripleSingle : kTripleDouble;
            return add(m_at, close < 0 ? m_line.size() : close + 3, Token::String);
        }
        qsizetype end = m_at + 1;
        while (end < m_line.size() && m_line[end] != quote) end += m_line[end] == '\\' ? 2 : 1;
        end = std::min(end + 1, m_line.size());
        // An annotation, `x: "f32[2, 3]"`, is a type in quotes.
        const QStringView before = m_line.first(m_at).trimmed();
        add(m_at, end, m_language != Language::Cpp && before.endsWith(u':') ? Token::Type : Token::String);
    }

    qsizetype wordEnd(qsizetype from) const {
        while (from < m_line.size() && isWord(m_line[from])) ++from;
        return from;
    }
    qsizetype numberEnd(qsizetype from) const {
        const bool hexadecimal = m_line.sliced(from).startsWith(u"0x", Qt::CaseInsensitive);
        for (; from < m_line.size(); ++from) {
            const QChar c = m_line[from], before = from > 0 ? m_line[from - 1] : QChar();
            const bool exponent = !hexadecimal && (before == 'e' || before == 'E');
            if (!isWord(c) && c != '.' && !((c == '-' || c == '+') && exponent)) break;
        }
        return from;
    }

    void word() {
        // A dotted path is one word: all of torch.ops.aten.mul.Tensor( is the call.
        qsizetype end = wordEnd(m_at);
        const QStringView first = m_line.sliced(m_at, end - m_at);
        if (keywordsOf(m_language).contains(first)) return add(m_at, end, Token::Keyword);
        qsizetype path = end;
        while (path + 1 < m_line.size() && m_line[path] == '.' && isLetter(m_line[path + 1])) path = wordEnd(path + 1);
        if (path < m_line.size() && m_line[path] == '(') return add(m_at, path, Token::Call);
        if (typesOf(m_language).contains(first)) return add(m_at, path, Token::Type);
        m_at = path;
    }

    void add(qsizetype start, qsizetype end, Token token) {
        if (end > start) m_found.append({static_cast<int>(start), static_cast<int>(end - start), token});
        m_at = std::max(end, m_at + (end == m_at));
    }

    QStringView m_line;
    Language m_language;
    LineState& m_state;
    qsizetype m_at = 0;
    QVector<TokenRange> m_found;
};

struct Shades {
    QColor SyntaxColors::*color;
    const char *light, *dark;
};
// Each can be read on the base, on all fills of a difference and on the current line (tested).
const Shades kShades[] = {
    {&SyntaxColors::keyword, "#7c1fa8", "#d9a5f5"}, {&SyntaxColors::call, "#0a4a9e", "#8cc4ff"},
    {&SyntaxColors::type, "#0b5a5f", "#7fd6cf"},    {&SyntaxColors::number, "#8a3a06", "#f4b37f"},
    {&SyntaxColors::string, "#70420a", "#e6cf8f"},  {&SyntaxColors::comment, "#4f5862", "#b3bac2"},
};

}  // namespace

QVector<TokenRange> tokensOf(QStringView line, Language language, LineState& state) {
    return Scanner(line, language, state).scan();
}

SyntaxColors SyntaxColors::of(const QPalette& palette) {
    const bool dark = palette.color(QPalette::Base).lightness() < 128;
    SyntaxColors colors;
    for (const Shades& shades : kShades) colors.*shades.color = QColor(dark ? shades.dark : shades.light);
    return colors;
}

const QColor& SyntaxColors::operator[](Token token) const {
    const QColor SyntaxColors::*const kColors[] = {&SyntaxColors::keyword, &SyntaxColors::call,
                                                   &SyntaxColors::type,    &SyntaxColors::number,
                                                   &SyntaxColors::string,  &SyntaxColors::comment};
    return this->*kColors[static_cast<int>(token)];
}

QString htmlOf(const QString& text, Language language, const SyntaxColors& colors) {
    QStringList lines;
    LineState state = kNothingOpen;
    for (const QString& line : text.split(QChar('\n'))) {
        QString html;
        int done = 0;
        for (const TokenRange& part : tokensOf(line, language, state)) {
            html += line.mid(done, part.start - done).toHtmlEscaped();
            html += QStringLiteral("<span style=\"color:%1\">%2</span>")
                        .arg(colors[part.token].name(), line.mid(part.start, part.length).toHtmlEscaped());
            done = part.start + part.length;
        }
        lines << html + line.mid(done).toHtmlEscaped();
    }
    return QStringLiteral("<pre style=\"white-space: pre-wrap\">%1</pre>").arg(lines.join(QChar('\n')));
}

}  // namespace cutaway::ui
