// Rule tables as text, and back.
#include <algorithm>

#include "engine/rewrite/rule.h"
#include "engine/support/trimmed.h"

namespace cutaway {
namespace {

constexpr std::string_view kCode = "(code)";

std::string_view trimmed(std::string_view text) { return cutaway::trimmed(text, " \t\r"); }

void printStatements(std::string& out, std::string_view text, std::string_view indent) {
    size_t begin = 0;
    char quote = '\0';
    for (size_t at = 0; at <= text.size(); ++at) {
        const char c = at < text.size() ? text[at] : '\n';
        if (quote) {
            if (c == quote) quote = '\0';
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == ';' || c == '\n') {
            const std::string_view line = trimmed(text.substr(begin, at - begin));
            if (!line.empty()) out += std::string(indent) + std::string(line) + "\n";
            begin = at + 1;
        }
    }
}

void printBlock(std::string& out, std::string_view name, std::string_view statements) {
    out += "  " + std::string(name) + "\n";
    printStatements(out, statements, "    ");
}

class RuleReader {
  public:
    RuleReader(std::string_view text, std::span<const Rule> builtIn) : m_text(text), m_builtIn(builtIn) {}

    Result<LoadedRules> run() {
        for (size_t begin = 0; begin < m_text.size();) {
            const size_t end = std::min(m_text.find('\n', begin), m_text.size());
            ++m_line;
            CT_TRY_VOID(line(m_text.substr(begin, end - begin)));
            begin = end + 1;
        }
        CT_TRY_VOID(finishRule());
        return std::move(m_out);
    }

  private:
    Error fail(std::string what) const { return invalidInput(std::move(what), "line " + std::to_string(m_line)); }

    Result<void> line(std::string_view raw) {
        const std::string_view text = trimmed(raw);
        if (text.empty() || text[0] == '#') return {};
        // Definitions of operators have a reader of their own (operator_text.h).
        if (!raw.starts_with(" ")) {
            m_inOperator = text.starts_with("operator ");
            if (m_inOperator) return finishRule();
        }
        if (m_inOperator) return {};
        if (raw.starts_with("    ")) {
            if (m_block == nullptr) return fail("statements belong below 'find' or 'replace'");
            *m_block += std::string(text) + "\n";
            return {};
        }
        const size_t space = std::min(text.find(' '), text.size());
        const std::string_view key = text.substr(0, space), rest = trimmed(text.substr(space));
        if (!raw.starts_with(" ")) {
            if (key != "rule" || rest.empty())
                return fail("a rule begins with 'rule NAME', the definition of an operator with 'operator SCHEMA'");
            CT_TRY_VOID(finishRule());
            m_rule = Rule{};
            m_rule->name = keep(rest);
            for (std::string* block : {&m_find, &m_replace, &m_search, &m_example}) block->clear();
            m_block = nullptr;
            return {};
        }
        if (!m_rule) return fail("'" + std::string(key) + "' stands before the first rule");
        return property(key, rest);
    }

    Result<void> property(std::string_view key, std::string_view rest) {
        m_block = nullptr;
        if (key == "why") {
            m_rule->why = keep(rest);
        } else if (key == "find" && rest.empty()) {
            m_block = &m_find;
        } else if (key == "replace" && rest.empty()) {
            m_block = &m_replace;
        } else if (key == "search" && rest.empty()) {
            m_block = &m_search;
        } else if (key == "replace_by_example" && rest.empty()) {
            m_block = &m_example;
        } else if (key == "place" && !rest.empty()) {
            m_rule->place = keep(rest);
        } else if (key == "parameters" && !rest.empty()) {
            m_rule->parameters = keep(rest);
        } else if (key == "training" && rest.empty()) {
            m_rule->training = true;
        } else if (key == "changes_type" && rest.empty()) {
            m_rule->changesType = true;
        } else if ((key == "unless" || key == "build") && rest == kCode) {
            const auto found = std::find_if(m_builtIn.begin(), m_builtIn.end(),
                                            [&](const Rule& rule) { return rule.name == m_rule->name; });
            const bool has =
                found != m_builtIn.end() && (key == "unless" ? found->unless != nullptr : found->build != nullptr);
            if (!has)
                return fail("rule " + std::string(m_rule->name) + " has a '" + std::string(key) +
                            "' in C++, and no built-in rule of that name has one");
            if (key == "unless") m_rule->unless = found->unless;
            else m_rule->build = found->build;
            m_rule->context = found->context;
        } else {
            return fail(
                "no property '" + std::string(trimmed(std::string(key) + " " + std::string(rest))) +
                "'; there are: place, why, find, replace, unless (code), build (code), changes_type, parameters, search, replace_by_example, training");
        }
        return {};
    }

    Result<void> finishRule() {
        if (!m_rule) return {};
        const std::string named = "rule " + std::string(m_rule->name);
        if (m_find.empty() && m_search.empty()) return fail(named + " has no 'find'");
        if (!m_find.empty() && !m_search.empty()) return fail(named + " has 'find' and 'search'; give one of the two");
        if (!m_search.empty() && m_rule->parameters.empty())
            return fail(named + " has a 'search' without 'parameters'");
        if (!m_search.empty() && m_example.empty())
            return fail(named + " has a 'search', so it needs 'replace_by_example'");
        if (m_search.empty() && (m_rule->training || !m_rule->parameters.empty()))
            return fail(named + " has no 'search' for its 'parameters' or 'training'");
        m_rule->find = keep(m_find);
        m_rule->replace = keep(m_replace);
        m_rule->search = keep(m_search);
        m_rule->example = keep(m_example);
        m_out.rules.push_back(*m_rule);
        m_rule.reset();
        return {};
    }
    std::string_view keep(std::string_view text) {
        return text.empty() ? std::string_view() : std::string_view(m_out.texts.emplace_back(text));
    }

    std::string_view m_text;
    std::span<const Rule> m_builtIn;
    int m_line = 0;
    std::optional<Rule> m_rule;
    std::string m_find, m_replace, m_search, m_example;
    std::string* m_block = nullptr;
    bool m_inOperator = false;
    LoadedRules m_out;
};

}  // namespace

std::string statementLines(std::string_view text) {
    std::string out;
    printStatements(out, text, "");
    return out;
}

std::string printRules(std::span<const Rule> rules) {
    std::string out;
    for (const Rule& rule : rules) {
        if (!out.empty()) out += "\n";
        out += "rule " + std::string(rule.name) + "\n";
        if (!rule.why.empty()) out += "  why " + std::string(rule.why) + "\n";
        if (!rule.place.empty()) out += "  place " + std::string(rule.place) + "\n";
        if (rule.changesType) out += "  changes_type\n";
        if (!rule.parameters.empty()) out += "  parameters " + std::string(rule.parameters) + "\n";
        if (rule.training) out += "  training\n";
        // The traced texts are enough: `find`, `unless` and `build` follow from them.
        printBlock(out, rule.search.empty() ? "find" : "search", rule.search.empty() ? rule.find : rule.search);
        if (rule.unless && rule.search.empty()) out += "  unless (code)\n";
        if (!rule.example.empty()) printBlock(out, "replace_by_example", rule.example);
        else if (rule.build) out += "  build (code)\n";
        else printBlock(out, "replace", rule.replace);
    }
    return out;
}

Result<LoadedRules> loadRules(std::string_view text, std::span<const Rule> builtIn) {
    return RuleReader(text, builtIn).run();
}

}  // namespace cutaway
