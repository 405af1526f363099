#include "engine/session/execution.h"

#include <algorithm>

#include "engine/interpret/peak.h"
#include "engine/partition/join_graphs.h"
#include "engine/passes/stage.h"
#include "engine/runtime/reference.h"
#include "engine/schedule/decisions.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

Error failureOf(const CompileTrace& trace) {
    const StepInfo& step = trace.steps.back().info;
    return {ErrorCode::InvalidInput,
            "compiling failed, so there is nothing to run: " + step.error,
            "step " + step.name,
            {}};
}

/// Loops in the schedule of the module have the graph's symbolic sizes; replaces these by numbers, too.
void fixLoops(Module& module, const SymbolValues& values) {
    const Schedule* schedule = Schedule::of(module);
    if (schedule == nullptr) return;
    auto fixed = std::make_shared<Schedule>(*schedule);
    for (Schedule::Group& group : fixed->groups)
        for (SymInt& size : group.space.sizes)
            if (const auto number = valueFor(size, values)) size = *number;
    module.plan = std::move(fixed);
}

}  // namespace

Result<Snapshot> withNumbers(const Snapshot& module, const std::vector<Tensor>* inputs, SymbolValues& values,
                             const SymbolValues& known) {
    const std::vector<std::string> symbols = freeSymbols(*module);
    if (symbols.empty()) return module;
    values.clear();
    if (inputs) {
        CT_TRY(values, solveSymbols(*module, *inputs));
    }
    values.insert(known.begin(), known.end());
    if (!inputs) values.merge(hintedSymbols(*module));
    auto fixed = std::make_shared<Module>(*module);
    CT_TRY_VOID(specialize(*fixed, values));
    fixLoops(*fixed, values);
    for (const std::string& symbol : freeSymbols(*fixed))
        return unsupported("kernels need numbers, and size symbol '" + symbol + "' has none", {},
                           {"set it when opening: --size " + symbol + "=8",
                            "or run with --backend reference, which takes sizes that depend on data as they come"});
    return Snapshot(std::move(fixed));
}

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
    return execution;
}

Result<void> checkLowered(const CompileTrace& trace) {
    if (trace.failed()) return failureOf(trace);
    return {};
}

/// A graph that a failed pass left unfinished would give wrong results. One that the scheduling stage refuses can still
/// be interpreted.
Result<void> checkPasses(const CompileTrace& trace) {
    if (!trace.failed() || trace.steps.back().info.stage == kSchedule.name) return {};
    Error error = failureOf(trace);
    error.notes = {"to run without it: --disable " + trace.steps.back().info.name};
    return error;
}

Result<void> checkSizes(const Module& module, Backend backend) {
    std::vector<MemoryWish> wishes = {{"inputs and weights", inputBytes(module)}, {"results", outputBytes(module)}};
    if (backend == Backend::Reference)
        wishes.insert(wishes.begin() + 1, {"values", peakBytes(module)});  // kernels keep fewer
    return checkMemory("the run", wishes, Whose::ChildOwn);
}

Result<std::vector<int64_t>> savedResults(const Module& forward, const Module& backward) {
    CT_TRY(const std::vector<size_t> outputs, savedOutputs(forward, backward));
    std::vector<int64_t> saved;
    size_t next = 0;
    for (size_t i = 0; i < backward.graph().placeholders().size(); ++i) {
        const bool isSaved = i < backward.inputs.size() && backward.inputs[i].kind == InputSpec::Kind::Saved;
        saved.push_back(isSaved ? static_cast<int64_t>(outputs.at(next++)) : -1);
    }
    return saved;
}

namespace {

/// What the run knows of its program; a program of two halves keeps it with the forward.
Session::State::Built& builtOf(Session::State::Run& run) { return run.cpu[run.trace.isSplit() ? "forward" : ""]; }

/// One program of the last graph, or of forward and backward.
Result<void> build(Session::State::Run& run, const std::vector<Snapshot>& graphs, const Progress& progress) {
    const CpuBuildOptions options{.target = &targetOf(run.trace.request), .store = run.trace.services.cacheFile};
    if (graphs.size() == 1) {
        CT_TRY(run.cpu[""].program, buildCpu(graphs[0], options, progress));
        return {};
    }
    CT_TRY(std::vector<int64_t> saved, savedResults(*graphs[0], *graphs[1]));
    CT_TRY(CpuTraining halves, buildTraining(graphs[0], graphs[1], std::move(saved), options, progress));
    run.cpu["forward"].program = std::move(halves.forward);
    run.cpu["backward"].program = std::move(halves.backward);
    return {};
}

/// For all sizes, if the graphs can be built so. Nothing if they cannot: the cause is kept.
Result<void> buildForAllSizes(Session::State::Run& run, const std::vector<Snapshot>& graphs, const Progress& progress) {
    Session::State::Built& built = builtOf(run);
    const bool fixed =
        std::all_of(graphs.begin(), graphs.end(), [](const Snapshot& graph) { return freeSymbols(*graph).empty(); });
    if (!built.whyFixed.empty() || fixed) return {};
    progress.say(-1, "compiling kernels");
    auto made = build(run, graphs, progress);
    if (made) {
        built.allSizes = true;
    } else if (made.error().code == ErrorCode::Unsupported || made.error().code == ErrorCode::InvalidInput) {
        built.whyFixed = made.error().message;
    } else {
        return std::move(made).error();
    }
    return {};
}

/// Builds for all sizes, else for those of `inputs` (of two halves the forward's); a backward has its forward's sizes.
Result<void> buildFor(Session::State::Run& run, const std::vector<Tensor>* inputs, const Progress& progress,
                      const SymbolValues& known) {
    Session::State::Built& built = builtOf(run);
    std::vector<Snapshot> graphs = {run.trace.result()};
    if (run.trace.isSplit()) graphs = {run.trace.resultOf("forward"), run.trace.resultOf("backward")};
    CT_TRY_VOID(buildForAllSizes(run, graphs, progress));
    if (built.allSizes) return {};
    SymbolValues sizes;
    CT_TRY(graphs[0], withNumbers(graphs[0], inputs, sizes, known));
    if (built.program && built.sizes == sizes) return {};
    if (graphs.size() > 1) {
        SymbolValues all = known, behind;
        all.insert(sizes.begin(), sizes.end());
        CT_TRY(graphs[1], withNumbers(graphs[1], nullptr, behind, all));
    }
    progress.say(-1, built.whyFixed.empty() ? "compiling kernels"
                                            : "compiling kernels for these sizes alone: " + built.whyFixed);
    CT_TRY_VOID(build(run, graphs, progress));
    built.sizes = std::move(sizes);
    return {};
}

}  // namespace

Result<const CpuProgram*> programOf(Session::State::Run& run, const std::string& track,
                                    const std::vector<Tensor>* inputs, const Progress& progress,
                                    const SymbolValues& known) {
    CT_TRY_VOID(checkLowered(run.trace));
    const Session::State::Built& built = builtOf(run);
    const std::vector<Tensor>* const given = track == "backward" ? nullptr : inputs;
    const bool fits = std::all_of(known.begin(), known.end(), [&](const auto& number) {
        const auto own = built.sizes.find(number.first);
        return own != built.sizes.end() && own->second == number.second;
    });
    // Without inputs: of the sizes that it last ran with.
    if (!built.program || (!built.allSizes && (given || !fits))) CT_TRY_VOID(buildFor(run, given, progress, known));
    return &*run.cpu[track].program;
}

Result<Execution> runCompiled(Session::State::Run& run, const std::string& track, const Snapshot& given,
                              const std::vector<Tensor>& inputs, const RunOptions& options, const Progress& progress,
                              const SymbolValues& known) {
    std::optional<CpuProgram> own;
    if (given) {
        SymbolValues sizes;
        CT_TRY(Snapshot module, withNumbers(given, &inputs, sizes, known));
        CT_TRY(own,
               buildCpu(std::move(module),
                        {.target = &targetOf(run.trace.request), .store = run.trace.services.cacheFile}, progress));
    }
    const CpuProgram* program = own ? &*own : nullptr;
    if (!program) {
        CT_TRY(program, programOf(run, track, &inputs, progress, known));
    }
    progress.say(-1, "running");
    CpuRunOptions runOptions;
    runOptions.repeat = std::max(1, options.repeat);
    runOptions.cold = options.cold;
    runOptions.timeoutSeconds = options.timeoutSeconds;
    runOptions.leaveSaved = !own && track == "forward";
    CT_TRY(CpuRun result, runCpu(*program, inputs, runOptions, progress));
    return Execution{std::move(result.outputs),
                     result.minMilliseconds,
                     result.medianMilliseconds,
                     std::move(result.microseconds),
                     result.cost,
                     std::move(result.written),
                     std::move(result.refused)};
}

}  // namespace cutaway
