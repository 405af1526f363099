#pragma once
// The recursive descent behind parseSyntax: one function per rule of the grammar. Structure and statements are in
// syntax.cpp, expressions in syntax_expression.cpp. After the first error the parser is at the end of the text, so that
// all rules return.
#include "engine/support/characters.h"
#include "engine/text/syntax.h"

namespace cutaway::fxtext {

/// How deep functions and expressions, and the trees of chained operators, calls and attributes, may nest: whatever
/// later reads, prints or frees a tree recurses as deep.
inline constexpr int kMaxDepth = 256;

class SyntaxParser {
  public:
    explicit SyntaxParser(SyntaxTree& tree) : m_tree(tree), m_text(tree.source.text) {}
    Result<void> run();

  private:
    /// One level of nesting, as long as the object lives. False if it is one too many; then the error is set.
    class Level {
      public:
        explicit Level(SyntaxParser& parser) : m_parser(parser) {
            if (++m_parser.m_depth > kMaxDepth) m_parser.failDepth();
        }
        ~Level() { --m_parser.m_depth; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        explicit operator bool() const { return m_parser.m_depth <= kMaxDepth; }

      private:
        SyntaxParser& m_parser;
    };
    // -- structure
    bool findStart();
    std::unique_ptr<FunctionSyntax> parseClass(uint32_t indent);
    std::unique_ptr<FunctionSyntax> parseFunction(uint32_t indent);
    void parseParameters(FunctionSyntax& function);
    void parseBody(FunctionSyntax& function, uint32_t headIndent);
    void skipSuite(uint32_t indent);
    bool startsClass() const;
    // -- statements
    void parseLine(FunctionSyntax& function);
    void parseStatement(FunctionSyntax& function);
    void afterTarget(Statement& statement, SyntaxId target);
    void parseUnpack(Statement& statement, SyntaxId first);
    void chainNames(Statement& statement);
    SyntaxId annotation();
    // -- expressions
    SyntaxId expression(int minimum = 0);
    SyntaxId unary();
    SyntaxId postfix();
    SyntaxId atom();
    SyntaxId parenthesized();
    SyntaxId bracketed(SyntaxKind kind, uint32_t close);
    SyntaxId dict();
    SyntaxId arguments(SyntaxId callee);
    SyntaxId subscript(SyntaxId object);
    SyntaxId indexItem();

    const Token& peek() const { return m_lexer.peek(); }
    bool at(uint32_t symbol) const { return peek().kind == TokenKind::Symbol && peek().symbol == symbol; }
    bool atName(std::string_view name) const { return peek().kind == TokenKind::Name && peek().text == name; }
    bool take(uint32_t symbol) {
        if (!at(symbol)) return false;
        m_lexer.next();
        return true;
    }
    void expect(uint32_t symbol, const char* what) {
        if (!take(symbol)) fail(peek().begin, std::string(what) + " expected" + found());
    }
    std::string found() const {
        if (peek().kind == TokenKind::End) return ", not the end of the text";
        if (peek().kind == TokenKind::Newline) return ", not the end of the line";
        return ", not '" + quotable(peek().text) + "'";
    }
    /// The front of a token for an error.
    static std::string quotable(std::string_view text) { return visibleText(clipped(text, 20)); }
    void fail(size_t offset, std::string what) {
        if (!m_error) m_error = syntaxError(m_tree.source, offset, std::move(what));
        m_lexer = Lexer(m_text, m_text.size());  // everything stops at the end of the text
    }
    void failDepth() { fail(peek().begin, "nested more than " + std::to_string(kMaxDepth) + " levels deep"); }
    /// The description that follows an item of the expanded form; other comments inside brackets are dropped.
    std::string_view takeComments() {
        std::string_view comment;
        while (peek().kind == TokenKind::Comment) {
            if (!peek().startsLine) comment = peek().text;
            m_lexer.next();
        }
        return comment;
    }
    SyntaxId add(SyntaxKind kind, const Token& token) {
        m_tree.nodes.push_back({.kind = kind, .begin = token.begin, .end = token.end, .text = token.text});
        return static_cast<SyntaxId>(m_tree.nodes.size() - 1);
    }
    SyntaxId add(SyntaxKind kind, uint32_t begin, std::initializer_list<SyntaxId> children) {
        m_tree.nodes.push_back({.kind = kind, .begin = begin, .end = m_lastEnd});
        const auto id = static_cast<SyntaxId>(m_tree.nodes.size() - 1);
        SyntaxId last = kNoSyntax;
        for (SyntaxId child : children) append(id, last, child);
        return id;
    }
    void append(SyntaxId parent, SyntaxId& last, SyntaxId child) {
        if (child == kNoSyntax) return;
        if (last == kNoSyntax) node(parent).first = child;
        else node(last).next = child;
        last = child;
        const int height = node(child).height + 1;
        if (height > kMaxDepth) return failDepth();
        node(parent).height = std::max(node(parent).height, static_cast<uint16_t>(height));
    }
    Token next() {
        Token token = m_lexer.next();
        m_lastEnd = token.end;
        return token;
    }
    SyntaxNode& node(SyntaxId id) { return m_tree.nodes[static_cast<size_t>(id)]; }

    SyntaxTree& m_tree;
    std::string_view m_text;
    Lexer m_lexer;
    std::optional<Error> m_error;
    uint32_t m_lastEnd = 0;
    int m_depth = 0;
};

}  // namespace cutaway::fxtext
