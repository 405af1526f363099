#include "engine/rewrite/pattern.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "engine/ir/node.h"
#include "engine/ops/op_registry.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Recursive descent over one rule text.
class PatternParser {
  public:
    explicit PatternParser(std::string_view text) : m_text(text) {}

    Result<PatternText> parse() {
        while (!m_error && !m_returned) {
            skipSeparators();
            if (m_at >= m_text.size()) {
                fail("the text ends without 'return'");
                break;
            }
            statement();
        }
        skipSeparators();
        if (!m_error && m_at < m_text.size()) fail("text after 'return'");
        if (m_error) return *m_error;
        return std::move(m_out);
    }

  private:
    void fail(std::string what) {
        if (m_error) return;
        const auto line = 1 + std::count(m_text.begin(), m_text.begin() + static_cast<std::ptrdiff_t>(std::min(m_at, m_text.size())), '\n');
        m_error = invalidInput(std::move(what), "line " + std::to_string(line));
        m_at = m_text.size();
    }
    char peek(size_t ahead = 0) const { return m_at + ahead < m_text.size() ? m_text[m_at + ahead] : '\0'; }
    void skipBlanks() {
        for (;; ++m_at) {
            if (peek() == '#') while (m_at < m_text.size() && peek() != '\n') ++m_at;
            const char c = peek();
            if (c != ' ' && c != '\t' && c != '\r' && !(c == '\n' && m_depth > 0)) return;
        }
    }
    void skipSeparators() {
        for (skipBlanks(); peek() == ';' || peek() == '\n'; skipBlanks()) ++m_at;
    }
    bool accept(std::string_view symbol) {
        skipBlanks();
        if (m_text.substr(m_at, symbol.size()) != symbol) return false;
        m_at += symbol.size();
        return true;
    }
    void expect(std::string_view symbol) {
        if (!accept(symbol)) fail("'" + std::string(symbol) + "' is missing");
    }
    std::string_view word() {
        skipBlanks();
        const size_t begin = m_at;
        if (isNameStart(peek())) while (isNameStart(peek()) || isDigit(peek())) ++m_at;
        return m_text.substr(begin, m_at - begin);
    }

    void statement() {
        const size_t begin = m_at;
        const std::string name(word());
        if (name == "return") {
            m_returned = true;
            do m_out.results.push_back(item());
            while (!m_error && accept(","));
            return;
        }
        if (name.empty()) return fail("a statement begins with a name");
        bool shared = false;
        if (accept(":")) {
            if (word() != "shared") return fail("after ':' only 'shared' may stand");
            shared = true;
        }
        if (!accept("=")) {
            m_at = begin;
            return fail("a statement is 'name = call' or 'return ...'");
        }
        for (const PatternStatement& earlier : m_out.statements)
            if (earlier.name == name) return fail("'" + name + "' is assigned twice");
        const PatternItem value = item();
        if (m_error) return;
        if (value.kind != PatternItem::Kind::Name || m_out.statements.empty() || value.name != m_out.statements.back().name || value.name[0] != '%')
            return fail("'" + name + "' is not assigned a call");
        m_out.statements.back().name = name;
        m_out.statements.back().shared = shared;
    }

    PatternItem item() {
        PatternItem value = primary();
        while (!m_error && accept("[")) {
            PatternStatement read;
            read.ops = {"operator.getitem"};
            read.positional = {value, item()};
            expect("]");
            value = addCall(std::move(read));
        }
        return value;
    }
    PatternItem addCall(PatternStatement call) {
        call.name = "%" + std::to_string(++m_nested);
        m_out.statements.push_back(std::move(call));
        PatternItem value;
        value.kind = PatternItem::Kind::Name;
        value.name = m_out.statements.back().name;
        return value;
    }
    static PatternItem constant(Argument value) {
        PatternItem out;
        out.kind = PatternItem::Kind::Constant;
        out.constant = std::move(value);
        return out;
    }

    PatternItem primary() {
        skipBlanks();
        const char c = peek();
        if (++m_nesting > 64) fail("nested deeper than 64 levels");
        PatternItem value;
        if (c == '$' || c == '*') {
            ++m_at;
            value.kind = c == '$' ? PatternItem::Kind::Attribute : PatternItem::Kind::Star;
            value.name = std::string(word());
            if (value.name.empty()) fail("a name must follow '" + std::string(1, c) + "'");
        } else if (c == '[') {
            value = list();
        } else if (c == '\'' || c == '"') {
            value = constant(string());
        } else if (isDigit(c) || c == '-' || (c == '.' && isDigit(peek(1)))) {
            value = constant(number());
        } else if (isNameStart(c)) {
            value = nameOrCall();
        } else {
            fail("an argument is missing");
        }
        --m_nesting;
        return value;
    }
    PatternItem list() {
        PatternItem value;
        value.kind = PatternItem::Kind::List;
        expect("[");
        ++m_depth;
        bool star = false, constants = true;
        while (!m_error && !accept("]")) {
            value.items.push_back(item());
            const auto kind = value.items.back().kind;
            if (kind == PatternItem::Kind::Star) {
                if (star) fail("a list has one '*' at most");
                star = true;
            }
            constants &= kind == PatternItem::Kind::Constant;
            if (!accept(",")) {
                expect("]");
                break;
            }
        }
        --m_depth;
        if (!constants) return value;
        std::vector<Argument> items;
        for (PatternItem& one : value.items) items.push_back(std::move(one.constant));
        return constant(Argument(std::move(items)));
    }
    std::string string() {
        const char quote = m_text[m_at++];
        const size_t begin = m_at;
        while (m_at < m_text.size() && peek() != quote && peek() != '\n') ++m_at;
        if (peek() != quote) fail("a string is not closed");
        const std::string text(m_text.substr(begin, m_at - begin));
        if (!m_error) ++m_at;
        return text;
    }
    Argument number() {
        const char* const begin = m_text.data() + m_at;
        const char* const end = m_text.data() + m_text.size();
        if (m_text.substr(m_at, 4) == "-inf") {
            m_at += 4;
            return -std::numeric_limits<double>::infinity();
        }
        double real = 0;
        const auto realEnd = std::from_chars(begin, end, real);
        int64_t integer = 0;
        const auto integerEnd = std::from_chars(begin, end, integer);
        if (realEnd.ec != std::errc()) {
            fail("not a number");
            return {};
        }
        m_at += static_cast<size_t>(realEnd.ptr - begin);
        if (integerEnd.ec == std::errc() && integerEnd.ptr == realEnd.ptr) return integer;
        return real;
    }

    PatternItem nameOrCall() {
        std::vector<std::string> names = {""};
        bool dotted = false;
        do {
            const std::vector<std::string> parts = namePart();
            if (m_error) return {};
            std::vector<std::string> longer;
            for (const std::string& name : names)
                for (const std::string& part : parts) longer.push_back(name.empty() ? part : name + "." + part);
            dotted |= !names[0].empty();
            names = std::move(longer);
        } while (accept("."));
        if (names[0].starts_with("torch.ops."))
            for (std::string& name : names) name.erase(0, 10);
        if (accept("(")) return names[0] == "device" ? device() : call(std::move(names));
        if (dotted) return torchConstant(names[0]);
        return plainName(names[0]);
    }
    std::vector<std::string> namePart() {
        if (!accept("(")) {
            const std::string_view one = word();
            if (one.empty()) fail("a name is missing after '.'");
            return {std::string(one)};
        }
        std::vector<std::string> parts;
        do parts.emplace_back(word());
        while (accept("|"));
        expect(")");
        return parts;
    }
    PatternItem call(std::vector<std::string> ops) {
        PatternStatement call;
        call.ops = std::move(ops);
        ++m_depth;
        while (!m_error && !accept(")")) {
            if (accept("...")) {
                call.rest = true;
                expect(")");
                break;
            }
            const size_t begin = m_at;
            const std::string key(word());
            if (!key.empty() && accept("=")) {
                call.keywords.emplace_back(key, item());
            } else {
                m_at = begin;
                if (!call.keywords.empty()) fail("a positional argument after a keyword");
                call.positional.push_back(item());
            }
            if (!accept(",")) {
                expect(")");
                break;
            }
        }
        --m_depth;
        return m_error ? PatternItem{} : addCall(std::move(call));
    }
    PatternItem device() {
        std::string text;
        ++m_depth;
        do {
            const std::string_view key = word();
            expect("=");
            skipBlanks();
            if (key == "type") text = string();
            else if (key == "index") text += ":" + std::to_string(number().asInt().value_or(0));
            else fail("a device has 'type' and 'index'");
        } while (!m_error && accept(","));
        expect(")");
        --m_depth;
        const auto found = deviceFromText(text);
        if (!found) {
            fail("no device '" + text + "'");
            return {};
        }
        return constant(*found);
    }
    PatternItem torchConstant(const std::string& name) {
        const std::string_view rest = std::string_view(name).substr(std::min<size_t>(6, name.size()));
        if (name.starts_with("torch.")) {
            if (const auto dtype = dtypeFromTorchName(rest)) return constant(*dtype);
            if (const auto layout = layoutFromName(rest)) return constant(*layout);
            if (const auto format = memoryFormatFromName(rest)) return constant(*format);
        }
        fail("'" + name + "' is neither a call nor a constant of torch");
        return {};
    }
    PatternItem plainName(const std::string& name) {
        if (name == "_") return {};
        if (name == "None") return constant(nullptr);
        if (name == "True") return constant(true);
        if (name == "False") return constant(false);
        if (name == "inf") return constant(std::numeric_limits<double>::infinity());
        PatternItem value;
        value.kind = PatternItem::Kind::Name;
        value.name = name;
        return value;
    }

    std::string_view m_text;
    size_t m_at = 0;
    int m_depth = 0, m_nesting = 0, m_nested = 0;
    bool m_returned = false;
    PatternText m_out;
    std::optional<Error> m_error;
};

class PatternCompiler {
  public:
    Result<Pattern> run(const PatternText& text) {
        for (const PatternStatement& statement : text.statements) CT_TRY_VOID(addCall(statement));
        for (const PatternItem& result : text.results) {
            const int slot = result.kind == PatternItem::Kind::Name ? m_out.slotOf(result.name) : -1;
            if (slot < 0 || m_out.callOfSlot[static_cast<size_t>(slot)] < 0) return invalidInput("a result of 'find' must be the name of a call");
            callAt(slot).result = true;
            m_out.results.push_back(slot);
        }
        for (const PatternCall& call : m_out.calls)
            if (!call.result && call.readers == 0) return invalidInput("'" + m_out.names[static_cast<size_t>(call.slot)] + "' is neither read nor returned");
        return std::move(m_out);
    }

  private:
    PatternCall& callAt(int slot) { return m_out.calls[static_cast<size_t>(m_out.callOfSlot[static_cast<size_t>(slot)])]; }

    Result<void> addCall(const PatternStatement& statement) {
        if (m_out.slotOf(statement.name) >= 0) return invalidInput("'" + statement.name + "' is read before it is assigned");
        PatternCall call;
        call.shared = statement.shared;
        for (const std::string& name : statement.ops) {
            const Op* op = findOp(name);
            if (op == nullptr || op->schema() == nullptr) return invalidInput("no operator '" + name + "'");
            CT_TRY(PatternCall::Form form, bind(*op, statement));
            call.forms.push_back(std::move(form));
        }
        call.slot = slotFor(statement.name);
        m_out.callOfSlot[static_cast<size_t>(call.slot)] = static_cast<int>(m_out.calls.size());
        for (size_t operand = 0; operand < m_out.calls.size(); ++operand)
            if (reads(call, m_out.calls[operand].slot)) ++m_out.calls[operand].readers;
        m_out.calls.push_back(std::move(call));
        return {};
    }
    static bool reads(const PatternCall& call, int slot) {
        return std::any_of(call.forms[0].args.begin(), call.forms[0].args.end(), [&](const PatternArg& arg) { return mentions(arg, slot); });
    }
    static bool mentions(const PatternArg& arg, int slot) {
        if (arg.kind == PatternArg::Kind::Call && arg.slot == slot) return true;
        return std::any_of(arg.items.begin(), arg.items.end(), [&](const PatternArg& item) { return mentions(item, slot); });
    }
    int slotFor(const std::string& name) {
        const int found = m_out.slotOf(name);
        if (found >= 0) return found;
        m_out.names.push_back(name);
        m_out.callOfSlot.push_back(-1);
        return static_cast<int>(m_out.names.size()) - 1;
    }

    Result<PatternCall::Form> bind(const Op& op, const PatternStatement& statement) {
        const auto& params = op.schema()->params;
        PatternCall::Form form;
        form.op = &op;
        form.commutes = op.is(Tag::Commutative) && params.size() >= 2;
        form.args.resize(params.size());
        std::vector<bool> given(params.size(), false);
        if (statement.positional.size() > params.size())
            return invalidInput(op.name() + ": more arguments than the schema has parameters");
        for (size_t i = 0; i < statement.positional.size(); ++i) {
            form.args[i] = argument(statement.positional[i], params[i]);
            given[i] = true;
        }
        for (const auto& [key, value] : statement.keywords) {
            const int at = op.schema()->find(key);
            if (at < 0) return invalidInput(op.name() + ": no parameter named '" + key + "'");
            if (given[static_cast<size_t>(at)]) return invalidInput(op.name() + ": '" + key + "' is given twice");
            form.args[static_cast<size_t>(at)] = argument(value, params[static_cast<size_t>(at)]);
            given[static_cast<size_t>(at)] = true;
        }
        for (size_t i = 0; i < params.size(); ++i) {
            if (given[i] || statement.rest) continue;
            if (!params[i].hasDefault) return invalidInput(op.name() + ": argument '" + params[i].name + "' is missing");
            form.args[i].kind = PatternArg::Kind::Constant;
            form.args[i].constant = params[i].defaultValue;
        }
        return form;
    }

    PatternArg argument(const PatternItem& item, const Param& param) {
        PatternArg out;
        switch (item.kind) {
            case PatternItem::Kind::Any: return out;
            case PatternItem::Kind::Constant:
                out.kind = PatternArg::Kind::Constant;
                out.constant = item.constant;
                // As nodes' arguments are bound: one number for an int[n] counts n times.
                if (param.list && item.constant.isNumber())
                    out.constant = Argument(std::vector<Argument>(static_cast<size_t>(std::max(param.listSize, 1)), item.constant));
                return out;
            case PatternItem::Kind::Attribute:
                out.kind = PatternArg::Kind::Attribute;
                out.slot = slotFor(item.name);
                return out;
            case PatternItem::Kind::Name: case PatternItem::Kind::Star:
                out.slot = slotFor(item.name);
                out.kind = m_out.callOfSlot[static_cast<size_t>(out.slot)] >= 0 ? PatternArg::Kind::Call : PatternArg::Kind::Value;
                return out;
            case PatternItem::Kind::List:
                out.kind = PatternArg::Kind::List;
                for (const PatternItem& one : item.items) {
                    if (one.kind != PatternItem::Kind::Star) {
                        out.items.push_back(argument(one, Param{}));
                        continue;
                    }
                    out.starAt = static_cast<int>(out.items.size());
                    if (one.name != "_") out.starSlot = slotFor(one.name);
                }
                return out;
        }
        return out;
    }

    Pattern m_out;
};

class Normalizer {
  public:
    explicit Normalizer(const Pattern& pattern) : m_pattern(pattern) {}
    std::string run() {
        std::string out;
        for (const PatternCall& call : m_pattern.calls) {
            out += name(call.slot) + (call.shared ? ": shared =" : " =");
            for (const PatternCall::Form& form : call.forms) {
                out += " " + form.op->name() + "(";
                for (const PatternArg& arg : form.args) out += item(arg) + ", ";
                out += ")";
            }
            out += "\n";
        }
        out += "return";
        for (const int slot : m_pattern.results) out += " " + name(slot);
        return out;
    }

  private:
    std::string name(int slot) {
        const auto number = m_numbers.emplace(slot, m_numbers.size()).first->second;
        return "v" + std::to_string(number);
    }
    std::string item(const PatternArg& arg) {
        switch (arg.kind) {
            case PatternArg::Kind::Any: return "_";
            case PatternArg::Kind::Attribute: return "$" + name(arg.slot);
            case PatternArg::Kind::Value: case PatternArg::Kind::Call: return name(arg.slot);
            case PatternArg::Kind::Constant: return constantText(arg.constant);
            case PatternArg::Kind::List: break;
        }
        std::string out = "[";
        for (size_t i = 0; i <= arg.items.size(); ++i) {
            if (static_cast<int>(i) == arg.starAt) out += "*" + (arg.starSlot < 0 ? "_" : name(arg.starSlot)) + ", ";
            if (i < arg.items.size()) out += item(arg.items[i]) + ", ";
        }
        return out + "]";
    }
    const Pattern& m_pattern;
    std::map<int, size_t> m_numbers;
};

}  // namespace

Result<PatternText> parsePatternText(std::string_view text) { return PatternParser(text).parse(); }

Result<Pattern> compilePattern(const PatternText& text) { return PatternCompiler().run(text); }

int Pattern::slotOf(std::string_view name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

std::string Pattern::normalized() const { return Normalizer(*this).run(); }

bool sameConstant(const Argument& a, const Argument& b) {
    if (const auto left = a.asInt())
        if (const auto right = b.asInt()) return *left == *right;
    if (const auto left = a.asReal())
        if (const auto right = b.asReal()) return *left == *right;
    if (const auto *left = a.list(), *right = b.list(); left && right)
        return std::equal(left->begin(), left->end(), right->begin(), right->end(), sameConstant);
    return equal(a, b);
}

std::string constantText(const Argument& value) {
    return value.node() ? "`" + value.node()->name() + "`" : printArgument(value);
}

}  // namespace cutaway
