#include "engine/session/execution.h"

#include <algorithm>

#include "engine/interpret/peak.h"
#include "engine/passes/stage.h"
#include "engine/runtime/reference.h"
#include "engine/schedule/decisions.h"
#include "engine/session/compare_outputs.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

void reportTimes(const Execution& run, const Execution* next, RunReport& report) {
    report.repeats = static_cast<int>(run.milliseconds.size());
    if (next) report.repeats = std::min(report.repeats, static_cast<int>(next->milliseconds.size()));
    for (const Execution* one : {&run, next}) {
        if (!one) continue;
        report.minMilliseconds += one->minimum;
        report.medianMilliseconds += one->median;
        const std::vector<double>& sorted = one->milliseconds;
        if (sorted.empty()) continue;
        report.firstQuartile += sorted[(sorted.size() - 1) / 4];
        report.thirdQuartile += sorted[(sorted.size() - 1) * 3 / 4];
    }
}

double toleranceOf(const Execution& execution) { return execution.tf32 ? kTf32Tolerance : 0; }

Result<Execution> runInterpreted(const Module& module, const std::vector<Tensor>& inputs, int repeat,
                                 const Progress& progress, const SymbolValues& known) {
    if (!known.empty()) {
        Module fixed(module);
        CT_TRY_VOID(specialize(fixed, known));
        return runInterpreted(fixed, inputs, repeat, progress, {});
    }
    CT_TRY(ReferenceRun run,
           runReference(module, inputs, {.repeat = repeat, .written = true, .faultSide = FaultSide::After}, progress));
    Execution execution;
    execution.outputs = std::move(run.outputs);
    for (size_t i = 0; i < run.inputs.size(); ++i)
        if (run.inputs[i].defined()) execution.written.emplace_back(i, std::move(run.inputs[i]));
    execution.minimum = *std::min_element(run.milliseconds.begin(), run.milliseconds.end());
    execution.median = median(run.milliseconds);
    std::sort(run.milliseconds.begin(), run.milliseconds.end());
    execution.milliseconds = std::move(run.milliseconds);
    return execution;
}

/// A graph that a failed pass left unfinished would give wrong results. One that the scheduling stage refuses can still
/// be interpreted.
Result<void> checkPasses(const CompileTrace& trace) {
    if (!trace.failed() || trace.steps.back().info.stage == kSchedule.name) return {};
    Error error = checkLowered(trace).error();
    error.notes = {"to run without it: --disable " + trace.steps.back().info.name};
    return error;
}

Result<void> checkSizes(const Module& module, Backend backend) {
    std::vector<MemoryRequest> wishes = {{"inputs and weights", inputBytes(module)}, {"results", outputBytes(module)}};
    if (backend == Backend::Reference)
        wishes.insert(wishes.begin() + 1, {"values", peakBytes(module)});  // kernels keep fewer
    return checkMemory("the run", wishes, ForProcess::NewChild);
}

Result<const CpuProgram*> programOf(Session::State::Run& run, const std::string& graphName,
                                    const std::vector<Tensor>* inputs, const Progress& progress,
                                    const SymbolValues& known) {
    // What a cache has kept serves all sizes, and nothing was planned for it.
    if (const auto kept = run.cpu.find(graphName); !run.built && kept != run.cpu.end()) return &kept->second;
    // Of a backward the sizes that its forward ran with.
    const SizeRequest wanted{graphName == "backward" ? nullptr : inputs, known};
    CT_TRY(const auto chosen, chosenProgram(run, wanted, progress));
    if (run.built != chosen) {
        progress.say(-1, chosen->whyFixed.empty() ? "compiling kernels"
                                                  : "compiling kernels for these sizes alone: " + chosen->whyFixed);
        const CpuBuildOptions options{.target = &targetOf(run.trace.request), .store = run.trace.hooks.cacheFile};
        CT_TRY(const std::vector<CpuProgram> programs, buildPlanned(chosen->program, options, progress));
        run.cpu.clear();
        for (const ScheduledGraph& graph : scheduledGraphs(run.trace))
            run.cpu.emplace(graph.name, programs[graph.graph]);
        run.built = chosen;
    }
    return &run.cpu.at(graphName);
}

Result<Execution> runCompiled(Session::State::Run& run, const std::string& graphName, const Snapshot& given,
                              const std::vector<Tensor>& inputs, const RunOptions& options, const Progress& progress,
                              const SymbolValues& known) {
    std::optional<CpuProgram> cpuProgram;
    if (given) {
        SymbolValues sizes;
        CT_TRY(Snapshot module, withNumbers(given, &inputs, sizes, known));
        CT_TRY(cpuProgram,
               buildCpu(std::move(module), {.target = &targetOf(run.trace.request), .store = run.trace.hooks.cacheFile},
                        progress));
    }
    const CpuProgram* program = cpuProgram ? &*cpuProgram : nullptr;
    if (!program) {
        CT_TRY(program, programOf(run, graphName, &inputs, progress, known));
    }
    progress.say(-1, "running");
    CpuRunOptions runOptions;
    runOptions.repeat = std::max(1, options.repeat);
    runOptions.cold = options.cold;
    runOptions.budgetSeconds = options.budgetSeconds;
    runOptions.timeoutSeconds = options.timeoutSeconds;
    runOptions.leaveSaved = !cpuProgram && graphName == "forward";
    CT_TRY(CpuRun result, runCpu(*program, inputs, runOptions, progress));
    return Execution{std::move(result.outputs),
                     result.minMilliseconds,
                     result.medianMilliseconds,
                     std::move(result.microseconds),
                     result.cost,
                     std::move(result.written),
                     std::move(result.refused),
                     roundsToTf32(program->host()),
                     std::move(result.milliseconds)};
}

}  // namespace cutaway
