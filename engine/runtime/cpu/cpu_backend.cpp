#include "engine/runtime/cpu/cpu_backend.h"

#include <numeric>

#include "engine/codegen/cpp_printer.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/host/bind_host.h"
#include "engine/host/make_host.h"
#include "engine/interpret/constants.h"
#include "engine/runtime/cpu/build_kernels.h"
#include "engine/runtime/cpu/host_io.h"
#include "engine/runtime/cpu/program_worker.h"
#include "engine/runtime/wire.h"
#include "engine/schedule/schedule.h"
#include "engine/support/checked.h"
#include "engine/support/elapsed.h"
#include "engine/support/files.h"
#include "engine/support/machine.h"
#include "engine/support/temp_dir.h"

namespace cutaway {

/// One graph of the program: it has one, or for training two.
struct CpuProgram::Part {
    ScheduledProgram program;
    std::vector<LoweredKernel> kernels;  // until the host program is made
    std::vector<PrintedKernel> printed;  // until they are compiled
    BuildInfo info;
    size_t function = 0;
};
struct CpuProgram::State {
    std::vector<Part> parts;
    std::shared_ptr<HostPackage> host = std::make_shared<HostPackage>();
    std::optional<TempDir> folder;
    std::shared_ptr<ProgramWorker> worker;

    const HostFunction& function(const Part& part) const { return host->program.functions[part.function]; }
};

const CpuProgram::Part& CpuProgram::part() const { return m_state->parts[m_part]; }

const BuildInfo& CpuProgram::info() const { return part().info; }

const HostProgram& CpuProgram::host() const { return m_state->host->program; }

int CpuProgram::process() const { return m_state->worker->process(); }

CpuProgram::Hold CpuProgram::hold() const { return {m_state->worker, m_state->worker->hold()}; }

Result<int64_t> CpuProgram::arenaBytes(const std::vector<Tensor>& inputs) const {
    const HostFunction& function = m_state->function(part());
    CT_TRY(const SymbolValues sizes, bindSymbols(function, inputs));
    CT_TRY(const BoundFunction bound, bindMemory(function, sizes));
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
        if (const std::string problem = problemOf(plan, at->kernel, *program.target); !problem.empty())
            return invalidInput(problem, "the plan of " + name);
        at->plan = plan;
    }
    return {};
}

bool onGpu(const ScheduledProgram& program) { return program.target->device.type == DeviceType::Cuda; }

Result<CpuProgram::Part> prepare(std::shared_ptr<const Module> module, const CpuBuildOptions& options,
                                 const Progress& progress) {
    CpuProgram::Part part;
    CT_TRY(part.program, scheduleModule(std::move(module), *options.target, progress));
    CT_TRY_VOID(replan(part.program, options.plans));
    progress.say(0.3, "printing kernels");
    CT_TRY_VOID(withCheckedSizes("the kernels", {}, [&]() -> Result<void> {
        part.kernels = lowerKernels(part.program);
        for (const LoweredKernel& kernel : part.kernels)
            part.printed.push_back(onGpu(part.program) ? printCuda(kernel) : printCpp(kernel));
        return {};
    }));
    part.info.source = onGpu(part.program) ? cudaFile(part.printed) : cppFile(part.printed);
    for (const ScheduledCall& call : part.program.calls) {
        KernelInfo info;
        info.name = call.kind == CallKind::Kernel ? part.program.kernels[call.kernel].kernel.name : call.node->name();
        if (call.kind == CallKind::Kernel) info.source = part.printed[call.kernel].source;
        for (const NodeId node : call.nodes) info.nodes.push_back(nodeKey(0, node));
        info.reasons = call.reasons;
        info.kind = call.description;
        info.bytesRead = call.bytesRead;
        info.bytesWritten = call.bytesWritten;
        info.flops = call.flops;
        part.info.kernels.push_back(std::move(info));
    }
    return part;
}

/// Compiles what was printed of all parts; the host program is there.
Result<std::shared_ptr<const CpuProgram::State>> compiled(CpuProgram::State state, const CpuBuildOptions& options,
                                                          const Progress& progress) {
    std::string folder = options.folder;
    if (folder.empty()) {
        CT_TRY(TempDir temporary, TempDir::create("build"));
        folder = temporary.path().string();
        state.folder.emplace(std::move(temporary));
    }
    std::vector<PrintedKernel> printed;
    for (CpuProgram::Part& part : state.parts) {
        std::move(part.printed.begin(), part.printed.end(), std::back_inserter(printed));
        part.printed.clear();
        part.kernels.clear();
    }
    const bool gpu = onGpu(state.parts.front().program);
    CT_TRY_VOID(writeFile(folder + (gpu ? "/graph.cu" : "/graph.cpp"), gpu ? cudaFile(printed) : cppFile(printed)));
    KernelBuild build{folder, {options.compiler, options.timeoutSeconds}, nullptr};
    if (gpu) {
        CT_TRY(build.gpu, findCuda(progress));
    }
    if (options.store != "off") build.store = KernelCache::open(options.store);
    CT_TRY(BuiltKernels built, buildKernels(printed, build, progress));
    state.host->libraries = std::move(built.libraries);
    BuildInfo& info = state.parts.front().info;
    if (!state.host->libraries.empty()) info.library = state.host->libraries.front();
    info.compileLog = std::move(built.log);
    info.compileSeconds = built.seconds;
    state.worker = std::make_shared<ProgramWorker>(state.host);
    return std::make_shared<const CpuProgram::State>(std::move(state));
}

}  // namespace

Result<BuildInfo> previewCpu(std::shared_ptr<const Module> module, const Progress& progress) {
    CT_TRY(CpuProgram::Part part, prepare(std::move(module), {}, progress));
    return std::move(part.info);
}

Result<CpuProgram> buildCpu(std::shared_ptr<const Module> module, const CpuBuildOptions& options,
                            const Progress& progress) {
    CT_TRY(const Snapshot complete, withDeferredConstants(*module));
    if (complete) module = complete;
    CpuProgram::State state;
    CT_TRY(CpuProgram::Part part, prepare(std::move(module), options, progress));
    CT_TRY(state.host->program, hostProgramOf(part.program, part.kernels));
    CT_TRY(state.host->constants, heldConstantsOf(state.host->program, part.program));
    state.parts.push_back(std::move(part));
    CT_TRY(auto shared, compiled(std::move(state), options, progress));
    return CpuProgram(std::move(shared));
}

Result<CpuTraining> buildTraining(std::shared_ptr<const Module> forward, std::shared_ptr<const Module> backward,
                                  std::vector<int64_t> saved, const CpuBuildOptions& options,
                                  const Progress& progress) {
    CpuProgram::State state;
    for (std::shared_ptr<const Module>* half : {&forward, &backward}) {
        CT_TRY(const Snapshot complete, withDeferredConstants(**half));
        CT_TRY(CpuProgram::Part part, prepare(complete ? complete : *half, options, progress));
        state.parts.push_back(std::move(part));
    }
    const TrainingHalves halves{&state.parts[0].program, &state.parts[1].program, std::move(saved)};
    std::vector<LoweredKernel> kernels = std::move(state.parts[0].kernels);
    std::move(state.parts[1].kernels.begin(), state.parts[1].kernels.end(), std::back_inserter(kernels));
    CT_TRY(state.host->program, hostProgramOf(halves, kernels));
    CT_TRY(state.host->constants, heldConstantsOf(state.host->program, halves));
    state.parts[1].function = *functionNamed(state.host->program, kBackwardFunction);
    CT_TRY(auto shared, compiled(std::move(state), options, progress));
    return CpuTraining{CpuProgram(shared, 0), CpuProgram(shared, 1)};
}

KeptProgram keptOf(const CpuProgram& program) {
    return {serialize(program.host()), program.state().host->libraries, program.info()};
}

Result<CpuProgram> loadKept(KeptProgram kept,
                            const std::function<Result<std::vector<Tensor>>(const HostProgram&)>& constants) {
    CpuProgram::State state;
    CT_TRY(state.host->program, deserializeHost(kept.host));
    if (kept.libraries.size() != state.host->program.kernels.size())
        return invalidInput("the kept program has other kernels than libraries");
    CT_TRY(state.host->constants, constants(state.host->program));
    state.host->libraries = std::move(kept.libraries);
    state.parts.emplace_back().info = std::move(kept.info);
    state.worker = std::make_shared<ProgramWorker>(state.host);
    return CpuProgram(std::make_shared<const CpuProgram::State>(std::move(state)));
}

namespace {

std::vector<MemoryWish> wishes(const HostPackage& host, const HostFunction& function, const BoundFunction& bound,
                               const std::vector<Tensor>& inputs, const std::vector<size_t>& results) {
    double own = 0, returned = 0;
    for (size_t i = 0; i < function.values.size(); ++i) {
        const HostValue& value = function.values[i];
        const auto bytes = static_cast<double>(bound.values[i].bytes);
        if (value.kind == HostValue::Kind::Input && !value.constant) own += bytes;  // kernels may write to it
        if (value.kind == HostValue::Kind::Own) returned += bytes;
    }
    return {{"inputs and weights", static_cast<double>(bytesOf(inputs) + bytesOf(host.constants)) + own},
            {"values", static_cast<double>(bound.arenaBytes()) + returned},
            {"results", std::accumulate(results.begin(), results.end(), 0.0)}};  // beside the values
}

}  // namespace

Result<CpuRun> runCpu(const CpuProgram& program, const std::vector<Tensor>& inputs, const CpuRunOptions& options,
                      const Progress& progress) {
    const auto start = std::chrono::steady_clock::now();
    const HostPackage& host = *program.state().host;
    const HostFunction& function = program.state().function(program.part());
    CT_TRY(const SymbolValues sizes, bindSymbols(function, inputs));
    CT_TRY(const std::vector<Tensor> laid, laidOut(function, inputs, sizes, Constants::AsGiven));
    CT_TRY(const BoundFunction bound, bindMemory(function, sizes));
    const size_t called = program.part().function;
    const std::vector<size_t> results = returnedBytes(host.program, called, bound, options.leaveSaved);
    CT_TRY_VOID(checkMemory("the compiled run", wishes(host, function, bound, laid, results), Whose::ChildOwn));
    progress.say(0.2, "running");
    CT_TRY(ProgramWorker::Reply reply, program.state().worker->run(called, laid, results, options, progress));
    ByteReader in(reply.message.text);
    CpuRun run;
    run.outputs = std::move(reply.message.tensors);
    std::vector<double> totals;
    for (auto* times : {&run.microseconds, &totals}) in.each([&] { times->push_back(in.pod<double>()); });
    run.cost.loadMilliseconds = reply.loadMilliseconds;
    run.cost.startMilliseconds = millisecondsSince(start) - reply.loadMilliseconds - in.pod<double>();
    run.cost.arenaBytes = in.pod<int64_t>();
    run.cost.weightsBytes = in.pod<int64_t>();
    in.each([&] {
        const auto number = static_cast<size_t>(in.pod<uint64_t>());
        const std::string_view why = in.text();
        if (in.failed() || number >= function.steps.size()) return;
        const HostStep& step = function.steps[number];
        run.refused[number] = step.node + ": " + step.library + " does not take " + step.op + " (" + std::string(why) +
                              "): the reference kernel computes it";
    });
    for (size_t at = results.size(); at < run.outputs.size(); ++at)
        run.written.emplace_back(static_cast<size_t>(in.pod<uint64_t>()), std::move(run.outputs[at]));
    run.outputs.resize(results.size());
    for (size_t r = 0; r < results.size(); ++r)
        if (const int64_t number = function.results[r]; function.isConstantInput(number)) {
            const auto place = static_cast<size_t>(number);
            run.outputs[r] =
                laidOut(laid[static_cast<size_t>(function.values[place].index)], bound.values[place].strides);
        }
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
