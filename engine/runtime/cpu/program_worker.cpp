#include "engine/runtime/cpu/program_worker.h"

#include <deque>

#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/runtime/cpu/host_io.h"
#include "engine/runtime/wire.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

/// Loaded programs hold their weights. The latest few are kept, so that looking at two runs in turn loads nothing.
class Loaded {
  public:
    /// The one that was used longest ago, if there are too many now; to be ended by the caller.
    std::shared_ptr<ProgramWorker> use(const std::shared_ptr<ProgramWorker>& program) {
        const std::lock_guard lock(m_mutex);
        std::erase_if(m_latest, [&](const auto& known) { return known.expired() || known.lock() == program; });
        m_latest.push_back(program);
        if (m_latest.size() <= kMost) return nullptr;
        const auto oldest = m_latest.front().lock();
        m_latest.pop_front();
        return oldest;
    }

  private:
    static constexpr size_t kMost = 3;
    std::mutex m_mutex;
    std::deque<std::weak_ptr<ProgramWorker>> m_latest;
};

Loaded& loaded() {
    static Loaded all;
    return all;
}

/// Without those that stay the same.
std::vector<Tensor> changing(const HostFunction& function, std::vector<Tensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
        if (function.parameters[i].constant) inputs[i] = Tensor();
    return inputs;
}

}  // namespace

int ProgramWorker::process() const {
    const std::lock_guard lock(m_turn);
    return m_worker ? m_worker->process() : 0;
}

void ProgramWorker::keepAlive() {
    const auto old = loaded().use(shared_from_this());
    // One that is running just now stays until it is used longest ago again.
    if (old && old->m_turn.try_lock()) {
        old->m_worker.reset();
        old->m_turn.unlock();
    }
}

ProgramWorker::ProgramWorker(std::shared_ptr<const HostPackage> package)
    : m_package(std::move(package)), m_bytes(serialize(m_package->program)) {}

Result<Message> ProgramWorker::ask(Worker& worker, bool load, size_t function, const std::vector<Tensor>& inputs,
                                   const CpuRunOptions& options, const Progress& progress) {
    ByteWriter out;
    out.pod(options.repeat);
    out.pod(static_cast<uint64_t>(function));
    out.pod(load);
    std::vector<Tensor> tensors;
    if (load) {
        out.pod(options.threads);
        out.pod(options.splitSmall);
        out.pod(options.apart);
        out.text(m_bytes);
        out.count(m_package->libraries.size());
        for (const std::string& library : m_package->libraries) out.text(library);
        tensors = m_package->constants;
        tensors.insert(tensors.end(), inputs.begin(), inputs.end());
    } else {
        tensors = changing(m_package->program.functions[function], inputs);
    }
    return worker.ask(WorkerTask::Compiled, "the compiled graph", out.bytes, tensors,
                      {options.threads, options.timeoutSeconds, options.memoryBytes}, progress);
}

Result<Message> ProgramWorker::run(size_t function, const std::vector<Tensor>& inputs, const CpuRunOptions& options,
                                   const Progress& progress) {
    // Limits hold for a whole process, and faults are asked of it when it starts.
    if (options.apart || options.memoryBytes > 0 || faultsAsked()) {
        CT_TRY(Worker own, Worker::start({options.threads, options.timeoutSeconds, options.memoryBytes}, false));
        return ask(own, true, function, inputs, options, progress);
    }
    keepAlive();
    const std::lock_guard lock(m_turn);
    const bool same = m_threads == options.threads && m_splitSmall == options.splitSmall;
    if (m_worker && (!same || !m_worker->running())) m_worker.reset();
    const bool kept = m_worker.has_value();
    auto reply = askLoaded(function, inputs, options, progress);
    // A kept process may have ended while nobody looked, before this run began.
    const bool idle = kept && !reply && !m_worker && reply.error().where == Board::kNotBegun &&
                      reply.error().code == ErrorCode::ToolFailed;
    return idle ? askLoaded(function, inputs, options, progress) : std::move(reply);
}

Result<Message> ProgramWorker::askLoaded(size_t function, const std::vector<Tensor>& inputs,
                                         const CpuRunOptions& options, const Progress& progress) {
    if (!m_worker) {
        CT_TRY(m_worker, Worker::start({options.threads, options.timeoutSeconds}, true));
        m_threads = options.threads;
        m_splitSmall = options.splitSmall;
        m_loaded = false;
    }
    const bool load = !m_loaded;
    auto reply = ask(*m_worker, load, function, inputs, options, progress);
    m_loaded = m_worker->running() && (reply || !load);
    if (!m_worker->running()) m_worker.reset();
    return reply;
}

namespace {

/// The program that a process holds, and the contexts that it has run.
struct Held {
    std::shared_ptr<LoadedProgram> program;
    bool apart = false;
    std::map<size_t, std::unique_ptr<HostContext>> contexts;  // by function
};

Result<Held> loadedFrom(ByteReader& in, Message& request, size_t function) {
    Held held;
    ProgramOptions options;
    options.threads = in.pod<int>();
    options.splitSmall = in.pod<bool>();
    held.apart = in.pod<bool>();
    CT_TRY(HostProgram program, deserializeHost(in.text()));
    std::vector<std::string> libraries;
    in.each([&] { libraries.emplace_back(in.text()); });
    const size_t constants = program.constants.size();
    if (in.failed() || function >= program.functions.size() ||
        request.tensors.size() != constants + program.functions[function].parameters.size())
        return invalidInput("the host program is damaged");
    const auto given = request.tensors.begin() + static_cast<std::ptrdiff_t>(constants);
    std::vector<std::vector<Tensor>> weights(program.functions.size());
    weights[function].assign(given, request.tensors.end());
    request.tensors.erase(given, request.tensors.end());
    std::vector<Tensor> inputs = weights[function];
    CT_TRY(auto code, CompiledKernels::load(program, libraries));
    held.program = std::make_shared<LoadedProgram>(std::move(program), std::move(code), std::move(request.tensors),
                                                   std::move(weights), options);
    request.tensors = std::move(inputs);
    return held;
}

}  // namespace

Result<Message> answerCompiled(Message& request, Board& board) {
    static std::optional<Held> held;  // of the latest request that loaded one
    ByteReader in(request.text);
    const int repeat = in.pod<int>();
    const auto function = static_cast<size_t>(in.pod<uint64_t>());
    if (in.pod<bool>()) {
        held.reset();
        CT_TRY(held, loadedFrom(in, request, function));
    }
    if (!held || function >= held->program->program().functions.size())
        return invalidInput("the worker has no program");
    auto& context = held->contexts[function];
    if (!context) context = std::make_unique<HostContext>(held->program, function, held->apart);
    CT_TRY(HostRun result, context->run(request.tensors, repeat, board));
    Message reply;
    reply.tensors = std::move(result.outputs);
    ByteWriter out;
    for (const auto* times : {&result.stepMicroseconds, &result.totalMilliseconds}) {
        out.count(times->size());
        for (double time : *times) out.pod(time);
    }
    reply.text = std::move(out.bytes);
    return reply;
}

}  // namespace cutaway
