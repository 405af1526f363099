// explain: the rules of the pipeline, and why one does or does not apply at a node.
#include <algorithm>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/node_names.h"

namespace cutaway::cli {
namespace {

struct Arguments {
    std::string path, rule, node, step, json;
    CompileArguments compile;
};

/// What every rule tried and did in the run.
int printUses(Compiled& compiled, const std::string& wanted, const std::string& json) {
    Json rows = Json::array();
    for (const StepInfo& step : compiled.steps) {
        const auto uses = compiled.session.ruleUses(compiled.run, step.index);
        if (!uses) return fail(uses.error());
        for (const RuleUse& use : *uses) {
            if (!wanted.empty() && use.rule != wanted) continue;
            rows.push_back({{"step", step.name}, {"rule", use.rule}, {"tried", use.tried}, {"applied", use.applied}, {"counted", use.counted}, {"ms", use.milliseconds}});
            if (json.empty())
                std::printf("%-28s %-44s %6lld tried %5lld counted %5lld applied %9.3f ms\n", step.name.c_str(), use.rule.c_str(), static_cast<long long>(use.tried), static_cast<long long>(use.counted),
                            static_cast<long long>(use.applied), use.milliseconds);
        }
    }
    std::fflush(stdout);
    return json.empty() ? 0 : writeText(json, dump(rows));
}

/// The place before the step that the user named, or before the one that applies the rule.
Result<Place> placeOf(const Compiled& compiled, const Arguments& arguments) {
    std::string step = arguments.step;
    if (step.empty() && !arguments.rule.empty()) {
        CT_TRY(const auto rules, ruleList(arguments.compile.resolved()));
        for (const RuleInfo& rule : rules)
            if (step.empty() && (rule.name == arguments.rule || rule.pass + "/" + rule.name == arguments.rule)) step = rule.pass;
        // Passes whose rewrites belong together are explained, too, but are no rules that can be switched off.
        for (const StepInfo& one : compiled.steps)
            if (step.empty() && one.name == arguments.rule.substr(0, arguments.rule.find('/'))) step = one.name;
        // An unknown name is refused, with what is near it, by whoever explains.
        if (step.empty()) return Place{compiled.run, -1, -1};
    }
    if (step.empty()) return invalidInput("give --rule or --step: rules see the graph before their step");
    const auto isStep = [&](const StepInfo& each) { return each.name == step; };
    if (arguments.step.empty() && std::none_of(compiled.steps.begin(), compiled.steps.end(), isStep))
        return Error{ErrorCode::NotFound, "the pass '" + step + "' of this rule is not part of the run", arguments.rule,
                     {"an optional pass is switched on by --enable " + step + ", others by --device, --mode or --only",
                      "--step NAME asks what the rule would do on the graph before that step"}};
    CT_TRY(const int index, findStep(compiled.steps, step));
    return Place{compiled.run, index - 1, -1};
}

/// The node's name as people may write it again: with the graph around it.
std::string nameOf(Compiled& compiled, const Place& place, NodeId id) {
    const auto name = nodeName(compiled.session, place, id);
    return name ? *name : std::to_string(static_cast<uint32_t>(id));
}

Result<std::vector<RuleExplanation>> explanations(Compiled& compiled, const Arguments& arguments, const Place& place, NodeId node) {
    if (arguments.rule.empty()) return compiled.session.explainAll(place, node);
    CT_TRY(RuleExplanation one, compiled.session.explain(place, arguments.rule, node));
    return std::vector{std::move(one)};
}

int run(const Arguments& arguments) {
    auto compiled = openAndCompile(arguments.path, arguments.compile);
    if (!compiled) return fail(compiled.error());
    if (arguments.node.empty()) return printUses(*compiled, arguments.rule, arguments.json);
    const auto place = placeOf(*compiled, arguments);
    if (!place) return fail(place.error());
    const auto node = findNode(compiled->session, *place, arguments.node);
    if (!node) return fail(node.error());
    const std::string where = nameOf(*compiled, *place, *node);
    const auto found = explanations(*compiled, arguments, *place, *node);
    if (!found) return fail(found.error());
    Json rows = Json::array();
    for (const RuleExplanation& one : *found) {
        Json nodes = Json::array();
        std::string names;
        for (const NodeId id : one.nodes) {
            const std::string name = nameOf(*compiled, *place, id);
            names += (names.empty() ? "" : ", ") + name;
            nodes.push_back(name);
        }
        rows.push_back({{"pass", one.pass}, {"rule", one.rule}, {"node", where}, {"applies", one.applies}, {"reason", one.reason}, {"nodes", nodes}});
        if (arguments.json.empty())
            std::cout << one.pass << "/" << one.rule << " at " << where << ": " << (one.applies ? "applies to " + names : one.reason) << "\n";
    }
    if (arguments.json.empty() && found->empty()) std::cout << "no rule starts at " << where << "\n";
    return arguments.json.empty() ? 0 : writeText(arguments.json, dump(rows));
}

/// The rules of the pipeline and those of files, as text that loads again.
int printRules(const CompileArguments& compile, const std::string& pass, const std::string& json) {
    if (json.empty()) {
        const auto text = ruleTexts(compile.options, pass);
        return text ? writeText("-", *text) : fail(text.error());
    }
    const auto rules = ruleList(compile.options);
    if (!rules) return fail(rules.error());
    Json rows = Json::array();
    for (const RuleInfo& rule : *rules)
        if (pass.empty() || rule.pass == pass)
            rows.push_back({{"pass", rule.pass}, {"rule", rule.name}, {"why", rule.why}, {"find", rule.find}, {"replace", rule.replace}, {"condition", rule.condition}, {"starts", rule.starts}});
    return writeText(json, dump(rows));
}

}  // namespace

void addRules(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("rules", "Prints the rules of the pipeline, and those of --rules, as text; a pass's rules load again");
    struct Chosen {
        std::string pass, json;
        CompileArguments compile;
    };
    auto chosen = std::make_shared<Chosen>();
    command->add_option("--pass", chosen->pass, "Of this pass alone");
    command->add_option("--json", chosen->json, "Write the rules as JSON to a file, or - for stdout")->expected(0, 1)->default_str("-");
    chosen->compile.addRulesTo(*command);
    command->callback([chosen, command, &context] {
        if (command->count("--json") && chosen->json.empty()) chosen->json = "-";
        context.status = printRules(chosen->compile, chosen->pass, chosen->json);
    });
}

void addExplain(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("explain", "Why a rule does or does not apply at a node; without --node, what every rule tried and did");
    auto arguments = std::make_shared<Arguments>();
    command->add_option("MODEL", arguments->path)->required();
    command->add_option("--rule", arguments->rule, "Name, or pass/name; without it every rule that may start at the node");
    command->add_option("--node", arguments->node, "Name of the node where matching starts, the last call of what the rule finds; body/name inside a body of cond or its kin");
    command->add_option("--step", arguments->step, "Look at the graph before this step (default: the rule's own)");
    command->add_option("--json", arguments->json, "Write the report as JSON to a file, or - for stdout")->expected(0, 1)->default_str("-");
    arguments->compile.addTo(*command);
    command->callback([arguments, command, &context] {
        if (command->count("--json") && arguments->json.empty()) arguments->json = "-";
        context.status = run(*arguments);
    });
}

}  // namespace cutaway::cli
