// plugin: which plugins there are, whether one keeps the contract, and a new one to start from.
#include <filesystem>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "app/cli/plugin_templates.h"
#include "cutaway/files.h"
#include "cutaway/plugins.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct PluginArguments {
    std::string action, name, model, kind = "pass", language = "c", json;
};

std::string itemText(const PluginItem& item) {
    std::string out = item.kind + " " + item.name;
    if (!item.place.empty()) out += ", at " + item.place;
    if (!item.patterns.empty()) out += ", of " + item.patterns;
    if (!item.unit.empty()) out += ", in " + item.unit;
    if (!item.operators.empty()) out += ", of " + item.operators;
    return out + (item.summary.empty() ? "" : ": " + item.summary);
}

Json jsonOf(const PluginInfo& info) {
    Json items = Json::array();
    for (const PluginItem& item : info.items)
        items.push_back({{"kind", item.kind},
                         {"name", item.name},
                         {"summary", item.summary},
                         {"place", item.place},
                         {"after", item.after},
                         {"settings", item.settings},
                         {"patterns", item.patterns},
                         {"unit", item.unit},
                         {"operators", item.operators}});
    return {{"name", info.name},       {"version", info.version}, {"summary", info.summary},
            {"file", info.file},       {"from", info.from},       {"hash", info.hash},
            {"on", info.on},           {"problem", info.problem}, {"rules", !info.rules.empty()},
            {"defines", info.defines}, {"gives", items}};
}

Result<int> listPlugins(const PluginArguments& arguments) {
    const std::vector<PluginInfo> all = installedPlugins();
    Json rows = Json::array(), folders = Json::array();
    for (const PluginFolder& folder : pluginFolders())
        folders.push_back({{"path", folder.path}, {"from", folder.from}, {"problem", folder.problem}});
    for (const PluginInfo& info : all) {
        rows.push_back(jsonOf(info));
        if (!arguments.json.empty()) continue;
        print("%s %s (%s: %s)%s\n", info.name.c_str(), info.version.c_str(), info.from.c_str(), info.file.c_str(),
              info.on ? "" : ", switched off");
        if (!info.summary.empty()) print("    %s\n", info.summary.c_str());
        for (const PluginItem& item : info.items) {
            print("    %s\n", itemText(item).c_str());
            std::string_view settings = item.settings;
            while (!settings.empty()) {
                const size_t end = std::min(settings.find('\n'), settings.size());
                print("        setting %s\n", std::string(settings.substr(0, end)).c_str());
                settings.remove_prefix(std::min(settings.size(), end + 1));
            }
        }
        for (const std::string& schema : info.defines) print("    operator %s\n", schema.c_str());
        if (!info.rules.empty()) print("    rules\n");
        if (!info.problem.empty()) print("    it cannot be used: %s\n", info.problem.c_str());
    }
    if (!arguments.json.empty()) return writeText(arguments.json, dump({{"plugins", rows}, {"folders", folders}}));
    if (all.empty()) print("no plugin is installed; they are looked for in:\n");
    for (const PluginFolder& folder : pluginFolders()) {
        if (all.empty()) print("    %s (%s)\n", folder.path.c_str(), folder.from.c_str());
        if (!folder.problem.empty())
            print("%s of %s is left out: %s\n", folder.path.c_str(), folder.from.c_str(), folder.problem.c_str());
    }
    return 0;
}

Result<int> check(const PluginArguments& arguments) {
    CT_TRY(const std::vector<PluginTrial> trials, checkPlugin(arguments.name));
    Json rows = Json::array();
    int wrong = 0;
    for (const PluginTrial& trial : trials) {
        wrong += !trial.problem.empty();
        rows.push_back({{"item", trial.item}, {"what", trial.what}, {"problem", trial.problem}});
        if (!arguments.json.empty()) continue;
        print("%s  %s%s%s%s\n", trial.problem.empty() ? "ok   " : "WRONG", trial.item.c_str(),
              trial.item.empty() ? "" : ": ", trial.what.c_str(),
              trial.problem.empty() ? "" : ("\n       " + trial.problem).c_str());
    }
    if (!arguments.json.empty())
        if (const int written = writeText(arguments.json, dump({{"trials", rows}, {"kept", wrong == 0}})); written != 0)
            return written;
    if (wrong == 0) return 0;
    return Error{ErrorCode::ToolFailed,
                 "the plugin does not keep the contract: " + std::to_string(wrong) + " of " +
                     std::to_string(trials.size()) + " trials went wrong",
                 arguments.name,
                 {}};
}

Result<int> make(const PluginArguments& arguments) {
    CT_TRY(const NewPlugin made, newPlugin(arguments.name, arguments.kind, arguments.language));
    if (std::filesystem::exists(made.file))
        return invalidInput("the file is there already, and is not written over", made.file);
    if (const int written = writeText(made.file, made.text); written != 0) return written;
    print("%s is written. Next:\n%s", made.file.c_str(), made.next.c_str());
    return 0;
}

Result<int> ask(const PluginArguments& arguments) {
    Session session;
    CT_TRY_VOID(session.open(arguments.model));
    CT_TRY(const GraphText graph, session.text({0, -1, -1}));
    CT_TRY(const OracleVerdict verdict, askOracle(arguments.name, graph.text, pluginLimits().seconds));
    print("%s%s%s\n", verdict.fails ? "it fails" : "it is good", verdict.sentence.empty() ? "" : ": ",
          verdict.sentence.c_str());
    return verdict.fails ? 1 : 0;
}

Result<int> color(const PluginArguments& arguments) {
    Session session;
    CT_TRY_VOID(session.open(arguments.model));
    CT_TRY(const GraphText graph, session.text({0, -1, -1}));
    CT_TRY(const Coloring coloring, colorGraph(arguments.name, graph.text));
    Json rows = Json::array();
    for (const NodeColor& node : coloring.nodes) {
        rows.push_back({{"node", node.node}, {"number", node.number}, {"kind", node.kind}, {"why", node.why}});
        if (!arguments.json.empty()) continue;
        if (!node.kind.empty()) print("%s  %s", node.node.c_str(), node.kind.c_str());
        else print("%s  %g %s", node.node.c_str(), node.number, coloring.unit.c_str());
        print("%s%s\n", node.why.empty() ? "" : "  ", node.why.c_str());
    }
    if (!coloring.unknown.empty()) {
        std::string names;
        for (const std::string& name : coloring.unknown) names += (names.empty() ? "'" : ", '") + name + "'";
        remark("the colouring " + arguments.name + " gives a colour to what the graph does not have: " + names);
    }
    if (arguments.json.empty()) return 0;
    return writeText(arguments.json, dump({{"unit", coloring.unit}, {"nodes", rows}, {"unknown", coloring.unknown}}));
}

Result<int> onOff(const PluginArguments& arguments) {
    CT_TRY_VOID(switchPlugin(arguments.name, arguments.action == "on"));
    return 0;
}

Result<int> act(const PluginArguments& arguments) {
    struct Action {
        const char* name;
        bool takesName, takesModel, reports;
        Result<int> (*run)(const PluginArguments&);
    };
    constexpr Action kActions[] = {
        {"list", false, false, true, listPlugins}, {"check", true, false, true, check},
        {"new", true, false, false, make},         {"ask", true, true, false, ask},
        {"color", true, true, true, color},        {"on", true, false, false, onOff},
        {"off", true, false, false, onOff},
    };
    for (const Action& action : kActions) {
        if (arguments.action != action.name) continue;
        const std::string title = "plugin " + arguments.action;
        if (action.takesName && arguments.name.empty())
            return invalidInput(title + " needs a " + (arguments.action == "check" ? "file" : "name"));
        if (!action.takesName && !arguments.name.empty()) return invalidInput(title + " takes no name", arguments.name);
        if (action.takesModel && arguments.model.empty()) return invalidInput(title + " needs a model");
        if (!action.takesModel && !arguments.model.empty())
            return invalidInput(title + " takes no model", arguments.model);
        if (!action.reports && !arguments.json.empty()) return invalidInput(title + " has no report for --json");
        return action.run(arguments);
    }
    return invalidInput("no such action", arguments.action);
}

void addPluginOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<PluginArguments>();
    command
        .add_option(
            "ACTION", arguments->action,
            "list: those that are installed, and what they give. check: holds the plugin in a file to the "
            "contract. new: writes a plugin to start from. ask: what an oracle says of a model's graph; status 1: "
            "it fails. color: what a colouring says of its nodes. on, off: whether an installed one is used")
        ->required()
        ->check(oneOf({"list", "check", "new", "ask", "color", "on", "off"}));
    command.add_option("NAME", arguments->name,
                       "The plugin's name (ask, color: PLUGIN or PLUGIN.NAME), or its file (check)");
    addModel(command, arguments->model);
    command.add_option("--kind", arguments->kind, "Of new: what it gives")
        ->check(oneOf({"pass", "rules", "importer", "oracle", "coloring", "judge", "library"}));
    command.add_option("--language", arguments->language, "Of new: in what it is written")
        ->check(oneOf({"c", "cpp", "python"}));
    addJson(command, arguments->json);
    command.callback([arguments, &context] { context.status = statusOf(act(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> pluginReports() {
    const Json item{{"kind", "string: pass, importer, oracle, coloring, judge or library"},
                    {"name", "string"},
                    {"summary", "string: a sentence"},
                    {"place", "string: of a pass, where it runs"},
                    {"after", "string: of a pass, what must run earlier"},
                    {"settings", "string: of a pass, key=initial value: sentence, a line each"},
                    {"patterns", "string: of an importer, of file names"},
                    {"unit", "string: of a colouring, of its numbers"},
                    {"operators", "string: of a library, those whose calls it computes"}};
    const Json plugin{{"name", "string"},
                      {"version", "string"},
                      {"summary", "string: a sentence"},
                      {"file", "string: its path"},
                      {"from", "string: CUTAWAY_PLUGINS, user or site"},
                      {"hash", "string: of the file, as requests name it"},
                      {"on", "boolean: it is used"},
                      {"problem", "string: why it cannot be; empty if it can"},
                      {"rules", "boolean: it gives rules"},
                      {"defines", Json::array({"string: an operator, with its parameters"})},
                      {"gives", Json::array({item})}};
    const Json folder{{"path", "string"},
                      {"from", "string: as a plugin's"},
                      {"problem", "string: why nothing is loaded from there; empty if it is"}};
    const Json trial{{"item", "string: what of the plugin was tried; empty: all of it"},
                     {"what", "string: what was tried"},
                     {"problem", "string: how it went wrong; empty if it did not"}};
    const Json node{{"node", "string: its name"},
                    {"number", "real"},
                    {"kind", "string: a class in place of the number; empty for none"},
                    {"why", "string: a sentence"}};
    return {{"--json", {{"plugins", Json::array({plugin})}, {"folders", Json::array({folder})}}},
            {"--json FILE", {{"trials", Json::array({trial})}, {"kept", "boolean: the contract, in all of them"}}},
            {"--json NAME MODEL",
             {{"unit", "string: of the numbers"},
              {"nodes", Json::array({node})},
              {"unknown", Json::array({"string: a name of which the graph has no node"})}}}};
}

}  // namespace

extern const Command pluginCommand{
    .name = "plugin",
    .summary = "Lists, checks, asks and switches plugins, and writes new ones to start from",
    .add = addPluginOptions,
    .refuses = "check: the plugin breaks the contract; ask: the graph fails",
    .reports = pluginReports};

}  // namespace cutaway::cli
