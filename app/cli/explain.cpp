// explain: the rules of the pipeline, and why one does or does not apply at a node.
#include <algorithm>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/explain_values.h"
#include "app/cli/json.h"
#include "cutaway/node_names.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct ExplainArguments {
    std::string path, rule, node, step, json;
    bool values = false;
    CompileArguments compile;
};

bool isNamed(const std::string& wanted, const std::string& pass, const std::string& rule) {
    return wanted == rule || wanted == pass + "/" + rule;
}

/// Refuses a rule that no pass of the pipeline and none of the user's own has.
Result<void> checkRule(const Compiled& compiled, const std::string& wanted, const CompileRequest& options) {
    CT_TRY(const std::vector<RuleInfo> rules, ruleList(options));
    std::vector<std::string_view> names;
    for (const RuleInfo& rule : rules) {
        if (isNamed(wanted, rule.pass, rule.name)) return {};
        names.push_back(rule.name);
    }
    // Passes whose rewrites belong together count them under one name, which is not in the list of rules.
    for (const StepInfo& step : compiled.steps) {
        CT_TRY(const std::vector<RuleUse> uses, compiled.session.ruleUses(compiled.run, step.index));
        for (const RuleUse& use : uses)
            if (isNamed(wanted, step.name, use.rule)) return {};
    }
    Error error{ErrorCode::NotFound, "no rule named '" + wanted + "'", {}, {"`cutaway-cli rules` lists them"}};
    if (std::string near = suggestion(wanted, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

/// What the code of a pass did under the rule's name: it finds nodes by itself, so nobody counts what it tried.
/// Returned is how many rewrites there are.
Result<size_t> printRewrites(Compiled& compiled, const std::string& rule, int only) {
    size_t count = 0;
    for (const StepInfo& step : compiled.steps) {
        if ((only >= 0 && step.index != only) || step.rewrites == 0) continue;
        CT_TRY(const std::vector<RewriteInfo> rewrites, compiled.session.rewrites(compiled.run, step.index));
        for (const RewriteInfo& rewrite : rewrites) {
            if (!isNamed(rule, step.name, rewrite.rule)) continue;
            if (count++ == 0) std::cout << "asked for each node (--node NAME); in this run it did:\n";
            std::cout << "  " << step.name << " at " << rewrite.node << ": " << rewrite.why << "\n";
        }
    }
    return count;
}

/// What every rule tried and did in the run.
Result<int> printUses(Compiled& compiled, const ExplainArguments& arguments) {
    CT_TRY(const CompileRequest options, arguments.compile.resolved());
    if (!arguments.rule.empty()) CT_TRY_VOID(checkRule(compiled, arguments.rule, options));
    int only = -1;
    if (!arguments.step.empty()) {
        CT_TRY(const StepPosition found, findStep(compiled.steps, arguments.step));
        only = found.index;
    }
    Json rows = Json::array();
    for (const StepInfo& step : compiled.steps) {
        if (only >= 0 && step.index != only) continue;
        CT_TRY(const std::vector<RuleUse> uses, compiled.session.ruleUses(compiled.run, step.index));
        for (const RuleUse& use : uses) {
            if (!arguments.rule.empty() && !isNamed(arguments.rule, step.name, use.rule)) continue;
            rows.push_back({{"step", step.name},
                            {"rule", use.rule},
                            {"tried", use.tried},
                            {"applied", use.applied},
                            {"counted", use.counted},
                            {"ms", use.milliseconds}});
            if (arguments.json.empty())
                print("%-28s %-44s %6lld tried %5lld counted %5lld applied %9.3f ms\n", step.name.c_str(),
                      use.rule.c_str(), static_cast<long long>(use.tried), static_cast<long long>(use.counted),
                      static_cast<long long>(use.applied), use.milliseconds);
        }
    }
    if (!arguments.json.empty()) return writeText(arguments.json, dump(rows));
    size_t done = 0;
    if (rows.empty() && !arguments.rule.empty()) {
        CT_TRY(done, printRewrites(compiled, arguments.rule, only));
    }
    if (rows.empty() && done == 0)
        std::cout << "no rule was tried" << (arguments.step.empty() ? "" : " in step " + arguments.step) << "\n";
    return 0;
}

/// The place before the step that the user named, or before the one that applies the rule.
Result<Place> placeOf(const Compiled& compiled, const ExplainArguments& arguments) {
    std::string step = arguments.step;
    if (step.empty() && !arguments.rule.empty()) {
        CT_TRY(const CompileRequest options, arguments.compile.resolved());
        CT_TRY(const auto rules, ruleList(options));
        for (const RuleInfo& rule : rules)
            if (step.empty() && (rule.name == arguments.rule || rule.pass + "/" + rule.name == arguments.rule))
                step = rule.pass;
        // Passes whose rewrites belong together are explained, too, but are not rules that can be switched off.
        for (const StepInfo& one : compiled.steps)
            if (step.empty() && one.name == arguments.rule.substr(0, arguments.rule.find('/'))) step = one.name;
        if (step.empty()) {
            CT_TRY_VOID(checkRule(compiled, arguments.rule, options));
            return Place{compiled.run, -1, -1};
        }
    }
    const auto isStep = [&](const StepInfo& each) { return each.name == step; };
    if (arguments.step.empty() && std::none_of(compiled.steps.begin(), compiled.steps.end(), isStep))
        return Error{ErrorCode::NotFound,
                     "the pass '" + step + "' of this rule is not part of the run",
                     arguments.rule,
                     {"an optional pass is switched on by --enable " + step + ", others by --device, --mode or --only",
                      "--step NAME asks what the rule would do on the graph before that step"}};
    CT_TRY(const StepPosition found, findStep(compiled.steps, step));
    return Place{compiled.run, found.index, found.rewrites.value_or(0)};
}

/// The node's name as --node takes it, with the body that it is in.
std::string nameOf(Compiled& compiled, const Place& place, NodeKey id) {
    const auto name = nodeName(compiled.session, place, id);
    return name ? *name : std::to_string(packed(id));
}

/// What is known of one node at one place.
struct Explained {
    Place place;
    NodeKey node = NodeKey::None;
    std::vector<RuleExplanation> rules;
};

/// Every rule of every step that finds the node, each on the graph before its step.
Result<std::vector<Explained>> explainEverywhere(Compiled& compiled, const std::string& name) {
    std::vector<Explained> out;
    std::optional<Error> missing;
    for (const StepInfo& step : compiled.steps) {
        const Place place{compiled.run, step.index, 0};
        const auto node = findNode(compiled.session, place, name);
        if (!node) {
            if (!missing) missing = node.error();
            continue;
        }
        CT_TRY(auto rules, compiled.session.explainAll(place, *node, step.name));
        out.push_back({place, *node, std::move(rules)});
    }
    if (out.empty() && missing) return std::move(*missing);
    return out;
}
Result<std::vector<Explained>> explanations(Compiled& compiled, const ExplainArguments& arguments) {
    if (arguments.rule.empty() && arguments.step.empty()) return explainEverywhere(compiled, arguments.node);
    CT_TRY(const Place place, placeOf(compiled, arguments));
    CT_TRY(const NodeKey node, findNode(compiled.session, place, arguments.node));
    Explained one{place, node, {}};
    if (arguments.rule.empty()) {
        CT_TRY(one.rules, compiled.session.explainAll(place, node));
    } else {
        CT_TRY(RuleExplanation rule, compiled.session.explain(place, arguments.rule, node));
        one.rules.push_back(std::move(rule));
    }
    return std::vector{std::move(one)};
}

Result<int> runExplain(const ExplainArguments& arguments) {
    CT_TRY(Compiled compiled, openAndCompile(arguments.path, arguments.compile));
    if (arguments.node.empty()) return printUses(compiled, arguments);
    if (arguments.values) return explainValues(compiled, arguments.node, arguments.step, arguments.json);
    CT_TRY(const std::vector<Explained> found, explanations(compiled, arguments));
    Json rows = Json::array();
    std::string where = arguments.node;
    for (const Explained& at : found) {
        where = nameOf(compiled, at.place, at.node);
        for (const RuleExplanation& one : at.rules) {
            Json nodes = Json::array();
            std::string names;
            for (const NodeKey id : one.nodes) {
                const std::string name = nameOf(compiled, at.place, id);
                names += (names.empty() ? "" : ", ") + name;
                nodes.push_back(name);
            }
            rows.push_back({{"pass", one.pass},
                            {"rule", one.rule},
                            {"node", where},
                            {"applies", one.applies},
                            {"reason", one.reason},
                            {"nodes", nodes}});
            if (arguments.json.empty())
                std::cout << one.pass << "/" << one.rule << " at " << where << ": "
                          << (one.applies ? "applies to " + names : one.reason) << "\n";
        }
    }
    if (!arguments.json.empty()) return writeText(arguments.json, dump(rows));
    if (rows.empty()) std::cout << "no rule starts at " << where << "\n";
    return 0;
}

void addExplainOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<ExplainArguments>();
    addModel(command, arguments->path)->required();
    auto* rule = command
                     .add_option("--rule", arguments->rule,
                                 "Name, or pass/name; without it every rule that may start at the node")
                     ->type_name("RULE");
    auto* node =
        command
            .add_option(
                "--node", arguments->node,
                "Name of the node where matching starts, the last call of what the rule finds; body/name inside a "
                "body of cond or its kin")
            ->type_name("NODE");
    command
        .add_option("--step", arguments->step,
                    "Look at the graph before this step (default: the rule's own); without --node, at this step alone")
        ->type_name("STEP");
    command
        .add_flag(
            "--values", arguments->values,
            "Of a constant: what it was made from, and its numbers beside those of what it was made from (without "
            "--step: after all steps)")
        ->needs(node)
        ->excludes(rule);
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] { context.status = statusOf(runExplain(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> explainReports() {
    const Json answer{{"pass", "string: name"},
                      {"rule", "string: name"},
                      {"node", "string: where matching starts"},
                      {"applies", "boolean: whether the rule does"},
                      {"reason", "string: why it does not; else empty"},
                      {"nodes", Json::array({"string: what it would replace, or what the reason is about"})}};
    const Json use{{"step", "string: name"},
                   {"rule", "string: name"},
                   {"tried", "integer: nodes at which matching started"},
                   {"applied", "integer: rewrites"},
                   {"counted", "integer: what PyTorch's counters count"},
                   {"ms", "number: of the processor's time"}};
    return {
        {"--json", Json::array({use})}, {"--json --node", Json::array({answer})}, {"--json --values", shapeOfValues()}};
}

}  // namespace

extern const Command explainCommand{
    .name = "explain",
    .summary = "Why a rule does or does not apply at a node; without --node, what every rule tried and did",
    .add = addExplainOptions,
    .reports = explainReports};

}  // namespace cutaway::cli
