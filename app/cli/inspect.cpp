// info, text, steps, diff: looking without running.
#include <iostream>
#include <map>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {
namespace {

std::string bytesText(int64_t bytes) {
    char text[32];
    if (bytes < 10'000) std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
    else if (bytes < 10'000'000) std::snprintf(text, sizeof text, "%.1f kB", static_cast<double>(bytes) / 1e3);
    else std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
    return text;
}

void printInfo(const ModelInfo& model) {
    std::cout << model.path << "\n" << model.format << "\n";
    if (!model.graphs.empty())
        std::cout << model.parameters << " parameters (" << model.parameterElements << " elements), " << model.buffers << " buffers, "
                  << model.constants << " constants, " << bytesText(model.bytes) << "\n";
    for (const std::string& input : model.inputs) std::cout << "  in   " << input << "\n";
    for (const std::string& output : model.outputs) std::cout << "  out  " << output << "\n";
    for (const std::string& symbol : model.symbols) std::cout << "size " << symbol << "\n";
    int calls = 0, problems = 0;
    for (const GraphSummary& graph : model.graphs) {
        std::cout << "graph " << graph.name << ": " << graph.nodes << " nodes\n";
        for (const OpSummary& op : graph.ops) {
            std::printf("%6d  %s%s%s\n", op.count, op.op.c_str(), op.problem.empty() ? "" : "   ! ", op.problem.c_str());
            std::fflush(stdout);
            calls += op.count;
            if (!op.problem.empty()) problems += op.count;
        }
    }
    if (problems > 0) std::cout << problems << " of " << calls << " calls cannot be run everywhere; see the lines marked '!'\n";
    for (const std::string& tensor : model.tensors) std::cout << "  " << tensor << "\n";
    for (const std::string& entry : model.contents) std::cout << "  + " << entry << "\n";
    for (const std::string& remark : model.remarks) std::cout << "note: " << remark << "\n";
}

void printSteps(const Compiled& compiled) {
    std::string stage;
    for (const StepInfo& step : compiled.steps) {
        if (step.stage != stage) std::cout << (stage = step.stage) << "\n";
        const char* mark = step.state == StepState::Changed ? "*" : step.state == StepState::Failed ? "!" : step.state == StepState::Disabled ? "x" : " ";
        std::printf(" %s %2d %-34s +%-4d -%-4d ~%-4d %5d rewrites  %5d nodes  %8.3f ms\n", mark, step.index, step.name.c_str(), step.added,
                    step.removed, step.edited, step.rewrites, step.nodesAfter, step.milliseconds);
        std::fflush(stdout);
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

int printDiff(Compiled& compiled, int step, bool json) {
    const Place before{compiled.run, step - 1, -1}, after{compiled.run, step, -1};
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
        const char* sign = node.change == Change::Added ? "+" : node.change == Change::Removed ? "-" : node.change == Change::Edited ? "~" : "=";
        if (json) rows.push_back({{"change", sign}, {"node", node.info.name}, {"before", was}, {"after", now}});
        else if (node.change == Change::Edited || rewired) std::cout << sign << was << "\n" << sign << now << "\n";
        else std::cout << sign << (node.change == Change::Removed ? was : now) << "\n";
    }
    if (json) std::cout << dump({{"step", compiled.steps[static_cast<size_t>(step)].name}, {"added", graph->added}, {"removed", graph->removed}, {"edited", graph->edited}, {"nodes", rows}});
    else std::cout << compiled.steps[static_cast<size_t>(step)].name << ": " << graph->added << " added, " << graph->removed << " removed, " << graph->edited << " edited\n";
    return 0;
}

}  // namespace

void addInfo(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("info", "What a file or folder holds: graphs, ops, parameters, bytes, and what cannot be run");
    struct Arguments {
        std::string path, json;
        OpenArguments open;
    };
    auto arguments = std::make_shared<Arguments>();
    command->add_option("MODEL", arguments->path)->required();
    command->add_option("--json", arguments->json, "Write the report as JSON to a file, or - for stdout");
    arguments->open.addTo(*command);
    command->callback([arguments, &context] {
        const auto settings = arguments->open.resolved();
        if (!settings) {
            context.status = fail(settings.error());
            return;
        }
        const auto model = inspectFile(arguments->path, *settings);
        if (!model) context.status = fail(model.error());
        else if (!arguments->json.empty()) context.status = writeText(arguments->json, dump(toJson(*model)));
        else printInfo(*model);
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
    command->add_option("MODEL", arguments->path)->required();
    command->add_flag("--runnable", arguments->runnable, "A Python file that runs in PyTorch as it stands");
    command->add_option("--step", arguments->step, "The graph after this step instead of the one in the file");
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        Session session;
        Place place;
        const auto settings = arguments->compile.open.resolved();
        if (!settings) {
            context.status = fail(settings.error());
            return;
        }
        if (auto model = session.open(arguments->path, *settings); !model) {
            context.status = fail(model.error());
            return;
        }
        if (!arguments->step.empty()) {
            auto run = session.compile(arguments->compile.resolved());
            if (!run) {
                context.status = fail(run.error());
                return;
            }
            auto step = findStep(*session.steps(*run), arguments->step);
            if (!step) {
                context.status = fail(step.error());
                return;
            }
            place = {*run, *step, -1};
        }
        auto text = session.text(place, arguments->runnable);
        context.status = text ? writeText("-", text->text) : fail(text.error());
    });
}

namespace {

/// Status 1 when a step did not keep the numbers.
int checkNumbers(Compiled& compiled, const NumbersOptions& options, const std::string& json) {
    const auto report = compiled.session.checkNumbers(compiled.run, options);
    if (!report) return fail(report.error());
    Json rows = Json::array();
    if (json.empty()) std::cout << "inputs: " << report->inputsFrom << "\n";
    for (const StepNumbers& one : report->steps) {
        rows.push_back({{"step", one.step.name}, {"index", one.step.index}, {"kept", one.kept}, {"detail", one.detail}});
        if (json.empty()) std::cout << (one.kept ? " same     " : " DIFFERS  ") << one.step.index << " " << one.step.name << ": " << one.detail << "\n";
    }
    int status = 0;
    if (!json.empty()) status = writeText(json, dump({{"kept", report->kept}, {"inputs", report->inputsFrom}, {"steps", rows}}));
    if (!report->kept) status = fail(Error{ErrorCode::InvalidInput, "step " + report->steps.back().step.name + " does not keep the numbers: " + report->steps.back().detail, {}, {}});
    return status;
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
    command->add_option("MODEL", arguments->path)->required();
    command->add_option("--json", arguments->json, "Write the report as JSON to a file, or - for stdout");
    command->add_flag("--rewrites", arguments->rewrites, "List the single rewrites of each step as well");
    command->add_flag("--check-numbers", arguments->numbers, "Run the graphs on both sides of each changed step; status 1 if one computes something else");
    command->add_option("--inputs", arguments->check.inputsFile, "For --check-numbers: input tensors (safetensors); default: the file's sample inputs, else random ones");
    command->add_option("--tolerance", arguments->check.tolerance, "For --check-numbers: largest error that is good, as a share of the largest expected value")
        ->check(CLI::NonNegativeNumber);
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        auto compiled = openAndCompile(arguments->path, arguments->compile);
        if (!compiled) {
            context.status = fail(compiled.error());
            return;
        }
        if (arguments->numbers) {
            context.status = checkNumbers(*compiled, arguments->check, arguments->json);
            return;
        }
        const bool failed = !compiled->steps.empty() && compiled->steps.back().state == StepState::Failed;
        if (arguments->json.empty()) printSteps(*compiled);
        Json rows = Json::array();
        for (const StepInfo& step : compiled->steps) {
            Json row = toJson(step);
            if (arguments->rewrites) {
                auto rewrites = compiled->session.rewrites(compiled->run, step.index);
                Json list = Json::array();
                for (const RewriteInfo& rewrite : *rewrites) {
                    list.push_back(toJson(rewrite));
                    if (arguments->json.empty())
                        std::cout << step.name << " " << rewrite.index << " " << rewrite.rule << " at " << rewrite.node << (rewrite.why.empty() ? "" : ": " + rewrite.why) << "\n";
                }
                row["list"] = std::move(list);
            }
            rows.push_back(std::move(row));
        }
        if (!arguments->json.empty()) context.status = writeText(arguments->json, dump(rows));
        if (failed) context.status = 1;
    });
}

void addDiff(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("diff", "What one step did to the graph");
    struct Arguments {
        std::string path, step;
        bool json = false;
        CompileArguments compile;
    };
    auto arguments = std::make_shared<Arguments>();
    command->add_option("MODEL", arguments->path)->required();
    command->add_option("--step", arguments->step, "Name or number, as `steps` lists them")->required();
    command->add_flag("--json", arguments->json);
    arguments->compile.addTo(*command);
    command->callback([arguments, &context] {
        auto compiled = openAndCompile(arguments->path, arguments->compile);
        if (!compiled) {
            context.status = fail(compiled.error());
            return;
        }
        auto step = findStep(compiled->steps, arguments->step);
        context.status = step ? printDiff(*compiled, *step, arguments->json) : fail(step.error());
    });
}

}  // namespace cutaway::cli
