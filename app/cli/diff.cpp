// diff: what one step did, or how two graphs differ.
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/comparison.h"

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

int printDiff(Compiled& compiled, const StepPosition& found, const std::string& json) {
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
        const auto it = lines.find(id);
        return it == lines.end() ? std::string() : it->second;
    };
    Json rows = Json::array();
    for (const UnionGraph::Node& node : graph->nodes) {
        const std::string was = line(oldLines, node.info.id), now = line(newLines, node.info.id);
        const bool rewired = node.change == Change::Unchanged && was != now;
        if (node.change == Change::Unchanged && !rewired) continue;
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

/// A graph that the command line names: a file, or FILE::NAME with the name of one of its graphs, or of a step or stage
/// of its compilation.
struct Side {
    Session session;
    Place place{-1, -1, -1};
};
/// The last step of a stage, or the step that the name stands for.
Result<int> stepNamed(const std::vector<StepInfo>& steps, const std::string& name) {
    for (size_t i = steps.size(); i-- > 0;)
        if (steps[i].stage == name || steps[i].graphName + "/" + steps[i].stage == name) return static_cast<int>(i);
    CT_TRY(const StepPosition step, findStep(steps, name));
    return step.index;
}
Result<Side> openSide(const std::string& text, const CompileArguments& compile) {
    Side side;
    const size_t at = std::filesystem::exists(text) ? std::string::npos : text.rfind("::");
    const std::string path = text.substr(0, at), name = at == std::string::npos ? std::string() : text.substr(at + 2);
    CT_TRY(OpenSettings settings, compile.open.resolved());
    if (name.empty()) {
        CT_TRY_VOID(side.session.open(path, settings));
        return side;
    }
    OpenSettings named = settings;
    named.graph = name;
    auto opened = side.session.open(path, named);
    if (opened) return side;
    if (opened.error().code != ErrorCode::NotFound || !std::filesystem::exists(path)) return opened.error();
    CT_TRY(Compiled compiled, openAndCompile(path, compile));
    const auto step = stepNamed(compiled.steps, name);
    if (!step) {
        Error error = opened.error();
        error.notes.push_back("neither is it a stage or step of a compilation: " + step.error().message);
        return error;
    }
    return Side{std::move(compiled.session), {compiled.run, *step, -1}};
}

/// One node of a difference, in the words of both graphs.
struct DiffRow {
    const char* sign;
    const UnionGraph::Node* node;
    std::string before, after;
};
Result<std::vector<DiffRow>> rowsOf(Session& session, const Place& before, const Place& after, const UnionGraph& graph,
                                    const DiffReport& report) {
    CT_TRY(const GraphText oldText, session.text(before));
    CT_TRY(const GraphText newText, session.text(after));
    auto oldLines = linesByNode(oldText), newLines = linesByNode(newText);
    std::set<NodeKey> differing;
    for (const DiffPart& part : report.parts) differing.insert(part.nodes.begin(), part.nodes.end());
    std::vector<DiffRow> rows;
    for (const UnionGraph::Node& node : graph.nodes) {
        if (!differing.contains(node.info.id)) continue;
        const char* sign = node.change == Change::Added     ? "+"
                           : node.change == Change::Removed ? "-"
                           : node.change == Change::Edited  ? "~"
                                                            : "=";
        const bool was = node.change != Change::Added, is = node.change != Change::Removed;
        rows.push_back({sign, &node, was ? oldLines[node.keyBefore()] : "", is ? newLines[node.info.id] : ""});
    }
    return rows;
}

double percent(const DiffReport& report) {
    return 100.0 * report.distance / std::max(1, std::max(report.nodesBefore, report.nodesAfter));
}

void printGraphs(const std::vector<DiffRow>& rows, const UnionGraph& graph, const DiffReport& report) {
    for (const auto& [sign, node, before, after] : rows) {
        if (!before.empty()) std::cout << (after.empty() ? "-" : sign) << before << "\n";
        if (!after.empty()) std::cout << (before.empty() ? "+" : sign) << after << "\n";
    }
    std::map<NodeKey, std::string> names;
    for (const UnionGraph::Node& node : graph.nodes) names[node.info.id] = node.info.name;
    for (const DiffPart& part : report.parts)
        std::cout << "part at " << names[part.nodes.front()] << (part.module.empty() ? "" : " in " + part.module)
                  << ": " << part.added << " added, " << part.removed << " removed, " << part.edited << " edited, "
                  << part.rewired << " read something else\n";
    std::cout << "distance " << report.distance << " of " << report.nodesBefore << " and " << report.nodesAfter
              << " nodes (" << static_cast<int>(percent(report) * 10) / 10.0 << " %): " << report.added << " added, "
              << report.removed << " removed, " << report.edited << " edited, " << report.rewired
              << " read something else; pairs: " << report.sure << " sure, " << report.likely << " likely, "
              << report.unsure << " unsure\n";
}

Json graphsJson(const std::vector<DiffRow>& rows, const UnionGraph& graph, const DiffReport& report) {
    Json nodes = Json::array(), pairs = Json::array(), parts = Json::array();
    for (const auto& [sign, node, before, after] : rows)
        nodes.push_back({{"change", sign}, {"node", node->info.name}, {"before", before}, {"after", after}});
    std::map<NodeKey, std::string> names;
    for (const UnionGraph::Node& node : graph.nodes) {
        names[node.info.id] = node.info.name;
        if (node.change == Change::Added || node.change == Change::Removed) continue;
        if (node.certainty != Certainty::Sure)
            pairs.push_back({{"node", node.info.name}, {"certainty", std::string(name(node.certainty))}});
    }
    for (const DiffPart& part : report.parts) {
        Json of = Json::array();
        for (const NodeKey key : part.nodes) of.push_back(names[key]);
        parts.push_back({{"module", part.module},
                         {"added", part.added},
                         {"removed", part.removed},
                         {"edited", part.edited},
                         {"rewired", part.rewired},
                         {"nodes", of}});
    }
    return {{"distance", report.distance},
            {"percent", percent(report)},
            {"nodesBefore", report.nodesBefore},
            {"nodesAfter", report.nodesAfter},
            {"added", report.added},
            {"removed", report.removed},
            {"edited", report.edited},
            {"rewired", report.rewired},
            {"sure", report.sure},
            {"likely", report.likely},
            {"unsure", report.unsure},
            {"uncertain", pairs},
            {"parts", parts},
            {"nodes", nodes}};
}

/// Prints or returns how two places of a session differ; whether they do.
Result<bool> compareGraphs(Session& session, const Place& before, const Place& after, const std::string& title,
                           Json* json) {
    CT_TRY(const UnionGraph graph, session.diff(before, after));
    const DiffReport report = reportOf(graph);
    CT_TRY(const std::vector<DiffRow> rows, rowsOf(session, before, after, graph, report));
    if (json) {
        Json one = graphsJson(rows, graph, report);
        one["title"] = title;
        json->push_back(std::move(one));
    } else {
        if (!title.empty()) std::cout << title << "\n";
        printGraphs(rows, graph, report);
    }
    return !report.same();
}

struct DiffArguments {
    std::string path, other, step, json;
    bool recorded = false;
    CompileArguments compile;
};

Result<int> diffOfGraphs(const DiffArguments& arguments) {
    CT_TRY(Side before, openSide(arguments.path, arguments.compile));
    CT_TRY(Side after, openSide(arguments.other, arguments.compile));
    CT_TRY(const Place kept, keepGraph(after.session, before.session, before.place));
    Json reports = Json::array();
    const bool json = !arguments.json.empty();
    CT_TRY(const bool differ, compareGraphs(after.session, kept, after.place, {}, json ? &reports : nullptr));
    if (json)
        if (const int status = writeText(arguments.json, dump({{"differ", differ}, {"graphs", reports}})))
            return status;
    return differ ? kFailed : 0;
}

/// Our post-grad passes beside PyTorch's recorded ones, each compilation that is there.
Result<int> diffOfRecorded(const DiffArguments& arguments) {
    CT_TRY(const ModelInfo info, inspectFile(arguments.path));
    std::vector<std::string> names;
    for (const GraphSummary& graph : info.graphs) names.push_back(graph.name);
    const std::vector<RecordedPair> pairs = recordedPostGrad(names);
    if (pairs.empty())
        return Error{ErrorCode::NotFound,
                     "no graphs from before and after PyTorch's post-grad passes are in it",
                     arguments.path,
                     {"traces (TORCH_TRACE), folders of TORCH_COMPILE_DEBUG and recorded stages have them"}};
    CT_TRY(CompileRequest request, arguments.compile.resolved());
    if (const auto wrote = nearestRelease(info.torch);
        wrote && !arguments.compile.says("--pytorch") && *wrote != request.pytorch) {
        request.pytorch = *wrote;
        remark("compiled as PyTorch " + std::string(releaseName(*wrote)) +
               " compiles, which wrote the file; --pytorch says otherwise");
    }
    Json reports = Json::array();
    const bool json = !arguments.json.empty();
    bool differ = false;
    for (const RecordedPair& pair : pairs) {
        Session session;
        CT_TRY_VOID(session.open(arguments.path, {pair.before, {}}));
        CT_TRY(const PostGradPlaces places, postGradBesideRecorded(session, pair, request));
        CT_TRY(const bool one,
               compareGraphs(session, places.theirs, places.ours, pair.after, json ? &reports : nullptr));
        differ |= one;
    }
    if (json)
        if (const int status = writeText(arguments.json, dump({{"differ", differ}, {"graphs", reports}})))
            return status;
    return differ ? kFailed : 0;
}

void addDiffOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<DiffArguments>();
    addModel(command, arguments->path)->required();
    CLI::Option* const other = command.add_option(
        "OTHER", arguments->other,
        "Another model, to compare two graphs: each is FILE or FILE::NAME, the name of a graph of the "
        "file, or of a stage or step of its compilation (model.pt2::post_grad)");
    CLI::Option* const step = command
                                  .add_option("--step", arguments->step,
                                              "Key, name or number, as `steps` lists them; of a single rewrite with :N")
                                  ->type_name("STEP")
                                  ->excludes(other);
    command
        .add_flag(
            "--recorded", arguments->recorded,
            "Our post-grad passes against PyTorch's, on each graph that the trace, debug folder or folder of stages "
            "has from before and after them")
        ->excludes(other)
        ->excludes(step);
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            if (arguments->recorded) return diffOfRecorded(*arguments);
            if (!arguments->other.empty()) return diffOfGraphs(*arguments);
            if (arguments->step.empty()) return invalidInput("diff takes --step STEP, another model, or --recorded");
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const StepPosition found, findStep(compiled.steps, arguments->step));
            return printDiff(compiled, found, arguments->json);
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
    const Json part{{"module", "string: that most of its nodes are in"},
                    {"added", "integer: nodes"},
                    {"removed", "integer: nodes"},
                    {"edited", "integer: nodes"},
                    {"rewired", "integer: nodes that read something else"},
                    {"nodes", Json::array({"string: name"})}};
    const Json pair{{"node", "string: name after"}, {"certainty", "string: likely, unsure"}};
    const Json graphs{{"distance", "integer: nodes to touch to make one of the other"},
                      {"percent", "number: of the larger graph"},
                      {"nodesBefore", "integer"},
                      {"nodesAfter", "integer"},
                      {"added", "integer: nodes"},
                      {"removed", "integer: nodes"},
                      {"edited", "integer: nodes"},
                      {"rewired", "integer: nodes that read something else"},
                      {"sure", "integer: pairs of nodes"},
                      {"likely", "integer: pairs of nodes"},
                      {"unsure", "integer: pairs of nodes"},
                      {"uncertain", Json::array({pair})},
                      {"parts", Json::array({part})},
                      {"nodes", Json::array({node})},
                      {"title", "string: of --recorded, PyTorch's graph"}};
    return {{"--json",
             {{"step", "string: name"},
              {"key", "string: of the step"},
              {"added", "integer: nodes"},
              {"removed", "integer: nodes"},
              {"edited", "integer: nodes"},
              {"nodes", Json::array({node})}}},
            {"--json OTHER", {{"differ", "boolean: of any two graphs"}, {"graphs", Json::array({graphs})}}}};
}

}  // namespace

extern const Command diffCommand{.name = "diff",
                                 .summary = "What one step did to the graph, or how two graphs differ",
                                 .add = addDiffOptions,
                                 .refuses = "two graphs that were compared differ",
                                 .reports = diffReports};

}  // namespace cutaway::cli
