// The notation of rules (rule.h), read: its grammar. Words and numbers stand in pattern_tokens.cpp.
#include <algorithm>
#include <limits>

#include "engine/rewrite/pattern.h"
#include "engine/rewrite/pattern_tokens.h"

namespace cutaway {
namespace {

struct BinaryOperator {
    std::string_view symbol, function;
};
/// Python's binary operators, weakest first. Longer symbols stand before their beginnings.
constexpr BinaryOperator kLevels[][6] = {
    {{"==", "operator.eq"},
     {"!=", "operator.ne"},
     {"<=", "operator.le"},
     {">=", "operator.ge"},
     {"<", "operator.lt"},
     {">", "operator.gt"}},
    {{"|", "operator.or_"}},
    {{"^", "operator.xor"}},
    {{"&", "operator.and_"}},
    {{"<<", "operator.lshift"}, {">>", "operator.rshift"}},
    {{"+", "operator.add"}, {"-", "operator.sub"}},
    {{"//", "operator.floordiv"},
     {"*", "operator.mul"},
     {"/", "operator.truediv"},
     {"%", "operator.mod"},
     {"@", "operator.matmul"}},
};

/// Recursive descent over one rule text.
class PatternParser : private PatternTokens {
  public:
    explicit PatternParser(std::string_view text) : PatternTokens(text) {}

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
        if (accept("!=")) return differing(name);
        PatternStatement marks;
        if (accept(":")) readMarks(marks);
        if (m_error) return;
        if (!accept("=")) {
            m_at = begin;
            return fail("a statement is 'name = call' or 'return ...'");
        }
        for (const PatternStatement& earlier : m_out.statements)
            if (earlier.name == name) return fail("'" + name + "' is assigned twice");
        const PatternItem value = item();
        if (m_error) return;
        if (value.kind != PatternItem::Kind::Name || m_out.statements.empty() ||
            value.name != m_out.statements.back().name || value.name[0] != '%')
            return fail("'" + name + "' is not assigned a call");
        PatternStatement& call = m_out.statements.back();
        call.name = name;
        call.shared = marks.shared;
        call.readers = marks.readers;
        call.each = marks.each;
    }
    /// "shared", "2 readers", "each", "some", "repeated"; several with commas.
    void readMarks(PatternStatement& marks) {
        do {
            skipBlanks();
            if (isDigit(peek())) {
                marks.readers = static_cast<int>(number().asInt().value_or(0));
                if (marks.readers < 1) return fail("a number of readers is 1 or more");
                const std::string_view unit = word();
                if (unit != "readers" && unit != "reader") return fail("after a number in a mark 'readers' must stand");
                continue;
            }
            const std::string_view mark = word();
            if (mark == "shared") marks.shared = true;
            else if (mark == "each") marks.each = PatternStatement::Each::All;
            else if (mark == "some" || mark == "repeated")
                marks.each = mark == "some" ? PatternStatement::Each::Some : PatternStatement::Each::Repeated;
            else
                return fail(
                    "after ':' stand 'shared', 'each', 'some', 'repeated' or a number of readers, as in '2 readers'");
        } while (accept(","));
    }
    /// a != b != c: all of them are different values.
    void differing(const std::string& first) {
        std::vector<std::string> names = {first};
        do {
            names.emplace_back(word());
            if (names.back().empty()) return fail("a name must follow '!='");
        } while (accept("!="));
        m_out.different.push_back(std::move(names));
    }

    /// An argument: a literal, a name, a call, or operators over them as Python writes them.
    PatternItem item() { return binary(0); }
    PatternItem binary(size_t level) {
        if (level == std::size(kLevels)) return unary();
        PatternItem left = binary(level + 1);
        while (!m_error) {
            const BinaryOperator* found = binaryAt(level);
            if (found == nullptr) return left;
            left = addCall(operatorCall(found->function, {left, binary(level + 1)}));
        }
        return left;
    }
    const BinaryOperator* binaryAt(size_t level) {
        skipBlanks();
        const std::string_view rest = m_text.substr(m_at);
        for (const BinaryOperator& one : kLevels[level]) {
            if (one.symbol.empty() || !rest.starts_with(one.symbol)) continue;
            // "a < b" is not "a << b", and "*xs" behind a comma never comes here.
            const char after = rest.size() > one.symbol.size() ? rest[one.symbol.size()] : ' ';
            if ((after == '=' && one.symbol != "==" && one.symbol != "<=" && one.symbol != ">=" &&
                 one.symbol != "!=") ||
                (one.symbol.size() == 1 && after == one.symbol[0]))
                continue;
            m_at += one.symbol.size();
            return &one;
        }
        return nullptr;
    }
    PatternItem unary() {
        if (++m_nesting > 128) fail("nested deeper than 64 levels");
        PatternItem value = m_error ? PatternItem() : signedItem();
        --m_nesting;
        return value;
    }
    PatternItem signedItem() {
        skipBlanks();
        const char c = peek();
        const bool numeral = isDigit(peek(1)) || peek(1) == '.' || m_text.substr(m_at, 4) == "-inf";
        if (c == '~' || (c == '-' && !numeral)) {
            ++m_at;
            return addCall(operatorCall(c == '~' ? "operator.invert" : "operator.neg", {unary()}));
        }
        PatternItem base = postfix();
        if (!m_error && accept("**")) return addCall(operatorCall("operator.pow", {base, unary()}));
        return base;
    }
    static PatternStatement operatorCall(std::string_view function, std::vector<PatternItem> operands) {
        PatternStatement out;
        out.ops = {std::string(function)};
        out.positional = std::move(operands);
        return out;
    }
    /// x[0], f(x)[0], f(x).view(2), x.T
    PatternItem postfix() {
        PatternItem value = primary();
        while (!m_error) {
            if (accept("[")) {
                PatternItem index = subscript();
                value = addCall(operatorCall("operator.getitem", {value, std::move(index)}));
            } else if (peek() == '.' && (isNameStart(peek(1)) || peek(1) == '(')) {
                ++m_at;
                std::vector<std::string> names = namePart();
                if (!m_error) value = member(std::move(value), std::move(names));
            } else {
                break;
            }
        }
        return value;
    }
    /// value.name(...), or without parentheses value.name.
    PatternItem member(PatternItem value, std::vector<std::string> names) {
        if (accept("(")) return call(std::move(names), &value);
        if (names.size() > 1) fail("a choice must be called");
        return addCall(operatorCall("builtins.getattr", {std::move(value), constant(names[0])}));
    }
    PatternItem subscript() {
        ++m_depth;
        std::vector<PatternItem> entries;
        bool tuple = false;
        while (!m_error && !accept("]")) {
            entries.push_back(subscriptEntry());
            if (accept("]")) break;
            expect(",");
            tuple = true;
        }
        --m_depth;
        if (entries.empty()) fail("an index is missing");
        if (m_error) return {};
        return entries.size() == 1 && !tuple ? entries[0] : listOf(std::move(entries), true);
    }
    PatternItem subscriptEntry() {
        if (m_text.substr(m_at, 3) == "...") {
            m_at += 3;
            return constant(Ellipsis{});
        }
        const auto isBound = [&] {
            skipBlanks();
            return peek() != ':' && peek() != ',' && peek() != ']';
        };
        PatternItem first;
        if (isBound()) first = item();
        else first = constant(nullptr);
        if (!accept(":")) return first;
        ArgumentSlice slice;
        const auto read = [&](Argument& bound, const PatternItem& from) {
            if (from.kind != PatternItem::Kind::Constant) fail("the bounds of a slice are constants here");
            bound = from.constant;
        };
        read(slice.start, first);
        if (isBound()) read(slice.stop, item());
        if (accept(":") && isBound()) read(slice.step, item());
        return constant(std::make_shared<const ArgumentSlice>(std::move(slice)));
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
        PatternItem value;
        if (++m_nesting > 128) {
            fail("nested deeper than 64 levels");
        } else if (c == '$' || c == '*') {
            ++m_at;
            value.kind = c == '$' ? PatternItem::Kind::Attribute : PatternItem::Kind::Star;
            value.name = std::string(word());
            if (value.name.empty()) fail("a name must follow '" + std::string(1, c) + "'");
        } else if (c == '[') {
            ++m_at;
            value = list("]");
        } else if (c == '(') {
            value = parenthesized();
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
    PatternItem list(std::string_view close) {
        ++m_depth;
        std::vector<PatternItem> items;
        bool star = false, comma = false;
        while (!m_error && !accept(close)) {
            items.push_back(item());
            if (items.back().kind == PatternItem::Kind::Star) {
                if (star) fail("a list has one '*' at most");
                star = true;
            }
            if (!accept(",")) {
                expect(close);
                break;
            }
            comma = true;
        }
        --m_depth;
        m_comma = comma;
        return listOf(std::move(items), close == ")");
    }
    static PatternItem listOf(std::vector<PatternItem> items, bool tuple) {
        const bool constants = std::all_of(
            items.begin(), items.end(), [](const PatternItem& one) { return one.kind == PatternItem::Kind::Constant; });
        PatternItem value;
        value.kind = PatternItem::Kind::List;
        value.items = std::move(items);
        value.tuple = tuple;
        if (!constants) return value;
        ArgumentList literals{{}, tuple};
        for (PatternItem& one : value.items) literals.items.push_back(std::move(one.constant));
        return constant(Argument(std::move(literals)));
    }
    /// (a, b), (a + b), or a choice of functions to call: (torch.relu|torch.tanh)(x).
    PatternItem parenthesized() {
        const size_t close = m_text.find(')', m_at);
        const std::string_view inside = m_text.substr(m_at + 1, close == std::string_view::npos ? 0 : close - m_at - 1);
        const bool named = !inside.empty() && std::all_of(inside.begin(), inside.end(), [](char c) {
            return isNameStart(c) || isDigit(c) || c == '.' || c == '|';
        });
        if (named && close + 1 < m_text.size() && m_text[close + 1] == '(') {
            std::vector<std::string> names;
            for (size_t begin = 0; begin <= inside.size();) {
                const size_t end = std::min(inside.find('|', begin), inside.size());
                names.emplace_back(inside.substr(begin, end - begin));
                begin = end + 1;
            }
            m_at = close + 2;
            return call(std::move(names), nullptr);
        }
        ++m_at;
        PatternItem items = list(")");
        if (m_comma || m_error) return items;
        if (items.kind == PatternItem::Kind::List && !items.items.empty()) return items.items[0];  // (a) is a
        if (const auto* literals = items.constant.list(); literals && !literals->empty())
            return constant((*literals)[0]);
        return items;
    }
    PatternItem nameOrCall() {
        const std::string first(word());
        std::vector<std::string> names = {first};
        std::vector<std::string> second;
        size_t parts = 1;
        while (!m_error && accept(".")) {
            const std::vector<std::string> choice = namePart();
            if (m_error) return {};
            if (++parts == 2) second = choice;
            std::vector<std::string> longer;
            for (const std::string& name : names)
                for (const std::string& part : choice) longer.push_back(name + "." + part);
            names = std::move(longer);
        }
        if (names[0].starts_with("torch.ops."))
            for (std::string& name : names) name.erase(0, 10);
        // x.relu() of a value; of functions the first name is a library that operators are known of.
        if (parts == 2 && !isLibrary(first)) return member(plainName(first), std::move(second));
        if (accept("(")) {
            if (names[0] == "getattr") names = {"builtins.getattr"};
            return names[0] == "device" ? device() : call(std::move(names), nullptr);
        }
        return parts > 1 ? torchConstant(names[0]) : plainName(first);
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
    /// What stands behind "("; `receiver`: of a method.
    PatternItem call(std::vector<std::string> ops, const PatternItem* receiver) {
        PatternStatement call;
        call.ops = std::move(ops);
        call.method = receiver != nullptr;
        if (receiver) call.positional.push_back(*receiver);
        ++m_depth;
        while (!m_error && !accept(")")) {
            if (accept("...")) {
                call.rest = true;
                expect(")");
                break;
            }
            const size_t begin = m_at;
            const std::string key(word());
            skipBlanks();
            if (!key.empty() && peek() == '=' && peek(1) != '=' && accept("=")) {
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
        if (name == "Ellipsis") return constant(Ellipsis{});
        if (name == "inf") return constant(std::numeric_limits<double>::infinity());
        PatternItem value;
        value.kind = PatternItem::Kind::Name;
        value.name = name;
        return value;
    }

    int m_nesting = 0, m_nested = 0;
    bool m_returned = false, m_comma = false;  // whether the last list had a comma
    PatternText m_out;
};

}  // namespace

Result<PatternText> parsePatternText(std::string_view text) { return PatternParser(text).parse(); }

}  // namespace cutaway
