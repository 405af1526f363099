// The rules of the pipeline, and why one does or does not apply at a node.
#include "cutaway/guarded.h"
#include "engine/ir/fingerprint.h"
#include "engine/passes/pass_runner.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/user_passes.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"
#include "engine/session/session_state.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

/// What the run was asked for, and lent.
struct RunContext {
    CompileRequest request;
    CompileHooks hooks;
    Snapshot forward = nullptr;  // of a training run, as its passes left it
    PassContext context() const { return {request, &hooks}; }
};

/// The ops at which a rule's matching starts, in the order in which the pattern names them.
std::vector<const Op*> startingOps(const Rule& rule) {
    std::vector<const Op*> ops;
    const auto set = RuleSet::compile({&rule, 1});
    if (!set) return ops;
    const Pattern& pattern = set->at(0).pattern;
    for (const PatternCall::Form& form :
         pattern.calls[static_cast<size_t>(pattern.callOfSlot[static_cast<size_t>(pattern.results[0])])].forms)
        if (ops.empty() || ops.back() != form.op) ops.push_back(form.op);  // a function's overloads are one
    return ops;
}

/// A rule that is switched off does not apply, whatever it finds.
void noteDisabled(RuleExplanation& explanation, const RunContext& run) {
    const auto& off = run.request.disabledPasses;
    const std::string &pass = explanation.pass, &rule = explanation.rule;
    for (const std::string& name : {pass, rule, pass + "/" + rule}) {
        if (std::find(off.begin(), off.end(), name) == off.end()) continue;
        std::string reason = name == pass ? "the pass" : "the rule";
        reason += " is switched off (--disable " + name + ")";
        reason += explanation.applies ? "; else it would apply" : "; besides, " + explanation.reason;
        explanation.reason = std::move(reason);
        explanation.applies = false;
        return;
    }
}

Error noNode() {
    return Error{ErrorCode::NotFound, "the node does not exist at this step", {}, {"its history says where it went"}};
}

/// Matches on a copy, because only the attempt shows whether the rule's function has something to build.
Result<RuleExplanation> explainOn(const Module& module, const RunContext& run, std::string_view pass, const Rule& rule,
                                  NodeKey key) {
    const PassContext context = withSizeHints(run.context(), module);
    Module copy(module);
    const auto [graph, path, inside] = findGraph(copy, key);
    Node* node = graph ? graph->graph().find(inside) : nullptr;
    if (node == nullptr) return noNode();
    RuleExplanation out;
    out.pass = std::string(pass);
    out.rule = std::string(rule.name);
    out.node = key;
    Explanation found = explainRule(rule, *node, context);
    if (found.matched) {
        CT_TRY(found.reason, applyRuleAt(rule, *node, context));
    }
    out.applies = found.reason.empty();
    out.reason = std::move(found.reason);
    for (const NodeId each : found.nodes) out.nodes.push_back(keyIn(path, each));
    noteDisabled(out, run);
    return out;
}

/// What is said of nodes that a rule cannot start at.
std::string wrongStart(const CodeRule& rule, const Node& node) {
    constexpr size_t kNamed = 4;
    constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"placeholder", "an input"},
                                                                        {"get_attr", "a tensor of the module"},
                                                                        {"call", "a call"},
                                                                        {"output", "the output"}};
    const std::vector<std::string> all = startsOf(rule);
    std::string names;
    for (size_t i = 0; i < all.size() && i < kNamed; ++i) {
        std::string name = all[i];
        for (const auto& [kind, words] : kKinds)
            if (name == kind) name = words;
        if (name.ends_with('*')) name.pop_back();
        if (name.ends_with('.')) name.pop_back();
        names += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + name;
    }
    return "the rule starts at " + names + (all.size() > kNamed ? " or alike" : "") + "; `" + node.name() + "` is " +
           kindText(node);
}

/// A run of a pass that watches a node, because only running a function shows what it does.
struct Attempt {
    Step step;
    WatchedNode watched;
};
Attempt attempt(const Snapshot& module, std::string_view name, const RunContext& run, WatchedNode watched,
                const CancelToken* cancel) {
    CompileRequest request = run.request;
    request.disabledPasses.clear();
    const auto& passes = pipeline();
    const auto found =
        std::find_if(passes.begin(), passes.end(), [&](const StagePass& one) { return one.pass->name == name; });
    Step step = runPass(*found->pass, module, PassContext(request, &run.hooks), {}, cancel, nullptr, &watched,
                        found->pass->follow ? run.forward : nullptr);
    return {std::move(step), std::move(watched)};
}

/// What a pass said of a node that it left alone.
void addRefusal(RuleExplanation& out, const CodeRule& rule, const Node& node, const Attempt& made) {
    std::string elsewhere;
    int others = 0;
    for (const RewriteInfo& rewrite : made.step.rewrites)
        if ((rule.whole || rewrite.rule == rule.name) && ++others <= 3)
            elsewhere += (elsewhere.empty() ? "`" : ", `") + (rewrite.body.empty() ? "" : rewrite.body + "/") +
                         rewrite.node + "`";
    const auto refused = refusalOf(made.watched.refusals, rule);
    if (refused != made.watched.refusals.end()) {
        out.reason = refused->why;
        if (refused->because != NodeId::None) out.nodes = {keyIn(made.watched.body, refused->because)};
    } else if (const Module* body = made.step.after->body(made.watched.body);
               !elsewhere.empty() && body && !body->graph().find(made.watched.node)) {
        out.reason = "it goes with what is rewritten at " + elsewhere +
                     (others > 3 ? " or one of " + std::to_string(others - 3) + " more" : "");
    } else {
        out.reason = "the pass leaves `" + node.name() + "` alone; it applies " +
                     (elsewhere.empty()
                          ? "nowhere in this graph"
                          : "at " + elsewhere + (others > 3 ? " and " + std::to_string(others - 3) + " more" : ""));
    }
}

RuleExplanation verdict(const CodeRule& rule, const Node& node, const Attempt& made, const RunContext& run) {
    RuleExplanation out;
    out.pass = std::string(rule.pass);
    out.rule = std::string(rule.name);
    out.node = keyIn(made.watched.body, made.watched.node);
    for (const RewriteInfo& rewrite : made.step.rewrites) {
        if (rewrite.nodeId != made.watched.node || rewrite.body != made.watched.body) continue;
        if (rule.whole || rewrite.rule == rule.name) out.applies = true;
        else out.reason = "the rule `" + rewrite.rule + "` rewrites it before";
    }
    if (out.applies) {
        out.reason.clear();
        out.nodes = {out.node};
    } else if (made.step.info.state == StepState::Failed) {
        out.reason = "the pass fails on this graph: " + made.step.info.error;
    } else if (out.reason.empty()) {
        addRefusal(out, rule, node, made);
    }
    noteDisabled(out, run);
    return out;
}

/// One rule of a pass that is written as a function.
Result<RuleExplanation> explainCode(const Snapshot& module, const RunContext& run, const CodeRule& rule, NodeKey key,
                                    const CancelToken* cancel) {
    const auto [graph, path, inside] = findGraph(*module, key);
    const Node* node = graph ? graph->graph().find(inside) : nullptr;
    if (node == nullptr) return noNode();
    WatchedNode watched{path, inside, {}};
    if (startsAt(rule, *node))
        return verdict(rule, *node, attempt(module, rule.pass, run, std::move(watched), cancel), run);
    RuleExplanation out;
    out.pass = std::string(rule.pass);
    out.rule = std::string(rule.name);
    out.node = key;
    out.nodes = {key};
    out.reason = wrongStart(rule, *node);
    noteDisabled(out, run);
    return out;
}

/// The rules of a pass that may start at the node, if it is written as a function; the pass runs once.
std::vector<RuleExplanation> explainCodeOf(const Snapshot& module, const RunContext& run, std::string_view pass,
                                           const Node& node, const std::string& path, const CancelToken* cancel) {
    std::vector<RuleExplanation> out;
    std::optional<Attempt> made;
    for (const CodeRule& rule : codeRules()) {
        if (rule.pass != pass || !startsAt(rule, node)) continue;
        if (!made) made = attempt(module, pass, run, {path, node.id(), {}}, cancel);
        out.push_back(verdict(rule, node, *made, run));
    }
    return out;
}

/// The pipeline's tables and those of the run's own rules. Borrows from `own`.
std::vector<RuleTable> tablesWith(const UserPasses* passes) {
    std::vector<RuleTable> tables = ruleTables();
    if (passes) {
        const auto more = passes->tables();
        tables.insert(tables.end(), more.begin(), more.end());
    }
    return tables;
}
std::shared_ptr<const UserPasses> ownAt(const Session::State& state, const Place& place) {
    const auto run =
        place.step < 0 && state.runCount() == 0 ? Result<const Session::State::Run*>(nullptr) : state.run(place.run);
    return run && *run ? (*run)->trace.own : nullptr;
}

Result<RunContext> askedAt(const Session::State& state, const Place& place) {
    if (place.step < 0 && state.runCount() == 0) return RunContext{};
    CT_TRY(const Session::State::Run* run, state.run(place.run));
    return RunContext{run->trace.request, run->trace.hooks, run->trace.resultOf("forward")};
}

/// The pass that runs on the graph at `place` next, or is running on it; empty behind the last step.
std::string passBehind(const Session::State& state, const Place& place) {
    const auto run = state.runCount() == 0 ? Result<const Session::State::Run*>(nullptr) : state.run(place.run);
    if (!run || !*run) return {};
    const auto& steps = (*run)->trace.steps;
    const int step = place.rewrites >= 0 ? place.step : place.step + 1;
    return step >= 0 && static_cast<size_t>(step) < steps.size() ? steps[static_cast<size_t>(step)].info.name
                                                                 : std::string();
}

struct NamedRule {
    std::string_view pass;
    const Rule* rule = nullptr;
    const CodeRule* code = nullptr;  // in place of `rule`
};
Result<NamedRule> findRule(const std::vector<RuleTable>& tables, const std::string& name) {
    const size_t slash = name.find('/');
    const std::string_view wanted =
        slash == std::string::npos ? std::string_view(name) : std::string_view(name).substr(slash + 1);
    const auto isPass = [&](std::string_view pass) {
        return slash == std::string::npos || pass == std::string_view(name).substr(0, slash);
    };
    std::vector<std::string_view> names;
    for (const RuleTable& table : tables)
        for (const Rule& rule : table.rules) {
            if (isPass(table.pass) && rule.name == wanted) return NamedRule{table.pass, &rule};
            names.push_back(rule.name);
        }
    for (const CodeRule& rule : codeRules()) {
        if (isPass(rule.pass) && rule.name == wanted) return NamedRule{rule.pass, nullptr, &rule};
        names.push_back(rule.name);
    }
    for (const CodeRule& rule : undividedRules())
        if (isPass(rule.pass) && rule.name == wanted) return NamedRule{rule.pass, nullptr, &rule};
    Error error{ErrorCode::NotFound, "no rule named '" + name + "'", {}, {"`cutaway-cli rules` lists them"}};
    if (std::string near = suggestion(wanted, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

RuleInfo infoOf(std::string_view pass, const Rule& rule) {
    RuleInfo info;
    info.pass = std::string(pass);
    info.name = std::string(rule.name);
    info.why = std::string(rule.why);
    info.find = statementLines(rule.find);
    info.replace = rule.build ? "(code)" : statementLines(rule.replace);
    info.condition = rule.unless != nullptr;
    for (const Op* op : startingOps(rule)) info.starts.push_back(op->name());
    return info;
}
RuleInfo infoOf(const CodeRule& rule) {
    RuleInfo info;
    info.pass = std::string(rule.pass);
    info.name = std::string(rule.name);
    info.why = std::string(rule.what);
    info.find = info.replace = "(code)";
    info.condition = true;
    info.starts = startsOf(rule);
    return info;
}

}  // namespace

std::vector<RuleInfo> ruleList() { return *ruleList(CompileRequest{}); }

Result<std::vector<RuleInfo>> ruleList(const CompileRequest& options) {
    return guarded([&]() -> Result<std::vector<RuleInfo>> {
        CT_TRY(const auto own, UserPasses::make(options));
        std::vector<RuleInfo> list;
        const auto tables = tablesWith(own.get());
        for (const std::string_view pass : passNames()) {
            for (const RuleTable& table : tables)
                if (table.pass == pass)
                    for (const Rule& rule : table.rules) list.push_back(infoOf(table.pass, rule));
            for (const CodeRule& rule : codeRules())
                if (rule.pass == pass) list.push_back(infoOf(rule));
        }
        for (const RuleTable& table : own->tables())
            for (const Rule& rule : table.rules) list.push_back(infoOf(table.pass, rule));
        return list;
    });
}

/// Leaves out rules of operators without a row: they never match and would not load.
static std::vector<Rule> workingRules(const RuleTable& table) {
    const RuleSet set = RuleSet::compileWorking(table.rules);
    std::vector<Rule> rules;
    for (size_t i = 0; i < set.size(); ++i) rules.push_back(*set.at(i).rule);
    return rules;
}

Result<std::string> ruleTexts(const CompileRequest& options, const std::string& pass) {
    return guarded([&]() -> Result<std::string> {
        CT_TRY(const auto own, UserPasses::make(options));
        std::string out;
        const auto tables = ruleTables();
        for (const std::string_view one : passNames()) {
            if (!pass.empty() && one != pass) continue;
            std::string rules;
            for (const RuleTable& table : tables)
                if (table.pass == one) rules += printRules(workingRules(table));
            for (const CodeRule& rule : codeRules())
                if (rule.pass == one)
                    rules += "# " + std::string(rule.name) + " (code): " + std::string(rule.what) + "\n";
            if (!rules.empty()) out += (out.empty() ? "# " : "\n# ") + std::string(one) + "\n" + rules;
        }
        if (!options.userRules.empty() && pass.empty()) out += "\n# of the user's own\n" + own->text();
        if (!out.empty()) return out;
        const std::vector<std::string_view> names = passNames();
        Error error{ErrorCode::NotFound,
                    "no pass named '" + pass + "' works by rules",
                    {},
                    {"`cutaway-cli rules --json -` names the pass of every rule"}};
        const bool known = std::find(names.begin(), names.end(), pass) != names.end();
        if (std::string near = suggestion(pass, names); !known && !near.empty())
            error.notes.insert(error.notes.begin(), std::move(near));
        return error;
    });
}

Result<std::vector<RuleUse>> Session::ruleUses(RunId id, int step) const {
    return guarded([&]() -> Result<std::vector<RuleUse>> {
        CT_TRY(const State::Run* found, std::as_const(*m_state).run(id));
        if (step < 0 || step >= static_cast<int>(found->trace.steps.size()))
            return Error{ErrorCode::NotFound, "no step " + std::to_string(step), {}, {}};
        return found->trace.steps[static_cast<size_t>(step)].rules;
    });
}

Result<RuleExplanation> Session::explain(const Place& place, const std::string& name, NodeKey node,
                                         const Progress& progress) {
    return guarded([&]() -> Result<RuleExplanation> {
        CT_TRY(const RunContext run, askedAt(*m_state, place));
        const auto own = ownAt(*m_state, place);
        const auto tables = tablesWith(own.get());
        CT_TRY(const NamedRule rule, findRule(tables, name));
        CT_TRY(const Snapshot module, m_state->snapshot(place, progress.cancel.get()));
        if (rule.code) return explainCode(module, run, *rule.code, node, progress.cancel.get());
        return explainOn(*module, run, rule.pass, *rule.rule, node);
    });
}

Result<std::vector<RuleExplanation>> Session::explainAll(const Place& place, NodeKey key, const std::string& pass,
                                                         const Progress& progress) {
    return guarded([&]() -> Result<std::vector<RuleExplanation>> {
        CT_TRY(const RunContext run, askedAt(*m_state, place));
        CT_TRY(const Snapshot module, m_state->snapshot(place, progress.cancel.get()));
        const auto [graph, path, inside] = findGraph(*module, key);
        const Node* node = graph ? graph->graph().find(inside) : nullptr;
        if (node == nullptr) return noNode();
        // Functions first: a run of their pass each is what they cost, so they are those of the step that `place` is
        // before or in.
        const std::string function = pass.empty() ? passBehind(*m_state, place) : pass;
        std::vector<RuleExplanation> out = explainCodeOf(module, run, function, *node, path, progress.cancel.get());
        const auto own = ownAt(*m_state, place);
        for (const RuleTable& table : tablesWith(own.get())) {
            if (!pass.empty() && table.pass != pass) continue;
            if (!node->isCall()) continue;
            const RuleSet set = RuleSet::compileWorking(table.rules);
            for (const uint32_t position : set.startingAt(node->op())) {
                if (progress.cancelled()) return Error{ErrorCode::Cancelled, "explaining was cancelled", {}, {}};
                CT_TRY(RuleExplanation one, explainOn(*module, run, table.pass, *set.at(position).rule, key));
                out.push_back(std::move(one));
            }
        }
        return out;
    });
}

Result<RuleExplanation> Session::explainText(const Place& place, const std::string& ruleText, NodeKey node,
                                             const Progress& progress) {
    return guarded([&]() -> Result<RuleExplanation> {
        CT_TRY(const RunContext run, askedAt(*m_state, place));
        CT_TRY(const auto loaded, loadUserRule(ruleText));
        const auto tables = loaded->tables();
        const size_t count = tables.empty() ? 0 : tables[0].rules.size();
        if (tables.size() != 1 || count != 1)
            return invalidInput("the text holds " + std::to_string(count) + " rules; give one");
        CT_TRY(const Snapshot module, m_state->snapshot(place, progress.cancel.get()));
        return explainOn(*module, run, {}, tables[0].rules[0], node);
    });
}

}  // namespace cutaway
