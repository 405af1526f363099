#include "engine/runtime/cpu/cpu_backend.h"

#include "engine/codegen/cpp_printer.h"
#include "engine/runtime/cpu/compiler.h"
#include "engine/runtime/cpu/worker.h"
#include "engine/schedule/schedule.h"
#include "engine/support/files.h"
#include "engine/support/temp_dir.h"

namespace cutaway {

struct CpuProgram::State {
    ScheduledProgram program;
    std::vector<PrintedKernel> printed;
    BuildInfo info;
    std::optional<TempDir> folder;
};

const BuildInfo& CpuProgram::info() const { return m_state->info; }

Result<int64_t> CpuProgram::arenaBytes(const std::vector<Tensor>& inputs) const {
    CT_TRY(const BoundProgram bound, bindProgram(m_state->program, m_state->printed, inputs));
    return bound.plan.arenaBytes;
}

namespace {

Result<CpuProgram::State> prepare(std::shared_ptr<const Module> module, const Progress& progress) {
    CpuProgram::State state;
    CT_TRY(state.program, scheduleModule(std::move(module), progress));
    progress.say(0.3, "printing kernels");
    for (const Kernel& kernel : state.program.kernels) state.printed.push_back(printCpp(kernel));
    state.info.source = cppFile(state.printed);
    for (const ScheduledCall& call : state.program.calls) {
        KernelInfo info;
        info.name = call.kind == CallKind::Kernel ? state.program.kernels[call.kernel].name : call.node->name();
        if (call.kind == CallKind::Kernel) info.source = state.printed[call.kernel].source;
        info.nodes = call.nodes;
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
    CT_TRY(CpuProgram::State state, prepare(std::move(module), progress));
    return std::move(state.info);
}

Result<CpuProgram> buildCpu(std::shared_ptr<const Module> module, const CpuBuildOptions& options, const Progress& progress) {
    CT_TRY(CpuProgram::State state, prepare(std::move(module), progress));
    std::string folder = options.folder;
    if (folder.empty()) {
        CT_TRY(TempDir temporary, TempDir::create("build"));
        folder = temporary.path().string();
        state.folder.emplace(std::move(temporary));
    }
    const std::string source = folder + "/graph.cpp";
    CT_TRY_VOID(writeFile(source, state.info.source));
    if (!state.program.kernels.empty()) {
        progress.say(0.5, "compiling " + std::to_string(state.program.kernels.size()) + " kernels");
        state.info.library = folder + "/graph.so";
        CT_TRY(CompiledLibrary compiled, compileCpp(source, state.info.library, {options.compiler, options.timeoutSeconds}, progress));
        state.info.compileLog = compiled.command + "\n" + compiled.log;
        state.info.compileSeconds = compiled.seconds;
    }
    return CpuProgram(std::make_shared<const CpuProgram::State>(std::move(state)));
}

Result<CpuRun> runCpu(const CpuProgram& program, const std::vector<Tensor>& inputs, const CpuRunOptions& options, const Progress& progress) {
    CT_TRY(const BoundProgram bound, bindProgram(program.state().program, program.state().printed, inputs));
    progress.say(0.2, "running");
    const WorkerOptions worker{options.repeat, options.threads, options.timeoutSeconds, options.memoryBytes};
    CT_TRY(ExecutionResult result, runInWorker(bound.plan, bound.given, program.info().library, worker, progress));
    CpuRun run;
    run.outputs = std::move(result.outputs);
    run.microseconds = std::move(result.callMicroseconds);
    std::vector<double>& totals = result.totalMilliseconds;
    std::sort(totals.begin(), totals.end());
    if (!totals.empty()) {
        run.medianMilliseconds = totals[totals.size() / 2];
        run.minMilliseconds = totals[0];
    }
    return run;
}

}  // namespace cutaway
