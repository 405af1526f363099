// rules: those of the pipeline, as text.
#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

/// The rules of the pipeline and those of files, as text that loads again.
Result<int> printRules(const CompileArguments& arguments, const std::string& pass, const std::string& json) {
    CT_TRY(const CompileRequest options, arguments.resolved());
    // Also refuses a pass that has no rules.
    CT_TRY(const std::string text, ruleTexts(options, pass));
    if (json.empty()) return writeText("-", text);
    CT_TRY(const std::vector<RuleInfo> rules, ruleList(options));
    Json rows = Json::array();
    for (const RuleInfo& rule : rules)
        if (pass.empty() || rule.pass == pass)
            rows.push_back({{"pass", rule.pass},
                            {"rule", rule.name},
                            {"why", rule.why},
                            {"find", rule.find},
                            {"replace", rule.replace},
                            {"condition", rule.condition},
                            {"starts", rule.starts}});
    return writeText(json, dump(rows));
}

void addRulesOptions(CLI::App& command, Context& context) {
    struct Chosen {
        std::string pass, json;
        CompileArguments compile;
    };
    auto chosen = std::make_shared<Chosen>();
    command.add_option("--pass", chosen->pass, "Of this pass alone")->type_name("PASS");
    addJson(command, chosen->json);
    chosen->compile.addRulesTo(command);
    command.callback(
        [chosen, &context] { context.status = statusOf(printRules(chosen->compile, chosen->pass, chosen->json)); });
}

/// What --json writes.
std::vector<JsonReport> rulesReports() {
    const Json rule{{"pass", "string: that applies it"},
                    {"rule", "string: name"},
                    {"why", "string: a sentence"},
                    {"find", "string: what it looks for, a statement a line"},
                    {"replace", "string: what takes its place; (code) where a function builds it"},
                    {"condition", "boolean: has a condition in code beside `find`"},
                    {"starts", Json::array({"string: op at which matching may start"})}};
    return {{"--json", Json::array({rule})}};
}

}  // namespace

extern const Command rulesCommand{
    .name = "rules",
    .summary = "Prints the rules of the pipeline, and those of --rules, as text; a pass's rules load again",
    .add = addRulesOptions,
    .reports = rulesReports};

}  // namespace cutaway::cli
