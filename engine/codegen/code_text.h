#pragma once
// Text of a generated function. Each line has the buffers that it writes and reads, which printers note as they print
// its expressions.
#include <string>
#include <vector>

#include "cutaway/code_line.h"

namespace cutaway {

class CodeText {
  public:
    /// A line at the current depth. It has what was noted since the line before it.
    void line(const std::string& code) {
        m_text += indented(code);
        m_lines.push_back(std::move(m_noted));
        m_noted = {};
    }
    /// For `buffer` see LoopNest: one below zero is an array of the nest's own and not noted.
    void noteRead(int buffer) {
        if (buffer >= 0) m_noted.reads.push_back(buffer);
    }
    void noteWrite(int buffer) {
        if (buffer >= 0) m_noted.writes = buffer;
    }
    void indent() { ++m_depth; }
    void unindent() { --m_depth; }

    struct Mark {
        size_t text, line;
    };
    Mark end() const { return {m_text.size(), m_lines.size()}; }
    /// A line at the current depth where the text ended before.
    void insertLine(Mark at, const std::string& code) {
        m_text.insert(at.text, indented(code));
        m_lines.insert(m_lines.begin() + static_cast<std::ptrdiff_t>(at.line), CodeLine());
    }

    const std::string& text() const { return m_text; }
    const std::vector<CodeLine>& lines() const { return m_lines; }

  private:
    std::string indented(const std::string& code) const { return std::string(m_depth * 4, ' ') + code + "\n"; }

    std::string m_text;
    std::vector<CodeLine> m_lines;
    CodeLine m_noted;
    size_t m_depth = 1;
};

/// A function: what stands before the text of its body, and the body; a closing brace ends it.
struct PrintedFunction {
    std::string head;
    CodeText body;

    std::string text() const { return head + body.text() + "}\n"; }
};

}  // namespace cutaway
