#include "engine/rewrite/rule.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "engine/rewrite/matcher.h"

namespace cutaway {

struct RuleSet::Data {
    std::deque<CompiledRule> rules;
    std::unordered_map<const Op*, std::vector<uint32_t>> byRoot;  // looked up, never iterated
    std::vector<Error> broken;
};

RuleSet::RuleSet() : m_data(std::make_unique<Data>()) {}
RuleSet::RuleSet(RuleSet&&) noexcept = default;
RuleSet& RuleSet::operator=(RuleSet&&) noexcept = default;
RuleSet::~RuleSet() = default;
const std::vector<Error>& RuleSet::broken() const { return m_data->broken; }
size_t RuleSet::size() const { return m_data->rules.size(); }
const CompiledRule& RuleSet::at(size_t position) const { return m_data->rules[position]; }
std::span<const uint32_t> RuleSet::startingAt(const Op& op) const {
    const auto found = m_data->byRoot.find(&op);
    return found == m_data->byRoot.end() ? std::span<const uint32_t>() : std::span<const uint32_t>(found->second);
}

namespace {

Error inRule(const Rule& rule, std::string_view part, Error error) {
    error.where =
        "rule " + std::string(rule.name) + ", " + std::string(part) + (error.where.empty() ? "" : ", " + error.where);
    return error;
}

/// ATen operators must have a row, and be named with their overload.
Result<void> checkCallable(const PatternStatement& statement) {
    const std::string& name = statement.ops[0];
    if (statement.method || findOp(name)) return {};
    const bool isPacket =
        std::any_of(allOps().begin(), allOps().end(), [&](const Op* op) { return op->packet() == name; });
    if (isPacket) return invalidInput("'" + name + "' has overloads; name one, as in " + name + ".default");
    if (!mayBeFunction(name)) return invalidInput("no operator '" + name + "'");
    return {};
}

/// Every name that the replacement reads must be bound, every op must have a row.
Result<void> checkReplacement(const PatternText& text, const Pattern& pattern) {
    std::vector<std::string_view> known;
    std::optional<Error> error;
    const auto check = [&](const PatternItem& item, auto&& self) -> void {
        using Kind = PatternItem::Kind;
        if (item.kind == Kind::Any) error = invalidInput("'_' is not allowed in 'replace'");
        const bool named = item.kind == Kind::Name || item.kind == Kind::Attribute || item.kind == Kind::Star;
        if (named && pattern.slotOf(item.name) < 0 && std::find(known.begin(), known.end(), item.name) == known.end())
            error = invalidInput("'" + item.name + "' is not bound by 'find'");
        for (const PatternItem& one : item.items) self(one, self);
    };
    for (const PatternStatement& statement : text.statements) {
        if (statement.ops.size() != 1) return invalidInput("a choice of operators cannot be built");
        if (statement.rest) return invalidInput("'...' is not allowed in 'replace'");
        if (statement.shared || statement.readers || statement.each != PatternStatement::Each::No)
            return invalidInput("marks ('shared', 'each' ...) are allowed in 'find' only");
        CT_TRY_VOID(checkCallable(statement));
        for (const PatternItem& item : statement.positional) check(item, check);
        for (const auto& [key, item] : statement.keywords) check(item, check);
        known.push_back(statement.name);
    }
    for (const PatternItem& item : text.results) check(item, check);
    if (text.results.size() != pattern.results.size())
        return invalidInput("'find' and 'replace' return different numbers of results");
    if (error) return *error;
    return {};
}

Result<CompiledRule> compileRule(const Rule& rule) {
    const auto found = parsePatternText(rule.find);
    if (!found) return inRule(rule, "find", found.error());
    auto pattern = compilePattern(*found);
    if (!pattern) return inRule(rule, "find", pattern.error());
    if (rule.replace.empty() == (rule.build == nullptr))
        return inRule(rule, "replace", invalidInput("give a text or a function, one of the two"));
    PatternText made;
    if (!rule.replace.empty()) {
        auto text = parsePatternText(rule.replace);
        if (!text) return inRule(rule, "replace", text.error());
        if (auto checked = checkReplacement(*text, *pattern); !checked) return inRule(rule, "replace", checked.error());
        made = std::move(*text);
    }
    return CompiledRule(rule, std::move(*pattern), std::move(made));
}

}  // namespace

Result<RuleSet> RuleSet::compile(std::span<const Rule> rules) {
    RuleSet set = compileWorking(rules);
    if (!set.m_data->broken.empty()) return set.m_data->broken.front();
    return set;
}

RuleSet RuleSet::compileWorking(std::span<const Rule> rules) {
    RuleSet set;
    Data& data = *set.m_data;
    std::map<std::string, std::vector<const Rule*>> patterns;
    std::set<std::string_view> names;
    for (const Rule& rule : rules) {
        if (!names.insert(rule.name).second) {
            data.broken.push_back(inRule(rule, "name", invalidInput("two rules have this name")));
            continue;
        }
        auto compiled = compileRule(rule);
        if (!compiled) {
            data.broken.push_back(compiled.error());
            continue;
        }
        auto& alike = patterns[compiled->pattern.normalized()];
        const auto earlier = std::find_if(alike.begin(), alike.end(), [&](const Rule* other) {
            return other->unless == rule.unless && other->context == rule.context;
        });
        if (earlier != alike.end()) {
            data.broken.push_back(inRule(
                rule, "find",
                invalidInput("rule " + std::string((*earlier)->name) + " has the same pattern and comes first")));
            continue;
        }
        alike.push_back(&rule);
        const auto position = static_cast<uint32_t>(data.rules.size());
        const Pattern& pattern = compiled->pattern;
        const PatternCall& root =
            pattern.calls[static_cast<size_t>(pattern.callOfSlot[static_cast<size_t>(pattern.results[0])])];
        for (const PatternCall::Form& form : root.forms) data.byRoot[form.op].push_back(position);
        data.rules.push_back(std::move(*compiled));
    }
    return set;
}

const RuleSet& compiledRules(std::span<const Rule> table) {
    static std::mutex mutex;
    static std::map<const Rule*, RuleSet> cache;
    const std::lock_guard lock(mutex);
    auto found = cache.find(table.data());
    if (found == cache.end()) {
        found = cache.emplace(table.data(), RuleSet::compileWorking(table)).first;
    }
    return found->second;
}

std::vector<Rule> joinRules(std::initializer_list<std::span<const Rule>> tables) {
    std::vector<Rule> out;
    for (const std::span<const Rule> table : tables) out.insert(out.end(), table.begin(), table.end());
    return out;
}

}  // namespace cutaway
