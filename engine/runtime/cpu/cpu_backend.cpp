#include "engine/runtime/cpu/cpu_backend.h"

#include <numeric>

#include "engine/codegen/cpp_printer.h"
#include "engine/interpret/constants.h"
#include "engine/runtime/cpu/build_kernels.h"
#include "engine/runtime/cpu/program_worker.h"
#include "engine/schedule/schedule.h"
#include "engine/support/files.h"
#include "engine/support/machine.h"
#include "engine/support/temp_dir.h"

namespace cutaway {

struct CpuProgram::State {
    ScheduledProgram program;
    std::vector<PrintedKernel> printed;
    std::vector<std::string> libraries;  // of each kernel where it is
    BuildInfo info;
    std::optional<TempDir> folder;
    std::shared_ptr<ProgramWorker> worker = std::make_shared<ProgramWorker>();
    std::shared_ptr<KnownArena> arena = std::make_shared<KnownArena>();

    Result<BoundProgram> bind(const std::vector<Tensor>& inputs) const {
        return bindProgram(program, printed, libraries, inputs, arena.get());
    }
};

const BuildInfo& CpuProgram::info() const { return m_state->info; }

int CpuProgram::process() const { return m_state->worker->process(); }

Result<int64_t> CpuProgram::arenaBytes(const std::vector<Tensor>& inputs) const {
    CT_TRY(const BoundProgram bound, m_state->bind(inputs));
    return bound.plan.arenaBytes;
}

namespace {

/// The program with these plans in place of the chosen ones.
Result<void> replan(ScheduledProgram& program, const std::map<std::string, LoopPlan>& plans) {
    for (const auto& given : plans) {  // not a structured binding: the lambda below reads it (clang 14)
        const auto& [name, plan] = given;
        const auto at = std::find_if(program.kernels.begin(), program.kernels.end(),
                                     [&](const PlannedKernel& k) { return k.kernel.name == given.first; });
        if (at == program.kernels.end()) return Error{ErrorCode::NotFound, "there is no kernel '" + name + "'", {}, {}};
        if (const std::string problem = problemOf(plan, at->kernel); !problem.empty())
            return invalidInput(problem, "the plan of " + name);
        at->plan = plan;
    }
    return {};
}

Result<CpuProgram::State> prepare(std::shared_ptr<const Module> module, const std::map<std::string, LoopPlan>& plans,
                                  const Progress& progress) {
    CpuProgram::State state;
    CT_TRY(state.program, scheduleModule(std::move(module), progress));
    CT_TRY_VOID(replan(state.program, plans));
    progress.say(0.3, "printing kernels");
    for (const PlannedKernel& planned : state.program.kernels)
        state.printed.push_back(printCpp(lowerLoops(planned.kernel, planned.plan)));
    state.info.source = cppFile(state.printed);
    for (const ScheduledCall& call : state.program.calls) {
        KernelInfo info;
        info.name = call.kind == CallKind::Kernel ? state.program.kernels[call.kernel].kernel.name : call.node->name();
        if (call.kind == CallKind::Kernel) info.source = state.printed[call.kernel].source;
        for (const NodeId node : call.nodes) info.nodes.push_back(nodeKey(0, node));
        info.reasons = call.reasons;
        info.kind = call.description;
        info.bytesRead = call.bytesRead;
        info.bytesWritten = call.bytesWritten;
        info.flops = call.flops;
        state.info.kernels.push_back(std::move(info));
    }
    return state;
}

}  // namespace

Result<BuildInfo> previewCpu(std::shared_ptr<const Module> module, const Progress& progress) {
    CT_TRY(CpuProgram::State state, prepare(std::move(module), {}, progress));
    return std::move(state.info);
}

Result<CpuProgram> buildCpu(std::shared_ptr<const Module> module, const CpuBuildOptions& options,
                            const Progress& progress) {
    CT_TRY(const Snapshot complete, withConstants(*module, progress));
    if (complete) module = complete;
    CT_TRY(CpuProgram::State state, prepare(std::move(module), options.plans, progress));
    std::string folder = options.folder;
    if (folder.empty()) {
        CT_TRY(TempDir temporary, TempDir::create("build"));
        folder = temporary.path().string();
        state.folder.emplace(std::move(temporary));
    }
    CT_TRY_VOID(writeFile(folder + "/graph.cpp", state.info.source));
    KernelBuild build{folder, {options.compiler, options.timeoutSeconds}, nullptr};
    if (options.store != "off") build.store = KernelCache::open(options.store);
    CT_TRY(BuiltKernels built, buildKernels(state.printed, build, progress));
    state.libraries = std::move(built.libraries);
    if (!state.libraries.empty()) state.info.library = state.libraries.front();
    state.info.compileLog = std::move(built.log);
    state.info.compileSeconds = built.seconds;
    return CpuProgram(std::make_shared<const CpuProgram::State>(std::move(state)));
}

namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<MemoryWish> wishes(const BoundProgram& bound) {
    double own = 0, adopted = 0, results = 0;
    const auto bytes = [](const PlanValue& value) {
        return std::accumulate(value.sizes.begin(), value.sizes.end(), static_cast<double>(byteSize(value.dtype)),
                               [](double all, int64_t size) { return all * static_cast<double>(size); });
    };
    for (const PlanValue& value : bound.plan.values) {
        if (value.kind == PlanValue::Kind::Given && !value.constant) own += bytes(value);  // kernels may write to it
        if (value.kind == PlanValue::Kind::Adopted) adopted += bytes(value);
    }
    for (const int64_t number : bound.plan.outputs)
        if (number >= 0)
            results += 2 * bytes(bound.plan.values[static_cast<size_t>(number)]);  // there, and on their way here
    return {{"inputs and weights", static_cast<double>(bytesOf(bound.given)) + own},
            {"values", static_cast<double>(bound.plan.arenaBytes) + adopted},
            {"results", results}};
}

}  // namespace

Result<CpuRun> runCpu(const CpuProgram& program, const std::vector<Tensor>& inputs, const CpuRunOptions& options,
                      const Progress& progress) {
    CT_TRY(BoundProgram bound, program.state().bind(inputs));
    if (options.splitSmall)
        for (PlanCall& call : bound.plan.calls) call.nanoseconds = kSecond;
    CT_TRY_VOID(checkMemory("the compiled run", wishes(bound), Whose::ChildOwn));
    progress.say(0.2, "running");
    CT_TRY(Message reply, program.state().worker->run(bound, options, progress));
    ByteReader in(reply.text);
    CpuRun run;
    run.outputs = std::move(reply.tensors);
    std::vector<double> totals;
    for (auto* times : {&run.microseconds, &totals}) in.each([&] { times->push_back(in.pod<double>()); });
    std::sort(totals.begin(), totals.end());
    if (!totals.empty()) {
        run.medianMilliseconds = totals[totals.size() / 2];
        run.minMilliseconds = totals[0];
    }
    return run;
}

}  // namespace cutaway
