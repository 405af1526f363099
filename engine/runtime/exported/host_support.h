#ifndef CUTAWAY_HOST_SUPPORT_H
#define CUTAWAY_HOST_SUPPORT_H
// What printed host programs (codegen/host_printer.h) stand on: memory of a context, shared loops, and the plans of
// library calls. C++17 and nothing of the engine, since exported programs carry this file.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/runtime/exported/program.h"

namespace ct {

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);

/// Memory aligned to 64 bytes.
class Memory {
  public:
    Memory() = default;
    ~Memory() { std::free(m_data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    /// False if there is no more.
    bool grow(int64_t bytes) {
        if (bytes <= m_bytes && m_data != nullptr) return true;
        std::free(m_data);
        m_bytes = (bytes > 64 ? bytes + 63 : 64) / 64 * 64;
        m_data = std::aligned_alloc(64, static_cast<size_t>(m_bytes));
        if (m_data == nullptr) m_bytes = 0;
        return m_data != nullptr;
    }
    char* data() const { return static_cast<char*>(m_data); }

  private:
    void* m_data = nullptr;
    int64_t m_bytes = 0;
};

/// A call that a library has planned: all that its CtCall points to is here.
class Planned {
  public:
    Planned(const CtLibrary& library, const CtCall& call, int32_t threads) : m_library(&library), m_op(call.op) {
        const int32_t tensors = call.operandCount + call.resultCount;
        m_tensors.reserve(static_cast<size_t>(tensors));
        for (int32_t i = 0; i < tensors; ++i) {
            const bool operand = i < call.operandCount;
            m_tensors.push_back(copied(operand ? call.operands[i] : call.results[i - call.operandCount]));
            if (!operand || !call.constant[i]) m_tensors.back().data = nullptr;
        }
        m_constant.assign(call.constant, call.constant + call.operandCount);
        m_call = call;
        m_call.op = m_op.c_str();
        m_call.args = copied(call.args, call.argCount);
        m_call.operands = m_tensors.data();
        m_call.results = m_tensors.data() + call.operandCount;
        m_call.constant = m_constant.data();
        m_plan = library.plan(&m_call, threads, &m_needs);
    }
    ~Planned() {
        if (m_plan != nullptr) m_library->drop(m_plan);
    }
    Planned(const Planned&) = delete;
    Planned& operator=(const Planned&) = delete;

    /// Constants in the library's own layouts. False: the library says why.
    bool pack() {
        if (m_plan == nullptr) return false;
        if (m_library->pack == nullptr || m_needs.packed == 0) return true;
        return m_packed.grow(m_needs.packed) && m_library->pack(m_plan, m_call.operands, m_packed.data()) == 0;
    }
    int64_t scratch() const { return m_needs.scratch; }
    bool run(const CtTensor* operands, const CtTensor* results, void* scratch, const CtParallel& parallel) const {
        return m_library->run(m_plan, operands, results, m_packed.data(), scratch, &parallel) == 0;
    }

  private:
    CtTensor copied(CtTensor tensor) {
        const auto own = [&](const int64_t* dims) {
            m_dims.push_back(std::make_unique<int64_t[]>(static_cast<size_t>(tensor.rank > 0 ? tensor.rank : 1)));
            if (tensor.rank > 0) std::memcpy(m_dims.back().get(), dims, sizeof(int64_t) * size_t(tensor.rank));
            return m_dims.back().get();
        };
        tensor.sizes = own(tensor.sizes);
        tensor.strides = own(tensor.strides);
        return tensor;
    }
    const CtArgument* copied(const CtArgument* arguments, int64_t count) {
        m_arguments.push_back(std::make_unique<CtArgument[]>(static_cast<size_t>(count > 0 ? count : 1)));
        CtArgument* const own = m_arguments.back().get();
        for (int64_t i = 0; i < count; ++i) {
            own[i] = arguments[i];  // texts are literals of the printed program
            if (own[i].kind == CT_LIST) own[i].items = copied(arguments[i].items, arguments[i].integer);
        }
        return own;
    }

    const CtLibrary* m_library;
    std::string m_op;
    std::vector<CtTensor> m_tensors;
    std::vector<uint8_t> m_constant;
    std::vector<std::unique_ptr<int64_t[]>> m_dims;
    std::vector<std::unique_ptr<CtArgument[]>> m_arguments;
    CtCall m_call{};
    CtPlan* m_plan = nullptr;
    CtNeeds m_needs{};
    Memory m_packed;
};

}  // namespace ct

struct CtProgram {
    const CtHost* host = nullptr;
    std::vector<CtTensor> constants;
    std::mutex mutex;
    /// By step and sizes: contexts of the same sizes share plans and packed constants.
    std::map<std::vector<int64_t>, std::shared_ptr<ct::Planned>> planned;
};

struct CtContext {
    CtContext(CtProgram& own, const CtParallel* lent, size_t steps) : program(&own), planned(steps) {
        if (lent != nullptr) parallel = *lent;
        else
            parallel = {nullptr, 1,
                        [](void*, int64_t range, int64_t, void (*body)(void*, int64_t, int64_t), void* state) {
                            if (range > 0) body(state, 0, range);
                        }};
    }

    CtProgram* program;
    CtParallel parallel{};
    ct::Memory arena, scratch;
    std::vector<int64_t> symbols;                       // of the latest run
    std::vector<std::shared_ptr<ct::Planned>> planned;  // by step, for these
    std::vector<std::vector<int64_t>> dims;             // of what was returned
    std::string error;

    int32_t fail(const std::string& where, const std::string& what) {
        error = where.empty() ? what : where + ": " + what;
        return 1;
    }
    /// Plans of other sizes are looked for again.
    void begin(const std::vector<int64_t>& now) {
        error.clear();
        if (now == symbols) return;
        symbols = now;
        for (auto& plan : planned) plan.reset();
    }
    bool fits(const char* name, const CtTensor& given, int32_t dtype, int32_t rank, const int64_t* sizes,
              const int64_t* strides) {
        bool same = given.dtype == dtype && given.rank == rank, empty = false;
        for (int32_t d = 0; same && d < rank; ++d) {
            same = given.sizes[d] == sizes[d];
            empty = empty || sizes[d] == 0;
        }
        for (int32_t d = 0; same && !empty && d < rank; ++d) same = sizes[d] == 1 || given.strides[d] == strides[d];
        if (same) return true;
        std::string wanted;
        for (int32_t d = 0; d < rank; ++d)
            wanted += (d > 0 ? ", " : "") + std::to_string(sizes[d]) + " (stride " + std::to_string(strides[d]) + ")";
        fail(std::string("input '") + name + "'",
             "must be of dtype " + std::to_string(dtype) + " and [" + wanted + "]");
        return false;
    }
    /// How many threads are worth waking.
    int32_t threadsFor(int64_t nanoseconds) const {
        constexpr int64_t kWorthWaking = 200000;
        const int64_t wanted = nanoseconds < kWorthWaking ? 1 : nanoseconds / kWorthWaking;
        return wanted < parallel.threads ? static_cast<int32_t>(wanted) : parallel.threads;
    }
    /// One function of a kernel over its loop over parts; what went wrong in it.
    int launch(ct::Kernel kernel, void* const* buffers, const int64_t* sizes, int64_t range, int64_t nanoseconds) {
        if (range <= 0) return 0;
        struct State {
            ct::Kernel kernel;
            void* const* buffers;
            const int64_t* sizes;
            std::atomic<int> fault{0};
        } state{kernel, buffers, sizes};
        CtParallel lent = parallel;
        lent.threads = threadsFor(nanoseconds);
        const auto body = [](void* own, int64_t begin, int64_t end) {
            State& s = *static_cast<State*>(own);
            int failed = 0;
            s.kernel(s.buffers, s.sizes, begin, end, &failed);
            if (failed != 0) s.fault.store(failed, std::memory_order_relaxed);
        };
        // Whole vectors stay together.
        if (lent.threads <= 1) body(&state, 0, range);
        else lent.run(lent.pool, range, range >= 256 ? 64 : 1, body, &state);
        return state.fault.load();
    }
    /// Of a kernel that failed: where its code is, and which nodes read indices or divisors from data.
    int32_t failed(int fault, const char* checking) {
        return fail(checking,
                    fault == 1 ? "an index that comes from data is out of range" : "integer division by zero");
    }
    /// 0 on success.
    int32_t call(size_t step, const char* node, const char* library, const CtCall& wanted, int64_t nanoseconds) {
        CtParallel lent = parallel;
        lent.threads = threadsFor(nanoseconds);
        if (!planned[step] && !plan(step, node, library, wanted, lent.threads)) return 1;
        if (!scratch.grow(planned[step]->scratch())) return fail(node, "there is not enough memory");
        if (planned[step]->run(wanted.operands, wanted.results, scratch.data(), lent)) return 0;
        return fail(node, program->host->library(library)->error());
    }

  private:
    bool plan(size_t step, const char* node, const char* name, const CtCall& wanted, int32_t threads) {
        std::vector<int64_t> key = {static_cast<int64_t>(step), threads};
        key.insert(key.end(), symbols.begin(), symbols.end());
        const std::lock_guard<std::mutex> lock(program->mutex);
        auto& known = program->planned[key];
        if (!known) {
            const CtLibrary* const library = program->host->library(name);
            if (library == nullptr) return fail(node, std::string("there is no library ") + name) == 0;
            auto fresh = std::make_shared<ct::Planned>(*library, wanted, threads);
            if (!fresh->pack()) return fail(node, library->error()) == 0;
            known = std::move(fresh);
        }
        planned[step] = known;
        return true;
    }
};
#endif
