// The tests a user can bisect with.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "cutaway/guarded.h"
#include "engine/minify/bisect.h"
#include "engine/passes/whole_program.h"
#include "engine/runtime/reference.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/session_state.h"
#include "engine/support/process.h"
#include "engine/support/temp_dir.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

Verdict findNonFinite(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    for (size_t i = 0; i < actual.size(); ++i) {
        const int64_t count = nonFiniteCount(actual[i]), before = i < expected.size() ? nonFiniteCount(expected[i]) : 0;
        if (count > before)
            return {true, "output " + std::to_string(i + 1) + ": " + std::to_string(count) +
                              " elements are not finite, " + std::to_string(before) + " were"};
    }
    return {false, "no new NaN or infinity"};
}

/// Runs the command on the graph as a Python file that needs nothing but PyTorch.
Result<Verdict> runCommand(const Module& graph, const BisectOptions& options, const std::filesystem::path& file,
                           const Progress& progress) {
    PrintOptions print;
    print.runnable = true;
    {
        std::ofstream out(file, std::ios::binary);
        out << printText(graph, print).text;
        if (!out.flush()) return Error{ErrorCode::ToolFailed, "cannot write the file", file.string(), {}};
    }
    std::string command = options.command;
    const auto hole = command.find("{}");
    if (hole == std::string::npos) command += " '" + file.string() + "'";
    else command.replace(hole, 2, "'" + file.string() + "'");
    ProcessOptions process;
    process.argv = {"sh", "-c", command};
    process.wallSeconds = options.timeoutSeconds;
    CT_TRY(ChildProcess child, ChildProcess::start(process));
    const ProcessEnd end = child.wait(progress);
    if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "the search was stopped", {}, {}};
    if (end.how == ProcessEnd::How::Exited && (end.exitCode == 126 || end.exitCode == 127))
        return Error{ErrorCode::ToolFailed, "the command cannot be run: " + end.errors, options.command, {}};
    return Verdict{!end.ok(), "the command " + end.text()};
}

/// The progress of one test within the search: can be cancelled, but does not report its own fraction.
Progress quiet(const Progress& progress) { return {progress.cancel, {}}; }

Result<GraphTest> makeTest(const Session::State& state, const Module& good, const BisectOptions& options,
                           const std::filesystem::path& file, const Progress& progress) {
    if (options.check == BisectCheck::Command) {
        if (options.command.empty()) return invalidInput("bisecting by a command needs the command");
        return GraphTest(
            [&options, &progress, file](const Module& graph) { return runCommand(graph, options, file, progress); });
    }
    CT_TRY(const std::vector<Tensor> inputs, valuesFor(good, state, options.inputsFile));
    CT_TRY(const ReferenceRun expected, runReference(good, inputs, {.faultSide = FaultSide::Before}, quiet(progress)));
    return GraphTest([inputs, expected, &options, &progress](const Module& graph) -> Result<Verdict> {
        const auto actual = runReference(graph, inputs, {.faultSide = FaultSide::After}, quiet(progress));
        if (!actual && actual.error().code == ErrorCode::Cancelled) return actual.error();
        if (!actual) return Verdict{true, "does not run: " + actual.error().message};
        return options.check == BisectCheck::NonFinite
                   ? findNonFinite(actual->outputs, expected.outputs)
                   : compareOutputs(actual->outputs, expected.outputs, options.tolerance);
    });
}

BisectReport describe(const CompileTrace& trace, RunId run, BisectOutcome outcome) {
    BisectReport report;
    report.found = outcome.found;
    report.searched = outcome.total;
    for (BisectTry& tried : outcome.tries)
        report.probes.push_back(
            {tried.rewrites, {run, tried.step, tried.inStep}, tried.verdict.bad, std::move(tried.verdict.detail)});
    if (!outcome.found) return report;
    const Step& step = trace.steps[static_cast<size_t>(outcome.step)];
    report.culprit = {run, outcome.step, outcome.rewrite + 1};
    report.step = step.info;
    report.rewrite.index = outcome.rewrite;
    if (outcome.rewrite >= 0) report.rewrite = step.rewrites[static_cast<size_t>(outcome.rewrite)];
    return report;
}

}  // namespace

Result<BisectReport> Session::bisect(RunId id, const BisectOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<BisectReport> {
        CT_TRY(State::Run * found, m_state->run(id));
        const CompileTrace& trace = found->trace;
        const int first = trace.failed() ? 0 : firstComparable(trace);
        GraphTest test;
        CT_TRY(const TempDir folder, TempDir::create("bisect"));
        const std::filesystem::path file = folder.file("graph.py");
        if (!trace.failed() && first < static_cast<int>(trace.steps.size())) {
            CT_TRY(test, makeTest(*m_state, *trace.steps[static_cast<size_t>(first)].before, options, file, progress));
        }
        auto outcome = cutaway::bisect(trace, first, test, progress);
        if (!outcome) return outcome.error();
        BisectReport report = describe(trace, id, std::move(*outcome));
        report.rewrite.key = keyIn(report.rewrite.body, report.rewrite.nodeId);
        if (first > 0)
            report.note =
                "searched from " +
                (first < static_cast<int>(trace.steps.size()) ? trace.steps[static_cast<size_t>(first)].info.name
                                                              : std::string("the end")) +
                " on: the graphs before it take or return other values";
        return report;
    });
}

}  // namespace cutaway
