// diff: what one step did.
#include <iostream>
#include <map>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

/// Each node's own line of a graph's text.
std::map<NodeKey, std::string> linesByNode(const GraphText& graph) {
    std::map<NodeKey, std::string> lines;
    size_t at = 0;
    for (NodeKey id : graph.lineNodes) {
        const size_t end = std::min(graph.text.find('\n', at), graph.text.size());
        if (id != NodeKey::None) lines[id] = graph.text.substr(at, end - at);
        at = end + 1;
    }
    return lines;
}

int printDiff(Compiled& compiled, const FoundStep& found, const std::string& json) {
    const int step = found.index;
    const Place after{compiled.run, step, found.rewrites.value_or(-1)};
    const Place before{compiled.run, step, std::max(0, found.rewrites.value_or(1) - 1)};
    auto graph = compiled.session.diff(before, after);
    if (!graph) return fail(graph.error());
    auto oldText = compiled.session.text(before), newText = compiled.session.text(after);
    if (!oldText) return fail(oldText.error());
    if (!newText) return fail(newText.error());
    const auto oldLines = linesByNode(*oldText), newLines = linesByNode(*newText);
    auto line = [](const std::map<NodeKey, std::string>& lines, NodeKey id) {
        const auto known = lines.find(id);
        return known == lines.end() ? std::string() : known->second;
    };
    Json rows = Json::array();
    for (const UnionGraph::Node& node : graph->nodes) {
        const std::string was = line(oldLines, node.info.id), now = line(newLines, node.info.id);
        const bool rewired = node.change == Change::Kept && was != now;
        if (node.change == Change::Kept && !rewired) continue;
        const char* sign = node.change == Change::Added     ? "+"
                           : node.change == Change::Removed ? "-"
                           : node.change == Change::Edited  ? "~"
                                                            : "=";
        if (!json.empty())
            rows.push_back({{"change", sign}, {"node", node.info.name}, {"before", was}, {"after", now}});
        else if (node.change == Change::Edited || rewired) std::cout << sign << was << "\n" << sign << now << "\n";
        else std::cout << sign << (node.change == Change::Removed ? was : now) << "\n";
    }
    if (!json.empty())
        return writeText(json, dump({{"step", compiled.steps[static_cast<size_t>(step)].name},
                                     {"key", compiled.steps[static_cast<size_t>(step)].key()},
                                     {"added", graph->added},
                                     {"removed", graph->removed},
                                     {"edited", graph->edited},
                                     {"nodes", rows}}));
    std::cout << compiled.steps[static_cast<size_t>(step)].name << ": " << graph->added << " added, " << graph->removed
              << " removed, " << graph->edited << " edited\n";
    return 0;
}

void addDiffOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string path, step, json;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(command, arguments->path)->required();
    command
        .add_option("--step", arguments->step,
                    "Key, name or number, as `steps` lists them; of a single rewrite with :N")
        ->type_name("STEP")
        ->required();
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const FoundStep step, findStep(compiled.steps, arguments->step));
            return printDiff(compiled, step, arguments->json);
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> diffReports() {
    const Json node{{"change", "string: + added, - removed, ~ edited, = reads something else"},
                    {"node", "string: name"},
                    {"before", "string: its line; empty if it was not there"},
                    {"after", "string: its line; empty if it is gone"}};
    return {{"--json",
             {{"step", "string: name"},
              {"key", "string: of the step"},
              {"added", "integer: nodes"},
              {"removed", "integer: nodes"},
              {"edited", "integer: nodes"},
              {"nodes", Json::array({node})}}}};
}

}  // namespace

extern const Command diffCommand{
    .name = "diff", .summary = "What one step did to the graph", .add = addDiffOptions, .reports = diffReports};

}  // namespace cutaway::cli
