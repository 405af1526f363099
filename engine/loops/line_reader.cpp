#include "engine/loops/line_reader.h"

#include <charconv>
#include <cstring>
#include <limits>

#include "engine/expr/expr_parse.h"

namespace cutaway {
namespace {

constexpr int kMaxDepth = 256, kMaxOperations = 4096;  // of a line: what follows recurses as deep

Expr literalOf(const Expr& e, DType dtype) {
    return e->kind == ExprKind::Int ? Expr::integer(e->integer, dtype) : Expr::real(e->real, dtype);
}

}  // namespace

Expr LineReader::Term::built() const {
    if (!operation) return expr;
    const auto& [kind, function, operands, type, asWritten] = *operation;
    if (kind == ExprKind::Call) return Expr::call(function, operands, type);
    if (!asWritten) return Expr::make(kind, operands, type);
    ExprNode node = *Expr::call("operation " + std::to_string(static_cast<int>(kind)), operands, type);
    node.kind = kind;
    node.name.clear();
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

std::optional<DType> TextNames::memoryOf(int buffer) const {
    const size_t at = static_cast<size_t>(buffer < 0 ? ~buffer : buffer);
    if (buffer < 0) return at < scratch.size() ? std::optional(scratch[at].dtype) : std::nullopt;
    return at < buffers.size() ? std::optional(buffers[at].dtype) : std::nullopt;
}

bool LineReader::allIndices(const std::vector<Term>& terms) {
    return std::all_of(terms.begin(), terms.end(), [](const Term& t) { return t.dtype() == DType::I64; });
}

void LineReader::skipBlanks() {
    while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\r')) ++m_at;
}
bool LineReader::take(std::string_view symbol) {
    skipBlanks();
    if (!m_text.substr(m_at).starts_with(symbol)) return false;
    m_at += symbol.size();
    return true;
}
bool LineReader::takeWord(std::string_view expected) {
    const size_t before = m_at;
    if (word() == expected) return true;
    m_at = before;
    return false;
}
bool LineReader::atEnd() {
    skipBlanks();
    return m_at >= m_text.size();
}
std::string_view LineReader::word() {
    skipBlanks();
    const size_t begin = m_at;
    while (m_at < m_text.size() && (std::isalnum(static_cast<unsigned char>(m_text[m_at])) || m_text[m_at] == '_'))
        ++m_at;
    return m_text.substr(begin, m_at - begin);
}
void LineReader::fail(std::string what) {
    if (!error.empty()) return;
    skipBlanks();
    const std::string_view rest = m_text.substr(std::min(m_at, m_text.size()), 16);
    error = std::move(what) + " expected" +
            (rest.empty() ? std::string(" at its end") : " before '" + std::string(rest) + "'");
}
void LineReader::say(std::string sentence) {
    if (error.empty()) error = std::move(sentence);
}
void LineReader::expect(std::string_view symbol) {
    if (!take(symbol)) fail("'" + std::string(symbol) + "'");
}

std::vector<Loop> LineReader::loops() {
    std::vector<Loop> all;
    do {
        const auto axis = numberAfter('x', word());
        if (!axis) fail("a loop, x0 < 9,");
        expect("<");
        const Expr size = bits().built();
        if (!error.empty()) return all;
        if (size->dtype != DType::I64 || size->outOfRange) say("the size of a loop is an i64");
        else all.push_back({*axis, SymInt(size)});
    } while (error.empty() && take(","));
    return all;
}
std::optional<std::string> LineReader::quoted() {
    if (!take("'")) return std::nullopt;
    const size_t close = m_text.find('\'', m_at);
    if (close == std::string_view::npos) {
        fail("a closing quote");
        return std::nullopt;
    }
    std::string name(m_text.substr(m_at, close - m_at));
    m_at = close + 1;
    return name;
}

LineReader::Term LineReader::wrong(std::string what) {
    fail(std::move(what));
    return nothing();
}
std::optional<DType> LineReader::takeSuffix() {
    if (m_at >= m_text.size() || m_text[m_at] != '_') return std::nullopt;
    const size_t before = m_at++;
    const auto dtype = dtypeFromAbbreviation(word());
    if (!dtype) {
        m_at = before;
        fail("a dtype, _f64,");
    }
    return dtype;
}
LineReader::Term LineReader::operation(ExprKind kind, std::string_view function, const std::vector<Term>& terms) {
    if (++m_operations > kMaxOperations) say("a line holds at most 4096 operations");
    if (!error.empty()) return nothing();
    std::vector<Expr> operands;
    for (const Term& term : terms) operands.push_back(term.built());
    const auto context = contextOf(likeOperands(kind, operands));
    for (size_t i = 0; i < terms.size(); ++i)
        if (terms[i].plain) operands[i] = literalOf(operands[i], usualLiteral(operands[i]->kind, context));
    const DType dtype = usualResult(kind, function, operands);
    if (kind == ExprKind::Where && operands[0]->dtype != DType::Bool) say("the condition of a Where is a bool");
    return {{}, false, Term::Operation{kind, std::string(function), std::move(operands), dtype, m_names->nest}};
}
const InfixSpelling* LineReader::takeInfix(Strength strength) {
    skipBlanks();
    for (const InfixSpelling& row : kInfix)
        if (m_text.substr(m_at).starts_with(row.symbol)) {
            if (row.strength != strength) return nullptr;
            m_at += row.symbol.size();
            return &row;
        }
    return nullptr;
}

LineReader::Term LineReader::comparison() {
    const Term left = bits();
    const InfixSpelling* row = takeInfix(kCompare);
    return row ? pair(row->kind, left, bits()) : left;
}
LineReader::Term LineReader::bits() {
    Term left = sum();
    while (const InfixSpelling* row = takeInfix(kBits)) left = pair(row->kind, left, sum());
    return left;
}
LineReader::Term LineReader::sum() {
    std::vector<Term> terms = {product()};
    std::vector<ExprKind> signs = {ExprKind::Add};
    while (error.empty()) {
        const InfixSpelling* row = takeInfix(kSum);
        if (!row) break;
        signs.push_back(row->kind);
        terms.push_back(product());
    }
    if (terms.size() == 1 || !error.empty()) return terms[0];
    if (allIndices(terms)) {
        for (size_t i = 1; i < terms.size(); ++i)
            if (signs[i] == ExprKind::Sub)
                terms[i] = {Expr::make(ExprKind::Mul, {Expr::integer(-1), terms[i].built()})};
        return operation(ExprKind::Add, {}, terms);
    }
    return fromTheLeft(terms, signs);
}
LineReader::Term LineReader::product() {
    std::vector<Term> terms = {unary()};
    std::vector<ExprKind> kinds = {ExprKind::Mul};
    while (error.empty()) {
        const InfixSpelling* row = takeInfix(kProduct);
        if (!row) break;
        kinds.push_back(row->kind);
        terms.push_back(unary());
    }
    if (terms.size() == 1 || !error.empty()) return terms[0];
    const bool product = std::all_of(kinds.begin(), kinds.end(), [](ExprKind k) { return k == ExprKind::Mul; });
    if (product && allIndices(terms)) return operation(ExprKind::Mul, {}, terms);
    return fromTheLeft(terms, kinds);
}
LineReader::Term LineReader::fromTheLeft(const std::vector<Term>& terms, const std::vector<ExprKind>& kinds) {
    Term left = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) left = pair(kinds[i], left, terms[i]);
    return left;
}
LineReader::Term LineReader::unary() {
    if (++m_depth > kMaxDepth) {
        say("a line is nested at most 256 levels deep");
        return nothing();
    }
    skipBlanks();
    Term value;
    const std::string_view rest = m_text.substr(m_at);
    const bool negative = rest.starts_with("-") && rest.size() > 1 &&
                          (std::isdigit(static_cast<unsigned char>(rest[1])) || rest.substr(1).starts_with("inf"));
    if (negative) value = number();
    else if (take("-")) value = operation(ExprKind::Neg, {}, {unary()});
    else if (take("~")) value = operation(ExprKind::BitNot, {}, {unary()});
    else {
        value = atom();
        if (takeInfix(kPower)) value = pair(ExprKind::Pow, value, atom());
    }
    --m_depth;
    return value;
}
LineReader::Term LineReader::number() {
    const char *begin = m_text.data() + m_at, *end = m_text.data() + m_text.size();
    int64_t integer = 0;
    double real = 0;
    const auto whole = std::from_chars(begin, end, integer);
    const bool isWhole = whole.ptr != begin && (whole.ptr == end || (*whole.ptr != '.' && *whole.ptr != 'e'));
    const auto read = isWhole ? whole : std::from_chars(begin, end, real);
    if (read.ec != std::errc()) return wrong("a number of 64 bits");
    m_at += static_cast<size_t>(read.ptr - begin);
    return literal(isWhole ? Expr::integer(integer) : Expr::real(real, DType::F32));
}
LineReader::Term LineReader::literal(const Expr& e) {
    const auto dtype = takeSuffix();
    return dtype ? Term{literalOf(e, *dtype), false} : Term{e, true};
}
LineReader::Term LineReader::bracket() {
    Term inner = comparison();
    expect(")");
    const auto dtype = error.empty() ? takeSuffix() : std::nullopt;
    if (dtype && inner.operation) inner.operation->dtype = *dtype;
    else if (dtype) say("the dtype behind a bracket is that of the operation in it");
    return inner;
}
LineReader::Term LineReader::atom() {
    if (take("(")) return bracket();
    skipBlanks();
    if (m_at >= m_text.size()) return wrong("an operand");
    if (std::isdigit(static_cast<unsigned char>(m_text[m_at]))) return number();
    if (const auto name = quoted()) return {symbol(*name, takeSuffix())};
    if (!error.empty()) return nothing();
    return named();
}
LineReader::Term LineReader::named() {
    const size_t before = m_at;
    const std::string_view name = word();
    if (name.empty()) return wrong("an operand");
    if (take("(")) return call(name);  // b8(...) is a cast, b8[...] a load
    if (name == "inf" || name.starts_with("inf_") || name == "nan" || name.starts_with("nan_")) {
        m_at = before + 3;
        return literal(Expr::real(
            name[0] == 'n' ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity(),
            DType::F32));
    }
    if (name == "True" || name == "False") return {Expr::boolean(name == "True")};
    if (const auto axis = numberAfter('x', name)) return {Expr::axis(*axis)};
    if (const auto number = numberAfter('v', name)) {
        const auto found = m_names->values.find(*number);
        if (found != m_names->values.end()) return {found->second};
        say(std::string(name) + " is read before a line says what it is");
        return nothing();
    }
    if (const auto number = numberAfter('t', name); number && m_names->nest) return {variable(*number)};
    if (const auto buffer = numberAfter('b', name)) return load(*buffer);
    if (const auto scratch = numberAfter('c', name); scratch && m_names->nest) return load(~*scratch);
    return {symbol(std::string(name), std::nullopt)};
}
Expr LineReader::variable(int number) {
    const auto found = m_names->vars.find(number);
    if (found != m_names->vars.end()) return Expr::var(number, found->second.dtype);
    say("t" + std::to_string(number) + " is read before a line declares it: let t0: f32 = ..., var t0: f32 = ...");
    return Expr::integer(0);
}
Expr LineReader::symbol(const std::string& name, std::optional<DType> dtype) {
    if (std::find(m_names->sizes.begin(), m_names->sizes.end(), name) == m_names->sizes.end())
        say("'" + name + "' is none of the kernel's sizes; its first line lists them");
    return Expr::symbol(name, dtype.value_or(symbolDType(name)));
}
std::optional<DType> LineReader::memoryOf(int buffer) {
    if (const auto dtype = m_names->memoryOf(buffer)) return dtype;
    say(bufferName(buffer) + (buffer < 0 ? " is not a scratch array: scratch c0: f32[64]"
                                         : " is none of the kernel's buffers; its first line lists them"));
    return std::nullopt;
}
LineReader::Term LineReader::load(int buffer) {
    const auto memory = memoryOf(buffer);
    if (!memory) return nothing();
    expect("[");
    const Expr index = expression();
    const Expr step = m_names->nest && take(":") ? expression() : Expr();
    expect("]");
    const DType dtype = takeSuffix().value_or(*memory);
    return {step ? Expr::loadAlong(bufferName(buffer), index, step, dtype)
                 : Expr::load(bufferName(buffer), index, dtype)};
}
LineReader::Term LineReader::call(std::string_view function) {
    const auto reducerNumber = reducerByName(function);
    if (reducerNumber) return reduction(*reducerNumber);
    if (function == "nan") return nanOf();
    std::vector<Term> terms;
    if (!take(")")) {
        do terms.push_back(comparison());
        while (error.empty() && take(","));
        if (!take(")")) return wrong("',' or ')'");
    }
    if (const auto dtype = dtypeFromAbbreviation(function)) {
        if (terms.size() == 1) return {Expr::cast(terms[0].built(), *dtype)};
        say("a cast is of one operand: " + std::string(function) + "(b1[x0])");
        return nothing();
    }
    for (const NamedSpelling& row : kNamed)
        if (row.name == function) {
            if (terms.size() >= row.least && terms.size() <= row.most) return typed(operation(row.kind, {}, terms));
            say(std::string(function) + " has " + std::to_string(row.least) + " operands");
            return nothing();
        }
    if (!terms.empty() &&
        (function == "checked_index" || isKernelFunction(function) || (m_names->nest && isNestFunction(function))))
        return typed(operation(ExprKind::Call, function, terms));
    say("there is no function '" + std::string(function) + "'");
    return nothing();
}
LineReader::Term LineReader::typed(Term call) {
    const auto dtype = takeSuffix();
    if (dtype && call.operation) call.operation->dtype = *dtype;
    return call;
}
LineReader::Term LineReader::nanOf() {
    uint64_t bits = 0;
    const std::string_view digits = word();
    if (std::from_chars(digits.data(), digits.data() + digits.size(), bits).ec != std::errc())
        return wrong("the bits of a NaN as a number");
    double value = 0;
    std::memcpy(&value, &bits, sizeof bits);
    expect(")");
    return literal(Expr::real(value, DType::F32));
}
LineReader::Term LineReader::reduction(int number) {
    std::vector<Expr> operands = {Expr()};
    do {
        const auto axis = numberAfter('x', word());
        if (!axis) return wrong("a loop, x2 < 40,");
        expect("<");
        operands.push_back(Expr::axis(*axis));
        operands.push_back(bits().built());
    } while (error.empty() && take(","));
    expect(":");
    operands[0] = expression();
    expect(")");
    if (!error.empty()) return nothing();
    const DType usual = reducer(number).resultType(operands[0]->dtype);
    const auto named = takeSuffix();
    return {Expr::reduce(number, std::move(operands), named.value_or(usual))};
}
void LineReader::header(std::string& name, TextNames& names) {
    constexpr std::string_view kExpected = "the name of the kernel and its buffers, scale(b0: f32!, b1: f32),";
    name = word();
    if (name.empty() || !take("(")) return fail(std::string(kExpected));
    if (take(")")) return;
    do {
        if (const auto symbol = quoted()) {
            names.sizes.push_back(*symbol);
            continue;
        }
        const std::string_view item = word();
        if (item.empty()) return fail("a buffer, b0: f32, or a size, s0,");
        const auto buffer = numberAfter('b', item);
        if (!buffer) {
            names.sizes.emplace_back(item);
            continue;
        }
        if (static_cast<size_t>(*buffer) != names.buffers.size() || !names.sizes.empty())
            return say("buffers stand first and are numbered from b0 on");
        expect(":");
        const auto dtype = dtypeFromAbbreviation(word());
        if (!dtype) return fail("a dtype, f32,");
        names.buffers.push_back({*dtype, take("!")});
    } while (error.empty() && take(","));
    expect(")");
}

}  // namespace cutaway
