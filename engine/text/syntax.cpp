#include "engine/text/syntax_parser.h"

namespace cutaway::fxtext {

Error syntaxError(const PlainText& source, size_t offset, std::string what) {
    std::string_view line = source.line(std::min(offset, source.text.size()));
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    const bool cut = line.size() > 100;
    const std::string quoted = visibleText(clipped(line, 100));
    return invalidInput(std::move(what) + (quoted.empty() ? "" : ", in: " + quoted + (cut ? "..." : "")),
                        source.where(std::min(offset, source.text.size())));
}

constexpr size_t kMaxBytes = size_t{256} << 20;

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
        const bool isClass = named != std::string_view::npos &&
                             line.find("(torch.nn.Module):") != std::string_view::npos &&
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
    if (!findStart())
        return syntaxError(m_tree.source, 0, "no 'class NAME(torch.nn.Module):' and no 'def' in the text");
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
    while (peek().kind != TokenKind::End &&
           (!peek().startsLine || peek().indent > indent || peek().kind == TokenKind::Comment));
}

std::unique_ptr<FunctionSyntax> SyntaxParser::parseClass(uint32_t indent) {
    const Level level(*this);
    if (!level) return nullptr;
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
    while (!m_error && peek().kind != TokenKind::End && peek().startsLine &&
           (peek().indent > indent || peek().kind == TokenKind::Comment)) {
        const uint32_t inner = peek().indent;
        if (atName("class")) children.push_back(parseClass(inner));
        else if (atName("def")) {
            Lexer ahead = m_lexer;
            ahead.next();
            if (ahead.peek().text == "forward" && !forward) forward = parseFunction(inner);
            else skipSuite(inner);
        } else m_lexer.skipLine();
    }
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
    const Level level(*this);
    if (!level) return nullptr;
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
        if (token.startsLine && token.indent != *indent)
            return fail(token.begin, "the indentation differs from the lines above");
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
    static constexpr uint32_t kAugmented[] = {sym("+="),  sym("-="),  sym("*="), sym("/="), sym("%="),
                                              sym("&="),  sym("|="),  sym("^="), sym("@="), sym("**="),
                                              sym("//="), sym("<<="), sym(">>=")};
    if (peek().kind == TokenKind::Symbol &&
        std::find(std::begin(kAugmented), std::end(kAugmented), peek().symbol) != std::end(kAugmented)) {
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
        return fail(node(statement.value).begin, "a chain of '=' only frees names and ends in None");
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

Result<std::unique_ptr<SyntaxTree>> parseSyntax(std::string_view text) {
    if (text.size() > kMaxBytes) return Error{ErrorCode::Limit, "the text is larger than 256 MiB", "1:1", {}};
    auto tree = std::make_unique<SyntaxTree>();
    tree->source = makePlain(text);
    CT_TRY_VOID(SyntaxParser(*tree).run());
    return tree;
}

}  // namespace cutaway::fxtext
