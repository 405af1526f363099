#include "engine/runtime/cpu/program_worker.h"

#include <deque>

#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/cpu/executor.h"
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

std::vector<Tensor> inputsOf(const BoundProgram& bound) {
    std::vector<Tensor> inputs;
    for (const PlanValue& value : bound.plan.values)
        if (value.kind == PlanValue::Kind::Given && !value.constant)
            inputs.push_back(bound.given[static_cast<size_t>(value.index)]);
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

Result<Message> ProgramWorker::ask(Worker& worker, bool load, const BoundProgram& bound, const std::string& plan,
                                   const CpuRunOptions& options, const Progress& progress) {
    ByteWriter out;
    out.pod(options.repeat);
    out.pod(load);
    if (load) {
        out.pod(options.threads);
        out.pod(options.apart);
        out.text(plan);
    }
    return worker.ask(WorkerTask::Compiled, "the compiled graph", out.bytes, load ? bound.given : inputsOf(bound),
                      {options.threads, options.timeoutSeconds, options.memoryBytes}, progress);
}

Result<Message> ProgramWorker::run(const BoundProgram& bound, const CpuRunOptions& options, const Progress& progress) {
    const std::string plan = serialize(bound.plan);
    // Limits hold for a whole process, and faults are asked of it when it starts.
    if (options.apart || options.memoryBytes > 0 || faultsAsked()) {
        CT_TRY(Worker own, Worker::start({options.threads, options.timeoutSeconds, options.memoryBytes}, false));
        return ask(own, true, bound, plan, options, progress);
    }
    keepAlive();
    const std::lock_guard lock(m_turn);
    if (m_worker && (m_threads != options.threads || !m_worker->running())) m_worker.reset();
    const bool kept = m_worker.has_value();
    auto reply = askLoaded(bound, plan, options, progress);
    // A kept process may have ended while nobody looked, before this run began.
    const bool idle = kept && !reply && !m_worker && reply.error().where == Board::kNotBegun &&
                      reply.error().code == ErrorCode::ToolFailed;
    return idle ? askLoaded(bound, plan, options, progress) : std::move(reply);
}

Result<Message> ProgramWorker::askLoaded(const BoundProgram& bound, const std::string& plan,
                                         const CpuRunOptions& options, const Progress& progress) {
    if (!m_worker) {
        CT_TRY(m_worker, Worker::start({options.threads, options.timeoutSeconds}, true));
        m_threads = options.threads;
        m_loaded.clear();
    }
    const bool load = m_loaded != plan;
    m_loaded.clear();
    auto reply = ask(*m_worker, load, bound, plan, options, progress);
    if (m_worker->running()) m_loaded = reply || !load ? plan : std::string();
    else m_worker.reset();
    return reply;
}

namespace {

/// Memory of its own for what is sent with each run: kernels may write to it.
Tensor ownMemory(const Tensor& tensor, bool apart) {
    if (!tensor.defined()) return tensor;
    const auto bytes = static_cast<size_t>(extent(tensor.sizes(), tensor.strides()) * byteSize(tensor.dtype()));
    return apart ? atEndOfMemory(tensor.dtype(), tensor.sizes(), tensor.strides())
                 : Tensor(Storage::allocateUninitialized(std::max<size_t>(bytes, 64)), tensor.dtype(), tensor.sizes(),
                          tensor.strides(), 0, tensor.device());
}

}  // namespace

Result<Message> answerCompiled(Message& request, Board& board) {
    static std::unique_ptr<LoadedPlan> loaded;  // of the latest request that loaded one
    ByteReader in(request.text);
    const int repeat = in.pod<int>();
    std::vector<Tensor> inputs;
    if (in.pod<bool>()) {
        loaded.reset();
        ExecutionOptions options;
        options.threads = in.pod<int>();
        options.apart = in.pod<bool>();
        CT_TRY(Plan plan, deserializePlan(in.text()));
        std::vector<Tensor> given = request.tensors;
        for (const PlanValue& value : plan.values) {
            if (value.kind != PlanValue::Kind::Given) continue;
            if (value.index < 0 || value.index >= static_cast<int64_t>(given.size()))
                return invalidInput("the execution plan is damaged");
            if (value.constant) continue;
            Tensor& own = given[static_cast<size_t>(value.index)];
            inputs.push_back(own);
            own = ownMemory(own, options.apart);
        }
        CT_TRY(loaded, LoadedPlan::load(std::move(plan), std::move(given), options));
    } else {
        inputs = std::move(request.tensors);
    }
    if (!loaded) return invalidInput("the worker has no program");
    CT_TRY(ExecutionResult result, loaded->run(inputs, repeat, board));
    Message reply;
    reply.tensors = std::move(result.outputs);
    ByteWriter out;
    for (const auto* times : {&result.callMicroseconds, &result.totalMilliseconds}) {
        out.count(times->size());
        for (double time : *times) out.pod(time);
    }
    reply.text = std::move(out.bytes);
    return reply;
}

}  // namespace cutaway
