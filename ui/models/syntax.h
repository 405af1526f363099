#pragma once
// What the parts of a line of code are, for colouring: graphs and rules as Python text, generated kernels as C++. A
// line is read alone, but for what spans lines (a comment, a string), so that only visible lines need to be read.
#include <QPalette>
#include <QString>
#include <QVector>

namespace cutaway::ui {

enum class Language { Python, Rules, Cpp };
enum class Token : uint8_t { Keyword, Call, Type, Number, String, Comment };
struct TokenRange {
    int start = 0, length = 0;
    Token token = Token::Keyword;
    bool operator==(const TokenRange&) const = default;
};

/// What is open at the end of a line: nothing, or a comment or string that the next line goes on with.
using LineState = int;
constexpr LineState kNothingOpen = 0;

/// Parts in order, without overlap; plain text has none. `state`: how the line begins, then how it ends.
QVector<TokenRange> tokensOf(QStringView line, Language language, LineState& state);

/// Colours of the parts on the palette's base; they can be read on the colours of a difference, too.
struct SyntaxColors {
    QColor keyword, call, type, number, string, comment;
    static SyntaxColors of(const QPalette& palette);
    const QColor& operator[](Token token) const;
};

/// The text as rich text in a fixed font.
QString htmlOf(const QString& text, Language language, const SyntaxColors& colors);

}  // namespace cutaway::ui
