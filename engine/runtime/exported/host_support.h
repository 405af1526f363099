#ifndef CUTAWAY_HOST_SUPPORT_H
#define CUTAWAY_HOST_SUPPORT_H
// What is behind frame.h and interface.h: memory, the plans of library calls, programs and contexts. C++17 and nothing
// of the engine, since exported programs carry this file. Memory that cannot be had is std::bad_alloc, which guarded.h
// makes an error of.
#include <algorithm>
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
#include "engine/runtime/exported/frame.h"

namespace ct {

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

}  // namespace ct

namespace ct {

/// A program's constants, and what libraries have made of them. They never change: an update makes others.
struct Weights {
    std::vector<CtTensor> constants;                  // of rank -1 until they are given
    std::vector<std::shared_ptr<const void>> memory;  // that each lies in; null: its giver's
    std::mutex mutex;                                 // of the plans
    /// By function and step, each for its threads and sizes: contexts of the same sizes share plans and packed
    /// constants. The latest first, and no more than kKeptPlans: sizes that come from data may never come again.
    using Plans = std::list<std::pair<std::vector<int64_t>, std::shared_ptr<Planned>>>;
    std::map<std::pair<size_t, size_t>, Plans> planned;
    static constexpr size_t kKeptPlans = 8;
};

}  // namespace ct

struct CtProgram {
    const ct::Code* code = nullptr;
    const CtHost* host = nullptr;
    std::mutex updating, mutex;  // one update at a time; of the two pointers
    /// What runs begin with from now on, and what is to come in its place.
    std::shared_ptr<ct::Weights> current = std::make_shared<ct::Weights>(), next;
};

namespace ct {
/// As interface.h's; `memory`: that the constants lie in, kept as long as they are used.
CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants, std::shared_ptr<const void> memory);
}  // namespace ct

struct CtContext {
    CtProgram* program;
    std::shared_ptr<ct::Weights> weights;  // of the latest run
    CtParallel parallel{};
    CtRandom random{};
    std::vector<std::unique_ptr<ct::Memory>> state;
    std::vector<std::unique_ptr<ct::Frame>> frames;  // by function
    std::string error;
};

#endif
