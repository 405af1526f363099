// The loops of kernels: their forms, and runs by plans of the user.
#include <cstring>
#include <map>

#include "cutaway/guarded.h"
#include "cutaway/kernel_calls.h"
#include "cutaway/loops.h"
#include "engine/codegen/cpp_printer.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/interpret/interpret.h"
#include "engine/loops/kernel_text.h"
#include "engine/runtime/cpu/kernel_listing.h"
#include "engine/session/arguments.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/execution.h"
#include "engine/session/run_inputs.h"
#include "engine/tensor/compare.h"

namespace cutaway {
namespace {

/// A kernel by its name.
struct NamedKernels {
    std::shared_ptr<const ChosenProgram> chosen;
    const ScheduledProgram* program = nullptr;
    const PlannedKernel* planned = nullptr;
};
Result<NamedKernels> kernelNamed(Session::State::Run& run, const std::string& name, const Progress& progress) {
    CT_TRY(const auto chosen, chosenProgram(run, {}, progress));
    for (const ScheduledGraph& graphName : scheduledGraphs(run.trace)) {
        const ScheduledProgram& program = chosen->program->graphs[graphName.graph];
        for (const PlannedKernel& planned : program.kernels)
            if (graphName.prefix + planned.kernel.name == name) return NamedKernels{chosen, &program, &planned};
    }
    return Error{ErrorCode::NotFound,
                 "this run has no kernel '" + name + "'",
                 {},
                 {"cutaway-cli loops MODEL, or the Loops window, lists the kernels of a run"}};
}

Result<LoopPlan> planFor(const Kernel& kernel, const TargetInfo& target, const std::string& written) {
    CT_TRY(LoopPlan plan, parsePlan(written));
    if (const std::string problem = problemOf(plan, kernel, target); !problem.empty())
        return invalidInput(problem, "the plan of " + kernel.name);
    return plan;
}

PrintedKernel printed(const LoweredKernel& kernel, const TargetInfo& target) {
    return target.device.type == DeviceType::Cuda ? printCuda(kernel) : printCpp(kernel);
}

PlanTimes timesOf(const CpuProgram& program, const CpuRun& run, const std::string& kernel) {
    PlanTimes times;
    times.milliseconds = run.medianMilliseconds;
    const std::vector<KernelInfo>& calls = program.info().kernels;
    for (size_t i = 0; i < calls.size() && i < run.microseconds.size(); ++i)
        if (calls[i].name == kernel) times.kernelMilliseconds += run.microseconds[i] / 1000;
    return times;
}

Result<PlanRun> tried(const Session::State& state, Session::State::Run& run, const std::string& kernel,
                      const std::string& written, const PlanRunOptions& options, const Progress& progress) {
    if (run.trace.isSplit())
        return unsupported("plans are tried in runs for inference, and this one is for training", {},
                           {"compile the model for inference, or open the forward's graph as a model of its own"});
    CT_TRY_VOID(checkLowered(run.trace));
    const Snapshot module = run.trace.result();
    CT_TRY(RunInputs inputs,
           chooseInputs(*state.input, state.sampleInputs, options.inputsFile, state.noSamples, module.get()));
    CT_TRY(const CalledGraph called, calledWith(*state.input, module, std::move(inputs.user)));
    CT_TRY(const std::vector<Tensor> bound, bindInputs(*module, called.user));
    // What is wrong with the plan is said before anything is compiled.
    CT_TRY(const NamedKernels named, kernelNamed(run, kernel, progress));
    CT_TRY(const LoopPlan plan, planFor(named.planned->kernel, *named.program->target, written));
    const std::lock_guard turn(run.turn);
    CT_TRY(const CpuProgram* chosen, programOf(run, "", &bound, progress));
    progress.say(-1, "compiling kernels by the plan");
    CpuBuildOptions building;
    building.target = named.program->target;
    building.plans.emplace(kernel, plan);
    CT_TRY(const CpuProgram given, buildCpu(run.built->program->graphs[0].module, building, progress));
    CpuRunOptions running;
    running.repeat = std::max(1, options.repeat);
    running.timeoutSeconds = options.timeoutSeconds;
    progress.say(-1, "running both");
    CT_TRY(const CpuRun before, runCpu(*chosen, bound, running, progress));
    CT_TRY(const CpuRun after, runCpu(given, bound, running, progress));
    PlanRun report;
    report.chosen = timesOf(*chosen, before, kernel);
    report.given = timesOf(given, after, kernel);
    report.repeats = running.repeat;
    report.inputsFrom = inputs.from;
    report.sameBits =
        std::equal(before.outputs.begin(), before.outputs.end(), after.outputs.begin(), after.outputs.end(), sameBits);
    const Verdict verdict = compareOutputs(after.outputs, before.outputs, 0);
    report.same = !verdict.bad;
    report.difference = verdict.detail;
    return report;
}

}  // namespace

Result<std::vector<LoopKernel>> loopKernels(Session& session, RunId id, const Progress& progress) {
    return guarded([&]() -> Result<std::vector<LoopKernel>> {
        CT_TRY(const std::vector<KernelCall> calls, kernelCalls(session, id, progress));
        CT_TRY(const Session::State::Run* run, session.state().run(id));
        std::map<std::string, Snapshot> graphs;  // by graph
        const std::vector<ScheduledGraph> scheduled = scheduledGraphs(run->trace);
        const std::vector<Snapshot> last = lastGraphs(run->trace);
        for (size_t i = 0; i < scheduled.size(); ++i) graphs.emplace(scheduled[i].name, last[i]);
        std::vector<LoopKernel> all;
        std::map<std::string, size_t> places;
        for (const KernelCall& call : calls) {
            if (call.kernel.empty()) continue;
            const auto [place, fresh] = places.try_emplace(call.kernel, all.size());
            if (fresh) all.push_back({call.kernel, call.kind});
            LoopKernel& kernel = all[place->second];
            ++kernel.calls;
            kernel.microseconds += call.microseconds;
            for (const NodeKey node : call.nodes) {
                kernel.nodes.push_back(node);
                if (const Node* found = graphs.at(call.graphName)->graph().find(nodeOf(node)))
                    kernel.nodeNames.push_back(found->name());
            }
        }
        return all;
    });
}

Result<KernelLoops> kernelLoops(Session& session, RunId id, const std::string& name,
                                const std::optional<std::string>& plan, const Progress& progress) {
    return guarded([&]() -> Result<KernelLoops> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        CT_TRY(const NamedKernels named, kernelNamed(*run, name, progress));
        const Kernel& kernel = named.planned->kernel;
        LoopPlan chosen = named.planned->plan;
        if (plan) {
            CT_TRY(chosen, planFor(kernel, *named.program->target, *plan));
        }
        KernelLoops loops;
        loops.kernel = text(kernel);
        loops.plan = text(chosen);
        std::vector<LoopStep> steps;
        const LoweredKernel lowered = lowerLoops(kernel, chosen, *named.program->target, &steps);
        for (LoopStep& step : steps) loops.steps.push_back({std::move(step.name), std::move(step.text)});
        PrintedKernel code = printed(lowered, *named.program->target);
        loops.source = std::move(code.source);
        loops.lines = std::move(code.lines);
        loops.target = run->trace.request.target;
        return loops;
    });
}

std::span<const Listing> listingsOf(Target target) {
    static constexpr Listing kCpu[] = {Listing::Assembly}, kGpu[] = {Listing::Ptx, Listing::Sass};
    if (target == Target::Cuda) return kGpu;
    return kCpu;
}

std::string_view listingName(Listing listing) {
    switch (listing) {
        case Listing::Assembly: return "assembly";
        case Listing::Ptx: return "ptx";
        case Listing::Sass: return "sass";
    }
    return {};
}

Result<std::string> kernelListing(Session& session, RunId id, const std::string& name, Listing listing,
                                  const std::optional<std::string>& plan, const Progress& progress) {
    return guarded([&]() -> Result<std::string> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        CT_TRY(const NamedKernels named, kernelNamed(*run, name, progress));
        const TargetInfo& target = *named.program->target;
        LoopPlan chosen = named.planned->plan;
        if (plan) {
            CT_TRY(chosen, planFor(named.planned->kernel, target, *plan));
        }
        return listKernel(named.planned->kernel.name,
                          printed(lowerLoops(named.planned->kernel, chosen, target), target), listing, target,
                          progress);
    });
}

Result<PlanRun> runWithPlan(Session& session, RunId id, const std::string& kernel, const std::string& plan,
                            const PlanRunOptions& options, const Progress& progress) {
    return guarded([&]() -> Result<PlanRun> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        return tried(session.state(), *run, kernel, plan, options, progress);
    });
}

}  // namespace cutaway
