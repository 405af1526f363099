#ifndef CUTAWAY_HOST_SUPPORT_H
#define CUTAWAY_HOST_SUPPORT_H
// What printed host programs (codegen/host_printer.h) stand on: memory of a context, shared loops, and the plans of
// library calls. C++17 and nothing of the engine, since exported programs carry this file. Memory that cannot be had is
// std::bad_alloc, which interface.h makes an error of.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "engine/libraries/element_bytes.h"
#include "engine/runtime/exported/program.h"
#include "engine/support/threads.h"

namespace ct {

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);

/// Memory aligned to 64 bytes.
class Memory {
  public:
    Memory() = default;
    ~Memory() { std::free(m_data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    /// What was in it is lost where it grows.
    char* grow(int64_t bytes) {
        if (bytes <= m_bytes && m_data != nullptr) return data();
        std::free(m_data);
        m_bytes = 0;
        const size_t whole = (static_cast<size_t>(bytes > 64 ? bytes : 64) + 63) / 64 * 64;
        m_data = std::aligned_alloc(64, whole);
        if (m_data == nullptr) throw std::bad_alloc();
        m_bytes = static_cast<int64_t>(whole);
        return data();
    }
    char* data() const { return static_cast<char*>(m_data); }

  private:
    void* m_data = nullptr;
    int64_t m_bytes = 0;
};

/// From the first element to the end of the last one; 0 if there is none.
inline int64_t extentOf(int32_t dtype, int32_t rank, const int64_t* sizes, const int64_t* strides) {
    int64_t last = 0;
    for (int32_t d = 0; d < rank; ++d) {
        if (sizes[d] == 0) return 0;
        last += (sizes[d] - 1) * strides[d];
    }
    return (last + 1) * bytesOf(dtype);
}
/// Whether all elements lie where these strides say.
inline bool liesAs(const CtTensor& tensor, const int64_t* strides) {
    bool same = true;
    for (int32_t d = 0; d < tensor.rank; ++d) {
        if (tensor.sizes[d] == 0) return true;
        same = same && (tensor.sizes[d] == 1 || tensor.strides[d] == strides[d]);
    }
    return same;
}
/// The tensor's elements, at these strides from `to` on.
inline void layOut(const CtTensor& tensor, const int64_t* strides, char* to) {
    const auto each = static_cast<size_t>(bytesOf(tensor.dtype));
    int64_t at[CT_MAX_RANK] = {}, from = 0, into = 0;
    for (int32_t d = 0; d < tensor.rank; ++d)
        if (tensor.sizes[d] == 0) return;
    for (;;) {
        std::memcpy(to + into * static_cast<int64_t>(each),
                    static_cast<const char*>(tensor.data) + from * static_cast<int64_t>(each), each);
        int32_t d = tensor.rank - 1;
        for (; d >= 0 && ++at[d] == tensor.sizes[d]; --d) {
            from -= (tensor.sizes[d] - 1) * tensor.strides[d];
            into -= (tensor.sizes[d] - 1) * strides[d];
            at[d] = 0;
        }
        if (d < 0) return;
        from += tensor.strides[d];
        into += strides[d];
    }
}

inline std::string shapeOf(const CtTensor& tensor) {
    std::string all;
    for (int32_t d = 0; d < tensor.rank; ++d) all += (d > 0 ? ", " : "") + std::to_string(tensor.sizes[d]);
    return all;
}

/// The number in a tensor of one element, without its fraction.
inline int64_t numberIn(const CtTensor& t) {
    switch (t.dtype) {
        case CT_BOOL: return *static_cast<const uint8_t*>(t.data) != 0;
        case CT_U8: return *static_cast<const uint8_t*>(t.data);
        case CT_I8: return *static_cast<const int8_t*>(t.data);
        case CT_I16: return *static_cast<const int16_t*>(t.data);
        case CT_U16: return *static_cast<const uint16_t*>(t.data);
        case CT_I32: return *static_cast<const int32_t*>(t.data);
        case CT_U32: return *static_cast<const uint32_t*>(t.data);
        case CT_F64: return static_cast<int64_t>(*static_cast<const double*>(t.data));
        case CT_F32: return static_cast<int64_t>(*static_cast<const float*>(t.data));
        default: return *static_cast<const int64_t*>(t.data);
    }
}

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
        m_call.args = copied(call.args, call.argCount);  // names and texts are literals of the printed program
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

    /// Constants in the library's own layouts: those of a plan among `known` that packs alike, or new ones. False: the
    /// library says why.
    template <class Plans>
    bool pack(const Plans& known) {
        if (m_plan == nullptr) return false;
        if (m_library->pack == nullptr || m_needs.packed == 0) return true;
        for (const auto& [key, other] : known)
            if (packsLike(*other)) {
                m_packed = other->m_packed;
                return true;
            }
        m_packed = std::make_shared<Memory>();
        return m_library->pack(m_plan, m_call.operands, m_packed->grow(m_needs.packed)) == 0;
    }
    bool isPlanned() const { return m_plan != nullptr; }
    int64_t scratch() const { return m_needs.scratch; }
    const char* error() const { return m_library->error(); }
    bool run(const CtTensor* operands, const CtTensor* results, void* scratch, const CtParallel& parallel) const {
        return m_library->run(m_plan, operands, results, m_packed ? m_packed->data() : nullptr, scratch, &parallel) ==
               0;
    }

  private:
    /// Of the same call, so of the same constants.
    bool packsLike(const Planned& other) const {
        return m_library == other.m_library && m_needs.packed == other.m_needs.packed &&
               m_library->packAlike != nullptr && m_library->packAlike(m_plan, other.m_plan) != 0;
    }
    CtTensor copied(CtTensor tensor) {
        const auto own = [&](const int64_t* dims) {
            m_dims.push_back(std::make_unique<int64_t[]>(static_cast<size_t>(tensor.rank > 0 ? tensor.rank : 1)));
            if (tensor.rank > 0 && dims != nullptr)
                std::memcpy(m_dims.back().get(), dims, sizeof(int64_t) * size_t(tensor.rank));
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
            own[i] = arguments[i];
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
    std::shared_ptr<Memory> m_packed;
};

class Frame;
/// A printed program: what is run, and the graphs that its calls run.
struct Function {
    size_t steps, results;
    int32_t (*run)(Frame& frame, const CtTensor* inputs, CtTensor* outputs);
};
struct Code {
    const CtProgramInfo* info;
    std::vector<Function> functions;
};

/// How a call runs graphs (cond, while_loop, map, scan, associative_scan, or one graph once).
enum class Graphs { Cond, WhileLoop, Map, Scan, AssociativeScan, Run };

/// One function in one context: its memory, and what it has planned for the sizes of the latest run.
class Frame {
  public:
    Frame(CtContext& context, size_t function, size_t steps)
        : m_context(&context), m_function(function), m_planned(steps) {}

    std::vector<std::vector<int64_t>> dims;  // of what was returned
    /// Memory of a segment's values. A segment ends with a step that finds a size in data.
    Memory& arena(size_t segment) { return at(m_arenas, segment); }
    const CtTensor* constants() const;
    /// Buffer `number` of those that the graph writes to.
    void* state(size_t number) const;

    int32_t fail(const std::string& where, const std::string& what);
    /// Begins a run with these symbols: where they differ from the latest run's, calls get other plans.
    void begin(const std::vector<int64_t>& now) {
        m_known = now.size();
        if (m_symbols.size() >= m_known && std::equal(now.begin(), now.end(), m_symbols.begin())) return;
        m_symbols = now;
        for (auto& plan : m_planned) plan.reset();
    }
    /// Input `number` as the graph reads it: a copy where it lies in another way. One that the graph writes to must lie
    /// as the graph says. Null: it does not fit.
    char* given(const char* name, const CtTensor& given, const CtTensor& wanted, bool written, size_t number) {
        bool same = given.dtype == wanted.dtype && given.rank == wanted.rank;
        for (int32_t d = 0; same && d < wanted.rank; ++d) same = given.sizes[d] == wanted.sizes[d];
        const bool lies = same && liesAs(given, wanted.strides);
        if (lies) return static_cast<char*>(given.data);
        if (same && !written) {
            char* const own =
                at(m_inputs, number).grow(extentOf(wanted.dtype, wanted.rank, wanted.sizes, wanted.strides));
            layOut(given, wanted.strides, own);
            return own;
        }
        std::string all;
        for (int32_t d = 0; d < wanted.rank; ++d) {
            all += (d > 0 ? ", " : "") + std::to_string(wanted.sizes[d]);
            if (same) all += " (stride " + std::to_string(wanted.strides[d]) + ")";
        }
        fail(std::string("input '") + name + "'", std::string("must be ") + nameOfType(wanted.dtype) + "[" + all +
                                                      "], not " + nameOfType(given.dtype) + "[" + shapeOf(given) + "]" +
                                                      (same ? ", since the graph writes to it" : ""));
        return nullptr;
    }
    /// Sizes of a value that follow from data. False: there is no such tensor.
    bool fits(const char* name, std::initializer_list<int64_t> sizes) {
        const bool counts = std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
        return counts || fail(name, "its sizes are negative for these inputs") == 0;
    }
    /// Runs one function of a kernel over all parts of its loop; gives its fault (codegen/cpp_printer.h), 0 for none.
    /// `unit`: steps of the loop that stay together.
    int launch(Kernel kernel, void* const* buffers, const int64_t* sizes, int64_t range, int64_t unit,
               int64_t nanoseconds) {
        if (range <= 0) return 0;
        struct State {
            Kernel kernel;
            void* const* buffers;
            const int64_t* sizes;
            std::atomic<int> fault{0};
        } state{kernel, buffers, sizes};
        const CtParallel lent = lentFor(nanoseconds);
        const auto body = [](void* own, int64_t begin, int64_t end) {
            State& s = *static_cast<State*>(own);
            int failed = 0;
            s.kernel(s.buffers, s.sizes, begin, end, &failed);
            if (failed != 0) s.fault.store(failed, std::memory_order_relaxed);
        };
        // Threads that share vectors' ranges write to no cache line together.
        if (lent.threads <= 1) body(&state, 0, range);
        else lent.run(&lent, range, unit > 1 ? std::max<int64_t>(unit, 64) : 1, body, &state);
        return state.fault.load();
    }
    /// Of a kernel that failed: where its code is, and which nodes read indices or divisors from data.
    int32_t failed(int fault, const char* checking) {
        return fail(checking,
                    fault == 1 ? "an index that comes from data is out of range" : "integer division by zero");
    }
    /// The graphs of a call, as Graphs says; a list of tensors for each of its other operands. `results` say what they
    /// are, without memory: that is made(step, result). 0 on success.
    int32_t graphs(Graphs kind, size_t step, const char* node, const std::vector<size_t>& functions,
                   const std::vector<std::vector<CtTensor>>& operands, std::vector<CtTensor> results);
    /// A call whose results' sizes follow from its data. 0 on success: made(step, result) and foundSize() have them.
    int32_t find(size_t step, const char* node, const char* library, const CtCall& wanted);
    int64_t foundSize(size_t step, size_t result, size_t dim) const { return m_found.at(step).at(result).at(dim); }
    /// Moves a result that a step has found into memory with these strides.
    void restride(size_t step, size_t result, int32_t dtype, const int64_t* strides) {
        const std::vector<int64_t>& sizes = m_found.at(step).at(result);
        std::vector<int64_t> rows(sizes.size(), 1);
        for (size_t d = sizes.size(); d-- > 1;) rows[d - 1] = rows[d] * sizes[d];
        const auto rank = static_cast<int32_t>(sizes.size());
        auto laid = std::make_unique<Memory>();
        laid->grow(extentOf(dtype, rank, sizes.data(), strides));
        ct::layOut({made(step, result).data(), dtype, rank, sizes.data(), rows.data()}, strides, laid->data());
        m_made[step][result] = std::move(laid);
    }
    /// A size that a step has found: where it is another one than in the latest run, later steps are planned again.
    void found(int64_t size, size_t step) {
        if (m_known < m_symbols.size() && m_symbols[m_known] == size) {
            ++m_known;
            return;
        }
        m_symbols.resize(m_known++);
        m_symbols.push_back(size);
        for (size_t later = step; later < m_planned.size(); ++later) m_planned[later].reset();
    }
    /// Memory for a result of a step that is no kernel's and no library's.
    Memory& made(size_t step, size_t result) { return at(m_made[step], result); }
    /// 0 on success. The outputs are there until the function runs again.
    int32_t runFunction(size_t function, const std::vector<CtTensor>& inputs, std::vector<CtTensor>& outputs);
    /// 0 on success.
    int32_t call(size_t step, const char* node, const char* library, const CtCall& wanted, int64_t nanoseconds) {
        const CtParallel lent = lentFor(nanoseconds);
        if (!m_planned[step] && !plan(step, node, library, wanted, lent.threads)) return 1;
        const Planned& planned = *m_planned[step];
        if (planned.run(wanted.operands, wanted.results, m_scratch.grow(planned.scratch()), lent)) return 0;
        return fail(node, planned.error());
    }

  private:
    /// As many threads as are worth waking.
    CtParallel lentFor(int64_t nanoseconds) const;
    bool plan(size_t step, const char* node, const char* name, const CtCall& wanted, int32_t threads);
    static Memory& at(std::vector<std::unique_ptr<Memory>>& memories, size_t number) {
        while (memories.size() <= number) memories.push_back(std::make_unique<Memory>());
        return *memories[number];
    }

    CtContext* m_context;
    size_t m_function;
    Memory m_scratch;
    std::vector<std::unique_ptr<Memory>> m_arenas;
    std::map<size_t, std::vector<std::unique_ptr<Memory>>> m_made;  // by step
    std::vector<int64_t> m_symbols;                                 // of the latest run
    size_t m_known = 0;                                             // how many of them are known so far
    std::map<size_t, std::vector<std::vector<int64_t>>> m_found;    // sizes of results, by step
    std::vector<std::shared_ptr<Planned>> m_planned;                // by step, for these symbols
    std::vector<std::unique_ptr<Memory>> m_inputs;                  // that were given in another layout
};

}  // namespace ct

struct CtProgram {
    const ct::Code* code = nullptr;
    const CtHost* host = nullptr;
    std::vector<CtTensor> constants;
    std::vector<std::unique_ptr<ct::Memory>> owned;  // of constants that were given in another layout
    std::shared_ptr<const void> kept;                // that constants lie in
    std::mutex mutex;
    /// By function and step, each for its threads and sizes: contexts of the same sizes share plans and packed
    /// constants. The latest first, and no more than kKeptPlans: sizes that come from data may never come again.
    using Plans = std::list<std::pair<std::vector<int64_t>, std::shared_ptr<ct::Planned>>>;
    std::map<std::pair<size_t, size_t>, Plans> planned;
    static constexpr size_t kKeptPlans = 8;
};

struct CtContext {
    CtProgram* program;
    CtParallel parallel{};
    CtRandom random{};
    std::vector<std::unique_ptr<ct::Memory>> state;
    std::vector<std::unique_ptr<ct::Frame>> frames;  // by function
    std::string error;
};

namespace ct {

inline int32_t Frame::find(size_t step, const char* node, const char* library, const CtCall& wanted) {
    const CtLibrary* const found = m_context->program->host->library(library);
    if (found == nullptr) return fail(node, std::string("there is no library ") + library);
    struct Taking {
        Frame* frame;
        size_t step;
        const CtCall* call;
    } taking{this, step, &wanted};
    m_found[step].assign(static_cast<size_t>(wanted.resultCount), {});
    CtResults results{&taking, [](CtResults* self, int32_t result, int32_t rank, const int64_t* sizes) -> void* {
                          Taking& own = *static_cast<Taking*>(self->own);
                          const auto number = static_cast<size_t>(result);
                          own.frame->m_found[own.step][number].assign(sizes, sizes + rank);
                          int64_t bytes = bytesOf(own.call->results[result].dtype);
                          for (int32_t d = 0; d < rank; ++d)
                              if (__builtin_mul_overflow(bytes, sizes[d], &bytes)) throw std::bad_alloc();
                          return own.frame->made(own.step, number).grow(bytes);
                      }};
    CtParallel lent = lentFor(0);
    lent.results = &results;
    const Planned planned(*found, wanted, lent.threads);
    if (!planned.isPlanned()) return fail(node, planned.error());
    return planned.run(wanted.operands, wanted.results, m_scratch.grow(planned.scratch()), lent)
               ? 0
               : fail(node, planned.error());
}
inline int32_t Frame::runFunction(size_t function, const std::vector<CtTensor>& inputs,
                                  std::vector<CtTensor>& outputs) {
    const Function& own = m_context->program->code->functions[function];
    outputs.assign(own.results, {});
    return own.run(*m_context->frames[function], inputs.data(), outputs.data());
}
inline const CtTensor* Frame::constants() const { return m_context->program->constants.data(); }
inline void* Frame::state(size_t number) const { return m_context->state[number]->data(); }
inline int32_t Frame::fail(const std::string& where, const std::string& what) {
    m_context->error = where.empty() ? what : where + ": " + what;
    return 1;
}
inline CtParallel Frame::lentFor(int64_t nanoseconds) const {
    CtParallel lent = m_context->parallel;
    lent.random = &m_context->random;
    lent.threads = cutaway::threadsWorth(nanoseconds, lent.threads);
    return lent;
}
inline bool Frame::plan(size_t step, const char* node, const char* name, const CtCall& wanted, int32_t threads) {
    std::vector<int64_t> key = {threads};
    key.insert(key.end(), m_symbols.begin(), m_symbols.begin() + static_cast<std::ptrdiff_t>(m_known));
    CtProgram& program = *m_context->program;
    const std::lock_guard<std::mutex> lock(program.mutex);
    CtProgram::Plans& kept = program.planned[{m_function, step}];
    const auto known = std::find_if(kept.begin(), kept.end(), [&](const auto& entry) { return entry.first == key; });
    if (known != kept.end()) {
        kept.splice(kept.begin(), kept, known);
    } else {
        const CtLibrary* const library = program.host->library(name);
        if (library == nullptr) return fail(node, std::string("there is no library ") + name) == 0;
        auto fresh = std::make_shared<Planned>(*library, wanted, threads);
        if (!fresh->pack(kept)) return fail(node, library->error()) == 0;
        kept.emplace_front(std::move(key), std::move(fresh));
        if (kept.size() > CtProgram::kKeptPlans) kept.pop_back();
    }
    m_planned[step] = kept.front().second;
    return true;
}

}  // namespace ct
#endif
