// manual: all that cutaway-cli can do, printed from the tables that it works by, and the pages of resources/manual.
#include <algorithm>
#include <iostream>
#include <set>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "app/cli/manual_pages.h"
#include "app/cli/setting_words.h"
#include "cutaway/settings.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

/// A list item with what is said of it.
void item(std::string& out, const std::string& name, const std::string& says) {
    out += "- `" + name + "`" + (says.empty() ? "" : ": " + says) + "\n";
}

std::string indented(const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        out += "    " + text.substr(at, end - at) + "\n";
        at = end + 1;
    }
    return out;
}

/// "--mode {inference, training}", "--repeat N (from 1 to 1000000)".
std::string optionNames(const CLI::Option& option) {
    if (option.get_positional()) return option.get_name(true);
    std::string names = option.get_name(false, true);
    std::replace(names.begin(), names.end(), ',', ' ');
    const std::string type = option.get_type_name();
    if (type.empty() || option.get_items_expected_max() == 0) return names;
    if (const size_t words = type.find(":{"); words != std::string::npos) return names + " " + type.substr(words + 1);
    if (const size_t range = type.find(":from "); range != std::string::npos)
        return names + " " + type.substr(0, range) + " (" + type.substr(range + 1) + ")";
    return names + " " + type;
}

void addManualOptions(std::string& out, const CLI::App& command, bool compiling) {
    for (const CLI::Option* option : command.get_options()) {
        if (option == command.get_help_ptr()) continue;
        if (option->get_group().empty() || (option->get_group() == kCompiling) != compiling) continue;
        std::string says = option->get_description();
        if (const std::string initial = option->get_default_str();
            !initial.empty() && says.find("default") == std::string::npos)
            says += " (default: " + initial + ")";
        item(out, optionNames(*option), says + (option->get_required() ? " (required)" : ""));
    }
}

std::string synopsis(const CLI::App& command) {
    std::string line = "cutaway-cli " + command.get_name() + " [OPTION...]";
    for (const CLI::Option* option : command.get_options())
        if (option->get_positional())
            line += option->get_required() ? " " + option->get_name(true) : " [" + option->get_name(true) + "]";
    return line;
}

bool compiles(const CLI::App& command) {
    const auto options = command.get_options();
    return std::any_of(options.begin(), options.end(),
                       [](const CLI::Option* option) { return option->get_group() == kCompiling; });
}

std::string commandPage(const Command& row, const CLI::App& app, bool alone) {
    const CLI::App& command = *app.get_subcommand(row.name);
    std::string out = std::string("## ") + row.name + "\n\n" + row.summary + ".\n\n    " + synopsis(command) + "\n\n";
    addManualOptions(out, command, false);
    if (compiles(command) && alone) {
        out += "\nOptions that say how to compile:\n\n";
        addManualOptions(out, command, true);
    } else if (compiles(command)) {
        out += "\nAnd the options that say how to compile; see `compiling`.\n";
    }
    if (*row.refuses) out += std::string("\nExit status 1 also when ") + row.refuses + ".\n";
    if (row.reports == nullptr) return out;
    for (const JsonReport& report : row.reports()) {
        out += "\nWhat `" + report.options + "` writes:\n\n";
        out += indented(report.shape.dump(2));
    }
    return out;
}

std::string compilingPage(const CLI::App& app) {
    std::string out = "## compiling\n\nWhat every command takes that compiles.\n\n";
    addManualOptions(out, *app.get_subcommand("compile"), true);
    return out;
}

std::string statusPage() {
    std::string out = "## exit-status\n\nErrors go to stderr, reports to stdout, and a status says which it was.\n\n";
    for (const ExitStatus& status : exitStatuses()) item(out, status.status, status.meaning);
    return out;
}

std::string jsonPage() {
    return "## json\n\n"
           "`--json FILE` writes what the command reports as JSON into a file, or to stdout for `-`, in place of the\n"
           "text. In this manual a shape stands for it: the JSON itself with a sentence in place of each value, which\n"
           "begins with its type (string, integer, number, boolean; real: a number, or one of the strings NaN, Infinity\n"
           "and -Infinity). A list has any length. A key that ends with `?` may be absent or null, `*` is any key.\n"
           "Steps and rewrites are counted from 1.\n";
}

std::string settingText(const Setting& setting) {
    return std::string(setting.what) + " Takes " + setting.takes() +
           (setting.initial.empty() ? "." : "; without it: " + std::string(setting.initial) + ".");
}

/// "`a`, `b`" of "a b".
std::string quotedWords(std::string_view text) {
    std::string out;
    for (const std::string& word : words(text)) out += (out.empty() ? "`" : ", `") + word + "`";
    return out;
}

std::string settingsPage() {
    std::string out =
        "## pass-settings\n\nOf passes that are off until `--enable NAME=key:value,key:value` switches them on, and of "
        "what else takes settings by that option.\n\n";
    for (const Switch& each : switches()) item(out, std::string(each.name), std::string(each.what));
    std::set<std::string_view> told{kRequest};  // those stand among the options
    for (const Setting& one : settings()) {
        if (!told.insert(one.owners).second) continue;
        out += "\n" + (one.owners.empty() ? "For every optional pass" : quotedWords(one.owners)) + ":\n\n";
        for (const Setting& each : settings())
            if (each.owners == one.owners) item(out, std::string(each.key), settingText(each));
    }
    return out;
}

/// Every pass of all modes and devices, once, in running order.
std::vector<PassInfo> allPasses() {
    std::vector<PassInfo> all;
    std::set<std::string> known;
    for (const Mode mode : {Mode::Training, Mode::Jvp, Mode::Inference})
        for (const Target target : {Target::Cuda, Target::Cpu}) {
            CompileRequest options;
            options.mode = mode;
            options.target = target;
            for (const Release release : {kNewestRelease, kOldestRelease}) {
                options.pytorch = release;
                for (PassInfo& pass : passList(options))
                    if (known.insert(pass.stage + "/" + pass.name).second) all.push_back(std::move(pass));
            }
        }
    return all;
}

/// The settings and rules that go by a pass's name; empty if it has none.
std::string ownedBy(const std::string& name, const std::vector<RuleInfo>& rules) {
    std::string out;
    for (const Switch& each : switches())
        if (name == each.name) item(out, name, std::string(each.what));
    for (const Setting& setting : settings())
        if (!setting.owners.empty() && setting.belongsTo(name))
            item(out, name + "=" + std::string(setting.key), settingText(setting));
    for (const RuleInfo& rule : rules)
        if (rule.pass == name) item(out, name + "/" + rule.name, rule.why);
    return out;
}

std::string passText(const PassInfo& pass, const std::vector<RuleInfo>& rules) {
    const std::string owned = ownedBy(pass.name, rules);
    return "### " + pass.name + "\n\n" + pass.summary + ". Stage " + pass.stage +
           (pass.optional ? "; runs only with `--enable " + pass.name + "`" : "") + ".\n" +
           (owned.empty() ? "" : "\n" + owned);
}

std::string ruleText(const RuleInfo& rule) {
    std::string out = "### " + rule.pass + "/" + rule.name + "\n\n" + rule.why + ".\n\nIt finds" +
                      (rule.condition ? ", where a condition holds that is more than this says" : "") + ":\n\n" +
                      indented(rule.find) + "\nand puts in its place:\n\n" + indented(rule.replace);
    for (const std::string& start : rule.starts)
        out += (&start == &rule.starts.front() ? "\nIt may start at " : ", ") + start;
    return out + (rule.starts.empty() ? "" : ".\n");
}

/// A pass, a rule, or what --enable takes beside passes, by its name; empty if there is none.
std::string named(const std::string& name) {
    const std::vector<RuleInfo> rules = ruleList();
    std::string out;
    const auto add = [&out](const std::string& text) { out += (out.empty() ? "" : "\n") + text; };
    for (const PassInfo& pass : allPasses())
        if (name == pass.name) add(passText(pass, rules));
    if (out.empty())
        if (const std::string owned = ownedBy(name, {}); !owned.empty()) add("### " + name + "\n\n" + owned);
    for (const RuleInfo& rule : rules)
        if (name == rule.name || name == rule.pass + "/" + rule.name) add(ruleText(rule));
    for (const Setting& setting : settings())
        if (name == setting.key)
            add("### " + name + "\n\n" + settingText(setting) + " Of " +
                (setting.owners.empty() ? "every optional pass" : quotedWords(setting.owners)) + ".\n");
    return out;
}

std::vector<std::string> allNames() {
    std::vector<std::string> names{"compiling"};
    for (const Command* command : commands()) names.emplace_back(command->name);
    for (const ManualText& each : kManualTexts) names.emplace_back(each.name);
    for (const PassInfo& pass : allPasses()) names.push_back(pass.name);
    for (const RuleInfo& rule : ruleList()) names.push_back(rule.name);
    for (const Setting& setting : settings()) names.emplace_back(setting.key);
    return names;
}

std::string passesPage() {
    std::string out =
        "## passes\n\nEvery pass in running order with its rules. `--disable` takes their names, `rules --pass` "
        "prints the rules as text.\n";
    const std::vector<RuleInfo> rules = ruleList();
    for (const PassInfo& pass : allPasses()) out += "\n" + passText(pass, rules);
    return out;
}

struct Topic {
    const char *name, *summary;
    std::string (*page)();
};
constexpr Topic kTopics[] = {
    {"exit-status", "what the exit statuses say", statusPage},
    {"json", "what --json writes, and how its shape is told", jsonPage},
    {"pass-settings", "what optional passes can be told", settingsPage},
    {"passes", "every pass and every rule", passesPage},
};

std::string titleOf(const ManualText& page) {
    const std::string_view text = page.text;
    return std::string(text.substr(2, text.find('\n') - 2));
}

/// A page of resources/manual as a part of the whole: its title has two signs, headings within have four, code not.
std::string partOf(const ManualText& page) {
    std::string out;
    bool code = false;
    const std::string_view text = page.text;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        if (line.starts_with("```")) code = !code;
        if (!code && line.starts_with("# ")) out += "#";
        if (!code && line.starts_with("## ")) out += "##";
        out.append(line).append("\n");
        at = end + 1;
    }
    return out;
}

std::string index() {
    std::string out =
        "# cutaway-cli\n\nThe engine of Cutaway on the command line: opens models, compiles them step by step, runs the "
        "result.\n\nCommands:\n\n";
    for (const Command* command : commands()) item(out, command->name, command->summary);
    out += "\nAnd:\n\n";
    item(out, "compiling", "options that say how to compile");
    for (const Topic& topic : kTopics) item(out, topic.name, topic.summary);
    out += "\nJobs and windows:\n\n";
    for (const ManualText& each : kManualTexts) item(out, each.name, titleOf(each));
    return out + "\n`cutaway-cli manual NAME` prints one of them, or what is known of a pass, a rule or a setting.\n";
}

std::string whole(const CLI::App& app) {
    std::string out = index();
    for (const ManualText& each : kManualTexts) out += "\n" + partOf(each);
    for (const Command* command : commands()) out += "\n" + commandPage(*command, app, false);
    out += "\n" + compilingPage(app);
    for (const Topic& topic : kTopics) out += "\n" + topic.page();
    return out;
}

Result<std::string> page(const std::string& name, const CLI::App& app) {
    if (name == "compiling") return compilingPage(app);
    for (const Command* command : commands())
        if (name == command->name) return commandPage(*command, app, true);
    for (const Topic& topic : kTopics)
        if (name == topic.name) return topic.page();
    for (const ManualText& each : kManualTexts)
        if (name == each.name) return std::string(each.text);
    if (std::string found = named(name); !found.empty()) return found;
    const std::vector<std::string> known = allNames();
    Error error{ErrorCode::NotFound,
                "the manual has no page on '" + name + "'",
                {},
                {"`cutaway-cli manual --index` lists its pages"}};
    if (std::string near = suggestion(name, std::vector<std::string_view>(known.begin(), known.end())); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    std::string holding;
    for (const ManualText& each : kManualTexts)
        if (std::string_view(each.name).find(name) != std::string_view::npos)
            holding += (holding.empty() ? "" : ", ") + std::string(each.name);
    if (!holding.empty()) error.notes.insert(error.notes.begin(), "there are " + holding);
    return error;
}

/// The table of commands: what programs need that drive this one.
Json table(const CLI::App& app) {
    Json rows = Json::array();
    for (const Command* command : commands()) {
        Json options = Json::array(), manualReports = Json::array();
        const CLI::App& parser = *app.get_subcommand(command->name);
        for (const CLI::Option* option : parser.get_options())
            if (option != parser.get_help_ptr() && !option->get_group().empty())
                options.push_back(optionNames(*option));
        for (const JsonReport& report : command->reports ? command->reports() : std::vector<JsonReport>{})
            manualReports.push_back({{"options", report.options}, {"shape", report.shape.dump()}});
        rows.push_back({{"command", command->name},
                        {"summary", command->summary},
                        {"options", options},
                        {"reports", manualReports}});
    }
    return rows;
}

std::vector<JsonReport> manualReports() {
    const Json report{{"options", "string: that ask for it"}, {"shape", "string: the shape, as JSON"}};
    const Json row{{"command", "string: name"},
                   {"summary", "string: a sentence"},
                   {"options", Json::array({"string: names and what it takes"})},
                   {"reports", Json::array({report})}};
    return {{"--json", Json::array({row})}};
}

void addManual(CLI::App& command, Context& context) {
    struct Arguments {
        std::string name, json;
        bool index = false;
    };
    auto arguments = std::make_shared<Arguments>();
    auto* name = command.add_option("NAME", arguments->name,
                                    "A command, pass, rule, setting or other page; without it all but single rules");
    auto* list = command.add_flag("--index", arguments->index, "The list of pages alone")->excludes(name);
    addJson(command, arguments->json);
    command.get_option("--json")
        ->description("Write the table of commands as JSON to a file, or - for stdout")
        ->excludes(name)
        ->excludes(list);
    command.callback([arguments, &command, &context] {
        const CLI::App& app = *command.get_parent();
        const auto run = [&]() -> Result<int> {
            if (!arguments->json.empty()) return writeText(arguments->json, dump(table(app)));
            if (arguments->index) return writeText("-", index());
            if (arguments->name.empty()) return writeText("-", whole(app));
            CT_TRY(const std::string text, page(arguments->name, app));
            return writeText("-", text);
        };
        context.status = statusOf(run());
    });
}

}  // namespace

extern const Command manualCommand{
    .name = "manual",
    .summary = "Prints this manual: jobs, windows, commands, options, passes, rules, statuses",
    .add = addManual,
    .reports = manualReports};

}  // namespace cutaway::cli
