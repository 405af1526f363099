#ifndef CUTAWAY_FRAME_H
#define CUTAWAY_FRAME_H
// What printed host programs (codegen/host_printer.h) stand on: memory of a context, shared loops, and calls of
// libraries. C++17 and nothing of the engine. Each exported model's source is compiled with this file, so it includes
// no large header of the standard library: what it declares lies compiled in the runtime's archive.
#include <cstddef>
#include <initializer_list>

#include "engine/runtime/exported/program.h"

namespace ct {

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);

class Frame;
/// A printed program: what is run, and the graphs that its calls run.
struct Function {
    size_t steps, results;
    int32_t (*run)(Frame& frame, const CtTensor* inputs, CtTensor* outputs);
};
struct Code {
    const CtProgramInfo* info;
    size_t functionCount;
    const Function* functions;
};

/// How a call runs graphs (cond, while_loop, map, scan, associative_scan, or one graph once).
enum class Graphs { Cond, WhileLoop, Map, Scan, AssociativeScan, Run };

/// The number in a tensor of one element, without its fraction.
int64_t numberIn(const CtTensor& tensor);
/// Throws: sizes may follow from data, so no number of theirs is taken for one that fits.
[[noreturn]] void failSize();

/// One function in one context: its memory, and what it has planned for the sizes of the latest run.
class Frame {
  public:
    Frame(CtContext& context, size_t function, size_t steps);
    ~Frame();
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    const CtTensor* constants() const;
    /// Buffer `number` of those that the graph writes to.
    void* state(size_t number) const;
    /// Memory of a segment's values. A segment ends with a step that finds a size in data.
    char* arena(size_t segment, int64_t bytes);

    int32_t fail(const char* where, const char* what);
    /// Begins a run with these symbols: where they differ from the latest run's, calls get other plans.
    void begin(std::initializer_list<int64_t> now);
    /// Input `number` as the graph reads it: a copy where it lies in another way. One that the graph writes to must lie
    /// as the graph says. Null: it does not fit.
    char* given(const char* name, const CtTensor& given, const CtTensor& wanted, bool written, size_t number);
    /// Sizes of a value that follow from data. False: there is no such tensor.
    bool fits(const char* name, std::initializer_list<int64_t> sizes);
    /// Runs one function of a kernel over all parts of its loop; gives its fault (codegen/cpp_printer.h), 0 for none.
    /// `unit`: steps of the loop that stay together.
    int launch(Kernel kernel, void* const* buffers, const int64_t* sizes, int64_t range, int64_t unit,
               int64_t nanoseconds);
    /// Of a kernel that failed: where its code is, and which nodes read indices or divisors from data.
    int32_t failed(int fault, const char* checking);
    /// A library's call. 0 on success.
    int32_t call(size_t step, const char* node, const char* library, const CtCall& wanted, int64_t nanoseconds);
    /// The graphs of a call, as Graphs says; a list of tensors for each of its other operands. `results` say what they
    /// are, without memory: that is made(step, result). 0 on success.
    int32_t graphs(Graphs kind, size_t step, const char* node, std::initializer_list<size_t> functions,
                   std::initializer_list<std::initializer_list<CtTensor>> operands,
                   std::initializer_list<CtTensor> results);
    /// A call whose results' sizes follow from its data. 0 on success: made(step, result) and foundSize() have them.
    int32_t find(size_t step, const char* node, const char* library, const CtCall& wanted);
    int64_t foundSize(size_t step, size_t result, size_t dim) const;
    /// Moves a result that a step has found into memory with these strides.
    void restride(size_t step, size_t result, int32_t dtype, const int64_t* strides);
    /// A size that a step has found: where it is another one than in the latest run, later steps are planned again.
    void found(int64_t size, size_t step);
    /// A result of a step that is not a kernel's and no library's.
    char* made(size_t step, size_t result);
    char* make(size_t step, size_t result, int64_t bytes);
    /// Result `number` of the function; the tensor is there until the function runs again.
    CtTensor result(size_t number, void* data, int32_t dtype, std::initializer_list<int64_t> sizes,
                    std::initializer_list<int64_t> strides);
    /// 0 on success. The outputs, as many as it has results, are there until the function runs again.
    int32_t runFunction(size_t function, const CtTensor* inputs, CtTensor* outputs);
    size_t resultsOf(size_t function) const;
    /// Forgets what was planned: the context has other weights.
    void forgetPlans();

  private:
    struct Own;
    Own* m_own;
};

}  // namespace ct
#endif
