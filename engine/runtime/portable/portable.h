#pragma once
// What portable functions are made of: operators as plain C++ over tensors in memory, for every dtype, any strides and
// up to 16 dims. Nothing of the engine is used, so that exported programs can carry these files as they stand.
#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/runtime/portable/elements.h"

namespace cutaway::portable {

/// As many elements as loops convert at a time, or 4 KiB of them: both stay in the processor's nearest memory.
constexpr int64_t kChunk = 256;
template <class T>
constexpr int64_t kBlock = int64_t{4096 / sizeof(T)};
/// Bytes of the widest element.
constexpr int64_t kWidest = sizeof(std::complex<double>);

/// What a user's data can cause: an index outside, a source that is too short.
class Failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A tensor of at least one dim: numbers have one, of size 1.
struct Strided {
    char* data = nullptr;
    int32_t dtype = CT_F32;
    int32_t rank = 1;
    int64_t sizes[CT_MAX_RANK] = {1}, strides[CT_MAX_RANK] = {1};

    Strided() = default;
    explicit Strided(const CtTensor& tensor);
    int64_t elements() const;
    /// The element at this offset.
    char* at(int64_t offset) const { return data + offset * bytesOf(dtype); }
    /// Where element `number` lies, counted row by row, over all dims but one (-1: over all).
    int64_t offsetOf(int64_t number, int32_t without = -1) const;
};

struct Run;

/// An operator. Functions are called for parts of one call by several threads at once and keep nothing.
struct Function {
    const char* op;  // "aten.cumsum.default"
    void (*run)(const Run& run);
    /// Bytes of scratch memory for so many tasks; null: none.
    int64_t (*scratch)(const CtCall& call, int32_t tasks) = nullptr;
    /// The sizes of its results follow from its data: it takes their memory from the run.
    bool finds = false;
};

/// One run of a call. Its parts are shared among `tasks`, whose number results do not depend on.
struct Run {
    const CtCall* call;
    const CtTensor *operands, *results;
    char* scratch;
    const CtParallel* parallel;
    int32_t tasks;

    Strided in(int32_t parameter) const { return Strided(operands[call->args[parameter].integer]); }
    bool wants(int32_t result) const { return results[result].rank >= 0; }
    Strided out(int32_t result = 0) const { return Strided(results[result]); }
    /// body(task, begin, end) for parts of `count` items that do not touch each other's. Of failures the first
    /// item's is kept.
    template <class Body>
    void share(int64_t count, Body&& body) const;

  private:
    void shareParts(int64_t count, void (*part)(void* body, int64_t task, int64_t begin, int64_t end),
                    void* body) const;
};

// -- arguments, by their place in the operator's schema

inline bool isGiven(const CtCall& call, int32_t parameter) { return call.args[parameter].kind != CT_NONE; }
inline Strided operandOf(const CtCall& call, int32_t parameter) {
    return Strided(call.operands[call.args[parameter].integer]);
}
inline int64_t integerOf(const CtCall& call, int32_t parameter) { return call.args[parameter].integer; }
template <class T>
T numberOf(const CtArgument& argument) {
    return argument.kind == CT_REAL ? loaded<T>(argument.real) : loaded<T>(argument.integer);
}
inline std::string_view textOf(const CtCall& call, int32_t parameter) {
    const CtArgument& argument = call.args[parameter];
    return argument.kind == CT_TEXT ? argument.text : "";
}
inline bool is(const CtCall& call, std::string_view op) { return op == call.op; }
/// A dim, counted from the end if negative.
inline int32_t dimOf(const CtCall& call, int32_t parameter, const Strided& tensor) {
    const int64_t dim = integerOf(call, parameter);
    return static_cast<int32_t>(dim < 0 ? dim + tensor.rank : dim);
}

/// Elements as int64, whatever they are stored as.
class Indices {
  public:
    explicit Indices(const Strided& tensor) : m_data(tensor.data), m_dtype(tensor.dtype) {}
    int64_t operator[](int64_t offset) const {
        if (m_dtype == CT_I64) return reinterpret_cast<const int64_t*>(m_data)[offset];
        if (m_dtype == CT_I32) return reinterpret_cast<const int32_t*>(m_data)[offset];
        return loadOne<int64_t>(m_dtype, m_data + offset * bytesOf(m_dtype));
    }

  private:
    const char* m_data;
    int32_t m_dtype;
};

[[noreturn]] void failOutside(int64_t index, int64_t dim, int64_t size);

inline void copyElement(int64_t bytes, const char* from, char* to) {
    switch (bytes) {
        case 1: *to = *from; return;
        case 2: std::memcpy(to, from, 2); return;
        case 4: std::memcpy(to, from, 4); return;
        case 8: std::memcpy(to, from, 8); return;
        default: std::memcpy(to, from, 16);
    }
}
/// Elements to the same places of another tensor of the same sizes and dtype.
void copyAll(const Run& run, const Strided& from, const Strided& to);
/// The same into a tensor of any dtype.
void convertAll(const Run& run, const Strided& from, const Strided& to);
/// All elements, row by row.
template <class T>
void loadAll(const Strided& tensor, T* to);
/// Element `begin` to `end` of those of the tensor, row by row.
template <class T>
void storeRange(const Strided& tensor, int64_t begin, int64_t end, const T* from);
/// The tensor as repeated to these sizes.
Strided broadcast(const Strided& tensor, const int64_t* sizes, int32_t rank);

// -- definitions

inline int64_t Strided::elements() const {
    int64_t count = 1;
    for (int32_t d = 0; d < rank; ++d) count *= sizes[d];
    return count;
}
inline int64_t Strided::offsetOf(int64_t number, int32_t without) const {
    int64_t offset = 0;
    for (int32_t d = rank; d-- > 0;) {
        if (d == without) continue;
        offset += number % sizes[d] * strides[d];
        number /= sizes[d];
    }
    return offset;
}

template <class Body>
void Run::share(int64_t count, Body&& body) const {
    using Callee = std::remove_reference_t<Body>;
    shareParts(
        count,
        [](void* callee, int64_t task, int64_t begin, int64_t end) {
            (*static_cast<Callee*>(callee))(task, begin, end);
        },
        &body);
}

/// body(offsets of a row in a and b, its number) for the rows `begin` to `end` along the last dim.
template <class Body>
void forRows(const Strided& a, const Strided& b, int64_t begin, int64_t end, Body&& body) {
    for (int64_t row = begin; row < end; ++row) body(a.offsetOf(row, a.rank - 1), b.offsetOf(row, b.rank - 1), row);
}
inline int64_t rowsOf(const Strided& tensor) {
    const int64_t length = tensor.sizes[tensor.rank - 1];
    return length == 0 ? 0 : tensor.elements() / length;
}
// -- the table, by files

std::span<const Function> scanFunctions();
std::span<const Function> orderFunctions();
std::span<const Function> scatterFunctions();
std::span<const Function> indexFunctions();
std::span<const Function> maskFunctions();
std::span<const Function> windowFunctions();
std::span<const Function> gridFunctions();
std::span<const Function> productFunctions();
std::span<const Function> drawFunctions();
std::span<const Function> findFunctions();
std::span<const Function> findDistinctFunctions();
std::span<const Function> quantizedFunctions();
std::span<const Function> observeFunctions();
std::span<const Function> convolveFunctions();
std::span<const Function> transformFunctions();
std::span<const Function> reduceFunctions();
std::span<const Function> moveFunctions();
std::span<const Function> pointwiseFunctions();
std::span<const Function> bagFunctions();
std::span<const Function> bagWeightsFunctions();
std::span<const Function> antialiasFunctions();
std::span<const Function> poolFunctions();
std::span<const Function> makeFunctions();

/// Linear algebra, a library of its own ("LAPACK"), and no part of the table: who has it links LAPACK.
std::span<const Function> linearFunctions();
/// That of an operator in place ("aten.index_put_.default") is the functional one's. Null if there is none.
const Function* functionOf(std::string_view op);
bool isInPlace(std::string_view op);
/// Runs the function. An operator in place writes to its first operand, whatever shares that memory, and its result is
/// a copy of that.
void runCall(const Function& function, Run run);
std::span<const std::span<const Function>> allFunctions();

}  // namespace cutaway::portable
