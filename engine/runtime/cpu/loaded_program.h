#pragma once
// A host program with its code, its weights and what libraries have planned: never changes, so any number of contexts
// run it at once (host_context.h).
#include <list>
#include <mutex>

#include "engine/host/bind_host.h"
#include "engine/runtime/cpu/kernel_code.h"
#include "engine/runtime/cpu/thread_pool.h"
#include "engine/runtime/libraries/planned_call.h"

namespace cutaway {

/// A segment, and all before it, for one set of sizes.
struct PreparedSegment {
    struct Call {
        std::shared_ptr<const PlannedCall> plan;  // null: a kernel, or the library has refused
        std::vector<int64_t> operands;            // value numbers, in the order of the plan's
    };
    BoundFunction bound;
    std::vector<Call> calls;  // by step
    int64_t scratch = 0;      // bytes, of the call that needs most
};

struct ProgramOptions {
    int threads = 0;          // 0 = one per core
    bool splitSmall = false;  // all threads for every kernel, however little there is to do
};

class LoadedProgram {
  public:
    /// `constants`: in the order of the program's. `weights`: of each function its parameters that are constant, at
    /// their places; the rest is undefined. All are read where they lie.
    LoadedProgram(HostProgram program, std::unique_ptr<KernelCode> code, std::vector<Tensor> constants,
                  std::vector<std::vector<Tensor>> weights, const ProgramOptions& options);

    const HostProgram& program() const { return m_program; }
    const KernelCode& code() const { return *m_code; }
    const ThreadPool& pool() const { return m_pool; }
    /// Threads that a step gets.
    int threadsFor(const BoundStep& step) const;
    /// A constant, or a constant parameter of the function; undefined for all other values.
    Tensor constant(size_t function, const HostValue& value) const;

    /// Made when first asked for; the latest few are kept. `before`: of the segment before it, for these sizes. Errors:
    /// of bindSegment, and of a library that cannot pack its weights.
    Result<std::shared_ptr<const PreparedSegment>> prepare(size_t function, size_t segment, const SymbolValues& sizes,
                                                           const PreparedSegment* before);

  private:
    struct Kept {
        size_t function = 0, segment = 0;
        SymbolValues sizes;
        std::shared_ptr<const PreparedSegment> prepared;
    };
    Result<PreparedSegment::Call> plan(size_t function, const HostStep& step, const BoundStep& bound,
                                       const BoundFunction& values) const;

    HostProgram m_program;
    std::unique_ptr<KernelCode> m_code;
    std::vector<Tensor> m_constants;
    std::vector<std::vector<Tensor>> m_weights;
    ThreadPool m_pool;
    bool m_splitSmall;
    std::mutex m_mutex;
    std::list<Kept> m_kept;  // the latest first
};

}  // namespace cutaway
