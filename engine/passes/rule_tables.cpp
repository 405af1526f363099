// What passes rewrite, as their rows say it.
#include "engine/passes/rule_tables.h"

#include <algorithm>
#include <set>

#include "engine/passes/pipeline.h"

namespace cutaway {
namespace {

/// The node as CodeRewrite::starts names it; empty if it cannot be named there.
std::string nameOf(const Node& node) {
    if (node.isPlaceholder()) return "placeholder";
    if (node.isOutput()) return "output";
    if (node.kind() == NodeKind::GetAttr) return "get_attr";
    if (!node.isCall()) return {};
    return node.op().style() == Op::Style::Method ? "Tensor." + node.op().name() : node.op().name();
}

CodeRule ruleOf(const Pass& pass, const CodeRewrite& rewrite) { return {rewrite, pass.name, false}; }

/// What the row says, or one rewrite that has the name of the pass.
void addRulesOf(const Pass& pass, std::vector<CodeRule>& out) {
    const size_t before = out.size();
    for (const CodeRewrite& rewrite : pass.rewrites) out.push_back(ruleOf(pass, rewrite));
    if (pass.operatorRewrites)
        for (const CodeRewrite& rewrite : pass.operatorRewrites(pass)) out.push_back(ruleOf(pass, rewrite));
    if (out.size() == before && !pass.rules && !pass.compare && pass.undivided.empty())
        out.push_back(ruleOf(pass, {pass.name, pass.summary, pass.starts}));
}

/// Each pass once, however often it has a row.
template <class Use>
void forEachPass(Use&& use) {
    std::set<std::string_view> seen;
    for (const StagePass& one : pipeline())
        if (seen.insert(one.pass->name).second) use(*one.pass);
}

}  // namespace

const std::vector<RuleTable>& ruleTables() {
    static const std::vector<RuleTable> all = [] {
        std::vector<RuleTable> out;
        forEachPass([&](const Pass& pass) {
            if (pass.rules) out.push_back({pass.name, pass.rules()});
        });
        return out;
    }();
    return all;
}

const std::vector<CodeRule>& codeRules() {
    static const std::vector<CodeRule> all = [] {
        std::vector<CodeRule> out;
        forEachPass([&](const Pass& pass) { addRulesOf(pass, out); });
        return out;
    }();
    return all;
}

const std::vector<CodeRule>& undividedRules() {
    static const std::vector<CodeRule> all = [] {
        std::vector<CodeRule> out;
        forEachPass([&](const Pass& pass) {
            if (!pass.undivided.empty())
                out.push_back({CodeRewrite{pass.name, pass.undivided, pass.starts}, pass.name, true});
        });
        return out;
    }();
    return all;
}

std::vector<std::string> startsOf(const CodeRule& rule) {
    std::vector<std::string> names;
    for (std::string_view rest = rule.starts; !rest.empty();) {
        const size_t comma = rest.find(", ");
        names.emplace_back(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    }
    return names;
}

bool startsAt(const CodeRule& rule, const Node& node) {
    const std::vector<std::string> names = startsOf(rule);
    const std::string name = nameOf(node);
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& each) {
               if (each == "call") return node.isCall();
               return each.ends_with('*') ? name.starts_with(std::string_view(each).substr(0, each.size() - 1))
                                          : name == each;
           });
}

std::vector<Refusal>::const_iterator refusalOf(const std::vector<Refusal>& said, const CodeRule& rule) {
    const auto of = [&](std::string_view name) {
        return std::find_if(said.begin(), said.end(), [&](const Refusal& one) { return one.rule == name; });
    };
    const auto own = of(rule.name);
    return own == said.end() ? of(rule.pass) : own;
}

}  // namespace cutaway
