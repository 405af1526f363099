#include "engine/runtime/cpu/program_worker.h"

#include <deque>
#include <future>
#include <tuple>

#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/runtime/cpu/host_io.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/wire.h"
#include "engine/runtime/worker_pool.h"
#include "engine/support/elapsed.h"
#include "engine/support/fault_points.h"
#include "engine/support/machine.h"

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
        auto oldest = m_latest.front().lock();
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

constexpr const char* kWeightsMissing = "weights that are gone";

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

ProgramWorker::~ProgramWorker() {
    if (!m_worker || m_threads > 0 || !m_worker->running()) return;
    m_worker->unload();
    if (m_worker->running()) giveWorker(std::move(*m_worker), kind());
}

std::vector<std::vector<Tensor>> ProgramWorker::weightsOf(size_t function, const std::vector<Tensor>& inputs) const {
    const std::vector<HostFunction>& functions = m_package->program.functions;
    std::vector<std::vector<Tensor>> weights(functions.size());
    for (size_t f = 0; f < functions.size(); ++f) {
        const auto& parameters = functions[f].parameters;
        const bool borrows =
            function == 0 && std::any_of(parameters.begin(), parameters.end(),
                                         [](const HostParameter& parameter) { return parameter.saved >= 0; });
        if (f != function && !borrows) continue;
        for (size_t i = 0; i < parameters.size(); ++i) {
            const int64_t from = f == function ? static_cast<int64_t>(i) : parameters[i].shared;
            weights[f].push_back(parameters[i].constant && from >= 0 ? inputs[static_cast<size_t>(from)] : Tensor());
        }
    }
    return weights;
}

Result<void> ProgramWorker::load(Loading at, size_t function, const std::vector<Tensor>& inputs,
                                 const std::vector<size_t>& results, const CpuRunOptions& options,
                                 const Progress& progress) {
    ByteWriter out;
    out.pod(static_cast<uint64_t>(function));
    out.pod(options.threads);
    out.pod(options.splitSmall);
    out.pod(options.apart);
    out.pod(m_keepAll);
    out.text(m_package->choices);
    out.text(m_bytes);
    out.count(m_package->libraries.size());
    for (const std::string& library : m_package->libraries) out.text(library);
    std::vector<Tensor> tensors = m_package->constants;
    for (const std::vector<Tensor>& weights : weightsOf(function, inputs)) {
        out.count(weights.size());
        tensors.insert(tensors.end(), weights.begin(), weights.end());
    }
    const HostFunction& called = m_package->program.functions[function];
    std::vector<size_t> large;
    for (size_t r = 0; r < results.size(); ++r)
        if (results[r] >= kLargeBlock && !called.isConstantInput(called.results[r])) large.push_back(results[r]);
    // While the process packs its weights; whatever goes wrong, results get new memory.
    const auto preparing = std::async(std::launch::async, [&] { at.results.prepare(large); });
    CT_TRY_VOID(at.worker.ask(WorkerTask::Load, "the compiled graph", out.bytes, tensors,
                              {options.threads, options.timeoutSeconds, options.memoryBytes}, progress));
    return {};
}

Result<ProgramWorker::Reply> ProgramWorker::ask(Loading at, size_t function, const std::vector<Tensor>& inputs,
                                                const CpuRunOptions& options, const Progress& progress) {
    ByteWriter out;
    out.pod(options.repeat);
    out.pod(options.cold);
    out.pod(options.budgetSeconds);
    out.pod(static_cast<uint64_t>(function));
    WorkerOptions how{options.threads, options.timeoutSeconds, options.memoryBytes};
    how.memory = &at.results;
    if (options.leaveSaved)
        how.leaves = [=, this](size_t result) {
            return isSaved(m_package->program, function, static_cast<int64_t>(result));
        };
    CT_TRY(Message message, at.worker.ask(WorkerTask::Compiled, "the compiled graph", out.bytes,
                                          changing(m_package->program.functions[function], inputs), how, progress));
    return Reply{std::move(message), 0};
}

Result<ProgramWorker::Reply> ProgramWorker::run(size_t function, const std::vector<Tensor>& inputs,
                                                const std::vector<size_t>& results, const CpuRunOptions& options,
                                                const Progress& progress) {
    // Limits hold for a whole process, and faults are asked of it when it starts.
    if (options.apart || options.memoryBytes > 0 || faultsAsked()) {
        const auto start = std::chrono::steady_clock::now();
        WorkerOptions how{options.threads, options.timeoutSeconds, options.memoryBytes};
        how.device = kind() == WorkerKind::Device;
        CT_TRY(Worker worker, Worker::start(how, false));
        ResultMemory memory;
        CT_TRY_VOID(load({worker, memory}, function, inputs, results, options, progress));
        const double loaded = millisecondsSince(start);
        CpuRunOptions once = options;
        once.leaveSaved = false;  // it ends with its answer
        CT_TRY(Reply reply, ask({worker, memory}, function, inputs, once, progress));
        reply.loadMilliseconds = loaded;
        return reply;
    }
    keepAlive();
    const std::lock_guard lock(m_turn);
    const bool same = m_threads == options.threads && m_splitSmall == options.splitSmall;
    if (m_worker && !same) CT_TRY_VOID(m_worker->fetchLeft(inputs));
    if (m_worker && (!same || !m_worker->running())) m_worker.reset();
    m_waited = m_worker.has_value();
    auto reply = askLoaded(function, inputs, results, options, progress);
    // A kept process may have ended while nobody looked, before this run began.
    const bool idle = m_waited && !reply && !m_worker && neverBegan(reply.error());
    // Weights that it has packed for other sizes are wanted again: from now on it keeps them.
    const bool lacking = !reply && reply.error().where == kWeightsMissing;
    if (lacking) {
        m_keepAll = true;
        m_loaded.clear();
    }
    return idle || lacking ? askLoaded(function, inputs, results, options, progress) : std::move(reply);
}

Result<ProgramWorker::Reply> ProgramWorker::askLoaded(size_t function, const std::vector<Tensor>& inputs,
                                                      const std::vector<size_t>& results, const CpuRunOptions& options,
                                                      const Progress& progress) {
    const auto start = std::chrono::steady_clock::now();
    if (!m_worker) {
        if (options.threads > 0) {
            WorkerOptions how{options.threads, options.timeoutSeconds};
            how.device = kind() == WorkerKind::Device;
            CT_TRY(m_worker, Worker::start(how, true));
        } else {
            CT_TRY(PooledWorker taken, takeWorker(kind()));
            m_worker.emplace(std::move(taken.worker));
            m_waited = taken.waited;
        }
        m_threads = options.threads;
        m_splitSmall = options.splitSmall;
        m_loaded.clear();
    }
    double loaded = 0;
    if (!isLoaded(function)) {
        m_loaded.clear();
        CT_TRY_VOID(m_worker->fetchLeft(inputs));
        const auto taken = load({*m_worker, m_results}, function, inputs, results, options, progress);
        for (const std::vector<Tensor>& weights : weightsOf(function, inputs))
            if (taken) m_loaded.push_back(!weights.empty());
        if (taken && function < m_loaded.size()) m_loaded[function] = true;
        if (!m_worker->running()) m_worker.reset();
        if (!taken) return taken.error();
        loaded = millisecondsSince(start);
    }
    auto reply = ask({*m_worker, m_results}, function, inputs, options, progress);
    if (reply) reply->loadMilliseconds = loaded;
    if (!m_worker->running()) m_worker.reset();
    return reply;
}

namespace {

/// The program that a process holds, and the contexts that it has run.
struct ActiveProgram {
    std::shared_ptr<LoadedProgram> program;
    bool apart = false;
    std::map<size_t, std::unique_ptr<HostContext>> contexts;  // by function
};
std::optional<ActiveProgram>& activeProgram() {
    static std::optional<ActiveProgram> latest;  // of the latest request that loaded one
    return latest;
}

/// Gives memory of the request back to the system, and of copies.
ForgetBytes forgetting(const SharedMemory& memory, const Message& request) {
    auto duplicate = memory.duplicate();
    if (!duplicate) return {};
    return
        [own = std::make_shared<SharedMemory>(std::move(*duplicate)), all = request.bytes](std::span<std::byte> bytes) {
            if (bytes.data() >= all.data() && bytes.data() < all.data() + all.size())
                own->forget(static_cast<size_t>(bytes.data() - all.data()), bytes.size());
            else forgetPages(bytes);
        };
}

/// Constants and weights onto the device, what lies in one place once; their own memory is given back.
Result<void> upload(DeviceMemory& device, std::vector<Tensor>& constants, std::vector<std::vector<Tensor>>& weights,
                    const ForgetBytes& forget) {
    std::map<std::tuple<const void*, DType, Dims, Dims>, Tensor> known;
    std::map<std::byte*, size_t> ranges;  // that nothing reads any more
    const auto one = [&](Tensor& tensor) -> Result<void> {
        if (!tensor.defined()) return {};
        Tensor& made = known[{tensor.data(), tensor.dtype(), tensor.sizes(), tensor.strides()}];
        if (!made.defined()) {
            CT_TRY(made, onDevice(device, tensor));
            size_t& range = ranges[static_cast<std::byte*>(tensor.data())];
            range = std::max(range, spannedBytes(tensor));
        }
        tensor = made;
        return {};
    };
    for (Tensor& tensor : constants) CT_TRY_VOID(one(tensor));
    for (std::vector<Tensor>& own : weights)
        for (Tensor& tensor : own) CT_TRY_VOID(one(tensor));
    CT_TRY_VOID(device.wait());
    if (forget)
        for (const auto& [begin, bytes] : ranges) forget({begin, bytes});
    return {};
}

}  // namespace

Result<Message> answerUnload() {
    activeProgram().reset();
    return Message{};
}

bool idlesOnDevice() { return !activeProgram() && cudaIsOpen(); }

bool deviceIsBroken() { return activeProgram() && activeProgram()->program->device().isBroken(); }

Result<Message> answerLoad(Message& request, const SharedMemory& memory) {
    activeProgram().reset();
    ByteReader in(request.text);
    const auto function = static_cast<size_t>(in.pod<uint64_t>());
    ProgramOptions options;
    options.threads = in.pod<int>();
    options.splitSmall = in.pod<bool>();
    ActiveProgram made;
    made.apart = in.pod<bool>();
    const bool keepAll = in.pod<bool>();
    keepCandidates(std::string(in.text()));
    CT_TRY(HostProgram program, deserializeHost(in.text()));
    std::vector<std::string> libraries;
    in.each([&] { libraries.emplace_back(in.text()); });
    const size_t constants = program.constants.size();
    std::vector<std::vector<Tensor>> weights;
    size_t next = constants;
    for (const HostFunction& hostFunction : program.functions) {
        const auto count = static_cast<size_t>(in.pod<uint64_t>());
        if (in.failed() || next > request.tensors.size() || count > request.tensors.size() - next ||
            (count != 0 && count != hostFunction.parameters.size()))
            return invalidInput("the host program is damaged");
        const auto begin = request.tensors.begin() + static_cast<std::ptrdiff_t>(next);
        weights.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
        next += count;
    }
    if (function >= program.functions.size() || next != request.tensors.size())
        return invalidInput("the host program is damaged");
    request.tensors.resize(constants);
    touchPages(request.bytes);
    const ForgetBytes forget = forgetting(memory, request);
    layOut(program, request.tensors, weights, forget);
    const bool onGpu = program.device.type == DeviceType::Cuda;
    std::shared_ptr<DeviceMemory> device = hostMemory();
    std::unique_ptr<KernelCode> code;
    if (onGpu) {
        CT_TRY(device, cudaMemory());
        CT_TRY(code, cudaKernels(program, libraries));
        CT_TRY_VOID(upload(*device, request.tensors, weights, forget));
    } else {
        CT_TRY(code, CompiledKernels::load(program, libraries));
    }
    // Without symbols, and where no data says more, all is known before the first run.
    std::vector<size_t> known;
    for (size_t f = 0; f < weights.size(); ++f)
        if ((f == function || !weights[f].empty()) && program.functions[f].symbols.empty()) known.push_back(f);
    made.program = std::make_shared<LoadedProgram>(std::move(program), std::move(code), std::move(request.tensors),
                                                   std::move(weights), options, std::move(device));
    if (forget && !keepAll && !onGpu) made.program->forgetPacked(forget);
    for (const size_t f : known) CT_TRY_VOID(made.program->prepare(f, 0, {}, nullptr));
    activeProgram() = std::move(made);
    forgetCode();  // of what loads
    return Message{};
}

Result<Message> answerCompiled(Message& request, StatusPage& board) {
    ByteReader in(request.text);
    const int repeat = in.pod<int>();
    const bool cold = in.pod<bool>();
    const double budget = in.pod<double>();
    const auto function = static_cast<size_t>(in.pod<uint64_t>());
    std::optional<ActiveProgram>& program = activeProgram();
    if (!program || function >= program->program->program().functions.size())
        return invalidInput("the worker has no program");
    // Of a forward and its backward one runs at a time: the memory of the other one is free for it, but for what it is
    // given of that.
    for (const auto& [other, context] : program->contexts)
        if (other != function) context->keepOnly(request.tensors);
    std::erase_if(program->contexts, [&](const auto& other) { return other.first != function; });
    auto& context = program->contexts[function];
    if (!context) context = std::make_unique<HostContext>(program->program, function, program->apart);
    auto ran = context->runInPlace(request.tensors, {repeat, cold, budget}, board);
    if (!ran && program->program->lacksConstants()) {
        ran.error().where = kWeightsMissing;
        return ran.error();
    }
    CT_TRY(HostRun result, std::move(ran));
    Message reply;
    reply.tensors = std::move(result.outputs);
    ByteWriter out;
    for (const auto* times : {&result.stepMicroseconds, &result.totalMilliseconds}) {
        out.count(times->size());
        for (double time : *times) out.pod(time);
    }
    out.pod(result.milliseconds);
    out.pod(result.memoryBytes);
    out.pod(program->program->constantBytes());
    out.count(result.refused.size());
    for (const auto& [step, why] : result.refused) {
        out.pod(static_cast<uint64_t>(step));
        out.text(why);
    }
    for (auto& [input, tensor] : result.written) {  // behind the results
        out.pod(static_cast<uint64_t>(input));
        reply.tensors.push_back(std::move(tensor));
    }
    reply.text = std::move(out.bytes);
    return reply;
}

}  // namespace cutaway
