#pragma once
// What runs the kernels of a host program.
#include <map>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/host/host_program.h"

namespace cutaway {

class ThreadPool;

/// One function of a kernel over its whole range.
struct KernelLaunch {
    size_t kernel = 0, launch = 0;
    void* const* buffers = nullptr;  // of the kernel, then its workspaces
    const int64_t* sizes = nullptr;  // values of HostKernel::sizes
    int64_t range = 0;
    const ThreadPool* pool = nullptr;  // lent by who runs it, so many threads of it
    int threads = 1;
    int* fault = nullptr;  // of the step, in the device's memory; null: the launch returns it
};

/// Re-entrant.
class KernelCode {
  public:
    virtual ~KernelCode() = default;
    /// Returns 0, or 1 for an index from data out of range, 2 for a division by zero, unless there is a word for that;
    /// then it may return before all is done. Errors: the device's.
    virtual Result<int> launch(const KernelLaunch& what) const = 0;
};

/// Compiled kernels.
class CompiledKernels final : public KernelCode {
  public:
    /// `libraries`: by kernel, the path of the one that has its functions. Errors: one that cannot be loaded, or
    /// that does not have them.
    static Result<std::unique_ptr<CompiledKernels>> load(const HostProgram& program,
                                                         const std::vector<std::string>& libraries);
    ~CompiledKernels() override;
    CompiledKernels(const CompiledKernels&) = delete;
    CompiledKernels& operator=(const CompiledKernels&) = delete;
    /// Splits the range among the threads.
    Result<int> launch(const KernelLaunch& what) const override;

  private:
    using Function = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);
    CompiledKernels() = default;
    std::map<std::string, void*> m_handles;  // by path
    struct Entry {
        Function run = nullptr;
        int64_t unit = 1;  // steps that one thread takes at least
    };
    std::vector<std::vector<Entry>> m_functions;
};

}  // namespace cutaway
