// info, text, steps, diff: looking without running.
#include <iostream>
#include <map>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

void printInfo(const ModelInfo& model) {
    std::cout << model.path << "\n" << model.format << "\n";
    if (!model.graphs.empty())
        std::cout << model.parameters << " parameters (" << model.parameterElements << " elements), " << model.buffers
                  << " buffers, " << model.constants << " constants, " << bytesText(model.bytes) << "\n";
    for (const std::string& input : model.inputs) std::cout << "  in   " << input << "\n";
    for (const std::string& output : model.outputs) std::cout << "  out  " << output << "\n";
    for (const std::string& symbol : model.symbols) std::cout << "size " << symbol << "\n";
    int calls = 0, problems = 0;
    for (const GraphSummary& graph : model.graphs) {
        std::cout << "graph " << graph.name << ": " << graph.nodes << " nodes\n";
        for (const OpSummary& op : graph.ops) {
            print("%6d  %s%s%s\n", op.count, op.op.c_str(), op.problem.empty() ? "" : "   ! ", op.problem.c_str());
            calls += op.count;
            if (!op.problem.empty()) problems += op.count;
        }
    }
    if (problems > 0)
        std::cout << problems << " of " << calls << " calls cannot be run everywhere; see the lines marked '!'\n";
    for (const std::string& tensor : model.tensors) std::cout << "  " << tensor << "\n";
    for (const std::string& entry : model.contents) std::cout << "  + " << entry << "\n";
    for (const std::string& remark : model.remarks) std::cout << "note: " << remark << "\n";
}

void printSteps(const Compiled& compiled) {
    std::string heading;
    for (const StepInfo& step : compiled.steps) {
        const std::string here = step.track + "/" + step.stage;
        if (here != heading) std::cout << (heading = here) << "\n";
        const char* mark = step.state == StepState::Changed    ? "*"
                           : step.state == StepState::Failed   ? "!"
                           : step.state == StepState::Disabled ? "x"
                                                               : " ";
        const std::string name = step.name + (step.occurrence > 1 ? "#" + std::to_string(step.occurrence) : "");
        print(" %s %2d %-34s +%-4d -%-4d ~%-4d %5d rewrites  %5d nodes  %8.3f ms\n", mark, shownNumber(step.index),
              name.c_str(), step.added, step.removed, step.edited, step.rewrites, step.nodesAfter, step.milliseconds);
        if (!step.error.empty()) std::cout << "      " << step.error << "\n";
    }
}

/// Each node's own line of a graph's text.
std::map<NodeId, std::string> linesByNode(const GraphText& graph) {
    std::map<NodeId, std::string> lines;
    size_t at = 0;
    for (NodeId id : graph.lineNodes) {
        const size_t end = std::min(graph.text.find('\n', at), graph.text.size());
        if (id != NodeId::None) lines[id] = graph.text.substr(at, end - at);
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
    auto line = [](const std::map<NodeId, std::string>& lines, NodeId id) {
        auto found = lines.find(id);
        return found == lines.end() ? std::string() : found->second;
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

}  // namespace

void addInfo(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand(
        "info", "What a file or folder holds: graphs, ops, parameters, bytes, and what cannot be run");
    struct Arguments {
        std::string path, json;
        OpenArguments open;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(*command, arguments->path)->required();
    addJson(*command, arguments->json);
    arguments->open.addTo(*command);
    command->callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(const OpenSettings settings, arguments->open.resolved());
            CT_TRY(const ModelInfo model, inspectFile(arguments->path, settings));
            if (!arguments->json.empty()) return writeText(arguments->json, dump(toJson(model)));
            printInfo(model);
            return 0;
        };
        context.status = statusOf(run());
    });
}

void addText(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("text", "The graph as FX text on stdout");
    struct Arguments {
        std::string path, step;
        bool runnable = false;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(*command, arguments->path)->required();
    command->add_flag("--runnable", arguments->runnable, "A Python file that runs in PyTorch as it stands");
    command
        ->add_option(
            "--step", arguments->step,
            "The graph after this step, by key, name or number, instead of the one in the file; after a single "
            "rewrite of it with :N")
        ->type_name("STEP");
    arguments->compile.addTo(*command);
    command->callback([arguments, command, &context] {
        const auto run = [&]() -> Result<int> {
            const auto printed = [&](Session& session, const Place& place) -> Result<int> {
                CT_TRY(const GraphText text, session.text(place, arguments->runnable));
                return writeText("-", text.text);
            };
            if (!arguments->step.empty()) {
                CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
                CT_TRY(const FoundStep step, findStep(compiled.steps, arguments->step));
                return printed(compiled.session, {compiled.run, step.index, step.rewrites.value_or(-1)});
            }
            if (const std::string option = CompileArguments::given(*command); !option.empty())
                return invalidInput(option + " says how to compile, and nothing is compiled without --step");
            Session session;
            CT_TRY(const OpenSettings settings, arguments->compile.open.resolved());
            CT_TRY_VOID(session.open(arguments->path, settings));
            return printed(session, {});
        };
        context.status = statusOf(run());
    });
}

namespace {

/// Status 1 when a step did not keep the numbers.
Result<int> checkNumbers(Compiled& compiled, const NumbersOptions& options, const std::string& json) {
    CT_TRY(const NumbersReport report, compiled.session.checkNumbers(compiled.run, options));
    Json rows = Json::array();
    if (json.empty()) std::cout << "inputs: " << report.inputsFrom << "\n";
    for (const StepNumbers& one : report.steps) {
        rows.push_back({{"step", one.step.name},
                        {"index", shownNumber(one.step.index)},
                        {"kept", one.kept},
                        {"detail", one.detail}});
        if (json.empty())
            std::cout << (one.kept ? " same     " : " DIFFERS  ") << shownNumber(one.step.index) << " " << one.step.name
                      << ": " << one.detail << "\n";
    }
    const int written =
        json.empty() ? 0
                     : writeText(json, dump({{"kept", report.kept}, {"inputs", report.inputsFrom}, {"steps", rows}}));
    if (!report.kept)
        return invalidInput("step " + report.steps.back().step.name +
                            " does not keep the numbers: " + report.steps.back().detail);
    return written;
}

/// Single rewrites of the step, on stdout if there is no JSON to put them into.
Result<Json> listRewrites(Compiled& compiled, const StepInfo& step, bool shown) {
    CT_TRY(const std::vector<RewriteInfo> rewrites, compiled.session.rewrites(compiled.run, step.index));
    Json list = Json::array();
    for (const RewriteInfo& rewrite : rewrites) {
        list.push_back(toJson(rewrite));
        if (shown)
            std::cout << step.name << " " << shownNumber(rewrite.index) << " " << rewrite.rule << " at " << rewrite.node
                      << (rewrite.why.empty() ? "" : ": " + rewrite.why) << "\n";
    }
    return list;
}

}  // namespace

void addSteps(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("steps", "Every pass: what it changed and how long it took");
    struct Arguments {
        std::string path, json;
        bool rewrites = false, numbers = false;
        NumbersOptions check;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(*command, arguments->path)->required();
    addJson(*command, arguments->json);
    auto* rewrites =
        command->add_flag("--rewrites", arguments->rewrites, "List the single rewrites of each step as well");
    auto* numbers =
        command
            ->add_flag("--check-numbers", arguments->numbers,
                       "Run the graphs on both sides of each changed step; status 1 if one computes something else")
            ->excludes(rewrites);
    command
        ->add_option(
            "--inputs", arguments->check.inputsFile,
            "For --check-numbers: input tensors (safetensors); default: the file's sample inputs, else random ones")
        ->type_name("FILE")
        ->needs(numbers);
    command
        ->add_option("--tolerance", arguments->check.tolerance,
                     "For --check-numbers: largest error that is good, as a share of the expected value and of what is "
                     "usual in its tensor")
        ->type_name("X")
        ->check(shareOrNumber())
        ->needs(numbers);
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            if (arguments->numbers) return checkNumbers(compiled, arguments->check, arguments->json);
            const bool failed = !compiled.steps.empty() && compiled.steps.back().state == StepState::Failed;
            const bool shown = arguments->json.empty();
            if (shown) printSteps(compiled);
            Json rows = Json::array();
            for (const StepInfo& step : compiled.steps) {
                Json row = toJson(step);
                if (arguments->rewrites) {
                    CT_TRY(row["list"], listRewrites(compiled, step, shown));
                }
                rows.push_back(std::move(row));
            }
            const int written = shown ? 0 : writeText(arguments->json, dump(rows));
            if (failed)
                return Error{
                    ErrorCode::InvalidInput, compiled.steps.back().error, "step " + compiled.steps.back().name, {}};
            return written;
        };
        context.status = statusOf(run());
    });
}

void addDiff(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("diff", "What one step did to the graph");
    struct Arguments {
        std::string path, step, json;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    addModel(*command, arguments->path)->required();
    command
        ->add_option("--step", arguments->step,
                     "Key, name or number, as `steps` lists them; of a single rewrite with :N")
        ->type_name("STEP")
        ->required();
    addJson(*command, arguments->json);
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            CT_TRY(const FoundStep step, findStep(compiled.steps, arguments->step));
            return printDiff(compiled, step, arguments->json);
        };
        context.status = statusOf(run());
    });
}

}  // namespace cutaway::cli
