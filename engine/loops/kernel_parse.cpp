// Reads the text of a kernel, line by line.
#include <charconv>
#include <cstring>
#include <limits>
#include <map>

#include "engine/expr/expr_parse.h"
#include "engine/loops/kernel_syntax.h"
#include "engine/loops/kernel_text.h"
#include "engine/loops/unique_exprs.h"

namespace cutaway {
namespace {

constexpr int kMaxDepth = 256, kMaxOperations = 4096;  // of a line: what follows recurses as deep

/// What has been read of an operand. A literal without a dtype takes it from what it is combined with; an operation is
/// built when it is known what stands behind its bracket.
struct Term {
    Expr expr;
    bool plain = false;
    struct Operation {
        ExprKind kind;
        std::string function;
        std::vector<Expr> operands;
        DType dtype;
    };
    std::optional<Operation> operation;

    DType dtype() const { return operation ? operation->dtype : expr->dtype; }
    Expr built() const {
        if (!operation) return expr;
        if (operation->kind == ExprKind::Call)
            return Expr::call(operation->function, operation->operands, operation->dtype);
        return Expr::make(operation->kind, operation->operands, operation->dtype);
    }
};

/// One line. The first thing that is wrong stays in `error`; from then on nothing counts.
class LineReader {
  public:
    LineReader(std::string_view line, const Kernel& kernel, const std::map<int, Expr>& names)
        : m_text(line), m_kernel(&kernel), m_names(&names) {}

    std::string error;

    void skipBlanks() {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\r')) ++m_at;
    }
    bool take(std::string_view symbol) {
        skipBlanks();
        if (!m_text.substr(m_at).starts_with(symbol)) return false;
        m_at += symbol.size();
        return true;
    }
    bool takeWord(std::string_view expected) {
        const size_t before = m_at;
        if (word() == expected) return true;
        m_at = before;
        return false;
    }
    bool atEnd() {
        skipBlanks();
        return m_at >= m_text.size();
    }
    std::string_view word() {
        skipBlanks();
        const size_t begin = m_at;
        while (m_at < m_text.size() && (std::isalnum(static_cast<unsigned char>(m_text[m_at])) || m_text[m_at] == '_'))
            ++m_at;
        return m_text.substr(begin, m_at - begin);
    }
    void fail(std::string what) {
        if (!error.empty()) return;
        skipBlanks();
        const std::string_view rest = m_text.substr(std::min(m_at, m_text.size()), 16);
        error = std::move(what) + " expected" +
                (rest.empty() ? std::string(" at its end") : " before '" + std::string(rest) + "'");
    }
    void say(std::string sentence) {
        if (error.empty()) error = std::move(sentence);
    }
    void expect(std::string_view symbol) {
        if (!take(symbol)) fail("'" + std::string(symbol) + "'");
    }

    Expr expression() { return comparison().built(); }
    /// "x0 < 9, x1 < s0".
    std::vector<Loop> loops() {
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
    /// A symbol in quotes, its name.
    std::optional<std::string> quoted() {
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

  private:
    Term nothing() { return {Expr::integer(0), false}; }
    Term wrong(std::string what) {
        fail(std::move(what));
        return nothing();
    }
    std::optional<DType> takeSuffix() {
        if (m_at >= m_text.size() || m_text[m_at] != '_') return std::nullopt;
        const size_t before = m_at++;
        const auto dtype = dtypeFromAbbreviation(word());
        if (!dtype) {
            m_at = before;
            fail("a dtype, _f64,");
        }
        return dtype;
    }
    static Expr literalOf(const Expr& e, DType dtype) {
        return e->kind == ExprKind::Int ? Expr::integer(e->integer, dtype) : Expr::real(e->real, dtype);
    }

    /// The operation, with the literals among its operands in their dtype.
    Term operation(ExprKind kind, std::string_view function, const std::vector<Term>& terms) {
        if (++m_operations > kMaxOperations) say("a line holds at most 4096 operations");
        if (!error.empty()) return nothing();
        std::vector<Expr> operands;
        for (const Term& term : terms) operands.push_back(term.built());
        const auto context = contextOf(likeOperands(kind, operands));
        for (size_t i = 0; i < terms.size(); ++i)
            if (terms[i].plain) operands[i] = literalOf(operands[i], usualLiteral(operands[i]->kind, context));
        const DType dtype = usualResult(kind, function, operands);
        if (kind == ExprKind::Where && operands[0]->dtype != DType::Bool) say("the condition of a Where is a bool");
        return {{}, false, Term::Operation{kind, std::string(function), std::move(operands), dtype}};
    }
    Term pair(ExprKind kind, const Term& a, const Term& b) { return operation(kind, {}, {a, b}); }
    const InfixSpelling* takeInfix(Strength strength) {
        skipBlanks();
        for (const InfixSpelling& row : kInfix)
            if (m_text.substr(m_at).starts_with(row.symbol)) {
                if (row.strength != strength) return nullptr;
                m_at += row.symbol.size();
                return &row;
            }
        return nullptr;
    }

    Term comparison() {
        const Term left = bits();
        const InfixSpelling* row = takeInfix(kCompare);
        return row ? pair(row->kind, left, bits()) : left;
    }
    Term bits() {
        Term left = sum();
        while (const InfixSpelling* row = takeInfix(kBits)) left = pair(row->kind, left, sum());
        return left;
    }
    static bool allIndices(const std::vector<Term>& terms) {
        return std::all_of(terms.begin(), terms.end(), [](const Term& t) { return t.dtype() == DType::I64; });
    }
    Term sum() {
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
    Term product() {
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
    Term fromTheLeft(const std::vector<Term>& terms, const std::vector<ExprKind>& kinds) {
        Term left = terms[0];
        for (size_t i = 1; i < terms.size(); ++i) left = pair(kinds[i], left, terms[i]);
        return left;
    }
    Term unary() {
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
    Term number() {
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
    Term literal(const Expr& e) {
        const auto dtype = takeSuffix();
        return dtype ? Term{literalOf(e, *dtype), false} : Term{e, true};
    }
    Term bracket() {
        Term inner = comparison();
        expect(")");
        const auto dtype = error.empty() ? takeSuffix() : std::nullopt;
        if (dtype && inner.operation) inner.operation->dtype = *dtype;
        else if (dtype) say("the dtype behind a bracket is that of the operation in it");
        return inner;
    }
    Term atom() {
        if (take("(")) return bracket();
        skipBlanks();
        if (m_at >= m_text.size()) return wrong("an operand");
        if (std::isdigit(static_cast<unsigned char>(m_text[m_at]))) return number();
        if (const auto name = quoted()) return {symbol(*name, takeSuffix())};
        if (!error.empty()) return nothing();
        return named();
    }
    Term named() {
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
            const auto found = m_names->find(*number);
            if (found != m_names->end()) return {found->second};
            say(std::string(name) + " is read before a line says what it is");
            return nothing();
        }
        if (const auto buffer = numberAfter('b', name)) return load(*buffer);
        return {symbol(std::string(name), std::nullopt)};
    }
    Expr symbol(const std::string& name, std::optional<DType> dtype) {
        if (std::find(m_kernel->sizes.begin(), m_kernel->sizes.end(), name) == m_kernel->sizes.end())
            say("'" + name + "' is none of the kernel's sizes; its first line lists them");
        return Expr::symbol(name, dtype.value_or(symbolDType(name)));
    }
    Term load(int buffer) {
        if (static_cast<size_t>(buffer) >= m_kernel->buffers.size()) {
            say(bufferName(buffer) + " is none of the kernel's buffers; its first line lists them");
            return nothing();
        }
        expect("[");
        const Expr index = expression();
        expect("]");
        const auto dtype = takeSuffix();
        return {Expr::load(bufferName(buffer), index,
                           dtype.value_or(m_kernel->buffers[static_cast<size_t>(buffer)].dtype))};
    }
    Term call(std::string_view function) {
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
        if (!terms.empty() && (function == "checked_index" || isKernelFunction(function)))
            return typed(operation(ExprKind::Call, function, terms));
        say("there is no function '" + std::string(function) + "'");
        return nothing();
    }
    Term typed(Term call) {
        const auto dtype = takeSuffix();
        if (dtype && call.operation) call.operation->dtype = *dtype;
        return call;
    }
    /// A NaN by its bits.
    Term nanOf() {
        uint64_t bits = 0;
        const std::string_view digits = word();
        if (std::from_chars(digits.data(), digits.data() + digits.size(), bits).ec != std::errc())
            return wrong("the bits of a NaN as a number");
        double value = 0;
        std::memcpy(&value, &bits, sizeof bits);
        expect(")");
        return literal(Expr::real(value, DType::F32));
    }
    Term reduction(int number) {
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

    std::string_view m_text;
    const Kernel* m_kernel;
    const std::map<int, Expr>* m_names;
    size_t m_at = 0;
    int m_depth = 0, m_operations = 0;
};

class KernelReader {
  public:
    Result<Kernel> read(std::string_view source) {
        bool begun = false;
        int number = 1;
        for (; !source.empty(); ++number) {
            const size_t end = source.find('\n');
            const std::string_view line = source.substr(0, end);
            source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
            LineReader in(line, m_kernel, m_names);
            if (in.atEnd() || in.take("#")) continue;
            if (begun) statement(in);
            else header(in);
            begun = true;
            if (in.error.empty() && !in.atEnd()) in.fail("the end of the line");
            if (!in.error.empty()) return invalidInput(in.error, "line " + std::to_string(number));
        }
        if (!begun)
            return invalidInput("a kernel begins with its name and buffers: scale(b0: f32!, b1: f32)", "line 1");
        return std::move(m_kernel);
    }

  private:
    void header(LineReader& in) {
        constexpr std::string_view kExpected = "the name of the kernel and its buffers, scale(b0: f32!, b1: f32),";
        const std::string_view name = in.word();
        if (name.empty() || !in.take("(")) return in.fail(std::string(kExpected));
        m_kernel.name = std::string(name);
        if (in.take(")")) return;
        do {
            if (const auto quoted = in.quoted()) {
                m_kernel.sizes.push_back(*quoted);
                continue;
            }
            const std::string_view item = in.word();
            if (item.empty()) return in.fail("a buffer, b0: f32, or a size, s0,");
            const auto buffer = numberAfter('b', item);
            if (!buffer) {
                m_kernel.sizes.emplace_back(item);
                continue;
            }
            if (static_cast<size_t>(*buffer) != m_kernel.buffers.size() || !m_kernel.sizes.empty())
                return in.say("buffers stand first and are numbered from b0 on");
            in.expect(":");
            const auto dtype = dtypeFromAbbreviation(in.word());
            if (!dtype) return in.fail("a dtype, f32,");
            m_kernel.buffers.push_back({*dtype, in.take("!")});
        } while (in.error.empty() && in.take(","));
        in.expect(")");
    }
    void statement(LineReader& in) {
        if (in.takeWord("for")) {
            if (!m_kernel.outer.empty() || !m_kernel.stores.empty() || !m_names.empty())
                return in.say("outer loops stand in one line, before all others");
            m_kernel.outer = in.loops();
            return in.expect(":");
        }
        const std::string_view target = in.word();
        if (const auto name = numberAfter('v', target)) {
            in.expect("=");
            const Expr value = in.expression();
            if (in.error.empty() && !m_names.emplace(*name, value).second)
                in.say(std::string(target) + " has been given a value before");
            return;
        }
        const auto buffer = numberAfter('b', target);
        if (!buffer) return in.fail("loops, for x0 < 9:, a name, v0 = ..., or a store, b0[x0] = ...,");
        store(in, *buffer);
    }
    void store(LineReader& in, int buffer) {
        if (static_cast<size_t>(buffer) >= m_kernel.buffers.size())
            return in.say(bufferName(buffer) + " is none of the kernel's buffers; its first line lists them");
        const KernelBuffer& written = m_kernel.buffers[static_cast<size_t>(buffer)];
        if (!written.written)
            return in.say(bufferName(buffer) + " is not written: mark it in the first line, " + bufferName(buffer) +
                          ": " + std::string(info(written.dtype).abbreviation) + "!");
        KernelStore made;
        made.buffer = buffer;
        in.expect("[");
        made.index = in.expression();
        in.expect("]");
        in.expect("=");
        made.value = in.expression();
        if (in.error.empty() && in.takeWord("for")) made.inner = in.loops();
        if (!in.error.empty()) return;
        checkAxes(in, made);
        m_kernel.stores.push_back(std::move(made));
    }
    /// Every axis is one of a loop around it.
    void checkAxes(LineReader& in, const KernelStore& made) {
        std::set<int> read = m_exprs.leaves(made.index);
        const std::set<int>& value = m_exprs.leaves(made.value);
        read.insert(value.begin(), value.end());
        for (const std::vector<Loop>* loops : {&std::as_const(m_kernel.outer), &made.inner})
            for (const Loop& loop : *loops) read.erase(axisKey(loop.axis));
        if (!read.empty()) in.say("there is no loop over x" + std::to_string(*read.begin() / 2) + " around this store");
    }

    Kernel m_kernel;
    std::map<int, Expr> m_names;
    UniqueExprs m_exprs;
};

}  // namespace

Result<Kernel> parseKernel(std::string_view source) { return KernelReader().read(source); }

}  // namespace cutaway
