#pragma once
// What runs the kernels of a host program.
#include <map>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/host/host_program.h"

namespace cutaway {

/// Re-entrant.
class KernelCode {
  public:
    virtual ~KernelCode() = default;
    /// Part [begin, end) of a launch. Returns 0, or 1 for an index from data out of range, 2 for a division by zero.
    virtual int run(size_t kernel, size_t launch, void* const* buffers, const std::vector<int64_t>& sizes,
                    int64_t begin, int64_t end) const = 0;
};

/// Compiled kernels.
class CompiledKernels final : public KernelCode {
  public:
    /// `libraries`: of each kernel the path of the one that has its functions. Errors: one that cannot be loaded, or
    /// that does not have them.
    static Result<std::unique_ptr<CompiledKernels>> load(const HostProgram& program,
                                                         const std::vector<std::string>& libraries);
    ~CompiledKernels() override;
    CompiledKernels(const CompiledKernels&) = delete;
    CompiledKernels& operator=(const CompiledKernels&) = delete;
    int run(size_t kernel, size_t launch, void* const* buffers, const std::vector<int64_t>& sizes, int64_t begin,
            int64_t end) const override;

  private:
    using Function = void (*)(void* const*, const int64_t*, int64_t, int64_t, int*);
    CompiledKernels() = default;
    std::map<std::string, void*> m_handles;  // by path
    std::vector<std::vector<Function>> m_functions;
};

}  // namespace cutaway
