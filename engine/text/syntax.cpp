#include "engine/text/syntax.h"

namespace cutaway::fxtext {

Error syntaxError(const PlainText& source, size_t offset, std::string what) {
    std::string_view line = source.line(std::min(offset, source.text.size()));
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    const bool cut = line.size() > 100;
    std::string quoted(line.substr(0, 100));
    return invalidInput(std::move(what) + (quoted.empty() ? "" : ", in: " + quoted + (cut ? "..." : "")),
                        source.where(std::min(offset, source.text.size())));
}

namespace {

constexpr int kMaxDepth = 256;
constexpr size_t kMaxBytes = size_t{256} << 20;

class SyntaxParser {
  public:
    explicit SyntaxParser(SyntaxTree& tree) : m_tree(tree), m_text(tree.source.text) {}
    Result<void> run();

  private:
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
        return ", not '" + std::string(peek().text.substr(0, 20)) + "'";
    }
    void fail(size_t offset, std::string what) {
        if (!m_error) m_error = syntaxError(m_tree.source, offset, std::move(what));
        m_lexer = Lexer(m_text, m_text.size());  // everything stops at the end of the text
    }
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

// ---------------------------------------------------------------- structure

/// Places the lexer at the first class (a path may stand before it, as in logs), else at the first function.
bool SyntaxParser::findStart() {
    std::optional<size_t> function;
    std::vector<std::string_view> comments;
    for (size_t begin = 0; begin < m_text.size();) {
        size_t end = m_text.find('\n', begin);
        if (end == std::string_view::npos) end = m_text.size();
        std::string_view line = m_text.substr(begin, end - begin);
        const size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
        line.remove_prefix(blanks);
        const size_t named = line.find("class ");
        const bool isClass = named != std::string_view::npos && line.find("(torch.nn.Module):") != std::string_view::npos &&
                             (named == 0 || line[named - 1] == ' ') && !line.starts_with("#");
        if (isClass) {
            m_lexer = Lexer(m_text, begin + blanks + named);
            return true;
        }
        if (!function && line.starts_with("def ")) function = begin;
        if (!function && line.starts_with("# ")) comments.push_back(line.substr(2));
        begin = end + 1;
    }
    if (!function) return false;
    m_tree.headComments = std::move(comments);
    m_lexer = Lexer(m_text, *function);
    return true;
}

Result<void> SyntaxParser::run() {
    if (!findStart()) return syntaxError(m_tree.source, 0, "no 'class NAME(torch.nn.Module):' and no 'def' in the text (DET-8)");
    if (atName("class")) {
        // A path before it hides the indentation, which is then that of the log: none.
        m_tree.root = parseClass(peek().startsLine ? peek().indent : 0);
    } else {
        const uint32_t indent = peek().indent;
        m_tree.root = parseFunction(indent);
        while (!m_error && m_tree.root && atName("def") && peek().indent == indent)
            m_tree.root->children.push_back(parseFunction(indent));
        if (!m_error && peek().kind != TokenKind::End && peek().kind != TokenKind::Comment && m_tree.root)
            fail(peek().begin, "a function is expected after a function");
    }
    if (m_error) return std::move(*m_error);
    m_tree.end = std::min<size_t>(peek().begin, m_text.size());
    return {};
}

void SyntaxParser::skipSuite(uint32_t indent) {
    do m_lexer.skipLine();
    while (peek().kind != TokenKind::End && (!peek().startsLine || peek().indent > indent || peek().kind == TokenKind::Comment));
}

std::unique_ptr<FunctionSyntax> SyntaxParser::parseClass(uint32_t indent) {
    if (++m_depth > kMaxDepth) {
        fail(peek().begin, "classes are nested more than 256 levels deep");
        return nullptr;
    }
    next();
    std::string_view name;
    if (take(sym("<"))) {
        name = "<lambda>";
        next();
        expect(sym(">"), "'>'");
    } else {
        if (peek().kind != TokenKind::Name) fail(peek().begin, "a class name is expected" + found());
        name = next().text;
    }
    m_lexer.skipLine();
    std::unique_ptr<FunctionSyntax> forward;
    std::vector<std::unique_ptr<FunctionSyntax>> children;
    const size_t begin = peek().begin;
    while (!m_error && peek().kind != TokenKind::End && peek().startsLine && (peek().indent > indent || peek().kind == TokenKind::Comment)) {
        const uint32_t inner = peek().indent;
        if (atName("class")) children.push_back(parseClass(inner));
        else if (atName("def")) {
            Lexer ahead = m_lexer;
            ahead.next();
            if (ahead.peek().text == "forward" && !forward) forward = parseFunction(inner);
            else skipSuite(inner);
        } else m_lexer.skipLine();
    }
    --m_depth;
    if (m_error) return nullptr;
    if (!forward) {
        fail(begin, "class '" + std::string(name) + "' has no 'def forward'");
        return nullptr;
    }
    forward->name = name;
    forward->classForm = true;
    for (auto& child : children) forward->children.push_back(std::move(child));
    return forward;
}

std::unique_ptr<FunctionSyntax> SyntaxParser::parseFunction(uint32_t indent) {
    auto function = std::make_unique<FunctionSyntax>();
    if (++m_depth > kMaxDepth) {
        fail(peek().begin, "functions are nested more than 256 levels deep");
        return nullptr;
    }
    function->begin = next().begin;
    if (peek().kind != TokenKind::Name) fail(peek().begin, "a function name is expected" + found());
    function->name = next().text;
    expect(sym("("), "'('");
    parseParameters(*function);
    if (take(sym("->")))
        while (peek().kind != TokenKind::End && peek().kind != TokenKind::Newline && !at(sym(":"))) next();
    expect(sym(":"), "':'");
    takeComments();
    if (peek().kind == TokenKind::Newline) next();
    parseBody(*function, indent);
    --m_depth;
    return function;
}

void SyntaxParser::parseParameters(FunctionSyntax& function) {
    bool isFirst = true;
    while (!m_error) {
        const std::string_view comment = takeComments();
        if (!comment.empty() && !function.parameters.empty()) function.parameters.back().comment = comment;
        if (take(sym(")"))) return;
        Parameter parameter;
        parameter.begin = peek().begin;
        if (take(sym("*"))) parameter.stars = 1;
        else if (take(sym("**"))) parameter.stars = 2;
        if (peek().kind != TokenKind::Name || peek().text.find('.') != std::string_view::npos)
            return fail(peek().begin, "a parameter name is expected" + found());
        parameter.name = next().text;
        if (take(sym(":"))) parameter.annotation = annotation();
        if (take(sym("="))) parameter.fallback = expression();
        if (!(isFirst && parameter.name == "self")) function.parameters.push_back(parameter);
        isFirst = false;
        if (!take(sym(","))) {
            const std::string_view last = takeComments();
            if (!last.empty() && !function.parameters.empty()) function.parameters.back().comment = last;
            return expect(sym(")"), "',' or ')'");
        }
    }
}

void SyntaxParser::parseBody(FunctionSyntax& function, uint32_t headIndent) {
    std::optional<uint32_t> indent;
    while (!m_error && peek().kind != TokenKind::End) {
        const Token& token = peek();
        if (token.kind == TokenKind::Newline) {
            next();
            continue;
        }
        if (token.kind == TokenKind::Comment) {
            Statement comment;
            comment.kind = StatementKind::Comment;
            comment.begin = token.begin;
            comment.comment = token.text;
            function.statements.push_back(comment);
            next();
            continue;
        }
        if (token.startsLine && token.indent <= headIndent) break;
        if (!indent) indent = token.indent;
        if (token.startsLine && token.indent != *indent) return fail(token.begin, "the indentation differs from the lines above");
        if (atName("def")) {
            function.children.push_back(parseFunction(*indent));
            continue;
        }
        if (atName("class")) {
            function.children.push_back(parseClass(*indent));
            continue;
        }
        parseLine(function);
    }
    if (!m_error && function.statements.empty()) fail(peek().begin, "the function has no body");
}

// ---------------------------------------------------------------- statements

void SyntaxParser::parseLine(FunctionSyntax& function) {
    while (!m_error) {
        if (peek().kind != TokenKind::Newline && peek().kind != TokenKind::Comment) parseStatement(function);
        if (take(sym(";"))) continue;
        if (peek().kind == TokenKind::Comment) {
            if (!function.statements.empty()) function.statements.back().comment = peek().text;
            m_lexer.next();
        }
        if (peek().kind == TokenKind::Newline) m_lexer.next();
        else if (peek().kind != TokenKind::End) fail(peek().begin, "the end of the statement is expected" + found());
        return;
    }
}

void SyntaxParser::parseStatement(FunctionSyntax& function) {
    Statement statement;
    statement.begin = peek().begin;
    if (atName("pass") || (peek().kind == TokenKind::String && peek().startsLine)) {
        next();  // a docstring, or a block of shown metadata
        return;
    }
    if (atName("return")) {
        next();
        statement.kind = StatementKind::Return;
        if (peek().kind != TokenKind::Newline && peek().kind != TokenKind::End && !at(sym(";"))) {
            statement.value = expression();
            if (at(sym(","))) parseUnpack(statement, statement.value);
        }
        function.statements.push_back(statement);
        return;
    }
    const SyntaxId target = expression();
    if (m_error) return;
    afterTarget(statement, target);
    if (!m_error) function.statements.push_back(statement);
}

void SyntaxParser::afterTarget(Statement& statement, SyntaxId target) {
    const SyntaxKind kind = node(target).kind;
    const bool plain = kind == SyntaxKind::Name && node(target).text.find('.') == std::string_view::npos;
    if (at(sym(","))) {
        parseUnpack(statement, target);
        if (m_error || !take(sym("="))) return fail(peek().begin, "'=' expected" + found());
        statement.kind = StatementKind::Unpack;
        statement.names = node(statement.value).first;
        statement.value = expression();
        return;
    }
    static constexpr uint32_t kAugmented[] = {sym("+="), sym("-="), sym("*="), sym("/="), sym("%="), sym("&="), sym("|="),
                                              sym("^="), sym("@="), sym("**="), sym("//="), sym("<<="), sym(">>=")};
    if (peek().kind == TokenKind::Symbol && std::find(std::begin(kAugmented), std::end(kAugmented), peek().symbol) != std::end(kAugmented)) {
        if (!plain) return fail(node(target).begin, "only a name can be updated in place");
        statement.kind = StatementKind::Augmented;
        statement.target = node(target).text;
        statement.symbol = next().symbol;
        statement.value = expression();
        return;
    }
    if (kind == SyntaxKind::Subscript && at(sym("="))) {
        const SyntaxNode& object = node(node(target).first);
        if (object.kind != SyntaxKind::Name) return fail(object.begin, "only an item of a named value can be set");
        statement.kind = StatementKind::SetItem;
        statement.target = object.text;
        statement.index = object.next;
        next();
        statement.value = expression();
        return;
    }
    if (plain && (at(sym(":")) || at(sym("=")))) {
        statement.target = node(target).text;
        statement.kind = StatementKind::Declare;
        if (take(sym(":"))) statement.annotation = annotation();
        if (!take(sym("="))) return;
        statement.kind = StatementKind::Assign;
        statement.value = expression();
        if (m_error) return;
        if (at(sym("=")) || (node(statement.value).kind == SyntaxKind::Name && node(statement.value).text == "None")) {
            statement.names = target;
            chainNames(statement);
        }
        return;
    }
    statement.kind = StatementKind::Expression;
    statement.value = target;
}

/// x = y = None: names that are not needed any more.
void SyntaxParser::chainNames(Statement& statement) {
    SyntaxId last = statement.names;
    while (!m_error && node(statement.value).kind == SyntaxKind::Name && take(sym("="))) {
        node(last).next = statement.value;
        last = statement.value;
        statement.value = expression();
    }
    if (m_error) return;
    if (node(statement.value).kind != SyntaxKind::Name || node(statement.value).text != "None")
        return fail(node(statement.value).begin, "a chain of '=' only frees names and ends in None (TXT-4)");
    statement.kind = StatementKind::Free;
}

/// The rest of a list of values without parentheses; leaves a Tuple in statement.value.
void SyntaxParser::parseUnpack(Statement& statement, SyntaxId first) {
    const SyntaxId tuple = add(SyntaxKind::Tuple, node(first).begin, {});
    SyntaxId last = kNoSyntax;
    append(tuple, last, first);
    while (!m_error && take(sym(","))) {
        if (at(sym("=")) || at(sym(";")) || peek().kind == TokenKind::Newline || peek().kind == TokenKind::End) break;
        append(tuple, last, expression());
    }
    node(tuple).end = m_lastEnd;
    statement.value = tuple;
}

/// A quoted type, or an old unquoted one (a name, perhaps subscribed).
SyntaxId SyntaxParser::annotation() {
    if (peek().kind == TokenKind::String) return add(SyntaxKind::String, next());
    return postfix();
}

// ---------------------------------------------------------------- expressions

/// Python's binding strength of binary operators, 0 = not one.
int strengthOf(const Token& token) {
    if (token.kind != TokenKind::Symbol) return 0;
    switch (token.symbol) {
        case sym("=="): case sym("!="): case sym("<"): case sym("<="): case sym(">"): case sym(">="): return 1;
        case sym("|"): return 2;
        case sym("^"): return 3;
        case sym("&"): return 4;
        case sym("<<"): case sym(">>"): return 5;
        case sym("+"): case sym("-"): return 6;
        case sym("*"): case sym("/"): case sym("//"): case sym("%"): case sym("@"): return 7;
        default: return 0;
    }
}

SyntaxId SyntaxParser::expression(int minimum) {
    if (++m_depth > kMaxDepth) {
        fail(peek().begin, "nested more than 256 levels deep");
        return add(SyntaxKind::Empty, peek());
    }
    SyntaxId left = unary();
    // A long chain of operators makes a deep tree as well.
    for (int links = 0; !m_error; ++links) {
        const int strength = strengthOf(peek());
        if (strength == 0 || strength <= minimum) break;
        if (links > kMaxDepth) {
            fail(peek().begin, "more than 256 operators in a row");
            break;
        }
        const uint32_t symbol = next().symbol;
        const SyntaxId right = expression(strength);
        left = add(SyntaxKind::Binary, node(left).begin, {left, right});
        node(left).symbol = symbol;
    }
    --m_depth;
    return left;
}

SyntaxId SyntaxParser::unary() {
    if (!at(sym("-")) && !at(sym("+")) && !at(sym("~"))) {
        const SyntaxId base = postfix();
        if (!at(sym("**"))) return base;
        next();
        const SyntaxId exponent = unary();
        const SyntaxId power = add(SyntaxKind::Binary, node(base).begin, {base, exponent});
        node(power).symbol = sym("**");
        return power;
    }
    if (++m_depth > kMaxDepth) {
        fail(peek().begin, "nested more than 256 levels deep");
        return add(SyntaxKind::Empty, peek());
    }
    const Token token = next();
    const SyntaxId operand = unary();
    --m_depth;
    const SyntaxId result = add(SyntaxKind::Unary, token.begin, {operand});
    node(result).symbol = token.symbol;
    return result;
}

SyntaxId SyntaxParser::postfix() {
    SyntaxId value = atom();
    for (int links = 0; !m_error; ++links) {
        if (links > kMaxDepth) fail(peek().begin, "more than 256 calls in a row");
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
        case TokenKind::Bad: fail(peek().begin, "'" + std::string(peek().text.substr(0, 20)) + "' cannot be read"); break;
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
    if (m_error || tuple.first == kNoSyntax || node(tuple.first).next != kNoSyntax || tuple.symbol == sym(",")) return list;
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
    if (!m_error && !at(close)) fail(peek().begin, std::string("',' or '") + static_cast<char>(close) + "' expected" + found());
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
    auto part = [&] { return at(sym(":")) || at(sym("]")) || at(sym(",")) ? add(SyntaxKind::Empty, peek()) : expression(); };
    if (at(sym("]"))) return add(SyntaxKind::Tuple, peek());  // the empty sizes of an unquoted "f32[]"
    const SyntaxId start = part();
    if (!take(sym(":"))) return start;
    const SyntaxId stop = part();
    const SyntaxId step = take(sym(":")) ? part() : add(SyntaxKind::Empty, peek());
    return add(SyntaxKind::Slice, begin, {start, stop, step});
}

}  // namespace

Result<std::unique_ptr<SyntaxTree>> parseSyntax(std::string_view text) {
    if (text.size() > kMaxBytes) return Error{ErrorCode::Limit, "the text is larger than 256 MiB", "1:1", {}};
    auto tree = std::make_unique<SyntaxTree>();
    tree->source = makePlain(text);
    CT_TRY_VOID(SyntaxParser(*tree).run());
    return tree;
}

}  // namespace cutaway::fxtext
