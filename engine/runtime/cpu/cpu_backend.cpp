#include "engine/runtime/cpu/cpu_backend.h"

#include <filesystem>
#include <numeric>

#include "engine/cache/value_store.h"
#include "engine/codegen/cpp_printer.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/host/bind_host.h"
#include "engine/host/plan_program.h"
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
    BuildInfo info;
    size_t function = 0;
};
struct CpuProgram::State {
    std::vector<Part> parts;
    std::shared_ptr<HostPackage> host;
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

/// Plain text, since the process that runs programs opens no database.
std::string choicesBeside(const std::string& store) {
    const std::string path = store.empty() ? ValueStore::defaultPath() : store;
    if (path.empty() || path == "off") return {};
    return std::filesystem::path(path).replace_filename("cublaslt.txt").string();
}

bool onGpu(const PlannedProgram& program) { return program.graphs[0].target->device.type == DeviceType::Cuda; }

std::string fileOf(const PlannedProgram& program, const std::vector<PrintedKernel>& printed) {
    return onGpu(program) ? cudaFile(printed) : cppFile(printed);
}

/// The kernels of a graph and of those that its calls run.
size_t kernelsOf(const ScheduledProgram& program) {
    size_t count = program.kernels.size();
    for (const auto& body : program.bodies) count += kernelsOf(*body.second);
    return count;
}

/// `printed`: the kernels of the graph.
BuildInfo infoOf(const ScheduledProgram& program, const std::vector<PrintedKernel>& printed) {
    BuildInfo all;
    for (const ScheduledCall& call : program.calls) {
        KernelInfo info;
        info.name = call.kind == CallKind::Kernel ? program.kernels[call.kernel].kernel.name : call.node->name();
        if (call.kind == CallKind::Kernel) info.source = printed[call.kernel].source;
        for (const NodeId node : call.nodes) info.nodes.push_back(nodeKey(0, node));
        info.reasons = call.reasons;
        info.kind = call.description;
        info.bytesRead = call.bytesRead;
        info.bytesWritten = call.bytesWritten;
        info.flops = call.flops;
        all.kernels.push_back(std::move(info));
    }
    return all;
}

/// What is known of each graph before anything is compiled.
std::vector<BuildInfo> infosOf(const PlannedProgram& planned, const std::vector<PrintedKernel>& printed) {
    std::vector<BuildInfo> infos;
    auto next = printed.begin();
    for (const ScheduledProgram& graph : planned.graphs) {
        const auto end = next + static_cast<std::ptrdiff_t>(kernelsOf(graph));
        const std::vector<PrintedKernel> own(next, end);
        infos.push_back(infoOf(graph, own));
        infos.back().source = fileOf(planned, own);
        next = end;
    }
    return infos;
}

std::vector<PrintedKernel> printAll(const PlannedProgram& planned) {
    std::vector<PrintedKernel> printed;
    for (const LoweredKernel& kernel : planned.kernels)
        printed.push_back(onGpu(planned) ? printCuda(kernel) : printCpp(kernel));
    return printed;
}

}  // namespace

Result<BuildInfo> previewCpu(std::shared_ptr<const Module> module, const Progress& progress) {
    CT_TRY(const PlannedProgram planned, planProgram({std::move(module)}, {}, kCpuTarget, {}, progress));
    return withCheckedSizes("the kernels", {},
                            [&]() -> Result<BuildInfo> { return infosOf(planned, printAll(planned)).front(); });
}

Result<std::vector<CpuProgram>> buildPlanned(std::shared_ptr<const PlannedProgram> planned,
                                             const CpuBuildOptions& options, const Progress& progress) {
    if (planned->whyNoHost) return *planned->whyNoHost;
    progress.say(0.3, "printing kernels");
    std::vector<PrintedKernel> printed;
    CT_TRY_VOID(withCheckedSizes("the kernels", {}, [&]() -> Result<void> {
        printed = printAll(*planned);
        return {};
    }));
    std::vector<Snapshot> modules;
    for (const ScheduledProgram& graph : planned->graphs) {
        CT_TRY(const Snapshot complete, withDeferredConstants(*graph.module));
        modules.push_back(complete ? complete : graph.module);
    }
    CpuProgram::State state;
    state.host = std::make_shared<HostPackage>(planned);
    CT_TRY(state.host->constants, heldConstantsOf(*planned, modules));
    for (BuildInfo& info : infosOf(*planned, printed))
        state.parts.push_back({std::move(info), planned->functionOf(state.parts.size())});
    std::string folder = options.folder;
    if (folder.empty()) {
        CT_TRY(TempDir temporary, TempDir::create("build"));
        folder = temporary.path().string();
        state.folder.emplace(std::move(temporary));
    } else {  // for whoever asked for the folder
        const std::string& only = state.parts.front().info.source;
        CT_TRY_VOID(writeFile(folder + (onGpu(*planned) ? "/graph.cu" : "/graph.cpp"),
                              state.parts.size() == 1 ? only : fileOf(*planned, printed)));
    }
    KernelBuild build{folder, {options.compiler, options.timeoutSeconds}, nullptr};
    if (onGpu(*planned)) {
        CT_TRY(build.gpu, findCuda(progress));
    }
    if (options.store != "off") build.store = KernelCache::open(options.store);
    CT_TRY(BuiltKernels built, buildKernels(printed, build, progress));
    state.host->libraries = std::move(built.libraries);
    state.host->choices = choicesBeside(options.store);
    BuildInfo& info = state.parts.front().info;
    if (!state.host->libraries.empty()) info.library = state.host->libraries.front();
    info.compileLog = std::move(built.log);
    info.compileSeconds = built.seconds;
    state.worker = std::make_shared<ProgramWorker>(state.host);
    const auto shared = std::make_shared<const CpuProgram::State>(std::move(state));
    std::vector<CpuProgram> programs;
    for (size_t i = 0; i < planned->graphs.size(); ++i) programs.emplace_back(shared, i);
    return programs;
}

namespace {

Result<std::vector<CpuProgram>> built(const std::vector<Snapshot>& graphs, std::vector<int64_t> saved,
                                      const CpuBuildOptions& options, const Progress& progress) {
    CT_TRY(PlannedProgram planned, planProgram(graphs, std::move(saved), *options.target, options.plans, progress));
    return buildPlanned(std::make_shared<const PlannedProgram>(std::move(planned)), options, progress);
}

}  // namespace

Result<CpuProgram> buildCpu(std::shared_ptr<const Module> module, const CpuBuildOptions& options,
                            const Progress& progress) {
    CT_TRY(const std::vector<CpuProgram> programs, built({std::move(module)}, {}, options, progress));
    return programs.front();
}

Result<CpuTraining> buildTraining(std::shared_ptr<const Module> forward, std::shared_ptr<const Module> backward,
                                  std::vector<int64_t> saved, const CpuBuildOptions& options,
                                  const Progress& progress) {
    CT_TRY(const std::vector<CpuProgram> programs,
           built({std::move(forward), std::move(backward)}, std::move(saved), options, progress));
    return CpuTraining{programs[0], programs[1]};
}

SerializedProgram serialized(const CpuProgram& program) {
    return {serialize(program.host()), program.state().host->libraries, program.info()};
}

Result<CpuProgram> loadSerialized(SerializedProgram kept,
                                  const std::function<Result<std::vector<Tensor>>(const HostProgram&)>& constants) {
    const auto planned = std::make_shared<PlannedProgram>();
    CT_TRY(planned->host, deserializeHost(kept.host));
    CpuProgram::State state;
    state.host = std::make_shared<HostPackage>(planned);
    if (kept.libraries.size() != state.host->program.kernels.size())
        return invalidInput("the kept program has other kernels than libraries");
    CT_TRY(state.host->constants, constants(state.host->program));
    state.host->libraries = std::move(kept.libraries);
    state.host->choices = choicesBeside(kept.store);
    state.parts.push_back({std::move(kept.info), 0});
    state.worker = std::make_shared<ProgramWorker>(state.host);
    return CpuProgram(std::make_shared<const CpuProgram::State>(std::move(state)));
}

namespace {

std::vector<MemoryRequest> wishes(const HostPackage& host, const HostFunction& function, const BoundFunction& bound,
                                  const std::vector<Tensor>& inputs, const std::vector<size_t>& results) {
    double own = 0, returned = 0;
    for (size_t i = 0; i < function.values.size(); ++i) {
        const HostValue& value = function.values[i];
        const auto bytes = static_cast<double>(bound.values[i].bytes);
        if (value.kind == HostValue::Kind::Input && !value.constant) own += bytes;  // kernels may write to it
        if (value.kind == HostValue::Kind::StepOwned) returned += bytes;
    }
    // A GPU has memory of its own, whose limits it tells itself.
    const bool onHost = host.program.device.type == DeviceType::Cpu;
    return {{"inputs and weights", static_cast<double>(bytesOf(inputs) + bytesOf(host.constants)) + own},
            {"values", onHost ? static_cast<double>(bound.arenaBytes()) + returned : 0},
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
    CT_TRY_VOID(checkMemory("the compiled run", wishes(host, function, bound, laid, results), ForProcess::NewChild));
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
    run.milliseconds = std::move(totals);
    return run;
}

}  // namespace cutaway
