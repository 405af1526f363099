#include "engine/runtime/cpu/executor.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>

#include "engine/ops/eval.h"
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/onednn.h"
#include "engine/runtime/cpu/thread_pool.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

using Clock = std::chrono::steady_clock;
using KernelFunction = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);

constexpr int64_t kWorkPerThread = 16384;  // below this, handing over costs more than it saves

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

class Executor final : public ValueSource {
  public:
    Executor(const Plan& plan, const std::vector<Tensor>& given, int threads) : m_plan(&plan), m_pool(threads) {
        m_arena = Storage::allocateUninitialized(static_cast<size_t>(std::max<int64_t>(plan.arenaBytes, 64)));
        m_values.resize(plan.values.size());
        for (size_t i = 0; i < plan.values.size(); ++i) {
            const PlanValue& value = plan.values[i];
            if (value.kind == PlanValue::Kind::Given) m_values[i] = {given[static_cast<size_t>(value.index)]};
            else if (value.kind == PlanValue::Kind::Arena)
                m_values[i] = {Tensor(m_arena, value.dtype, value.sizes, value.strides, value.offset / byteSize(value.dtype))};
        }
    }

    Result<void> load(const std::string& library) {
        m_functions.resize(m_plan->calls.size());
        const bool needed = std::any_of(m_plan->calls.begin(), m_plan->calls.end(), [](const PlanCall& c) { return c.kind == CallKind::Kernel; });
        if (!needed) return {};
        void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) return Error{ErrorCode::ToolFailed, std::string("cannot load the compiled library: ") + ::dlerror(), library, {}};
        for (size_t i = 0; i < m_plan->calls.size(); ++i) {
            if (m_plan->calls[i].kind != CallKind::Kernel) continue;
            m_functions[i] = reinterpret_cast<KernelFunction>(::dlsym(handle, m_plan->calls[i].function.c_str()));
            if (m_functions[i] == nullptr) return Error{ErrorCode::ToolFailed, "the compiled library has no " + m_plan->calls[i].function, library, {}};
        }
        return {};
    }

    Result<void> run(std::vector<std::vector<double>>* times) {
        for (size_t i = 0; i < m_plan->calls.size(); ++i) {
            const auto begin = Clock::now();
            const PlanCall& call = m_plan->calls[i];
            CT_TRY_VOID(call.kind == CallKind::Kernel ? runKernel(i, call) : runExternal(i, call));
            if (times != nullptr) (*times)[i].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
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
        const int64_t number = std::stoll(node.name().substr(1));
        const_cast<Executor*>(this)->value(number);
        return m_values[static_cast<size_t>(number)];
    }

  private:
    /// Its own strides if they cover memory densely (what Tensor::empty takes), else row-major.
    static Dims denseStrides(const Tensor& tensor) {
        std::vector<size_t> order(tensor.sizes().size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tensor.strides()[a] < tensor.strides()[b]; });
        int64_t expected = 1;
        for (size_t d : order) {
            if (tensor.sizes()[d] == 1) continue;
            if (tensor.strides()[d] != expected) return {};
            expected *= tensor.sizes()[d];
        }
        return tensor.strides();
    }

    /// Views are made anew whenever what they look at was adopted anew.
    const Tensor& value(int64_t number) {
        const PlanValue& plan = m_plan->values[static_cast<size_t>(number)];
        TensorList& slot = m_values[static_cast<size_t>(number)];
        if (plan.kind == PlanValue::Kind::View) {
            const Tensor& base = value(plan.index);
            slot = {Tensor(base.storage(), plan.dtype, plan.sizes, plan.strides, base.offset() * byteSize(base.dtype()) / byteSize(plan.dtype) + plan.offset)};
        }
        CT_CHECK(!slot.empty(), "calls stand in the order of their data");
        return slot[0];
    }

    Result<void> runKernel(size_t position, const PlanCall& call) {
        std::vector<void*> pointers;
        for (int64_t number : call.buffers) pointers.push_back(const_cast<void*>(value(number).data()));
        const int64_t parts = std::clamp<int64_t>(call.work / kWorkPerThread, 1, std::min(m_pool.size(), 64));
        std::atomic<int> fault{0};
        // Ranges that are not split are rows; a split loop over elements keeps whole vectors together.
        const int64_t unit = call.range >= 256 ? 64 : 1;
        m_pool.run(call.range, unit, static_cast<int>(parts), [&](int64_t begin, int64_t end) {
            int own = 0;
            m_functions[position](pointers.data(), call.sizes.data(), begin, end, &own);
            if (own != 0) fault.store(own);
        });
        if (fault.load() == 1) return invalidInput("an index that comes from data is out of range", call.function);
        if (fault.load() != 0) return invalidInput("integer division by zero", call.function);
        return {};
    }

    Result<void> runExternal(size_t position, const PlanCall& call) {
        if (call.kind == CallKind::Library && runLibrary(position, call)) return {};
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
    bool runLibrary(size_t position, const PlanCall& call) {
        std::vector<Tensor> operands;
        std::vector<bool> constant;
        for (size_t i = 0; i < std::min<size_t>(call.args.size(), 3); ++i) {
            const Node* node = call.args[i].node();
            operands.push_back(node ? valueOf(*node)[0] : Tensor());
            constant.push_back(node && m_plan->values[static_cast<size_t>(std::stoll(node->name().substr(1)))].constant);
        }
        return m_library.run(position, call, operands, constant, m_values[static_cast<size_t>(call.results[0])][0]);
    }

    const Plan* m_plan;
    ThreadPool m_pool;
    OneDnn m_library;
    std::shared_ptr<Storage> m_arena;
    std::vector<TensorList> m_values;
    std::vector<KernelFunction> m_functions;
};

}  // namespace

Result<ExecutionResult> execute(const Plan& plan, const std::vector<Tensor>& given, const std::string& library, int repeat, int threads) {
    Executor executor(plan, given, threads);
    CT_TRY_VOID(executor.load(library));
    CT_TRY_VOID(executor.run(nullptr));
    ExecutionResult result;
    result.outputs = executor.outputs();
    std::vector<std::vector<double>> times(plan.calls.size());
    for (int i = 0; i < repeat; ++i) {
        const auto begin = Clock::now();
        CT_TRY_VOID(executor.run(&times));
        result.totalMilliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    for (auto& all : times) result.callMicroseconds.push_back(median(std::move(all)));
    return result;
}

}  // namespace cutaway
