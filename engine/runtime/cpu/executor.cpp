#include "engine/runtime/cpu/executor.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>

#include "engine/ops/eval.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/spoiled_value.h"
#include "engine/runtime/cpu/thread_pool.h"
#include "engine/runtime/libraries/planned_call.h"
#include "engine/runtime/libraries/table.h"
#include "engine/support/check.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using Clock = std::chrono::steady_clock;
using KernelFunction = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

class Executor final : public ValueSource {
  public:
    Executor(const Plan& plan, const std::vector<Tensor>& given, const ExecutionOptions& options)
        : m_plan(&plan), m_pool(options.threads) {
        const int64_t arena = options.apart ? 0 : plan.arenaBytes;
        m_arena = Storage::allocateUninitialized(static_cast<size_t>(std::max<int64_t>(arena, 64)));
        m_values.resize(plan.values.size());
        for (size_t i = 0; i < plan.values.size(); ++i) {
            const PlanValue& value = plan.values[i];
            if (value.kind == PlanValue::Kind::Given) m_values[i] = {given[static_cast<size_t>(value.index)]};
            else if (value.kind == PlanValue::Kind::Arena && options.apart)
                m_values[i] = {atEndOfMemory(value.dtype, value.sizes, value.strides)};
            else if (value.kind == PlanValue::Kind::Arena)
                m_values[i] = {
                    Tensor(m_arena, value.dtype, value.sizes, value.strides, value.offset / byteSize(value.dtype))};
        }
        m_calls.resize(plan.calls.size());
        for (size_t i = 0; i < plan.calls.size(); ++i) {
            for (int64_t number : plan.calls[i].buffers) m_calls[i].moving |= moves(number);
            m_calls[i].pointers.resize(plan.calls[i].buffers.size());
        }
    }

    ~Executor() override {
        for (const auto& [path, handle] : m_handles) ::dlclose(handle);
    }

    /// Copies what the run is given; with `all` false only what the last run has written to.
    void setInputs(const std::vector<Tensor>& inputs, bool all) {
        size_t next = 0;
        for (size_t i = 0; i < m_plan->values.size(); ++i) {
            const PlanValue& value = m_plan->values[i];
            if (value.kind != PlanValue::Kind::Given || value.constant) continue;
            const Tensor& from = inputs[next++];
            Tensor& into = m_values[i][0];
            if (!from.defined() || (!all && !value.written)) continue;
            const auto bytes = static_cast<size_t>(extent(from.sizes(), from.strides()) * byteSize(from.dtype()));
            if (into.data() != from.data()) std::memcpy(into.data(), from.data(), bytes);
        }
    }

    Result<void> load() {
        for (size_t i = 0; i < m_plan->calls.size(); ++i)
            for (const PlanLaunch& launch : m_plan->calls[i].launches) {
                void*& handle = m_handles[launch.library];
                if (handle == nullptr) handle = ::dlopen(launch.library.c_str(), RTLD_NOW | RTLD_LOCAL);
                if (handle == nullptr) {
                    m_handles.erase(launch.library);
                    return Error{ErrorCode::ToolFailed,
                                 std::string("cannot load the compiled library: ") + ::dlerror(),
                                 launch.library,
                                 {}};
                }
                void* const function = ::dlsym(handle, launch.function.c_str());
                if (function == nullptr)
                    return Error{
                        ErrorCode::ToolFailed, "the compiled library has no " + launch.function, launch.library, {}};
                m_calls[i].functions.push_back(reinterpret_cast<KernelFunction>(function));
            }
        return {};
    }

    Result<void> run(std::vector<std::vector<double>>* times, Board& board) {
        for (size_t i = 0; i < m_plan->calls.size(); ++i) {
            const auto begin = Clock::now();
            const PlanCall& call = m_plan->calls[i];
            board.at(call.node);
            for (const std::string& op : call.ops) faultPoint("kernel", op);
            CT_TRY_VOID(call.kind == CallKind::Kernel ? runKernel(m_calls[i], call) : runExternal(m_calls[i], call));
            if (times != nullptr)
                (*times)[i].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
        return {};
    }

    std::vector<Tensor> outputs() {
        std::vector<Tensor> result;
        for (int64_t number : m_plan->outputs) {
            if (number < 0) {
                result.emplace_back();
                continue;
            }
            // Copied with its strides: the arena is written again by the next run.
            const Tensor& tensor = value(number);
            Tensor copy = Tensor::empty(tensor.dtype(), tensor.sizes(), denseStrides(tensor));
            copyInto(copy, tensor);
            result.push_back(std::move(copy));
        }
        return result;
    }

    const TensorList& valueOf(const Node& node) const override {
        const int64_t number = m_plan->numberOf(node);
        const_cast<Executor*>(this)->value(number);
        return m_values[static_cast<size_t>(number)];
    }

  private:
    /// What one call is run with, made once for all runs.
    struct Call {
        std::vector<KernelFunction> functions;  // of a kernel's launches
        std::vector<void*> pointers;            // of a kernel's buffers
        bool located = false;                   // `pointers` are right
        bool moving = false;                    // a buffer's memory is another one in every run
        std::unique_ptr<PlannedCall> library;
        std::vector<const void*> operands;  // of a library's call
        std::vector<void*> results;
        bool inLibrary = true;  // until the library has refused
    };

    /// Its own strides if they cover memory densely (what Tensor::empty takes), else row-major.
    static Dims denseStrides(const Tensor& tensor) {
        std::vector<size_t> order(tensor.sizes().size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return tensor.strides()[a] < tensor.strides()[b]; });
        int64_t expected = 1;
        for (size_t d : order) {
            if (tensor.sizes()[d] == 1) continue;
            if (tensor.strides()[d] != expected) return {};
            expected *= tensor.sizes()[d];
        }
        return tensor.strides();
    }

    /// True for what a reference kernel returned, and views of it.
    bool moves(int64_t number) const {
        const PlanValue& value = m_plan->values[static_cast<size_t>(number)];
        return value.kind == PlanValue::Kind::Adopted || (value.kind == PlanValue::Kind::View && moves(value.index));
    }
    /// Views are made anew only if what they look at is.
    const Tensor& value(int64_t number) {
        const PlanValue& plan = m_plan->values[static_cast<size_t>(number)];
        TensorList& slot = m_values[static_cast<size_t>(number)];
        if (plan.kind == PlanValue::Kind::View && (slot.empty() || moves(number))) {
            const Tensor& base = value(plan.index);
            slot = {Tensor(base.storage(), plan.dtype, plan.sizes, plan.strides,
                           base.offset() * byteSize(base.dtype()) / byteSize(plan.dtype) + plan.offset)};
        }
        CT_CHECK(!slot.empty(), "calls stand in the order of their data");
        return slot[0];
    }

    Result<void> runKernel(Call& own, const PlanCall& call) {
        if (!own.located || own.moving)
            for (size_t i = 0; i < call.buffers.size(); ++i)
                own.pointers[i] = const_cast<void*>(value(call.buffers[i]).data());
        own.located = true;
        std::atomic<int> fault{0};
        // Ranges that are not split are rows; a split loop over elements keeps whole vectors together.
        for (size_t i = 0; i < call.launches.size() && fault.load() == 0; ++i) {
            const int64_t range = call.launches[i].range, unit = range >= 256 ? 64 : 1;
            m_pool.run(range, unit, m_pool.threadsFor(call.nanoseconds), [&](int64_t begin, int64_t end) {
                int failed = 0;
                own.functions[i](own.pointers.data(), call.sizes.data(), begin, end, &failed);
                if (failed != 0) fault.store(failed, std::memory_order_relaxed);
            });
        }
        if (fault.load() == 1) return invalidInput("an index that comes from data is out of range", call.checking);
        if (fault.load() != 0) return invalidInput("integer division by zero", call.checking);
        return {};
    }

    Result<void> runExternal(Call& own, const PlanCall& call) {
        CT_TRY_VOID(compute(own, call));
        // What tests ask for; of kernels it is in their code.
        for (const std::string& op : call.ops)
            for (const int64_t number : call.results)
                if (number >= 0) spoilMemory(faultEffect("kernel", op), m_values[static_cast<size_t>(number)][0]);
        return {};
    }
    Result<void> compute(Call& own, const PlanCall& call) {
        if (call.kind == CallKind::Library && own.inLibrary && !own.library) CT_TRY_VOID(planLibrary(own, call));
        if (own.library) return runLibrary(own, call);
        const Op* op = findOp(call.function);
        if (op == nullptr) return Error{ErrorCode::Internal, "the worker does not know the op", call.function, {}};
        EvalResult computed = evaluateCall(*op, call.args, call.type, *this);
        if (!computed.ok()) return std::move(computed.error());
        TensorList& tensors = computed.tensors();
        for (size_t r = 0; r < call.results.size(); ++r)
            if (call.results[r] >= 0 && r < tensors.size()) adopt(call, call.results[r], tensors[r]);
        return {};
    }
    void adopt(const PlanCall& call, int64_t number, Tensor tensor) {
        const PlanValue& plan = m_plan->values[static_cast<size_t>(number)];
        if (plan.kind == PlanValue::Kind::Arena) {
            copyInto(m_values[static_cast<size_t>(number)][0], tensor);
            return;
        }
        // A kernel may return (a view of) its operand, whose memory has a life of its own.
        bool borrowed = tensor.storage() == m_arena;
        for (const Argument& arg : call.args)
            arg.forEachNode([&](Node* node) { borrowed |= valueOf(*node)[0].storage() == tensor.storage(); });
        if (borrowed || tensor.strides() != plan.strides) {
            Tensor copy = Tensor::empty(plan.dtype, plan.sizes, plan.strides);
            copyInto(copy, tensor);
            tensor = copy;
        }
        m_values[static_cast<size_t>(number)] = {tensor};
    }
    /// Leaves the call to its reference kernel if the library refuses.
    Result<void> planLibrary(Call& own, const PlanCall& call) {
        const CtLibrary* const library = libraryNamed(call.library);
        own.inLibrary = library != nullptr;
        if (library == nullptr) return {};
        const auto describe = [&](int64_t number) {
            const PlanValue& planned = m_plan->values[static_cast<size_t>(number)];
            return CallTensor{planned.dtype, planned.sizes, planned.strides, planned.constant,
                              planned.constant ? value(number).data() : nullptr};
        };
        std::vector<CallTensor> results;
        for (const int64_t number : call.results) {
            if (number >= 0) results.push_back(describe(number));
            else results.push_back({.absent = true});
        }
        auto planned = PlannedCall::plan(
            *library,
            std::make_unique<OwnedCall>(
                call.function, call.args, [&](const Node& node) { return describe(m_plan->numberOf(node)); }, results),
            m_pool.threadsFor(call.nanoseconds));
        own.inLibrary = static_cast<bool>(planned);
        if (!planned) return {};
        own.library = std::move(*planned);
        locate(own, call);
        const auto scratch = static_cast<size_t>(std::max<int64_t>(own.library->scratchBytes(), 64));
        if (!m_scratch || m_scratch->size() < scratch) m_scratch = Storage::allocateUninitialized(scratch);
        return own.library->pack(own.operands);
    }
    void locate(Call& own, const PlanCall& call) {
        own.operands.clear();
        for (const Node* node : own.library->call().operands())
            own.operands.push_back(value(m_plan->numberOf(*node)).data());
        own.results.clear();
        for (const int64_t number : call.results)
            own.results.push_back(number < 0 ? nullptr : m_values[static_cast<size_t>(number)][0].data());
    }
    Result<void> runLibrary(Call& own, const PlanCall& call) {
        locate(own, call);
        const LentThreads lent(m_pool, m_pool.threadsFor(call.nanoseconds));
        return own.library->run(own.operands, own.results, m_scratch->data(), lent.parallel());
    }

    const Plan* m_plan;
    std::map<std::string, void*> m_handles;  // of compiled libraries, by path
    ThreadPool m_pool;
    std::shared_ptr<Storage> m_arena, m_scratch;
    std::vector<TensorList> m_values;
    std::vector<Call> m_calls;
};

Tensor atEndOfMemory(DType dtype, const Dims& sizes, const Dims& strides) {
    // Allocations are multiples of 64 bytes.
    const auto bytes = static_cast<size_t>(extent(sizes, strides) * byteSize(dtype)),
               whole = std::max<size_t>((bytes + 63) / 64 * 64, 64);
    return Tensor(Storage::allocateUninitialized(whole), dtype, sizes, strides,
                  static_cast<int64_t>(whole - bytes) / byteSize(dtype));
}

LoadedPlan::LoadedPlan(Plan plan) : m_plan(std::move(plan)) {}
LoadedPlan::~LoadedPlan() = default;

Result<std::unique_ptr<LoadedPlan>> LoadedPlan::load(Plan plan, std::vector<Tensor> given,
                                                     const ExecutionOptions& options) {
    std::unique_ptr<LoadedPlan> loaded(new LoadedPlan(std::move(plan)));
    loaded->m_executor = std::make_unique<Executor>(loaded->m_plan, given, options);
    CT_TRY_VOID(loaded->m_executor->load());
    return loaded;
}

Result<ExecutionResult> LoadedPlan::run(const std::vector<Tensor>& inputs, int repeat, Board& board) {
    m_executor->setInputs(inputs, true);
    CT_TRY_VOID(m_executor->run(nullptr, board));
    ExecutionResult result;
    result.outputs = m_executor->outputs();
    std::vector<std::vector<double>> times(m_plan.calls.size());
    for (auto& all : times) all.reserve(static_cast<size_t>(repeat));
    for (int i = 0; i < repeat; ++i) {
        board.done(static_cast<double>(i) / repeat);
        m_executor->setInputs(inputs, false);
        const auto begin = Clock::now();
        CT_TRY_VOID(m_executor->run(&times, board));
        result.totalMilliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    for (auto& all : times) result.callMicroseconds.push_back(median(std::move(all)));
    return result;
}

}  // namespace cutaway
