#include "engine/rewrite/operator_text.h"

#include <algorithm>

#include "engine/support/trimmed.h"

namespace cutaway {
namespace {

std::string_view bareLine(std::string_view text) { return cutaway::trimmed(text, " \t\r"); }

constexpr std::string_view kSchemaForm =
    "a schema reads as PyTorch prints it: mylib::scale(Tensor x, float by=1.0) -> Tensor";

/// "mylib.scale.default" of "mylib::scale", "mylib::scale.default" or "mylib.scale.default"; empty for what is not a
/// name.
std::string fullName(std::string_view written) {
    std::string name(written);
    if (const size_t colons = name.find("::"); colons != std::string::npos) name.replace(colons, 2, ".");
    const auto dots = std::count(name.begin(), name.end(), '.');
    if (dots == 1) name += ".default";
    const bool sound = (dots == 1 || dots == 2) && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                           return std::isalnum(c) != 0 || c == '_' || c == '.';
                       });
    if (!sound || name.front() == '.' || name.find("..") != std::string::npos || name.back() == '.') return {};
    return name;
}

class OperatorReader {
  public:
    explicit OperatorReader(std::string_view text) : m_text(text) {}

    Result<std::vector<OperatorText>> run() {
        for (size_t begin = 0; begin < m_text.size();) {
            const size_t end = std::min(m_text.find('\n', begin), m_text.size());
            ++m_line;
            CT_TRY_VOID(line(m_text.substr(begin, end - begin)));
            begin = end + 1;
        }
        CT_TRY_VOID(finish());
        return std::move(m_out);
    }

  private:
    Error fail(std::string what, int line, std::vector<std::string> notes = {}) const {
        return {ErrorCode::InvalidInput, std::move(what), "line " + std::to_string(line), std::move(notes)};
    }

    Result<void> line(std::string_view raw) {
        const std::string_view text = bareLine(raw);
        if (text.empty() || text[0] == '#') return {};
        if (!raw.starts_with(" ")) {
            CT_TRY_VOID(finish());
            m_inside = text.starts_with("operator ");
            return m_inside ? begin(bareLine(text.substr(9))) : Result<void>();
        }
        if (!m_inside) return {};  // of a rule
        OperatorText& now = m_out.back();
        if (raw.starts_with("    ")) {
            if (now.cases.empty()) return fail("statements belong below 'computes'", m_line);
            now.cases.back().statements.emplace_back(text);
            now.cases.back().lines.push_back(m_line);
            return {};
        }
        if (text == "why") return {};
        if (text.starts_with("why ")) {
            now.why = bareLine(text.substr(4));
            return {};
        }
        const bool always = text == "computes";
        if (!always && !text.starts_with("computes when "))
            return fail("no property '" + std::string(text) + "' of an operator", m_line,
                        {"there are: why SENTENCE, computes, computes when CONDITION"});
        if (!now.cases.empty() && now.cases.back().when.empty())
            return fail("what follows a 'computes' without a condition is never reached", m_line,
                        {"put those with 'when' first"});
        now.cases.push_back({always ? std::string() : std::string(bareLine(text.substr(14))), {}, {}, m_line});
        return {};
    }

    Result<void> begin(std::string_view written) {
        const std::string_view head = bareLine(written.substr(0, written.find('(')));
        const std::string name = fullName(head);
        if (name.empty())
            return fail("'" + std::string(head) + "' names no operator with its namespace", m_line,
                        {std::string(kSchemaForm)});
        auto schema = parseSchema(name + std::string(written.substr(std::min(written.find('('), written.size()))));
        if (!schema) return fail(schema.error().message, m_line, {std::string(kSchemaForm)});
        schema->name = name;
        const bool aliases = std::any_of(schema->returns.begin(), schema->returns.end(),
                                         [](const Return& one) { return one.alias != 0; });
        if (schema->mutates() || aliases)
            return fail(name + " writes to what it is given, or returns a view of it, which a definition cannot say",
                        m_line, {"define the functional form of the operator"});
        if (schema->returns.empty()) return fail(name + " returns nothing, so nothing computes it", m_line);
        for (const Return& one : schema->returns)
            if (one.kind != ParamKind::Tensor)
                return fail(name + " returns what is not a tensor, which a definition cannot say", m_line);
        for (const OperatorText& other : m_out)
            if (other.schema.name == name)
                return fail(name + " is defined twice; first in line " + std::to_string(other.line), m_line,
                            {"leave one of the two out"});
        OperatorText one;
        one.schema = std::move(*schema);
        one.schemaText = written;
        one.line = m_line;
        m_out.push_back(std::move(one));
        return {};
    }

    Result<void> finish() {
        if (!m_inside) return {};
        const OperatorText& done = m_out.back();
        if (done.cases.empty())
            return fail(done.schema.name + " does not say what it computes", done.line,
                        {"write '  computes' below it, and the statements below that, indented by four spaces"});
        for (const OperatorCase& one : done.cases)
            if (one.statements.empty() || !one.statements.back().starts_with("return "))
                return fail("the statements of " + done.schema.name + " do not end with a 'return'", one.line);
        return {};
    }

    std::string_view m_text;
    int m_line = 0;
    bool m_inside = false;
    std::vector<OperatorText> m_out;
};

}  // namespace

std::string OperatorText::text() const {
    std::string out = "operator " + schemaText + "\n";
    if (!why.empty()) out += "  why " + why + "\n";
    for (const OperatorCase& one : cases) {
        out += one.when.empty() ? "  computes\n" : "  computes when " + one.when + "\n";
        for (const std::string& statement : one.statements) out += "    " + statement + "\n";
    }
    return out;
}

Result<std::vector<OperatorText>> readOperators(std::string_view rules) { return OperatorReader(rules).run(); }

}  // namespace cutaway
