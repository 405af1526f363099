#include "engine/runtime/cpu/cpu_backend.h"

#include "engine/codegen/cpp_printer.h"
#include "engine/host/bind_host.h"
#include "engine/interpret/constants.h"
#include "engine/runtime/cpu/build_kernels.h"
#include "engine/runtime/cpu/program_worker.h"
#include "engine/runtime/wire.h"
#include "engine/schedule/schedule.h"
#include "engine/support/elapsed.h"
#include "engine/support/files.h"
#include "engine/support/machine.h"
#include "engine/support/temp_dir.h"

namespace cutaway {

struct CpuProgram::State {
    ScheduledProgram program;
    std::vector<PrintedKernel> printed;
    std::shared_ptr<HostPackage> host = std::make_shared<HostPackage>();
    BuildInfo info;
    std::optional<TempDir> folder;
    std::shared_ptr<ProgramWorker> worker;

    const HostFunction& function() const { return host->program.functions[0]; }
};

const BuildInfo& CpuProgram::info() const { return m_state->info; }

const HostProgram& CpuProgram::host() const { return m_state->host->program; }

int CpuProgram::process() const { return m_state->worker->process(); }

Result<int64_t> CpuProgram::arenaBytes(const std::vector<Tensor>& inputs) const {
    CT_TRY(const SymbolValues sizes, bindSymbols(m_state->function(), inputs));
    CT_TRY(const BoundFunction bound, bindMemory(m_state->function(), sizes));
    return bound.arenaBytes();
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
    state.printed = printKernels(state.program);
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
    CT_TRY(state.host->program, hostProgramOf(state.program, state.printed));
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
    state.host->libraries = std::move(built.libraries);
    if (!state.host->libraries.empty()) state.info.library = state.host->libraries.front();
    state.info.compileLog = std::move(built.log);
    state.info.compileSeconds = built.seconds;
    CT_TRY(state.host->constants, heldConstantsOf(state.host->program, state.program));
    state.worker = std::make_shared<ProgramWorker>(state.host);
    return CpuProgram(std::make_shared<const CpuProgram::State>(std::move(state)));
}

namespace {

std::vector<MemoryWish> wishes(const HostPackage& host, const BoundFunction& bound, const std::vector<Tensor>& inputs) {
    const HostFunction& function = host.program.functions[0];
    double own = 0, returned = 0, results = 0;
    for (size_t i = 0; i < function.values.size(); ++i) {
        const HostValue& value = function.values[i];
        const auto bytes = static_cast<double>(bound.values[i].bytes);
        if (value.kind == HostValue::Kind::Input && !value.constant) own += bytes;  // kernels may write to it
        if (value.kind == HostValue::Kind::Own) returned += bytes;
    }
    for (const int64_t number : function.results)
        if (number >= 0)  // there, and on their way here
            results += 2 * static_cast<double>(bound.values[static_cast<size_t>(number)].bytes);
    return {{"inputs and weights", static_cast<double>(bytesOf(inputs) + bytesOf(host.constants)) + own},
            {"values", static_cast<double>(bound.arenaBytes()) + returned},
            {"results", results}};
}

}  // namespace

Result<CpuRun> runCpu(const CpuProgram& program, const std::vector<Tensor>& inputs, const CpuRunOptions& options,
                      const Progress& progress) {
    const auto start = std::chrono::steady_clock::now();
    const HostPackage& host = *program.state().host;
    const HostFunction& function = host.program.functions[0];
    CT_TRY(const SymbolValues sizes, bindSymbols(function, inputs));
    CT_TRY(const std::vector<Tensor> laid, laidOut(function, inputs, sizes, Constants::AsGiven));
    CT_TRY(const BoundFunction bound, bindMemory(function, sizes));
    CT_TRY_VOID(checkMemory("the compiled run", wishes(host, bound, laid), Whose::ChildOwn));
    progress.say(0.2, "running");
    CT_TRY(ProgramWorker::Reply reply, program.state().worker->run(0, laid, options, progress));
    ByteReader in(reply.message.text);
    CpuRun run;
    run.outputs = std::move(reply.message.tensors);
    std::vector<double> totals;
    for (auto* times : {&run.microseconds, &totals}) in.each([&] { times->push_back(in.pod<double>()); });
    run.cost.loadMilliseconds = reply.loadMilliseconds;
    run.cost.startMilliseconds = millisecondsSince(start) - reply.loadMilliseconds - in.pod<double>();
    run.cost.arenaBytes = in.pod<int64_t>();
    run.cost.weightsBytes = in.pod<int64_t>();
    const size_t results = function.results.size();
    for (size_t at = results; at < run.outputs.size(); ++at)
        run.written.emplace_back(static_cast<size_t>(in.pod<uint64_t>()), std::move(run.outputs[at]));
    run.outputs.resize(results);
    run.cost.peakBytes = reply.message.peakBytes;
    run.cost.programPeakBytes = peakMemory();
    std::sort(totals.begin(), totals.end());
    if (!totals.empty()) {
        run.medianMilliseconds = totals[totals.size() / 2];
        run.minMilliseconds = totals[0];
    }
    return run;
}

}  // namespace cutaway
