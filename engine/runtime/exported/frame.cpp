#include "engine/runtime/exported/frame.h"

#include <atomic>
#include <stdexcept>

#include "engine/runtime/exported/host_support.h"
#include "engine/support/threads.h"

namespace ct {

int64_t numberIn(const CtTensor& t) {
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

void failSize() { throw std::overflow_error("a size does not fit into 64 bits for these inputs"); }

struct Frame::Own {
    CtContext* context;
    size_t function;
    Memory scratch;
    std::vector<std::unique_ptr<Memory>> arenas;
    std::map<size_t, std::vector<std::unique_ptr<Memory>>> made;  // by step
    std::vector<int64_t> symbols;                                 // of the latest run
    size_t known = 0;                                             // how many of them are known so far
    std::map<size_t, std::vector<std::vector<int64_t>>> found;    // sizes of results, by step
    std::vector<std::shared_ptr<Planned>> planned;                // by step, for these symbols
    std::vector<std::unique_ptr<Memory>> inputs;                  // that were given in another layout
    std::vector<std::vector<int64_t>> dims;                       // of what was returned

    static Memory& at(std::vector<std::unique_ptr<Memory>>& memories, size_t number) {
        while (memories.size() <= number) memories.push_back(std::make_unique<Memory>());
        return *memories[number];
    }
    int32_t fail(const std::string& where, const std::string& what) {
        context->error = where.empty() ? what : where + ": " + what;
        return 1;
    }
    /// As many threads as are worth waking.
    CtParallel lentFor(int64_t nanoseconds) const {
        CtParallel lent = context->parallel;
        lent.random = &context->random;
        lent.threads = cutaway::threadsWorth(nanoseconds, lent.threads);
        return lent;
    }
    bool plan(size_t step, const char* node, const char* name, const CtCall& wanted, int32_t threads);
};

Frame::Frame(CtContext& context, size_t function, size_t steps) : m_own(new Own) {
    m_own->context = &context;
    m_own->function = function;
    m_own->planned.resize(steps);
}
Frame::~Frame() { delete m_own; }

const CtTensor* Frame::constants() const { return m_own->context->weights->constants.data(); }
void* Frame::state(size_t number) const { return m_own->context->state[number]->data(); }
char* Frame::arena(size_t segment, int64_t bytes) { return Own::at(m_own->arenas, segment).grow(bytes); }
int32_t Frame::fail(const char* where, const char* what) { return m_own->fail(where, what); }

void Frame::begin(std::initializer_list<int64_t> now) {
    m_own->known = now.size();
    if (m_own->symbols.size() >= now.size() && std::equal(now.begin(), now.end(), m_own->symbols.begin())) return;
    m_own->symbols = now;
    forgetPlans();
}
void Frame::forgetPlans() {
    for (auto& plan : m_own->planned) plan.reset();
}

char* Frame::given(const char* name, const CtTensor& given, const CtTensor& wanted, bool written, size_t number) {
    bool same = given.dtype == wanted.dtype && given.rank == wanted.rank;
    for (int32_t d = 0; same && d < wanted.rank; ++d) same = given.sizes[d] == wanted.sizes[d];
    const bool lies = same && liesAs(given, wanted.strides);
    if (lies) return static_cast<char*>(given.data);
    if (same && !written) {
        char* const own =
            Own::at(m_own->inputs, number).grow(extentOf(wanted.dtype, wanted.rank, wanted.sizes, wanted.strides));
        layOut(given, wanted.strides, own);
        return own;
    }
    std::string all;
    for (int32_t d = 0; d < wanted.rank; ++d) {
        all += (d > 0 ? ", " : "") + std::to_string(wanted.sizes[d]);
        if (same) all += " (stride " + std::to_string(wanted.strides[d]) + ")";
    }
    m_own->fail(std::string("input '") + name + "'", std::string("must be ") + nameOfType(wanted.dtype) + "[" + all +
                                                         "], not " + nameOfType(given.dtype) + "[" + shapeOf(given) +
                                                         "]" + (same ? ", since the graph writes to it" : ""));
    return nullptr;
}
bool Frame::fits(const char* name, std::initializer_list<int64_t> sizes) {
    const bool counts = std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
    return counts || fail(name, "its sizes are negative for these inputs") == 0;
}

int Frame::launch(Kernel kernel, void* const* buffers, const int64_t* sizes, int64_t range, int64_t unit,
                  int64_t nanoseconds) {
    if (range <= 0) return 0;
    struct State {
        Kernel kernel;
        void* const* buffers;
        const int64_t* sizes;
        std::atomic<int> fault{0};
    } state{kernel, buffers, sizes};
    const CtParallel lent = m_own->lentFor(nanoseconds);
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
int32_t Frame::failed(int fault, const char* checking) {
    return fail(checking, fault == 1 ? "an index that comes from data is out of range" : "integer division by zero");
}

int32_t Frame::call(size_t step, const char* node, const char* library, const CtCall& wanted, int64_t nanoseconds) {
    const CtParallel lent = m_own->lentFor(nanoseconds);
    if (!m_own->planned[step] && !m_own->plan(step, node, library, wanted, lent.threads)) return 1;
    const Planned& planned = *m_own->planned[step];
    if (planned.run(wanted.operands, wanted.results, m_own->scratch.grow(planned.scratch()), lent)) return 0;
    return fail(node, planned.error());
}

bool Frame::Own::plan(size_t step, const char* node, const char* name, const CtCall& wanted, int32_t threads) {
    std::vector<int64_t> key = {threads};
    key.insert(key.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(known));
    Weights& weights = *context->weights;
    const std::lock_guard<std::mutex> lock(weights.mutex);
    Weights::Plans& kept = weights.planned[{function, step}];
    const auto there = std::find_if(kept.begin(), kept.end(), [&](const auto& entry) { return entry.first == key; });
    if (there != kept.end()) {
        kept.splice(kept.begin(), kept, there);
    } else {
        const CtLibrary* const library = context->program->host->library(name);
        if (library == nullptr) return fail(node, std::string("there is no library ") + name) == 0;
        auto fresh = std::make_shared<Planned>(*library, wanted, threads);
        if (!fresh->pack(kept)) return fail(node, library->error()) == 0;
        kept.emplace_front(std::move(key), std::move(fresh));
        if (kept.size() > Weights::kKeptPlans) kept.pop_back();
    }
    planned[step] = kept.front().second;
    return true;
}

int32_t Frame::find(size_t step, const char* node, const char* library, const CtCall& wanted) {
    const CtLibrary* const found = m_own->context->program->host->library(library);
    if (found == nullptr) return m_own->fail(node, std::string("there is no library ") + library);
    struct Taking {
        Frame::Own* frame;
        size_t step;
        const CtCall* call;
    } taking{m_own, step, &wanted};
    m_own->found[step].assign(static_cast<size_t>(wanted.resultCount), {});
    CtResults results{&taking, [](CtResults* self, int32_t result, int32_t rank, const int64_t* sizes) -> void* {
                          Taking& own = *static_cast<Taking*>(self->own);
                          const auto number = static_cast<size_t>(result);
                          own.frame->found[own.step][number].assign(sizes, sizes + rank);
                          int64_t bytes = bytesOf(own.call->results[result].dtype);
                          for (int32_t d = 0; d < rank; ++d)
                              if (__builtin_mul_overflow(bytes, sizes[d], &bytes)) throw std::bad_alloc();
                          return Own::at(own.frame->made[own.step], number).grow(bytes);
                      }};
    CtParallel lent = m_own->lentFor(0);
    lent.results = &results;
    const Planned planned(*found, wanted, lent.threads);
    if (!planned.isPlanned()) return fail(node, planned.error());
    return planned.run(wanted.operands, wanted.results, m_own->scratch.grow(planned.scratch()), lent)
               ? 0
               : fail(node, planned.error());
}
int64_t Frame::foundSize(size_t step, size_t result, size_t dim) const {
    return m_own->found.at(step).at(result).at(dim);
}
void Frame::restride(size_t step, size_t result, int32_t dtype, const int64_t* strides) {
    const std::vector<int64_t>& sizes = m_own->found.at(step).at(result);
    std::vector<int64_t> rows(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) rows[d - 1] = rows[d] * sizes[d];
    const auto rank = static_cast<int32_t>(sizes.size());
    auto laid = std::make_unique<Memory>();
    laid->grow(extentOf(dtype, rank, sizes.data(), strides));
    layOut({made(step, result), dtype, rank, sizes.data(), rows.data()}, strides, laid->data());
    m_own->made[step][result] = std::move(laid);
}
void Frame::found(int64_t size, size_t step) {
    if (m_own->known < m_own->symbols.size() && m_own->symbols[m_own->known] == size) {
        ++m_own->known;
        return;
    }
    m_own->symbols.resize(m_own->known++);
    m_own->symbols.push_back(size);
    for (size_t later = step; later < m_own->planned.size(); ++later) m_own->planned[later].reset();
}
char* Frame::made(size_t step, size_t result) { return Own::at(m_own->made[step], result).data(); }
char* Frame::make(size_t step, size_t result, int64_t bytes) { return Own::at(m_own->made[step], result).grow(bytes); }

CtTensor Frame::result(size_t number, void* data, int32_t dtype, std::initializer_list<int64_t> sizes,
                       std::initializer_list<int64_t> strides) {
    if (m_own->dims.size() < 2 * number + 2) m_own->dims.resize(2 * number + 2);
    std::vector<int64_t>&ownSizes = m_own->dims[2 * number], &ownStrides = m_own->dims[2 * number + 1];
    ownSizes = sizes;
    ownStrides = strides;
    return {data, dtype, static_cast<int32_t>(sizes.size()), ownSizes.data(), ownStrides.data()};
}
int32_t Frame::runFunction(size_t function, const CtTensor* inputs, CtTensor* outputs) {
    const Code& code = *m_own->context->program->code;
    return code.functions[function].run(*m_own->context->frames[function], inputs, outputs);
}
size_t Frame::resultsOf(size_t function) const { return m_own->context->program->code->functions[function].results; }

}  // namespace ct
