#include "engine/passes/user_passes.h"

#include <algorithm>

#include "cutaway/words.h"
#include "engine/ops/operator_definition.h"
#include "engine/passes/defined_operators.h"
#include "engine/passes/pipeline.h"
#include "engine/rewrite/pattern.h"

namespace cutaway {
namespace {

/// The places of all stages, in running order.
const std::vector<const UserPlace*>& places() {
    static const std::vector<const UserPlace*> all = [] {
        std::vector<const UserPlace*> out;
        for (const Stage* stage : stagesOf(compiler()))
            for (const Row& row : stage->rows)
                if (const auto* place = std::get_if<UserPlace>(&row)) out.push_back(place);
        return out;
    }();
    return all;
}
constexpr std::string_view kUsualPlace = "joint_custom_pre_pass";

/// `rules`: for rules, which not every place takes.
Result<const UserPlace*> findPlace(std::string_view name, bool rules) {
    std::string names;
    for (const UserPlace* place : places()) {
        if (rules && !place->rules) continue;
        if (place->name == (name.empty() ? kUsualPlace : name)) return place;
        names += (names.empty() ? "" : ", ") + std::string(place->name);
    }
    return Error{ErrorCode::InvalidInput, "no place named '" + std::string(name) + "'", {}, {"there are: " + names}};
}

/// Functional graphs have no calls of Python functions, so a rule that names some would never match there.
Result<void> checkCalls(const Rule& rule, const UserPlace& place) {
    if (!place.functional) return {};
    for (const std::string_view text : {rule.find, rule.replace}) {
        const auto read = parsePatternText(text);
        if (!read) continue;  // RuleSet::compile reports it
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

UserPasses::Entry& UserPasses::entryFor(const UserPlace& place, const std::string& file) {
    const std::string name = std::string(place.name) + "." + file;
    for (Entry& entry : m_entries)
        if (entry.name == name) return entry;
    return m_entries.emplace_back(Entry{&place, name, "Applies the rules of " + file, {}, {}, {}, {}});
}

Result<void> UserPasses::addRule(const Rule& rule, const std::string& file) {
    CT_TRY(const UserPlace* place, findPlace(rule.place, true));
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

Result<void> UserPasses::addFunction(const PluginPass& wanted, const std::vector<UserPass>& lent) {
    CT_TRY(const UserPlace* place, findPlace(wanted.place, false));
    const auto found = std::find_if(lent.begin(), lent.end(), [&](const UserPass& each) { return each.id == wanted; });
    if (found == lent.end())
        return Error{ErrorCode::NotFound,
                     "the pass '" + visibleText(wanted.name) + "' " + visibleText(wanted.version) + " is not loaded",
                     {},
                     {"load the plugin that has it, in the version that the request names"}};
    if (!found->run) return invalidInput("the pass has no function", wanted.name);
    Entry& entry = m_entries.emplace_back(
        Entry{place, std::string(place->name) + "." + wanted.name, found->summary, {}, {}, found->run, {}});
    if (entry.summary.empty()) entry.summary = "A pass of the user's own";
    return {};
}

Result<void> UserPasses::finish() {
    for (const Entry& entry : m_entries)
        if (const auto alone = RuleSet::compile(entry.rules); !alone) return inFile(entry.name, alone.error());
    // Files are compared with each other, too.
    for (const UserPlace* place : places()) {
        std::vector<Rule> together;
        for (const Entry& entry : m_entries)
            if (entry.place == place) together.insert(together.end(), entry.rules.begin(), entry.rules.end());
        CT_TRY_VOID(RuleSet::compile(together));
    }
    for (Entry& entry : m_entries) {
        if (!entry.run) {
            CT_TRY(RuleSet set, RuleSet::compile(entry.rules));
            const RuleSet* rules = &entry.set.emplace_back(std::move(set));
            entry.run = [rules](Module& module, Rewriter& rewriter) { return applyToAll(module, rewriter, *rules); };
        }
        entry.pass.name = entry.name;
        entry.pass.summary = entry.summary;
        entry.pass.functional = entry.place->functional;
        entry.pass.own = &entry.run;
    }
    return {};
}

Result<std::shared_ptr<const UserPasses>> UserPasses::make(const CompileRequest& request, const CompileHooks& hooks) {
    auto out = std::make_shared<UserPasses>();
    for (const UserRules& file : request.userRules) {
        CT_TRY_VOID(out->addRules(file));
        CT_TRY(const auto operators, operatorsOf(file.text, file.name));
        for (const Op* op : operators) out->m_operators.push_back(definitionOf(*op)->text);
    }
    for (const PluginPass& plugin : request.plugins) CT_TRY_VOID(out->addFunction(plugin, hooks.passes));
    CT_TRY_VOID(out->finish());
    return std::shared_ptr<const UserPasses>(std::move(out));
}

std::vector<const Pass*> UserPasses::at(std::string_view place) const {
    std::vector<const Pass*> out;
    for (const Entry& entry : m_entries)
        if (entry.place->name == place) out.push_back(&entry.pass);
    return out;
}

std::vector<const Pass*> UserPasses::passes() const {
    std::vector<const Pass*> out;
    for (const UserPlace* place : places())
        for (const Pass* pass : at(place->name)) out.push_back(pass);
    return out;
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
    for (const std::string& definition : m_operators) out += (out.empty() ? "" : "\n") + definition;
    return out;
}

Result<std::shared_ptr<const UserPasses>> loadUserRule(const std::string& text) {
    CompileRequest request;
    request.userRules.push_back({"the rule's text", text});
    return UserPasses::make(request);
}

}  // namespace cutaway
