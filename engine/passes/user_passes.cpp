#include "engine/passes/user_passes.h"

#include <algorithm>

#include "engine/rewrite/pattern.h"

namespace cutaway {
namespace {

constexpr UserPlace kPlaces[] = {
    {"pre_grad_custom_pass", "pre_grad", false, "apply_gumbel_max_trick_pass", false},
    {"joint_custom_pre_pass", "joint", true, "remove_noop_ops", true},
    {"joint_custom_post_pass", "joint", false, "replace_random_passes", true},
    {"post_grad_custom_pre_pass", "post_grad", true, "remove_profiler_ops", true},
    {"post_grad_custom_post_pass", "post_grad", true, "stable_sort", true},
};
constexpr std::string_view kUsualPlace = "joint_custom_pre_pass";

Result<const UserPlace*> findPlace(std::string_view name) {
    std::string names;
    for (const UserPlace& place : kPlaces) {
        if (place.name == (name.empty() ? kUsualPlace : name)) return &place;
        names += (names.empty() ? "" : ", ") + std::string(place.name);
    }
    return Error{ErrorCode::InvalidInput, "no place named '" + std::string(name) + "'", {}, {"there are: " + names}};
}

/// Python's calls are gone where graphs are functional, so a rule that names them would never match there.
Result<void> checkCalls(const Rule& rule, const UserPlace& place) {
    if (!place.functional) return {};
    for (const std::string_view text : {rule.find, rule.replace}) {
        const auto read = parsePatternText(text);
        if (!read) continue;  // said by whoever compiles the rule
        for (const PatternStatement& statement : read->statements)
            for (const std::string& name : statement.ops)
                if (statement.method ||
                    (!findOp(name) &&
                     (name.starts_with("torch.") || name.starts_with("operator.") || name.starts_with("builtins."))))
                    return Error{
                        ErrorCode::InvalidInput,
                        "'" + name + "' is called as in Python, and such calls stand in graphs before capture only",
                        {},
                        {"write 'place pre_grad_custom_pass', or name the ATen operator"}};
    }
    return {};
}

Values buildByExample(const Match& match, GraphBuilder& builder) {
    return replaceByExample(match, builder, match.rule().example);
}

/// Subgraphs first, as the pipeline's own tables do.
Result<bool> applyToAll(Module& module, Rewriter& rewriter, const RuleSet& rules) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, applyToAll(*body, rewriter, rules));
        changed |= inner;
    }
    CT_TRY(const bool outer, rewriter.applyRules(module.graph(), rules));
    return changed || outer;
}

Error inFile(const std::string& file, Error error) {
    error.where = file + (error.where.empty() ? "" : ", " + error.where);
    return error;
}

}  // namespace

std::span<const UserPlace> userPlaces() { return kPlaces; }

UserPasses::Entry& UserPasses::entryFor(const UserPlace& place, const std::string& file) {
    const std::string name = std::string(place.name) + "." + file;
    for (Entry& entry : m_entries)
        if (entry.name == name) return entry;
    return m_entries.emplace_back(Entry{&place, name, "Applies the rules of " + file, {}, {}, {}, {}});
}

Result<void> UserPasses::addRule(const Rule& rule, const std::string& file) {
    CT_TRY(const UserPlace* place, findPlace(rule.place));
    std::vector<Rule>& rules = entryFor(*place, file).rules;
    if (rule.search.empty()) {
        CT_TRY_VOID(checkCalls(rule, *place));
        rules.push_back(rule);
        if (!rule.example.empty()) rules.back().build = buildByExample;
        return {};
    }
    TracedRule formula;
    formula.name = rule.name;
    formula.parameters = rule.parameters;
    formula.search = rule.search;
    formula.replace = rule.example;
    formula.why = rule.why;
    CT_TRY(TracedRules traced, traceUserRule(formula, rule.training));
    for (const Rule& one : m_traced.emplace_back(std::move(traced)).rules) {
        rules.push_back(one);
        rules.back().changesType = rule.changesType;
    }
    return {};
}

Result<void> UserPasses::addRules(const UserRules& file) {
    std::vector<Rule> builtIn;
    if (file.text.find("(code)") != std::string::npos)
        for (const RuleTable& table : ruleTables())
            builtIn.insert(builtIn.end(), table.rules.begin(), table.rules.end());
    auto loaded = loadRules(file.text, builtIn);
    if (!loaded) return inFile(file.name, loaded.error());
    for (const Rule& rule : m_loaded.emplace_back(std::move(*loaded)).rules)
        if (auto added = addRule(rule, file.name); !added) {
            Error error = added.error();
            error.where = "rule " + std::string(rule.name) + (error.where.empty() ? "" : ", " + error.where);
            return inFile(file.name, std::move(error));
        }
    return {};
}

Result<void> UserPasses::addFunction(const UserPass& function) {
    CT_TRY(const UserPlace* place, findPlace(function.place));
    if (!function.run) return invalidInput("the pass has no function", function.name);
    Entry& entry = m_entries.emplace_back(
        Entry{place, std::string(place->name) + "." + function.name, function.summary, {}, {}, function.run, {}});
    if (entry.summary.empty()) entry.summary = "A pass of the user's own";
    return {};
}

Result<void> UserPasses::finish() {
    for (const Entry& entry : m_entries)
        if (const auto alone = RuleSet::compile(entry.rules); !alone) return inFile(entry.name, alone.error());
    // Files are compared with each other, too.
    for (const UserPlace& place : kPlaces) {
        std::vector<Rule> together;
        for (const Entry& entry : m_entries)
            if (entry.place == &place) together.insert(together.end(), entry.rules.begin(), entry.rules.end());
        CT_TRY_VOID(RuleSet::compile(together));
    }
    for (Entry& entry : m_entries) {
        if (!entry.run) {
            CT_TRY(RuleSet set, RuleSet::compile(entry.rules));
            const RuleSet* rules = &entry.set.emplace_back(std::move(set));
            entry.run = [rules](Module& module, Rewriter& rewriter) { return applyToAll(module, rewriter, *rules); };
        }
        entry.pass.stage = entry.place->stage;
        entry.pass.name = entry.name;
        entry.pass.summary = entry.summary;
        entry.pass.functional = entry.place->functional;
        entry.pass.own = &entry.run;
    }
    return {};
}

Result<std::shared_ptr<const UserPasses>> UserPasses::make(const CompileOptions& options) {
    auto out = std::make_shared<UserPasses>();
    for (const UserRules& file : options.userRules) CT_TRY_VOID(out->addRules(file));
    for (const UserPass& function : options.userPasses) CT_TRY_VOID(out->addFunction(function));
    CT_TRY_VOID(out->finish());
    return std::shared_ptr<const UserPasses>(std::move(out));
}

std::vector<const Pass*> UserPasses::at(const UserPlace& place) const {
    std::vector<const Pass*> passes;
    for (const Entry& entry : m_entries)
        if (entry.place->name == place.name) passes.push_back(&entry.pass);
    return passes;
}

void UserPasses::insertInto(std::vector<const Pass*>& plan) const {
    for (const UserPlace& place : kPlaces) {
        const auto anchor =
            std::find_if(plan.begin(), plan.end(), [&](const Pass* pass) { return pass->name == place.anchor; });
        if (anchor == plan.end()) continue;
        const std::vector<const Pass*> passes = at(place);
        plan.insert(place.before ? anchor : anchor + 1, passes.begin(), passes.end());
    }
}

std::vector<RuleTable> UserPasses::tables() const {
    std::vector<RuleTable> tables;
    for (const Entry& entry : m_entries)
        if (!entry.rules.empty()) tables.push_back({entry.name, entry.rules});
    return tables;
}

std::string UserPasses::text() const {
    std::string out;
    for (const LoadedRules& file : m_loaded) {
        if (!out.empty()) out += '\n';
        out += printRules(file.rules);
    }
    return out;
}

Result<std::shared_ptr<const UserPasses>> loadUserRule(const std::string& text) {
    CompileOptions options;
    options.userRules.push_back({"the rule's text", text});
    return UserPasses::make(options);
}

}  // namespace cutaway
