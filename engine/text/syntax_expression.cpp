#include "engine/text/syntax_parser.h"

namespace cutaway::fxtext {
namespace {

/// Python's binding strength of binary operators, 0 = not one.
int strengthOf(const Token& token) {
    if (token.kind != TokenKind::Symbol) return 0;
    switch (token.symbol) {
        case sym("=="):
        case sym("!="):
        case sym("<"):
        case sym("<="):
        case sym(">"):
        case sym(">="): return 1;
        case sym("|"): return 2;
        case sym("^"): return 3;
        case sym("&"): return 4;
        case sym("<<"):
        case sym(">>"): return 5;
        case sym("+"):
        case sym("-"): return 6;
        case sym("*"):
        case sym("/"):
        case sym("//"):
        case sym("%"):
        case sym("@"): return 7;
        default: return 0;
    }
}

}  // namespace

SyntaxId SyntaxParser::expression(int minimum) {
    const Level level(*this);
    if (!level) return add(SyntaxKind::Empty, peek());
    SyntaxId left = unary();
    while (!m_error) {
        const int strength = strengthOf(peek());
        if (strength == 0 || strength <= minimum) break;
        const uint32_t symbol = next().symbol;
        const SyntaxId right = expression(strength);
        left = add(SyntaxKind::Binary, node(left).begin, {left, right});
        node(left).symbol = symbol;
    }
    return left;
}

SyntaxId SyntaxParser::unary() {
    if (!at(sym("-")) && !at(sym("+")) && !at(sym("~"))) {
        const SyntaxId base = postfix();
        if (!at(sym("**"))) return base;
        next();
        const Level level(*this);
        if (!level) return base;
        const SyntaxId exponent = unary();
        const SyntaxId power = add(SyntaxKind::Binary, node(base).begin, {base, exponent});
        node(power).symbol = sym("**");
        return power;
    }
    const Level level(*this);
    if (!level) return add(SyntaxKind::Empty, peek());
    const Token token = next();
    const SyntaxId operand = unary();
    const SyntaxId result = add(SyntaxKind::Unary, token.begin, {operand});
    node(result).symbol = token.symbol;
    return result;
}

SyntaxId SyntaxParser::postfix() {
    SyntaxId value = atom();
    while (!m_error) {
        if (at(sym("("))) value = arguments(value);
        else if (at(sym("["))) value = subscript(value);
        else if (at(sym("."))) {
            next();
            if (peek().kind != TokenKind::Name) {
                fail(peek().begin, "an attribute name is expected" + found());
                break;
            }
            const Token name = next();
            value = add(SyntaxKind::Attribute, node(value).begin, {value});
            node(value).text = name.text;
        } else break;
    }
    return value;
}

SyntaxId SyntaxParser::atom() {
    switch (peek().kind) {
        case TokenKind::Name: return add(SyntaxKind::Name, next());
        case TokenKind::Integer: return add(SyntaxKind::Integer, next());
        case TokenKind::Float: return add(SyntaxKind::Float, next());
        case TokenKind::Imaginary: return add(SyntaxKind::Imaginary, next());
        case TokenKind::String: return add(SyntaxKind::String, next());
        case TokenKind::Bad: fail(peek().begin, "'" + quotable(peek().text) + "' cannot be read"); break;
        default:
            if (at(sym("("))) return parenthesized();
            if (at(sym("["))) return bracketed(SyntaxKind::List, sym("]"));
            if (at(sym("{"))) return dict();
            if (at(sym("..."))) return add(SyntaxKind::Name, next());
            fail(peek().begin, "a value is expected" + found());
    }
    return add(SyntaxKind::Empty, peek());
}

SyntaxId SyntaxParser::parenthesized() {
    const uint32_t begin = peek().begin;
    const SyntaxId list = bracketed(SyntaxKind::Tuple, sym(")"));
    const SyntaxNode& tuple = node(list);
    // (x) is x; the comma makes the tuple.
    if (m_error || tuple.first == kNoSyntax || node(tuple.first).next != kNoSyntax || tuple.symbol == sym(","))
        return list;
    SyntaxNode& inner = node(tuple.first);
    inner.begin = begin;
    inner.end = tuple.end;
    return tuple.first;
}

SyntaxId SyntaxParser::bracketed(SyntaxKind kind, uint32_t close) {
    const SyntaxId list = add(kind, next());
    SyntaxId last = kNoSyntax;
    while (!m_error) {
        if (const auto comment = takeComments(); !comment.empty() && last != kNoSyntax) node(last).comment = comment;
        if (at(close)) break;
        append(list, last, expression());
        if (const auto comment = takeComments(); !comment.empty()) node(last).comment = comment;
        if (!take(sym(","))) break;
        node(list).symbol = sym(",");
    }
    if (const auto comment = takeComments(); !comment.empty() && last != kNoSyntax) node(last).comment = comment;
    if (!m_error && !at(close))
        fail(peek().begin, std::string("',' or '") + static_cast<char>(close) + "' expected" + found());
    node(list).end = next().end;
    return list;
}

SyntaxId SyntaxParser::dict() {
    const SyntaxId result = add(SyntaxKind::Dict, next());
    SyntaxId last = kNoSyntax;
    while (!m_error) {
        takeComments();
        if (at(sym("}"))) break;
        append(result, last, expression());
        expect(sym(":"), "':'");
        append(result, last, expression());
        if (const auto comment = takeComments(); !comment.empty()) node(last).comment = comment;
        if (!take(sym(","))) break;
    }
    takeComments();
    if (!m_error && !at(sym("}"))) fail(peek().begin, "',' or '}' expected" + found());
    node(result).end = next().end;
    return result;
}

SyntaxId SyntaxParser::arguments(SyntaxId callee) {
    next();
    const SyntaxId call = add(SyntaxKind::Call, node(callee).begin, {callee});
    SyntaxId last = callee;
    while (!m_error) {
        if (const auto comment = takeComments(); !comment.empty() && last != callee) node(last).comment = comment;
        if (at(sym(")"))) break;
        SyntaxId argument = expression();
        if (m_error) break;
        if (at(sym("="))) {
            if (node(argument).kind != SyntaxKind::Name) fail(node(argument).begin, "a keyword is a name");
            next();
            const std::string_view name = node(argument).text;
            const uint32_t begin = node(argument).begin;
            const SyntaxId value = expression();
            argument = add(SyntaxKind::Keyword, begin, {value});
            node(argument).text = name;
        }
        append(call, last, argument);
        if (!take(sym(","))) break;
    }
    takeComments();
    if (!m_error && !at(sym(")"))) fail(peek().begin, "',' or ')' expected" + found());
    node(call).end = next().end;
    return call;
}

SyntaxId SyntaxParser::subscript(SyntaxId object) {
    const uint32_t begin = node(object).begin;
    next();
    SyntaxId index = indexItem();
    if (at(sym(","))) {
        const SyntaxId tuple = add(SyntaxKind::Tuple, node(index).begin, {});
        SyntaxId last = kNoSyntax;
        append(tuple, last, index);
        while (!m_error && take(sym(",")))
            if (!at(sym("]"))) append(tuple, last, indexItem());
        index = tuple;
    }
    if (!m_error && !at(sym("]"))) fail(peek().begin, "',' or ']' expected" + found());
    next();
    return add(SyntaxKind::Subscript, begin, {object, index});
}

SyntaxId SyntaxParser::indexItem() {
    const uint32_t begin = peek().begin;
    auto part = [&] {
        return at(sym(":")) || at(sym("]")) || at(sym(",")) ? add(SyntaxKind::Empty, peek()) : expression();
    };
    if (at(sym("]"))) return add(SyntaxKind::Tuple, peek());  // the empty sizes of an unquoted "f32[]"
    const SyntaxId start = part();
    if (!take(sym(":"))) return start;
    const SyntaxId stop = part();
    const SyntaxId step = take(sym(":")) ? part() : add(SyntaxKind::Empty, peek());
    return add(SyntaxKind::Slice, begin, {start, stop, step});
}

}  // namespace cutaway::fxtext
